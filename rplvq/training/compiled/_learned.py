"""Steps on single samples under a learned flat metric, in plain Python that numba can compile."""

import numpy as np

from rplvq.lanes import Lanes, fill, fused, load, store
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Rules, weigh


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


def learning_rate(rate: float, longest: float, weights: Array, squares: Array) -> float:
    """Return the rate at which Omega follows its gradient: one step changes no direction by more than ``longest``."""
    reach = 0.0
    for k in range(len(weights)):
        reach += abs(weights[k]) * squares[k]
    return min(rate, longest / reach) if reach > 0.0 else 0.0


def run_learned(
    prototypes: Array,
    omega: Array,
    rate: float,
    longest: float,
    samples: Array,
    targets: Array,
    multiplicity: Array,
    rules: Rules,
    sqdist: Array,
    loss: Array,
    like: Lanes,
) -> int:
    """Take one step per sample, and return the number of caps; arguments as for ``run_flat``.

    ``omega`` (r m,) is moved in place, too. One pass over it changes each row by the step on a sample, and then applies
    the row to the differences of the next sample, because a large Omega is read from slow memory.
    """
    n_samples, n_prototypes = sqdist.shape
    m, n_capped, scale = len(prototypes) // n_prototypes, 0, 1.0
    rank = len(omega) // m
    weights, squares, spare = np.zeros(n_prototypes), np.zeros(n_prototypes), np.empty(len(like))
    before, after = np.zeros(n_prototypes * m), np.zeros(n_prototypes * m)
    images, current = np.zeros((rank, n_prototypes)), 0.0
    for b in range(n_samples):
        for k in range(n_prototypes):
            for j in range(m):
                after[k * m + j] = samples[b * m + j] - prototypes[k * m + j]
            sqdist[b, k] = 0.0
        norm = 0.0
        for i in range(rank):
            if current > 0.0:
                for k in range(n_prototypes):
                    factor = current * weights[k] * images[i, k]
                    for j in range(m):
                        omega[i * m + j] -= factor * before[k * m + j]
                norm += flat_product(omega, i * m, omega, i * m, m, spare, like)
            for k in range(n_prototypes):
                images[i, k] = flat_product(omega, i * m, after, k * m, m, spare, like)
                sqdist[b, k] += images[i, k] * images[i, k]
        if current > 0.0:
            scale = np.sqrt(m / norm)
        for k in range(n_prototypes):
            sqdist[b, k] *= scale * scale
        loss[b], capped = weigh(sqdist[b], targets[b], multiplicity[b], rules, weights)
        n_capped += capped
        for k in range(n_prototypes):
            squares[k] = flat_product(after, k * m, after, k * m, m, spare, like)
            for j in range(m):
                prototypes[k * m + j] += weights[k] * after[k * m + j]
        current = learning_rate(rate, longest, weights, squares)
        before, after = after, before
    norm = 0.0
    for i in range(rank):
        for k in range(n_prototypes):
            factor = current * weights[k] * images[i, k]
            for j in range(m):
                omega[i * m + j] -= factor * before[k * m + j]
        norm += flat_product(omega, i * m, omega, i * m, m, spare, like)
    scale = np.sqrt(m / norm) if rate > 0.0 else 1.0
    for i in range(rank * m):
        omega[i] *= scale
    return n_capped
