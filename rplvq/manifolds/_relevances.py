"""Relevances of the factors of a product, learned in logarithmic coordinates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rplvq.protocols import Array

LEARNED = ("learned", "local")
"""The rules by which relevances are learned: one set for all prototypes, or one for each prototype."""
LONGEST_LOG_STEP = 0.1
"""Largest change of the logarithm of a relevance in one step."""
LARGEST_LOG = 50.0
"""Largest absolute value of these logarithms, so that relevances stay positive without a penalty, too."""


def as_relevances(value: Any) -> Any:
    """Return a sequence of numbers as a tuple of floats, and anything else as it is."""
    if value is None or isinstance(value, str):
        return value
    return tuple(float(number) for number in value)


def require_relevances(value: Any, n_factors: int) -> None:
    """Raise ValueError unless ``value`` is None, a rule or numbers for F factors, not negative and not all 0."""
    if value is None or value in LEARNED:
        return
    if isinstance(value, str):
        raise ValueError(f"relevances must be 'learned', 'local', a sequence of numbers or None, got {value!r}")
    if len(value) != n_factors:
        raise ValueError(f"relevances has {len(value)} entries for {n_factors} factors")
    for index, number in enumerate(value):
        if not 0 <= number < np.inf:
            raise ValueError(f"relevances[{index}] must be a finite number of at least 0, got {number}")
    if not any(value):
        raise ValueError("relevances are all 0: at least one must be positive")


def log_step(weighted: Array, pulls: Array, sqdist: Array, strength: Any, rate: float, penalty: float) -> Array:
    """Return the scaled relevances after one step, as :class:`rplvq.manifolds.Product` defines it.

    ``weighted`` are the relevances times the scale, and ``pulls`` the sums ``S_i = sum_bk w_bk d_i^2(x_b, w_k)``, both
    (F,), or (K, F) with sums over b alone. ``sqdist`` (B, K) are the squared distances of the product, and ``strength``
    is their sum weighted by the absolute weights, a number or (K, 1). Of (K, F), all sets are scaled to the geometric
    mean of their means, so that they share one scale.
    """
    unit = float(sqdist.mean())
    if not unit > 0:
        return weighted
    logs = np.log(weighted)
    change = -0.5 * rate / unit * (weighted * pulls + penalty * strength * logs)
    change *= LONGEST_LOG_STEP / np.maximum(np.abs(change).max(axis=-1, keepdims=True), LONGEST_LOG_STEP)
    result = np.exp(np.clip(logs + change, -LARGEST_LOG, LARGEST_LOG))
    if result.ndim == 2:
        means = result.mean(axis=1, keepdims=True)
        result *= np.exp(np.log(means).mean()) / means
    return np.asarray(result)


def weighted_sum(weighted: Array, sqdist: Sequence[Array]) -> Array:
    """Return the sum of the squared distances (B, K) of the factors, times their weights (F,) or (K, F)."""
    total = weighted[..., 0] * sqdist[0]
    for i, part in enumerate(sqdist[1:], start=1):
        total += weighted[..., i] * part
    return np.asarray(total)


def shortened(weights: Array, sqdist: Array, longest: float) -> Array:
    """Return weights (B, K) with which no step exceeds a length, given squared distances (B, K)."""
    if longest == np.inf:
        return weights
    reach = np.sum(np.abs(weights) * np.sqrt(sqdist), axis=0)
    return weights * (longest / np.maximum(reach, longest)) if (reach > longest).any() else weights
