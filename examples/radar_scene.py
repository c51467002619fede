"""A radar scene: complex Hermitian matrices, pixel by pixel

Polarimetric radar gives one 3 x 3 complex coherency matrix a pixel. San Francisco seen by AIRSAR has 900 x 1024 of
them, and five labelled kinds of ground. We train on 100 pixels a class and classify every second pixel of every
second row. Nothing in the code says "complex": Hermitian matrices are taken as they come.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from showing import real_data, show

from rplvq import RiemannianLVQ

# %% Nine real planes -> Hermitian matrices of the area that holds all classes, every second pixel
data = np.load(real_data("polsar_sf_airsar_T3.npz"), allow_pickle=False)
planes = dict(zip(data["plane_names"].tolist(), data["planes"][:, ::2, ::2].astype(float), strict=True))
labels = data["labels"][::2, ::2]
scene = np.zeros((*labels.shape, 3, 3), dtype=complex)
for i in range(3):
    scene[..., i, i] = planes[f"T{i + 1}{i + 1}"]
    for j in range(i + 1, 3):
        entry = planes[f"T{i + 1}{j + 1}_re"] + 1j * planes[f"T{i + 1}{j + 1}_im"]
        scene[..., i, j], scene[..., j, i] = entry, entry.conj()

# %% Rounding left some pixels singular or worse: a hundredth of the identity, in units of their power, mends nearly all
power = np.trace(scene, axis1=-2, axis2=-1).real / 3
scene += 1e-2 * power[..., None, None] * np.eye(3)
usable = (power > 0) & (np.linalg.eigvalsh(scene)[..., 0] > 1e-6 * power)
print(f"{np.count_nonzero(usable)} pixels, {np.count_nonzero(labels[usable] > 0)} of them labelled")

# %% Train on 100 pixels a class
rng = np.random.default_rng(0)
kinds = np.unique(labels[labels > 0])
train = np.concatenate([rng.choice(np.flatnonzero((labels == k) & usable), 100, replace=False) for k in kinds])
model = RiemannianLVQ(prototypes_per_class=2, init="kmeans", max_epochs=10, random_state=0)
model.fit(scene.reshape(-1, 3, 3)[train], labels.ravel()[train])

# %% Classify every pixel, score those that are labelled and were not trained on
predicted = np.zeros(labels.shape, dtype=int)
predicted[usable] = model.predict(scene[usable])
unseen = labels > 0
unseen.ravel()[train] = False
print(f"accuracy on {np.count_nonzero(unseen)} unseen labelled pixels: {np.mean((predicted == labels)[unseen]):.3f}")

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
colors = ListedColormap(["#DDDDDD", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7"])
axes[0].imshow(10 * np.log10(np.maximum(power, np.quantile(power, 0.01))), cmap="gray")
axes[1].imshow(labels, cmap=colors, vmin=0, vmax=5, interpolation="nearest")
axes[2].imshow(predicted, cmap=colors, vmin=0, vmax=5, interpolation="nearest")
for ax, title in zip(axes, ("total power (decibels)", "labels (grey: none)", "predicted"), strict=True):
    ax.set_title(title)
    ax.set_axis_off()
show(figure)
