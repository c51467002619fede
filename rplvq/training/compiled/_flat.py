"""Steps on single samples along straight lines, in plain Python that numba can compile.

Codes of any shape are real vectors here. Prototypes (K, m) and samples (M, m) are passed as flat arrays.
"""

import numpy as np

from rplvq.lanes import Lanes, fill, fused, load, store
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Block, Rules, weigh


def flat_distance(first: Array, at: int, second: Array, start: int, m: int, spare: Array, like: Lanes) -> float:
    """Return the squared distance of the vectors of length m that begin at ``at`` and at ``start``."""
    width = len(like)
    whole = m - m % width
    total = fill(0.0, like)
    for j in range(0, whole, width):
        difference = load(first, at + j, like) - load(second, start + j, like)
        total = fused(difference, difference, total)
    store(spare, 0, total)  # lanes cannot be read one by one
    result = 0.0
    for j in range(width):
        result += spare[j]
    for j in range(whole, m):  # the rest, which fills no vector
        result += (first[at + j] - second[start + j]) * (first[at + j] - second[start + j])
    return result


def run_flat(prototypes: Array, samples: Array, block: Block, rules: Rules, like: Lanes) -> int:
    """Move prototypes in place by one step per sample, and return the number of caps."""
    n_prototypes = block.sqdist.shape[1]
    n_capped = 0
    m = len(prototypes) // n_prototypes
    weights = np.empty(n_prototypes)
    spare = np.empty(len(like))
    for b in range(len(block.sqdist)):
        for k in range(n_prototypes):
            block.sqdist[b, k] = flat_distance(samples, b * m, prototypes, k * m, m, spare, like)
        n_capped += weigh(block, b, rules, weights)
        for k in range(n_prototypes):
            for j in range(m):
                prototypes[k * m + j] += weights[k] * (samples[b * m + j] - prototypes[k * m + j])
    return n_capped
