"""Steps on single samples along straight lines, in plain Python that numba can compile.

Codes of any shape are real vectors here. Prototypes (K, m) and samples (M, m) are passed as flat arrays.
"""

import numpy as np

from rplvq.lanes import Lanes, fill, fused, load, store
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Rules, weigh


def flat_distance(first: Array, at: int, second: Array, start: int, m: int, spare: Array, like: Lanes) -> float:
    """Return the squared distance of the vectors of length m that begin at ``at`` and at ``start``."""
    width = len(like)
    whole = m - m % width
    total = fill(0.0, like)
    for j in range(0, whole, width):
        difference = load(first, at + j, like) - load(second, start + j, like)
        total = fused(difference, difference, total)
    store(spare, 0, total)
    result = 0.0
    for j in range(width):
        result += spare[j]
    for j in range(whole, m):
        result += (first[at + j] - second[start + j]) * (first[at + j] - second[start + j])
    return result


def run_flat(
    prototypes: Array,
    samples: Array,
    targets: Array,
    multiplicity: Array,
    rules: Rules,
    sqdist: Array,
    loss: Array,
    like: Lanes,
) -> int:
    """Take one step per sample, and return the number of caps.

    Prototypes are moved in place. ``targets`` (M, C) are class probabilities, ``multiplicity`` (M,) weights of samples,
    and ``sqdist`` (M, K) and ``loss`` (M,) are filled with the values before each step.
    """
    n_prototypes, n_capped = sqdist.shape[1], 0
    m = len(prototypes) // n_prototypes
    weights, spare = np.empty(n_prototypes), np.empty(len(like))
    for b in range(len(sqdist)):
        for k in range(n_prototypes):
            sqdist[b, k] = flat_distance(samples, b * m, prototypes, k * m, m, spare, like)
        loss[b], capped = weigh(sqdist[b], targets[b], multiplicity[b], rules, weights)
        n_capped += capped
        for k in range(n_prototypes):
            for j in range(m):
                prototypes[k * m + j] += weights[k] * (samples[b * m + j] - prototypes[k * m + j])
    return n_capped
