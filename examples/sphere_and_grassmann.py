"""Beyond matrices: the sphere and the Grassmann manifold

Prototypes can lie on any pymanopt manifold with `exp` and `log`. Directions are points of the sphere: three classes
scatter around arcs, so that two prototypes per class work better than one. Subspaces are points of the Grassmann
manifold: each sample is the plane that two noisy vectors of R^8 span.
"""

import matplotlib.pyplot as plt
import numpy as np
from pymanopt.manifolds import Grassmann, Sphere
from showing import show

from rplvq import RiemannianLVQ

rng = np.random.default_rng(0)

# %% Directions: three arcs on the sphere
angles = rng.uniform(-0.9, 0.9, (3, 60))
turns = np.array([0.0, 2.1, 4.2])[:, None] + 0.9 * angles
points = np.stack([np.cos(angles) * np.cos(turns), np.cos(angles) * np.sin(turns), np.sin(angles)], axis=-1)
points += rng.normal(scale=0.25, size=points.shape)
X = (points / np.linalg.norm(points, axis=-1, keepdims=True)).reshape(-1, 3)
y = np.repeat([0, 1, 2], 60)
for count in (1, 2):
    sphere = RiemannianLVQ(Sphere(3), prototypes_per_class=count, init="kmeans", max_epochs=8, random_state=0).fit(X, y)
    print(f"sphere, {count} prototype(s) per class: training accuracy {sphere.score(X, y):.3f}")

# %% Subspaces: planes of R^8 around two centres
centers = np.linalg.qr(rng.normal(size=(2, 8, 2)))[0]
planes = np.linalg.qr(centers[np.repeat([0, 1], 40)] + rng.normal(scale=0.45, size=(80, 8, 2)))[0]
labels = np.repeat(["first", "second"], 40)
order = rng.permutation(80)
train, test = order[:40], order[40:]
grassmann = RiemannianLVQ(Grassmann(8, 2), max_epochs=5, random_state=0).fit(planes[train], labels[train])
print(f"Grassmann manifold: test accuracy {grassmann.score(planes[test], labels[test]):.3f}")

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
show(figure)
