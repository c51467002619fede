"""Jacobi's rotations for Hermitian matrices, all prototypes at once; see :mod:`rplvq.compiled.lanes`.

Real and imaginary parts are arrays of their own: ``parts[0]`` and ``parts[1]``. A phase makes the entry to be removed
real before each rotation.
"""

from __future__ import annotations

import math

import numpy as np

from rplvq.compiled.lanes import CONVERGED, MAX_SWEEPS, spectra
from rplvq.compiled.weigh import weigh
from rplvq.protocols import Array

__all__ = ["diagonalise_complex", "through_complex_lanes", "turn_rows", "whiten_complex"]


def whiten_complex(factors: Array, sample: Array, product: Array, whitened: Array) -> None:
    """Fill the lower half of ``whitened`` (2, n, n, L) with ``G X G^H`` for factors (2, n, n, L) and a sample."""
    n, n_lanes = factors.shape[1], factors.shape[3]
    real, imaginary = factors[0], factors[1]
    for i in range(n):
        for j in range(n):
            for k in range(n_lanes):
                product[0, i, j, k] = product[1, i, j, k] = 0.0
            for m in range(n):
                x, y = sample[m, j].real, sample[m, j].imag
                for k in range(n_lanes):
                    product[0, i, j, k] += x * real[i, m, k] - y * imaginary[i, m, k]
                    product[1, i, j, k] += y * real[i, m, k] + x * imaginary[i, m, k]
        for j in range(i + 1):
            for k in range(n_lanes):
                whitened[0, i, j, k] = whitened[1, i, j, k] = 0.0
            for m in range(n):
                for k in range(n_lanes):
                    x, y = product[0, i, m, k], product[1, i, m, k]
                    whitened[0, i, j, k] += x * real[j, m, k] + y * imaginary[j, m, k]
                    whitened[1, i, j, k] += y * real[j, m, k] - x * imaginary[j, m, k]


def turn_rows(parts: Array, p: int, pj: int, q: int, qj: int, flip_p: float, flip_q: float, rotation: Array) -> None:
    """Rotate entries ``a`` at (p, pj) and ``b`` at (q, qj) to ``c a - s e b`` and ``s a + c e b``, in all lanes.

    ``rotation`` (4, L) holds c, s and the parts of the phase e; ``flip`` -1 says that an entry is held conjugate.
    """
    for k in range(parts.shape[3]):
        c, s, e, f = rotation[0, k], rotation[1, k], rotation[2, k], rotation[3, k]
        x, y = parts[0, p, pj, k], flip_p * parts[1, p, pj, k]
        u, v = parts[0, q, qj, k], flip_q * parts[1, q, qj, k]
        u, v = e * u - f * v, f * u + e * v
        parts[0, p, pj, k], parts[1, p, pj, k] = c * x - s * u, flip_p * (c * y - s * v)
        parts[0, q, qj, k], parts[1, q, qj, k] = s * x + c * u, flip_q * (s * y + c * v)


def diagonalise_complex(matrices: Array, factors: Array, rotation: Array) -> None:
    """Rotate the lower halves of ``matrices`` (2, n, n, L) to diagonal form, and the rows of ``factors`` along."""
    n, n_lanes = matrices.shape[1], matrices.shape[3]
    for _ in range(MAX_SWEEPS):
        worst = 0.0
        for k in range(n_lanes):
            outside, inside = 0.0, 0.0
            for i in range(n):
                inside += matrices[0, i, i, k] ** 2
                for j in range(i):
                    outside += matrices[0, i, j, k] ** 2 + matrices[1, i, j, k] ** 2
            worst = max(worst, outside / inside)
        if worst < CONVERGED:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                for k in range(n_lanes):
                    x, y = matrices[0, q, p, k], matrices[1, q, p, k]
                    off, gap = math.sqrt(x * x + y * y), matrices[0, q, q, k] - matrices[0, p, p, k]
                    whole = gap + math.copysign(math.sqrt(gap * gap + 4.0 * off * off), gap)
                    tangent = 2.0 * off / whole if whole != 0.0 else 0.0
                    rotation[0, k] = 1.0 / math.sqrt(1.0 + tangent * tangent)
                    rotation[1, k] = tangent * rotation[0, k]
                    rotation[2, k] = x / off if off != 0.0 else 1.0
                    rotation[3, k] = -y / off if off != 0.0 else 0.0
                    matrices[0, p, p, k] -= tangent * off
                    matrices[0, q, q, k] += tangent * off
                    matrices[0, q, p, k] = matrices[1, q, p, k] = 0.0
                for j in range(n):
                    if j < p:
                        turn_rows(matrices, p, j, q, j, 1.0, 1.0, rotation)
                    elif p < j < q:
                        turn_rows(matrices, j, p, q, j, -1.0, 1.0, rotation)
                    elif j > q:
                        turn_rows(matrices, j, p, j, q, -1.0, -1.0, rotation)
                    turn_rows(factors, p, j, q, j, 1.0, 1.0, rotation)


def through_complex_lanes(
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
    factors : ndarray of shape (2, n, n, L)
        Real and imaginary parts of the inverse factors, moved in place; lanes beyond the K prototypes hold any factors.
    samples, targets, sample_weight, labels, scale, step_size, max_weight, max_length, resolution, sqdist, loss
        As there; samples are complex.

    Returns
    -------
    int
        Number of capped weights and steps.
    """
    n, n_lanes = factors.shape[1], factors.shape[3]
    product, matrices, logs = np.empty_like(factors), np.zeros_like(factors), np.empty((n, n_lanes))
    rotation, weights = np.empty((4, n_lanes)), np.empty(len(labels))
    n_capped = 0
    for b in range(len(samples)):
        whiten_complex(factors, samples[b], product, matrices)
        diagonalise_complex(matrices, factors, rotation)
        spectra(matrices[0], resolution, logs, sqdist[b])
        step = step_size * sample_weight[b]
        loss[b], capped = weigh(sqdist[b], targets[b], labels, scale, step, max_weight, max_length, weights)
        n_capped += capped
        for i in range(n):
            for k in range(len(labels)):
                logs[i, k] = math.exp(-0.5 * weights[k] * logs[i, k])
            for j in range(n):
                for k in range(len(labels)):
                    factors[0, i, j, k] *= logs[i, k]
                    factors[1, i, j, k] *= logs[i, k]
    return n_capped
