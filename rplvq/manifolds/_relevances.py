"""Relevances of the factors of a product, learned in logarithmic coordinates."""

from typing import Any

import numpy as np

from rplvq.protocols import Array

LONGEST = 0.5
"""Largest change of the logarithm of a relevance in one step."""
SMALLEST = -50.0
"""Smallest logarithm of a relevance relative to the largest one, so that all stay positive without a penalty, too."""


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


def relevance_gradient(relevances: Array, pulls: Array) -> Array:
    """Return ``2 step d loss / d t`` (F,) for relevances ``r = F softmax(t)`` and the pulls of the factors (F,).

    The pull of a factor is ``S_i = sum_bk w_bk d_i^2(x_b, w_k)`` with the weights ``w = 2 step d loss / d (d^2)``.

    Examples
    --------
    >>> relevance_gradient(np.array([1.0, 1.0]), np.array([3.0, 1.0]))  # the second factor serves better
    array([ 1., -1.])
    """
    gains = relevances * pulls
    return np.asarray(gains - relevances * gains.mean())


def log_step(relevances: Array, pulls: Array, sqdist: Array, weights: Array, rate: float, penalty: float) -> Array:
    """Return the relevances (F,) after one step, given pulls (F,), squared distances and weights (B, K) of the whole.

    The step is that of :class:`rplvq.manifolds.Product`.
    """
    scale = float(sqdist.mean())
    if not scale > 0:
        return relevances
    logs = np.log(relevances)
    logs -= logs.mean()
    change = relevance_gradient(relevances, pulls) + penalty * np.vdot(np.abs(weights), sqdist) * logs
    change *= -0.5 * rate / scale
    change *= min(1.0, LONGEST / max(np.abs(change).max(), LONGEST))
    logs += change
    found = np.exp(np.maximum(logs - logs.max(), SMALLEST))
    return np.asarray(found / found.mean())
