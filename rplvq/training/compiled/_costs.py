"""The weights of one sample under any cost that describes itself by terms, in plain Python that numba can compile.

All kernels call :func:`weigh`. It evaluates the terms of :class:`rplvq.costs.Terms` one after another: one function for
all costs is compiled once, where one function per cost would be compiled for each.
"""

import math
from typing import NamedTuple

import numpy as np

from rplvq.costs import MARGIN
from rplvq.protocols import Array

COINCIDENT = 1e-290
"""If both squared distances of a margin add up to less than this, the sample is at both prototypes."""


class Rules(NamedTuple):
    """How distances become weights: all that is the same for every sample of a block.

    ``numbers``, ``scales`` and ``offsets`` are the fields of :class:`rplvq.costs.Terms`. ``pace`` holds the step size;
    then, for steps that adapt themselves, the largest distance moved over the first step size, the largest norm of a
    gradient, and the sum of their squares. A negative distance stands for steps that do not adapt. The last two numbers
    are updated.
    """

    labels: Array  # (K,), class index of each prototype
    numbers: Array
    scales: Array
    offsets: Array
    caps: Array  # (2,), largest weight and longest step; infinite caps mean none
    pace: Array  # (4,)
    logits: Array  # (K,), to work with
    classes: Array  # (2, C), to work with


class Block(NamedTuple):
    """What kernels know of M samples apart from their codes, and the values before each step, which they fill."""

    targets: Array  # (M, C), class probabilities
    multiplicity: Array  # (M,), weights of samples
    sqdist: Array  # (M, K), filled
    loss: Array  # (M,), filled


def add_mixture(sqdist: Array, target: Array, rules: Rules, t: int, slope: Array) -> float:
    """Add the slopes (K,) of the mixture that is term t; return its loss for class probabilities ``target`` (C,)."""
    factor = rules.numbers[t, 1]
    joint = rules.numbers[t, 2]
    labels = rules.labels
    logits = rules.logits
    scales = rules.scales[t]
    tops = rules.classes[0]
    sums = rules.classes[1]
    first = 0
    for k in range(1, len(labels)):
        if scales[k] * sqdist[k] < scales[first] * sqdist[first]:  # the nearest by the scale of its class
            first = k
    # It is subtracted before distances are scaled, so that differences of large distances are not rounded away.
    near = sqdist[first]
    rate = scales[first]
    for c in range(len(tops)):
        tops[c] = -np.inf
        sums[c] = 0.0
    for k in range(len(labels)):
        logits[k] = rules.offsets[t, k] + scales[k] * (near - sqdist[k]) + (rate - scales[k]) * near
        tops[labels[k]] = max(tops[labels[k]], logits[k])
    for k in range(len(labels)):
        logits[k] = math.exp(logits[k] - tops[labels[k]])  # of at most 0, so nothing overflows
        sums[labels[k]] += logits[k]
    top = -np.inf
    mass = 0.0
    total = 0.0
    for k in range(len(labels)):
        logits[k] /= sums[labels[k]]  # the share of a prototype in its class
    for c in range(len(tops)):
        tops[c] += math.log(sums[c])  # the logit of the class
        top = max(top, tops[c])
    loss = 0.0
    for c in range(len(tops)):
        sums[c] = math.exp(tops[c] - top)
        mass += sums[c]
        total += target[c]
        if target[c] > 0.0:  # zero times infinity would be NaN
            loss += target[c] * (top - tops[c])
    loss += total * (joint * math.log(mass) - (1.0 - joint) * (top - rate * near))
    for k in range(len(labels)):
        c = labels[k]
        slope[k] += factor * scales[k] * logits[k] * (target[c] - joint * total * sums[c] / mass)
    weighted: float = factor * loss
    return weighted


def add_margin(sqdist: Array, target: Array, rules: Rules, t: int, slope: Array) -> float:
    """Add the slopes (K,) of the margin that is term t, and return its loss; ``target`` (C,) has one entry of 1."""
    factor = rules.numbers[t, 1]
    steepness = rules.numbers[t, 2]
    right = -1
    wrong = -1
    for k in range(len(sqdist)):
        if target[rules.labels[k]] > 0.0:
            if right < 0 or sqdist[k] < sqdist[right]:
                right = k
        elif wrong < 0 or sqdist[k] < sqdist[wrong]:
            wrong = k
    ahead = sqdist[right]
    behind = sqdist[wrong]
    # Divide by the sum twice instead of by its square, which would overflow for large distances.
    inverse = 1.0 / max(ahead + behind, COINCIDENT)
    decay = math.exp(-abs(steepness * (ahead * inverse - behind * inverse)))  # at most 1, so nothing overflows
    loss = decay / (1.0 + decay)
    if ahead > behind:
        loss = 1.0 / (1.0 + decay)
    if ahead + behind > COINCIDENT:
        rate = 2.0 * steepness * decay / ((1.0 + decay) * (1.0 + decay)) * inverse
        slope[right] += factor * rate * behind * inverse
        slope[wrong] -= factor * rate * ahead * inverse
    weighted: float = factor * loss
    return weighted


def paced(pace: Array, sqdist: Array, slope: Array) -> float:
    """Return the size of the step with these slopes and squared distances (K,), and update ``pace`` (4,)."""
    value: float = pace[0]
    if pace[1] < 0.0:  # steps do not adapt
        return value
    square = 0.0
    for k in range(len(slope)):
        square += 4.0 * slope[k] * slope[k] * sqdist[k]
    pace[2] = max(pace[2], math.sqrt(square))
    pace[3] += square
    if 0.0 < pace[3] < np.inf:
        value *= max(pace[1], pace[2]) / math.sqrt(pace[3])
    return value


def weigh(block: Block, b: int, rules: Rules, weights: Array) -> int:
    """Fill ``weights`` (K,) with the capped weights of sample b, and its loss; return the number of weights cut."""
    sqdist = block.sqdist[b]
    loss = 0.0
    n_capped = 0
    for k in range(len(weights)):
        weights[k] = 0.0
    for t in range(len(rules.numbers)):
        if rules.numbers[t, 0] == MARGIN:
            loss += add_margin(sqdist, block.targets[b], rules, t, weights)
        else:
            loss += add_mixture(sqdist, block.targets[b], rules, t, weights)
    block.loss[b] = loss
    for k in range(len(weights)):
        weights[k] *= block.multiplicity[b]
    step = 2.0 * paced(rules.pace, sqdist, weights)
    for k in range(len(weights)):
        weight = step * weights[k]
        if abs(weight) > rules.caps[0]:
            weight = math.copysign(rules.caps[0], weight)
            n_capped += 1
        length = abs(weight) * math.sqrt(sqdist[k])
        if length > rules.caps[1]:
            weight *= rules.caps[1] / length
            n_capped += 1
        weights[k] = weight
    return n_capped
