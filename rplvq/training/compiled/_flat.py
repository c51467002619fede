"""Steps on single samples along straight lines, in plain Python that numba can compile; the metric may be learned.

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
    store(spare, 0, total)  # lanes cannot be read one by one
    result = 0.0
    for j in range(width):
        result += spare[j]
    for j in range(whole, m):  # the rest, which fills no vector
        result += first[at + j] * second[start + j]
    return result


def differences_to(sample: Array, at: int, prototypes: Array, m: int, differences: Array) -> None:
    """Fill ``differences`` (K m,) with those of the sample that begins at ``at``, of length m, and the prototypes."""
    for k in range(0, len(prototypes), m):
        for j in range(m):
            differences[k + j] = sample[at + j] - prototypes[k + j]


def run_flat(prototypes: Array, samples: Array, block: Block, rules: Rules, like: Lanes) -> int:
    """Move prototypes in place by one step per sample; fill ``block``, and return the number of weights cut."""
    n_prototypes = block.sqdist.shape[1]
    n_capped = 0
    m = len(prototypes) // n_prototypes
    weights = np.empty(n_prototypes)
    spare = np.empty(len(like))
    differences = np.empty_like(prototypes)
    for b in range(len(block.sqdist)):
        differences_to(samples, b * m, prototypes, m, differences)
        for k in range(n_prototypes):
            block.sqdist[b, k] = flat_product(differences, k * m, differences, k * m, m, spare, like)
        n_capped += weigh(block, b, rules, weights)
        for k in range(n_prototypes):
            for j in range(m):
                prototypes[k * m + j] += weights[k] * differences[k * m + j]
    return n_capped


def pull_row(row: Array, at: int, differences: Array, factors: Array, m: int, like: Lanes) -> None:
    """Subtract K vectors (K m,), multiplied by ``factors`` (K,), from the vector of length m that begins at ``at``."""
    width = len(like)
    whole = m - m % width
    for j in range(0, whole, width):
        moved = load(row, at + j, like)
        for k in range(len(factors)):
            moved = fused(fill(-factors[k], like), load(differences, k * m + j, like), moved)
        store(row, at + j, moved)
    for k in range(len(factors)):
        for j in range(whole, m):
            row[at + j] -= factors[k] * differences[k * m + j]


def learning_rate(rate: float, longest: float, weights: Array, squares: Array) -> float:
    """Return the rate at which Omega follows its gradient: one step changes no direction by more than ``longest``."""
    reach = 0.0
    for k in range(len(weights)):
        reach += abs(weights[k]) * squares[k]
    return min(rate, longest / reach) if reach > 0.0 else 0.0


def run_learned(
    prototypes: Array, omega: Array, rate: float, longest: float, rest: float, samples: Array,
    block: Block, rules: Rules, like: Lanes,
) -> int:  # fmt: skip
    """Move prototypes in place by one step per sample; fill ``block``, and return the number of weights cut.

    ``omega`` (r m,) is moved in place, too, and the caller scales it at the end. Distances are measured as if it were
    scaled after each step, such that the sum of its squares, plus ``rest``, is what it was at the start.
    """
    sqdist = block.sqdist
    n_samples, n_prototypes = sqdist.shape
    m = len(prototypes) // n_prototypes
    n_capped = 0
    scale = 1.0
    rank = len(omega) // m
    weights = np.zeros(n_prototypes)
    squares = np.zeros(n_prototypes)
    spare = np.empty(len(like))
    trace = rest + flat_product(omega, 0, omega, 0, rank * m, spare, like)
    differences = np.empty(n_prototypes * m)
    images = np.empty((rank, n_prototypes))
    for b in range(n_samples):
        differences_to(samples, b * m, prototypes, m, differences)
        for k in range(n_prototypes):
            squares[k] = flat_product(differences, k * m, differences, k * m, m, spare, like)
        sqdist[b] = 0.0
        for i in range(rank):
            for k in range(n_prototypes):
                images[i, k] = flat_product(omega, i * m, differences, k * m, m, spare, like)
                sqdist[b, k] += images[i, k] * images[i, k]
        sqdist[b] *= scale * scale
        n_capped += weigh(block, b, rules, weights)
        for k in range(n_prototypes):
            for j in range(m):
                prototypes[k * m + j] += weights[k] * differences[k * m + j]
        current = learning_rate(rate, longest, weights, squares)
        if current > 0.0:
            for i in range(rank):
                for k in range(n_prototypes):
                    images[i, k] *= current * weights[k]
                pull_row(omega, i * m, differences, images[i], m, like)
            norm = rest + flat_product(omega, 0, omega, 0, rank * m, spare, like)
            scale = np.sqrt(trace / norm)  # omega itself is scaled by the caller, once per block
    return n_capped
