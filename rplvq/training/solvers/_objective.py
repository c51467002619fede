"""The mean loss of all samples as one function of the prototypes, with its gradient and Hessian.

The gradient with respect to prototype k is ``-2 / N sum_b slope_bk Log_k(x_b)``, which is the manifold's ``pull`` with
weights ``-2 slope / N``.
"""

from typing import Any, NamedTuple

import numpy as np

from rplvq.arrays import Samples, block_slices, by_block, distances
from rplvq.costs import evaluate
from rplvq.protocols import Array, Cost, Manifold, Prototypes
from rplvq.training.solvers._stack import PrototypeStack

HESSIAN_STEP = 2.0**-14
"""Length of the finite difference, relative to the distance over which prototypes move."""


class Evaluated(NamedTuple):
    """The objective at a point: the mean loss, the losses (N,) and the squared distances (N, K)."""

    point: Prototypes
    value: float
    loss: Array
    sqdist: Array


class Objective:
    """The weighted mean loss of N samples as a function of K prototypes with given labels (K,)."""

    def __init__(self, manifold: Manifold[Any], cost: Cost, samples: Samples, labels: Array, sigma2: float) -> None:
        self.manifold, self.cost, self.samples = manifold, cost, samples
        self.codes, self.targets, self.weight = samples.codes, samples.targets, samples.weights
        self.labels, self.sigma2, self.total = labels, sigma2, samples.total_weight
        self._last: Evaluated | None = None

    def evaluate(self, point: Prototypes) -> Evaluated:
        """Evaluate a point, unless it was the last one; losses off the manifold are infinite."""
        if self._last is None or self._last.point is not point:
            try:
                with np.errstate(all="ignore"):
                    sqdist = distances(self.manifold, point, self.codes)
            except np.linalg.LinAlgError:  # a line search went too far
                sqdist = np.full((len(self.codes), len(self.labels)), np.nan)
            if np.isfinite(sqdist).all():
                loss = by_block(
                    lambda d, t: evaluate(self.cost, d, t, self.labels, self.sigma2).loss, sqdist, self.targets
                )
                value = float(loss.sum() if self.weight is None else self.weight @ loss) / self.total
            else:
                loss, value = np.full(len(sqdist), np.inf), np.inf
            self._last = Evaluated(point, value, loss, sqdist)
        return self._last

    def value(self, point: Prototypes) -> float:
        """Return the mean loss."""
        return self.evaluate(point).value

    def gradient(self, point: Prototypes) -> Array:
        """Return the Riemannian gradient, tangents (K, ...), summed over blocks of samples to bound the memory."""
        result: Array | None = None
        for rows in block_slices(len(self.codes), 4 * np.asarray(point).nbytes):
            geodesics = self.manifold.connect(point, self.codes[rows])
            slope = evaluate(self.cost, geodesics.sqdist, self.targets[rows], self.labels, self.sigma2).slope
            if self.weight is not None:
                slope = slope * self.weight[rows, None]
            pulled = self.manifold.pull(geodesics, slope * (-2.0 / self.total))  # type: ignore[attr-defined]
            result = pulled if result is None else result + pulled
        return np.asarray(result)

    def hessian(self, space: PrototypeStack, point: Prototypes, gradient: Array, tangent: Array) -> Array:
        """Return the product of the Hessian with a tangent v (K, ...), by a finite difference of the gradient.

        ``H v = (T grad f(Exp(h v)) - grad f) / h``, where T transports tangents back. Trust regions converge with this
        approximation (Boumal 2015, doi:10.1007/978-3-319-25040-3_50).
        """
        length = space.norm(point, tangent)
        if length == 0:
            return tangent
        h = HESSIAN_STEP * space.typical_dist / length
        ahead = space.retraction(point, h * tangent)
        return np.asarray((space.transport(ahead, point, self.gradient(ahead)) - gradient) / h)
