"""Conjugate gradients on the cost of all samples

A solver of pymanopt can take the place of stochastic descent. It needs no step size and ends at a minimum of the cost,
which helps to compare costs or metrics without the noise of the steps. It needs three things: the manifold of K
prototypes, the mean loss, and its gradient, which for each prototype is the sum of -2 times the slope of the loss times
the logarithm of each sample, over N. The lower cost gives a higher accuracy on the training samples, as here. It gave
none on new samples of the data sets that we measured.
"""

import matplotlib.pyplot as plt
import numpy as np
import pymanopt
from pymanopt.manifolds import SymmetricPositiveDefinite
from pymanopt.optimizers import ConjugateGradient

from rplvq import AffineInvariant, RiemannianLVQ
from rplvq.datasets import make_syn1

X, y = make_syn1(n_per_class=20, random_state=0)
start = RiemannianLVQ(sigma2=4.0, max_epochs=0).fit(X, y)
trained = RiemannianLVQ(sigma2=4.0, max_epochs=20, random_state=0).fit(X, y)
labels, metric, rslvq = start.prototype_labels_, AffineInvariant(), start.trainer_.cost

# %%
# A stack of matrices is a point of pymanopt's manifold. One stack holds the prototypes, and another one all pairs of a
# sample and a prototype, for the logarithms.
N, K, n = len(X), len(labels), X.shape[-1]
space = SymmetricPositiveDefinite(n, k=K)
pairs = SymmetricPositiveDefinite(n, k=N * K)


@pymanopt.function.numpy(space)
def cost(W):
    return rslvq(metric.sqdist(W, X), y, labels, 4.0).loss.mean()


@pymanopt.function.numpy(space)
def gradient(W):
    slope = rslvq(metric.sqdist(W, X), y, labels, 4.0).slope
    logs = pairs.log(np.tile(W, (N, 1, 1)), np.repeat(X, K, axis=0)).reshape(N, K, n, n)
    return -2.0 / N * np.einsum("bk,bkij->kij", slope, logs)


solver = ConjugateGradient(max_iterations=20, verbosity=0, log_verbosity=1)
result = solver.run(pymanopt.Problem(space, cost, riemannian_gradient=gradient), initial_point=start.prototypes_)
solved = RiemannianLVQ(init=(result.point, labels), sigma2=4.0, max_epochs=0).fit(X, y)

# %%
# The classifier with these prototypes predicts as any other.
for name, model in (("class means", start), ("stochastic descent", trained), ("conjugate gradients", solved)):
    print(f"{name:20s} cost {cost(model.prototypes_):.4f}, accuracy {model.score(X, y):.3f}")
figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(result.log["iterations"]["cost"], label="conjugate gradients")
ax.axhline(cost(trained.prototypes_), color="0.5", ls="--", label="20 epochs of stochastic descent")
ax.set(xlabel="iteration", ylabel="mean loss", yscale="log")
ax.legend()
plt.show()
