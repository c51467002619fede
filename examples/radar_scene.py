"""A radar scene: complex Hermitian matrices, pixel by pixel

Polarimetric radar measures one 3 x 3 complex coherency matrix per pixel. The AIRSAR scene of San Francisco has 900 x
1024 pixels and labels for five kinds of ground. We train on 400 pixels per class, taken from one half of the scene,
block by block, and classify all 921 600 pixels. Complex Hermitian matrices need no other call than real ones. The
classifier of the class means (MDM) is trained and tested on the same pixels.

Data: `polsar_sf_airsar_T3.npz` holds the nine real planes of the coherency matrices (`planes`, `plane_names`) and the
labels. The planes are at <https://www.ietr.fr/polsarpro-bio/sanfrancisco> (courtesy of NASA-JPL), and the labels at
<https://github.com/liuxuvip/PolSF> (Liu, Jiao and Liu, "PolSF: PolSAR image dataset on San Francisco",
arXiv:1912.07259). The page "Data sets" of the documentation shows how to make the file. The environment variable
RPLVQ_DATA names its folder, by default `data`.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.ndimage import maximum_filter, uniform_filter

from rplvq import RiemannianLVQ

# %% Nine real planes give one Hermitian matrix per pixel; averages over 5 x 5 pixels reduce speckle
path = Path(os.environ.get("RPLVQ_DATA", "data")) / "polsar_sf_airsar_T3.npz"
if not path.is_file():
    raise SystemExit(f"There is no file {path}: the text at the top of this script says where the data come from.")
data = np.load(path, allow_pickle=False)
smooth = (uniform_filter(plane, 5) for plane in data["planes"])
planes = dict(zip(data["plane_names"].tolist(), smooth, strict=True))
labels = data["labels"]
# as the picture shows them: kind 3 is the sea; the list of names that comes with the labels has another order
names = ["bare soil", "mountain", "water", "urban", "vegetation"]
scene = np.zeros((*labels.shape, 3, 3), dtype=complex)
for i in range(3):
    scene[..., i, i] = planes[f"T{i + 1}{i + 1}"]
    for j in range(i + 1, 3):
        entry = planes[f"T{i + 1}{j + 1}_re"] + 1j * planes[f"T{i + 1}{j + 1}_im"]
        scene[..., i, j], scene[..., j, i] = entry, entry.conj()
# rounded numbers make some pixels singular; a hundredth of a pixel's power on its diagonal makes it positive definite
scene += 1e-2 / 3 * np.trace(scene, axis1=-2, axis2=-1).real[..., None, None] * np.eye(3)

# %% Train in every second block: neighbouring pixels look alike, so random pixels would give too high a score
rng = np.random.default_rng(0)
rows, columns = np.indices(labels.shape)
is_training_block = (rows // 150 + columns // 128) % 2 == 0
train = np.zeros(labels.shape, dtype=bool)
for kind in range(1, 6):
    train.flat[rng.choice(np.flatnonzero(is_training_block & (labels == kind)), 400, replace=False)] = True
model = RiemannianLVQ(prototypes_per_class={1: 2, 2: 2, 3: 3, 4: 3, 5: 2}, init="kmeans", n_jobs=2, random_state=0)
model.fit(scene[train], labels[train])
means = RiemannianLVQ(max_epochs=0, n_jobs=2).fit(scene[train], labels[train])

# %% Classify every pixel; score the other blocks, at least 8 pixels away from the training blocks
predicted, by_means = (each.predict(scene.reshape(-1, 3, 3)).reshape(labels.shape) for each in (model, means))
far = (labels > 0) & ~maximum_filter(is_training_block, 17)
titles = ["accuracy", *names]
print(f"{np.count_nonzero(far)} labelled pixels: accuracy, and share of the pixels of each class that is found")
print(" " * 18, *titles, sep="  ")
for name, answers in (("class means (MDM)", by_means), ("trained", predicted)):
    shares = [
        np.mean(answers[far & chosen] == labels[far & chosen]) for chosen in (far, *(labels == k for k in range(1, 6)))
    ]
    print(f"{name:18s}", *(f"{share:{len(title)}.3f}" for title, share in zip(titles, shares, strict=True)), sep="  ")

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
colors = ListedColormap(["#DDDDDD", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7"])
power = np.trace(scene, axis1=-2, axis2=-1).real
axes[0].imshow(10 * np.log10(np.maximum(power, np.quantile(power, 0.01))), cmap="gray")
axes[1].imshow(labels, cmap=colors, vmin=0, vmax=5, interpolation="nearest")
axes[1].contour(is_training_block, levels=[0.5], colors="black", linewidths=0.5)
axes[2].imshow(predicted, cmap=colors, vmin=0, vmax=5, interpolation="nearest")
for ax, title in zip(
    axes, ("total power (decibels)", "labels and blocks (the upper left one trains)", "predicted"), strict=True
):
    ax.set_title(title)
    ax.set_axis_off()
handles = [plt.Rectangle((0, 0), 1, 1, color=colors(k)) for k in range(1, 6)]
figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
plt.show()
