"""Steps by Jacobi's rotations, all prototypes at once; plain Python that numba compiles as it stands.

The prototypes are the innermost axis of every array, a lane each, so that one instruction works on several of them.
Rotations that make ``A = G X G^T`` diagonal are applied to the rows of G as they come: what they leave is ``U^T G``,
which is all that the step needs, and no eigenvectors are ever formed. (Jacobi 1846; cyclic by rows: Golub and Van
Loan, "Matrix Computations", section 8.5.)
"""

from __future__ import annotations

import math

import numpy as np

from rplvq.compiled.weigh import weigh
from rplvq.protocols import Array

__all__ = ["diagonalise", "spectra", "through_lanes", "whiten_lanes"]

CONVERGED = 1e-31
"""Squares of what is off the diagonal, relative to those on it."""
MAX_SWEEPS = 40


def whiten_lanes(factors: Array, sample: Array, product: Array, whitened: Array) -> None:
    """Fill the lower half of ``whitened`` (n, n, L) with ``G X G^T`` for factors (n, n, L) and a sample (n, n)."""
    n, n_lanes = factors.shape[0], factors.shape[2]
    for i in range(n):
        for j in range(n):
            for k in range(n_lanes):
                product[i, j, k] = 0.0
        for m in range(n):
            for j in range(n):
                value = sample[m, j]
                for k in range(n_lanes):
                    product[i, j, k] += value * factors[i, m, k]
        for j in range(i + 1):
            for k in range(n_lanes):
                whitened[i, j, k] = 0.0
            for m in range(n):
                for k in range(n_lanes):
                    whitened[i, j, k] += product[i, m, k] * factors[j, m, k]


def diagonalise(matrices: Array, factors: Array, cosines: Array, sines: Array) -> None:
    """Rotate the lower halves of ``matrices`` (n, n, L) until they are diagonal, and the rows of ``factors`` along."""
    n, n_lanes = matrices.shape[0], matrices.shape[2]
    for _ in range(MAX_SWEEPS):
        worst = 0.0
        for k in range(n_lanes):
            outside, inside = 0.0, 0.0
            for i in range(n):
                inside += matrices[i, i, k] ** 2
                for j in range(i):
                    outside += matrices[i, j, k] ** 2
            worst = max(worst, outside / inside)
        if worst < CONVERGED:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                for k in range(n_lanes):
                    off, gap = matrices[q, p, k], matrices[q, q, k] - matrices[p, p, k]
                    whole = gap + math.copysign(math.sqrt(gap * gap + 4.0 * off * off), gap)
                    tangent = 2.0 * off / whole if whole != 0.0 else 0.0
                    cosines[k] = 1.0 / math.sqrt(1.0 + tangent * tangent)
                    sines[k] = tangent * cosines[k]
                    matrices[p, p, k] -= tangent * off
                    matrices[q, q, k] += tangent * off
                    matrices[q, p, k] = 0.0
                for j in range(p):
                    for k in range(n_lanes):
                        x, y = matrices[p, j, k], matrices[q, j, k]
                        matrices[p, j, k] = cosines[k] * x - sines[k] * y
                        matrices[q, j, k] = sines[k] * x + cosines[k] * y
                for j in range(p + 1, q):
                    for k in range(n_lanes):
                        x, y = matrices[j, p, k], matrices[q, j, k]
                        matrices[j, p, k] = cosines[k] * x - sines[k] * y
                        matrices[q, j, k] = sines[k] * x + cosines[k] * y
                for j in range(q + 1, n):
                    for k in range(n_lanes):
                        x, y = matrices[j, p, k], matrices[j, q, k]
                        matrices[j, p, k] = cosines[k] * x - sines[k] * y
                        matrices[j, q, k] = sines[k] * x + cosines[k] * y
                for j in range(n):
                    for k in range(n_lanes):
                        x, y = factors[p, j, k], factors[q, j, k]
                        factors[p, j, k] = cosines[k] * x - sines[k] * y
                        factors[q, j, k] = sines[k] * x + cosines[k] * y


def spectra(matrices: Array, resolution: float, logs: Array, sqdist: Array) -> None:
    """Fill ``logs`` (n, L) with the logarithms of the diagonals, and ``sqdist`` (K,) with their sums of squares."""
    n = matrices.shape[0]
    for k in range(len(sqdist)):
        largest = 0.0
        for i in range(n):
            largest = max(largest, matrices[i, i, k])
        sqdist[k] = 0.0
        for i in range(n):
            logs[i, k] = math.log(max(matrices[i, i, k], resolution * largest)) if largest > 0.0 else np.nan
            sqdist[k] += logs[i, k] ** 2


def through_lanes(
    factors: Array,
    samples: Array,
    targets: Array,
    sample_weight: Array,
    labels: Array,
    scale: float,
    step_size: float,
    max_weight: float,
    max_length: float,
    resolution: float,
    sqdist: Array,
    loss: Array,
) -> int:
    """Step through samples (M, n, n) one by one, as :func:`rplvq.compiled.lapack.through_lapack` does.

    Parameters
    ----------
    factors : ndarray of shape (n, n, L)
        Inverse factors of the prototypes, moved in place; lanes beyond the K prototypes hold any factors.
    samples, targets, sample_weight, labels, scale, step_size, max_weight, max_length, resolution, sqdist, loss
        As there; samples are real.

    Returns
    -------
    int
        Number of capped weights and steps.
    """
    n, n_lanes = factors.shape[0], factors.shape[2]
    product, matrices, logs = np.empty_like(factors), np.zeros_like(factors), np.empty((n, n_lanes))
    cosines, sines, weights = np.empty(n_lanes), np.empty(n_lanes), np.empty(len(labels))
    n_capped = 0
    for b in range(len(samples)):
        whiten_lanes(factors, samples[b], product, matrices)
        diagonalise(matrices, factors, cosines, sines)
        spectra(matrices, resolution, logs, sqdist[b])
        step = step_size * sample_weight[b]
        loss[b], capped = weigh(sqdist[b], targets[b], labels, scale, step, max_weight, max_length, weights)
        n_capped += capped
        for i in range(n):
            for k in range(len(labels)):
                logs[i, k] = math.exp(-0.5 * weights[k] * logs[i, k])
            for j in range(n):
                for k in range(len(labels)):
                    factors[i, j, k] *= logs[i, k]
    return n_capped
