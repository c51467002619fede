"""A radar scene: complex Hermitian matrices, pixel by pixel

Polarimetric radar measures one 3 x 3 complex coherency matrix per pixel. The AIRSAR scene of San Francisco has 900 x
1024 pixels and labels for five kinds of ground. We train on 400 pixels per class, taken from one half of the scene,
block by block, and classify all 921 600 pixels. Complex Hermitian matrices need no other call than real ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.ndimage import maximum_filter, uniform_filter
from showing import coherency_matrices, real_data, show

from rplvq import RiemannianLVQ

# %% Nine real planes give one Hermitian matrix per pixel; averages over 5 x 5 pixels reduce speckle
data = np.load(real_data("polsar_sf_airsar_T3.npz"), allow_pickle=False)
smooth = (uniform_filter(plane, 5) for plane in data["planes"])
scene = coherency_matrices(dict(zip(data["plane_names"].tolist(), smooth, strict=True)))
labels = data["labels"]

# %% Train in every second block: neighbouring pixels look alike, so random pixels would give too high a score
rng = np.random.default_rng(0)
rows, columns = np.indices(labels.shape)
is_training_block = (rows // 150 + columns // 128) % 2 == 0
train = np.zeros(labels.shape, dtype=bool)
for kind in range(1, 6):
    train.flat[rng.choice(np.flatnonzero(is_training_block & (labels == kind)), 400, replace=False)] = True
model = RiemannianLVQ(
    prototypes_per_class={1: 2, 2: 2, 3: 3, 4: 3, 5: 2}, init="kmeans", max_epochs=10, n_jobs=2, random_state=0
)
model.fit(scene[train], labels[train])

# %% Classify every pixel; score the other blocks, at least 8 pixels away from the training blocks
predicted = model.predict(scene.reshape(-1, 3, 3)).reshape(labels.shape)
far = (labels > 0) & ~maximum_filter(is_training_block, 17)
print(f"accuracy on {np.count_nonzero(far)} labelled pixels: {np.mean((predicted == labels)[far]):.3f}")
for kind in range(1, 6):
    print(f"  of kind {kind}: {np.mean(predicted[far & (labels == kind)] == kind):.3f} found")

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
show(figure)
