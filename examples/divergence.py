"""A divergence of your own

A divergence is a dissimilarity that is no squared distance, and the Stein divergence of covariances is one. It grows
only linearly with the logarithm of a gross error, whereas the affine-invariant squared distance grows with its square,
so that artifacts pull prototypes less. `move` follows minus half the gradient of the divergence in place of the
logarithm, and `check_manifold` with `divergence=True` tests that. Then it works with every cost and every schedule.
"""

import attrs
import matplotlib.pyplot as plt
import numpy as np

from rplvq import AffineInvariant, RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.testing import check_manifold

METRIC = AffineInvariant()


# %% 8 (log det (X + W) / 2 - (log det X + log det W) / 2), by the eigenvalues exp(z) of W^-1 X
@attrs.frozen
class Stein:
    """d = 8 sum log cosh(z / 2), nearly sum z^2 for near points; V = -grad d / 2 has 2 tanh(z / 2) in place of z."""

    def encode(self, points):
        return METRIC.encode(points)

    def decode(self, codes):
        return METRIC.decode(codes)

    def sqdist(self, prototypes, samples):
        return self.connect(prototypes, samples).sqdist

    def connect(self, prototypes, samples):
        geodesics = METRIC.connect(prototypes, samples)  # has z and the eigenvectors of each pair
        half = geodesics.log_eigenvalues / 2
        sqdist = 8 * (np.logaddexp(half, -half) - np.log(2)).sum(axis=-1)
        return geodesics._replace(sqdist=sqdist, log_eigenvalues=2 * np.tanh(half))

    def move(self, geodesics, weights):
        return METRIC.move(geodesics, weights)  # exp of the weighted sum of V


# %% Is V a gradient of d, and does a step of weight 1 lower d?
X, y = make_syn1(n_per_class=60, random_state=0)
check_manifold(Stein(), X[:8], divergence=True)
print("check_manifold: all promises of a divergence kept")


# %% In some training samples one channel is 30 times too large
def with_artifacts(X, share, rng):
    factors = np.ones(X.shape[:2])
    rows = np.flatnonzero(rng.random(len(X)) < share)
    factors[rows, rng.integers(X.shape[1], size=len(rows))] = 30.0
    return X * factors[:, :, None] * factors[:, None, :]


shares, rng = [0.0, 0.1, 0.2, 0.3, 0.4], np.random.default_rng(0)
train, test = slice(0, None, 2), slice(1, None, 2)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
noisy = [with_artifacts(X[train], share, rng) for share in shares]
for name, metric, color in [("affine-invariant", METRIC, "#0072B2"), ("Stein", Stein(), "#D55E00")]:
    for epochs, what, style in [(0, "class means", "o--"), (10, "trained", "s-")]:
        model = RiemannianLVQ(metric, max_epochs=epochs, random_state=0)
        scores = [model.fit(points, y[train]).score(X[test], y[test]) for points in noisy]
        print(f"{name:16s} {what:11s}", " ".join(f"{score:.3f}" for score in scores))
        ax.plot(shares, scores, style, color=color, label=f"{name}, {what}")
ax.set(xlabel="share of training samples with an artifact", ylabel="accuracy on clean samples", title="SynI")
ax.legend(frameon=False)
ax.grid(color="0.9")
plt.show()
