"""Steps on single samples along straight lines, in plain Python that numba can compile.

Codes of any shape are real vectors here. Prototypes (K, m) and samples (M, m) are passed as flat arrays.
"""

import numpy as np

from rplvq.lanes import Lanes, fill, fused, load, store
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Block, Rules, weigh


def flat_product(first: Array, at: int, second: Array, start: int, m: int, spare: Array, like: Lanes) -> float:
    """Return the scalar product of the vectors of length m that begin at ``at`` and at ``start``."""
    width = len(like)
    whole = m - m % width
    total = fill(0.0, like)
    for j in range(0, whole, width):
        total = fused(load(first, at + j, like), load(second, start + j, like), total)
    store(spare, 0, total)
    result = 0.0
    for j in range(width):
        result += spare[j]
    for j in range(whole, m):
        result += first[at + j] * second[start + j]
    return result


def connect_flat(
    sample: Array, prototypes: Array, differences: Array, squares: Array, m: int, spare: Array, like: Lanes
) -> None:
    """Fill ``differences`` (K m,) with a sample (m,) minus each prototype, and ``squares`` (K,) with their squares."""
    for k in range(len(squares)):
        for j in range(m):
            differences[k * m + j] = sample[j] - prototypes[k * m + j]
        squares[k] = flat_product(differences, k * m, differences, k * m, m, spare, like)


def move_flat(prototypes: Array, differences: Array, weights: Array, m: int) -> None:
    """Move prototypes (K m,) by their ``differences`` (K m,) to a sample, times weights (K,)."""
    for k in range(len(weights)):
        for j in range(k * m, (k + 1) * m):
            prototypes[j] += weights[k] * differences[j]


def run_flat(prototypes: Array, samples: Array, block: Block, rules: Rules, like: Lanes) -> int:
    """Move prototypes in place by one step per sample, and return the number of caps."""
    sqdist = block.sqdist
    n_capped = 0
    m = len(prototypes) // sqdist.shape[1]
    weights = np.empty(sqdist.shape[1])
    spare = np.empty(len(like))
    differences = np.empty_like(prototypes)
    for b in range(len(sqdist)):
        connect_flat(samples[b * m : (b + 1) * m], prototypes, differences, sqdist[b], m, spare, like)
        n_capped += weigh(block, b, rules, weights)
        move_flat(prototypes, differences, weights, m)
    return n_capped
