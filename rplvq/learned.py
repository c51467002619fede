"""A sigma2 that is learned with the prototypes, from distances alone."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from attrs.validators import in_

from rplvq.protocols import Array, Cost
from rplvq.schedules import number, positive

__all__ = ["Learned", "is_learned_on", "log_sigma2_gradient", "require_homogeneous", "require_training_data"]

LONGEST = np.log(2.0)
"""Largest change of log sigma2 in an epoch."""
WIDTH = 1e-4
"""Half the width of the central difference in log sigma2."""


def log_sigma2_gradient(
    cost: Cost, sqdist: Array, targets: Array, labels: Array, sigma2: float, sample_weight: Array | None = None
) -> float:
    """Return the derivative of the mean loss by log sigma2, for costs that see distances over sigma2 alone.

    ``d loss / d log sigma2 = -sum_k slope_k d_k``, since a change of sigma2 is one of all distances.

    Parameters
    ----------
    cost : Cost
        RSLVQ, PLVQ or alike.
    sqdist : ndarray of shape (N, K)
        Squared distances.
    targets : ndarray of shape (N,) or (N, C)
        Class indices or probabilities.
    labels : ndarray of int of shape (K,)
        Class index of each prototype.
    sigma2 : float
        Where to take it.
    sample_weight : ndarray of shape (N,), optional
        Weights of the mean.

    Returns
    -------
    float
        Without a unit.

    Examples
    --------
    >>> from rplvq import RSLVQ
    >>> sqdist, targets, labels = np.array([[1.0, 3.0], [2.0, 5.0]]), np.array([0, 1]), np.array([0, 1])
    >>> round(log_sigma2_gradient(RSLVQ(), sqdist, targets, labels, 2.0), 4)
    -0.1603
    """
    slope = cost(sqdist, targets, labels, sigma2).slope
    return -float(np.average(np.einsum("nk,nk->n", slope, sqdist), weights=sample_weight))


@attrs.frozen
class Learned:
    """sigma2 follows the gradient of held-out data: ``log sigma2 <- log sigma2 - rate g`` after each epoch.

    g is the derivative of the mean loss by log sigma2 (:func:`log_sigma2_gradient`) under the prototypes of that epoch.
    On held-out data sigma2 goes to where their probabilities are calibrated, and grows where training overfits. On the
    training data it falls as long as training makes fewer mistakes on them, until it knows them by heart; keep ``rate``
    small and ``floor`` high there.

    Parameters
    ----------
    start : float, optional
        sigma2 before training; None for that of "blended".
    rate : float, default=0.1
        Step of log sigma2 for a derivative of 1. A step is at most a factor of 2.
    floor : float, default=0.1
        Share of the start below which sigma2 never falls, at most 1.
    data : {"held_out", "training"}, default="held_out"
        Whose gradient: that of ``validation_fraction`` of the samples, which fit holds out from training for it (as for
        early stopping, and the same if both are asked for), or that of the training samples.

    Notes
    -----
    sigma2 is part of the state: checkpoints and saved models go on with it. Each epoch costs one more
    pass of distances over these data. ``partial_fit`` holds nothing out: it leaves a sigma2 that fit has learned on
    held-out data where it is, and can only begin with ``data="training"``.

    Examples
    --------
    >>> from rplvq import Learned, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=30, random_state=0)
    >>> model = RiemannianLVQ(sigma2=Learned(8.0, rate=0.5), validation_fraction=0.3, max_epochs=20, random_state=0)
    >>> bool(model.fit(X, y).sigma2_ < 8.0)
    True
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive)
    rate: float = attrs.field(default=0.1, converter=number, validator=positive)
    floor: float = attrs.field(default=0.1, converter=number, validator=[positive, attrs.validators.le(1)])
    data: str = attrs.field(default="held_out", validator=in_(("held_out", "training")))

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the start, the value as long as nothing is learned; raise ValueError at ``start=None``."""
        if self.start is None:
            raise ValueError(f"{self} has start=None, which is filled in at fit; to call it, give it a start")
        return float(self.start)

    def follow(self, sigma2: float, gradient: float) -> float:
        """Return sigma2 after one step against the gradient.

        Parameters
        ----------
        sigma2 : float
            Before the step.
        gradient : float
            Of the mean loss by log sigma2.

        Returns
        -------
        float
            At least ``floor * start``.

        Examples
        --------
        >>> round(Learned(1.0, rate=0.5).follow(2.0, 0.2), 4)  # 2 exp(-0.1)
        1.8097
        """
        step = float(np.clip(-self.rate * gradient, -LONGEST, LONGEST))
        return max(sigma2 * float(np.exp(step)), self.floor * self(0, 1))


def is_learned_on(value: Any, data: str) -> bool:
    """Whether a sigma2 is learned on these data, "held_out" or "training"."""
    return isinstance(value, Learned) and value.data == data


def require_training_data(value: Any) -> None:
    """Raise ValueError at a sigma2 that is learned on held-out data, where there are none."""
    if is_learned_on(value, "held_out"):
        raise ValueError(
            f"sigma2={value!r} needs held-out samples, and there are none here (partial_fit holds none out): use "
            "Learned(data='training'), or pass validation data"
        )


def require_homogeneous(cost: Cost, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> None:
    """Raise ValueError at a cost whose derivative by log sigma2 is not ``-sum_k slope_k d_k``."""
    formula = log_sigma2_gradient(cost, sqdist, targets, labels, sigma2)
    low, high = (np.mean(cost(sqdist, targets, labels, sigma2 * np.exp(width)).loss) for width in (-WIDTH, WIDTH))
    change = float(high - low) / (2 * WIDTH)
    size = float(np.mean(np.abs(cost(sqdist, targets, labels, sigma2).slope) * sqdist))
    if abs(change - formula) > 1e-3 * max(size, abs(change)) + 1e-9 * max(abs(low), abs(high)):
        raise ValueError(
            f"sigma2=Learned(...) needs a cost of distances over sigma2 alone, such as RSLVQ or PLVQ, and {cost!r} is "
            "none: give sigma2 a number, or 'heldout'"
        )
