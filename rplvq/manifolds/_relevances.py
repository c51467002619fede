"""Relevances of the factors of a product, learned in logarithmic coordinates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rplvq.protocols import Array

LONGEST = 0.1
"""Largest change of the logarithm of a relevance in one step."""
LARGEST = 50.0
"""Largest absolute value of these logarithms, so that relevances stay positive without a penalty, too."""


def as_relevances(value: Any) -> Any:
    """Return a sequence of numbers as a tuple of floats, and anything else as it is."""
    if value is None or isinstance(value, str):
        return value
    return tuple(float(number) for number in value)


def require_relevances(value: Any, n_factors: int) -> None:
    """Raise ValueError unless ``value`` is None, "learned" or numbers for F factors, not negative and not all 0."""
    if value is None or value == "learned":
        return
    if isinstance(value, str):
        raise ValueError(f"relevances must be 'learned', a sequence of numbers or None, got {value!r}")
    if len(value) != n_factors:
        raise ValueError(f"relevances has {len(value)} entries for {n_factors} factors")
    for index, number in enumerate(value):
        if not 0 <= number < np.inf:
            raise ValueError(f"relevances[{index}] must be a finite number of at least 0, got {number}")
    if not any(value):
        raise ValueError("relevances are all 0: at least one must be positive")


def log_step(weighted: Array, pulls: Array, sqdist: Array, weights: Array, rate: float, penalty: float) -> Array:
    """Return the scaled relevances (F,) after one step, as :class:`rplvq.manifolds.Product` defines it.

    ``weighted`` are the relevances times the scale, ``pulls`` (F,) the sums ``S_i = sum_bk w_bk d_i^2(x_b, w_k)``, and
    the squared distances and the weights (B, K) are those of the product.

    Examples
    --------
    >>> one, two = np.ones((1, 2)), np.array([[0.5, -0.5]])
    >>> log_step(np.array([1.0, 1.0]), np.array([0.2, -0.2]), one, two, rate=1.0, penalty=0.0).round(3)
    array([0.905, 1.105])
    """
    unit = float(sqdist.mean())
    if not unit > 0:
        return weighted
    logs = np.log(weighted)
    change = weighted * pulls + penalty * np.vdot(np.abs(weights), sqdist) * logs
    change *= -0.5 * rate / unit
    change *= LONGEST / max(np.abs(change).max(), LONGEST)
    return np.asarray(np.exp(np.clip(logs + change, -LARGEST, LARGEST)))


def weighted_sum(weighted: Array, sqdist: Sequence[Array]) -> Array:
    """Return the sum of the squared distances (B, K) of the factors, times their weights (F,)."""
    total = weighted[0] * sqdist[0]
    for r, part in zip(weighted[1:], sqdist[1:], strict=True):
        total += r * part
    return np.asarray(total)


def shortened(weights: Array, sqdist: Array, longest: float) -> Array:
    """Return weights (B, K) with which no step exceeds a length, given squared distances (B, K)."""
    if longest == np.inf:
        return weights
    reach = np.sum(np.abs(weights) * np.sqrt(sqdist), axis=0)
    return weights * (longest / np.maximum(reach, longest)) if (reach > longest).any() else weights
