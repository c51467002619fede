"""A metric of your own

A metric whose geodesics are straight lines in some coordinates only has to choose these coordinates. In this example
they are Cholesky factors. `check_manifold` tests what the trainer relies on. After that, the metric can be combined
with every cost and every schedule, and compared like any other metric.
"""

import attrs
import matplotlib.pyplot as plt
import numpy as np
from showing import show

from rplvq import RiemannianLVQ, compare
from rplvq.arrays import check_hermitian
from rplvq.datasets import make_syn1
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
X, y = make_syn1(n_per_class=60, random_state=0)
check_manifold(Cholesky(), X[:8])
print("check_manifold: all promises kept")

# %% A comparison with built-in metrics, before and after training
models = {}
for name, metric in [("Cholesky", Cholesky()), ("Log-Euclidean", "log_euclidean"), ("Euclidean", "euclidean")]:
    models[f"{name}, class means"] = RiemannianLVQ(metric, max_epochs=0)
    models[f"{name}, trained"] = RiemannianLVQ(metric, max_epochs=10, random_state=0)
result = compare(X, y, models, cv=6, random_state=0)
for row in result.rows:
    print(f"{row['estimator']:28s} accuracy {row['accuracy_mean']:.3f}")

figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
plot_comparison(result, ax=ax)
show(figure)
