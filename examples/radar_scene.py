"""A radar scene: complex Hermitian matrices, pixel by pixel

Polarimetric radar gives one 3 x 3 complex coherency matrix a pixel. San Francisco seen by AIRSAR has 900 x 1024 of
them, and five labelled kinds of ground. We train on 400 pixels a class from the left fifth of the scene and
classify all 921 600. Nothing in the code says "complex": Hermitian matrices are taken as they come.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.ndimage import uniform_filter
from showing import coherency_matrices, real_data, show

from rplvq import RiemannianLVQ

# %% Nine real planes -> one Hermitian matrix a pixel, averaged over 5 x 5 pixels against the speckle
data = np.load(real_data("polsar_sf_airsar_T3.npz"), allow_pickle=False)
smooth = (uniform_filter(plane, 5) for plane in data["planes"])
scene = coherency_matrices(dict(zip(data["plane_names"].tolist(), smooth, strict=True)))
labels, classes = data["labels"], data["classes"]

# %% Train on the left 200 columns. Neighbouring pixels look alike, so random pixels would flatter the score.
rng = np.random.default_rng(0)
train = np.zeros(labels.shape, dtype=bool)
for kind in range(1, 6):
    train.flat[rng.choice(np.flatnonzero((labels == kind) & (np.arange(1024) < 200)), 400, replace=False)] = True
model = RiemannianLVQ(
    prototypes_per_class={1: 2, 2: 2, 3: 3, 4: 3, 5: 2}, init="kmeans", max_epochs=10, n_jobs=2, random_state=0
)
model.fit(scene[train], labels[train])

# %% Classify every pixel; score what lies at least 16 columns away from the training part
predicted = model.predict(scene.reshape(-1, 3, 3)).reshape(labels.shape)
far = (labels > 0) & (np.arange(1024) >= 216)
print(f"accuracy on {np.count_nonzero(far)} labelled pixels: {np.mean((predicted == labels)[far]):.3f}")
for kind in range(1, 6):
    print(f"  {classes[kind]}: {np.mean(predicted[far & (labels == kind)] == kind):.3f} found")

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
colors = ListedColormap(["#DDDDDD", "#56B4E9", "#009E73", "#D55E00", "#E69F00", "#CC79A7"])
power = np.trace(scene, axis1=-2, axis2=-1).real
axes[0].imshow(10 * np.log10(np.maximum(power, np.quantile(power, 0.01))), cmap="gray")
axes[1].imshow(labels, cmap=colors, vmin=0, vmax=5, interpolation="nearest")
axes[1].axvline(200, color="black")
axes[2].imshow(predicted, cmap=colors, vmin=0, vmax=5, interpolation="nearest")
for ax, title in zip(axes, ("total power (decibels)", "labels (left of the line: training)", "predicted"), strict=True):
    ax.set_title(title)
    ax.set_axis_off()
show(figure)
