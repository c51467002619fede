"""Beyond matrices: the sphere and the Grassmann manifold

Prototypes can lie on any pymanopt manifold with `exp` and `log`. Directions are points of the sphere: three classes
scatter around arcs, so that two prototypes per class work better than one. Subspaces are points of the Grassmann
manifold: each sample is the plane that two noisy vectors of R^8 span, around two centres per class. One half of the
samples trains, the other half tests. The class means before training (MDM) are beside each score.
"""

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.manifolds import Grassmann, Sphere

from rplvq import RiemannianLVQ

rng = np.random.default_rng(0)

# %% Directions: three arcs on the sphere
angles = rng.uniform(-0.9, 0.9, (3, 120))
turns = np.array([0.0, 2.1, 4.2])[:, None] + 0.9 * angles
points = np.stack([np.cos(angles) * np.cos(turns), np.cos(angles) * np.sin(turns), np.sin(angles)], axis=-1)
points += rng.normal(scale=0.25, size=points.shape)
X = (points / np.linalg.norm(points, axis=-1, keepdims=True)).reshape(-1, 3)
y = np.repeat([0, 1, 2], 120)
for count, max_epochs in ((1, 0), (1, 20), (2, 20)):
    sphere = RiemannianLVQ(
        Sphere(3), prototypes_per_class=count, init="kmeans", max_epochs=max_epochs, random_state=0
    ).fit(X[::2], y[::2])
    accuracy = sphere.score(X[1::2], y[1::2])
    print(f"sphere, {count} prototype(s) per class, {max_epochs:2d} epochs: accuracy {accuracy:.3f}")

# %% Subspaces: planes of R^8 around two centres per class
centers = np.linalg.qr(rng.normal(size=(4, 8, 2)))[0]
planes = np.linalg.qr(centers[np.repeat([0, 1, 2, 3], 50)] + rng.normal(scale=0.45, size=(200, 8, 2)))[0]
labels = np.repeat(["first", "second"], 100)
order = rng.permutation(200)
train, test = order[:100], order[100:]
for count, max_epochs in ((1, 0), (2, 20)):
    grassmann = RiemannianLVQ(
        Grassmann(8, 2), prototypes_per_class=count, init="kmeans", max_epochs=max_epochs, random_state=0
    ).fit(planes[train], labels[train])
    accuracy = grassmann.score(planes[test], labels[test])
    print(f"planes, {count} prototype(s) per class, {max_epochs:2d} epochs: accuracy {accuracy:.3f}")

# %% The sphere as a map: every direction with the class of its nearest prototype
longitude, latitude = np.meshgrid(np.linspace(-np.pi, np.pi, 121), np.linspace(-1.45, 1.45, 61))
grid = [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
regions = sphere.predict(np.stack(grid, axis=-1).reshape(-1, 3)).reshape(longitude.shape)
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
colors = np.array(["#0072B2", "#D55E00", "#009E73"])
ax.contourf(longitude, latitude, regions, levels=[-0.5, 0.5, 1.5, 2.5], colors=colors, alpha=0.15)
for data, tags, style in ((X, y, {"s": 12}), (sphere.prototypes_, sphere.prototype_labels_, {"s": 110, "marker": "D"})):
    edge = "white" if "marker" in style else "none"
    ax.scatter(np.arctan2(data[:, 1], data[:, 0]), np.arcsin(data[:, 2]), c=colors[tags], edgecolors=edge, **style)
ax.set(xlabel="longitude (radians)", ylabel="latitude (radians)", title="dots: samples; diamonds: prototypes")
plt.show()
