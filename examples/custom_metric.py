"""A metric of your own

A metric whose geodesics are straight lines in some coordinates only has to choose these coordinates. In this example
they are Cholesky factors. `check_manifold` tests what the trainer relies on. After that, the metric can be combined
with every cost and every schedule, and compared like any other metric. We compare it on handwritten digits, before
training (MDM, minimum distance to the class means) and after 20 epochs.
"""

import attrs
import matplotlib.pyplot as plt
import numpy as np

from rplvq import RiemannianLVQ, compare
from rplvq.arrays import check_hermitian
from rplvq.datasets import load_digits_covariances
from rplvq.manifolds import flat_connect, flat_move, flat_sqdist
from rplvq.plotting import plot_comparison
from rplvq.testing import check_manifold


# %% The metric
@attrs.frozen
class Cholesky:
    """d(X, W) = ||chol(X) - chol(W)||, on factors with a positive diagonal."""

    def encode(self, points):
        return np.linalg.cholesky(check_hermitian(points))

    def decode(self, codes):
        return codes @ codes.swapaxes(-1, -2)

    def sqdist(self, prototypes, samples):
        return flat_sqdist(prototypes, samples)

    def connect(self, prototypes, samples):
        return flat_connect(prototypes, samples)

    def move(self, geodesics, weights):
        return flat_move(geodesics, weights)


# %% Does it keep the promises of a manifold?
X, y = (part[:600] for part in load_digits_covariances())
scale = 1 / np.sqrt(np.diag(X.mean(axis=0)))  # Cholesky factors have units: one scale for all channels
X = scale[:, None] * X * scale
check_manifold(Cholesky(), X[:8])
print("check_manifold: all promises kept")

# %% A comparison with built-in metrics, before and after training
models = {}
for name, metric in [("Cholesky", Cholesky()), ("Log-Euclidean", "log_euclidean"), ("Euclidean", "euclidean")]:
    models[f"{name}, MDM"] = RiemannianLVQ(metric, max_epochs=0)
    models[f"{name}, trained"] = RiemannianLVQ(metric, max_epochs=20, random_state=0)
result = compare(X, y, models, cv=6, random_state=0)
for row in result.rows:
    print(f"{row['estimator']:28s} accuracy {row['accuracy_mean']:.3f}")

figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
plot_comparison(result, ax=ax)
plt.show()
