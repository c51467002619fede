"""The loss at the sigma2 that makes it least."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from rplvq.arrays import by_block
from rplvq.costs._mixture import as_soft, log_proba_of
from rplvq.protocols import Array, Cost

__all__ = ["calibrated_loss"]


def calibrated_loss(
    cost: Cost, sqdist: Array, targets: Array, labels: Array, sigma2: float, sample_weight: Array | None = None
) -> tuple[float, float]:
    """Mean negative log posterior of the true class at the sigma2 that makes it least, and that sigma2.

    Parameters
    ----------
    cost : Cost
        Its posterior counts, or that of the plain mixture.
    sqdist : ndarray of shape (M, K)
        Squared distances.
    targets : ndarray of shape (M,) or (M, C)
        Class indices or probabilities.
    labels : ndarray of int of shape (K,)
        Class index of each prototype.
    sigma2 : float
        Where to look, within a factor of 1e4.
    sample_weight : ndarray of shape (M,), optional
        Weights.

    Returns
    -------
    loss, sigma2 : float

    Examples
    --------
    >>> from rplvq import RSLVQ
    >>> sqdist = np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 1.0], [1.0, 2.0], [2.0, 1.5]])
    >>> loss, sigma2 = calibrated_loss(RSLVQ(), sqdist, np.array([0, 0, 1, 1, 1]), np.array([0, 1]), 1.0)
    >>> round(loss, 3), round(sigma2, 2)
    (0.412, 0.5)
    """
    n_classes = int(labels.max()) + 1

    def loss(log_sigma2: float) -> float:
        def of(sqdist: Array, targets: Array) -> Array:
            soft, logs = as_soft(targets, n_classes), log_proba_of(cost, sqdist, labels, float(np.exp(log_sigma2)))
            # A class of probability 0 is no loss, even where its logarithm is infinite.
            return np.asarray(np.where(soft > 0, soft * logs, 0.0).sum(axis=1))

        return -float(np.average(by_block(of, sqdist, targets), weights=sample_weight))

    center = np.log(sigma2)
    best = minimize_scalar(loss, bounds=(center - SPAN, center + SPAN), method="bounded", options={"xatol": 1e-6})
    return float(best.fun), float(np.exp(best.x))


SPAN = np.log(1e4)
"""Half width of the search for log sigma2, around the value of training."""
