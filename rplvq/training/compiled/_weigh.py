"""What the cost makes of the distances of one sample; plain Python that numba compiles as it stands."""

from __future__ import annotations

import math

import numpy as np

from rplvq.protocols import Array

__all__ = ["weigh"]


def weigh(
    sqdist: Array,
    target: int,
    labels: Array,
    scale: float,
    step: float,
    max_weight: float,
    max_length: float,
    weights: Array,
) -> tuple[float, int]:
    """Turn the squared distances of a sample into the capped weights of its logarithms under RSLVQ.

    Parameters
    ----------
    sqdist : ndarray of shape (K,)
        Squared distances.
    target : int
        Class index of the sample.
    labels : ndarray of int of shape (K,)
        Class indices of the prototypes.
    scale, step : float
        1 / (2 sigma2), and the step size times the sample's weight.
    max_weight, max_length : float
        Caps, infinite for none.
    weights : ndarray of shape (K,)
        Filled with the weights.

    Returns
    -------
    loss : float
    n_capped : int
        Number of capped weights and steps.
    """
    nearest, nearest_own = np.inf, np.inf
    for k in range(len(labels)):
        nearest = min(nearest, sqdist[k])
        if labels[k] == target:
            nearest_own = min(nearest_own, sqdist[k])
    joint, joint_own = 0.0, 0.0
    for k in range(len(labels)):
        weights[k] = math.exp(scale * (nearest - sqdist[k]))
        joint += weights[k]
        if labels[k] == target:
            joint_own += math.exp(scale * (nearest_own - sqdist[k]))
    n_capped = 0
    for k in range(len(labels)):
        share = -weights[k] / joint
        if labels[k] == target:
            share += math.exp(scale * (nearest_own - sqdist[k])) / joint_own
        weight = 2.0 * step * scale * share
        if abs(weight) > max_weight:
            weight = math.copysign(max_weight, weight)
            n_capped += 1
        length = abs(weight) * math.sqrt(sqdist[k])
        if length > max_length:
            weight *= max_length / length
            n_capped += 1
        weights[k] = weight
    return math.log(joint) - math.log(joint_own) + scale * (nearest_own - nearest), n_capped
