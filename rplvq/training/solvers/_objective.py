"""The mean loss of all samples as one function of the prototypes, with its gradient and Hessian.

The gradient by prototype k is ``-2 / N sum_b slope_bk Log_k(x_b)``: the geometry's ``pull`` with weights
``-2 slope / N``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rplvq.arrays import Samples, block_slices, by_block, distances
from rplvq.protocols import Array, Cost, Manifold, Prototypes
from rplvq.training.solvers._stack import PrototypeStack

__all__ = ["Objective", "Seen"]

HESSIAN_STEP = 2.0**-14


class Seen(NamedTuple):
    """The objective at a point: mean loss, losses (N,) and squared distances (N, K)."""

    point: Prototypes
    value: float
    loss: Array
    sqdist: Array


class Objective:
    """Mean loss of all samples as a function of the prototypes, with its gradient.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    cost : Cost
        The loss.
    samples : Samples
        N samples; weights are factors of the losses, and the mean is weighted.
    labels : ndarray of int of shape (K,)
        Class index of each prototype.
    sigma2 : float
        Variance of the mixture's components.
    """

    def __init__(
        self,
        manifold: Manifold[Any],
        cost: Cost,
        samples: Samples,
        labels: Array,
        sigma2: float,
    ) -> None:
        self.manifold, self.cost, self.samples = manifold, cost, samples
        self.codes, self.targets, self.weight = samples.codes, samples.targets, samples.weights
        self.labels, self.sigma2, self.total = labels, sigma2, samples.total_weight
        self._seen: Seen | None = None

    def look(self, point: Prototypes) -> Seen:
        """Distances and mean loss at a point, kept until another one is asked for; infinite off the manifold."""
        if self._seen is None or self._seen.point is not point:
            try:
                with np.errstate(all="ignore"):
                    sqdist = distances(self.manifold, point, self.codes)
            except np.linalg.LinAlgError:  # a line search went too far
                sqdist = np.full((len(self.codes), len(self.labels)), np.nan)
            if np.isfinite(sqdist).all():
                loss = by_block(self._loss, sqdist, self.targets)
                value = float(loss.sum() if self.weight is None else self.weight @ loss) / self.total
            else:
                loss, value = np.full(len(sqdist), np.inf), np.inf
            self._seen = Seen(point, value, loss, sqdist)
        return self._seen

    def _loss(self, sqdist: Array, targets: Array) -> Array:
        return self.cost(sqdist, targets, self.labels, self.sigma2).loss

    def value(self, point: Prototypes) -> float:
        """Mean loss."""
        return self.look(point).value

    def gradient(self, point: Prototypes) -> Array:
        """Riemannian gradient, tangents of shape (K, ...), in chunks of samples of bounded memory."""
        result: Array | None = None
        for rows in block_slices(len(self.codes), 4 * np.asarray(point).nbytes):
            geodesics = self.manifold.connect(point, self.codes[rows])
            slope = self.cost(geodesics.sqdist, self.targets[rows], self.labels, self.sigma2).slope
            if self.weight is not None:
                slope = slope * self.weight[rows, None]
            pulled = self.manifold.pull(geodesics, slope * (-2.0 / self.total))  # type: ignore[attr-defined]
            result = pulled if result is None else result + pulled
        return np.asarray(result)

    def hessian(self, space: PrototypeStack, point: Prototypes, gradient: Array, tangent: Array) -> Array:
        """Differentiate the gradient along a tangent (K, ...), by a difference.

        ``H v = (T grad f(Exp(h v)) - grad f) / h``, T carrying tangents back; trust regions converge with it (Boumal
        2015, "Riemannian trust regions with finite difference Hessian approximations are globally convergent",
        doi:10.1007/978-3-319-25040-3_50).
        """
        length = space.norm(point, tangent)
        if length == 0:
            return tangent
        h = HESSIAN_STEP * space.typical_dist / length
        ahead = space.retraction(point, h * tangent)
        return np.asarray((space.transport(ahead, point, self.gradient(ahead)) - gradient) / h)
