"""Steps by LAPACK, one prototype after the other; plain Python that numba compiles as it stands."""

from __future__ import annotations

import math

import numpy as np

from rplvq.compiled.weigh import weigh
from rplvq.protocols import Array

__all__ = ["through_lapack"]


def through_lapack(
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
    """Step through samples (M, n, n) one by one.

    Parameters
    ----------
    factors : ndarray of shape (K, n, n)
        Inverse factors of the prototypes; moved in place.
    samples, targets, sample_weight : ndarray of shape (M, n, n), (M,) and (M,)
        Samples, class indices, weights of the visits.
    labels : ndarray of int of shape (K,)
        Class indices of the prototypes.
    scale, step_size : float
        1 / (2 sigma2), and the step size.
    max_weight, max_length : float
        Caps, infinite for none.
    resolution : float
        Smallest eigenvalue that is told from zero, relative to the largest.
    sqdist, loss : ndarray of shape (M, K) and (M,)
        Filled with what each step met.

    Returns
    -------
    int
        Number of capped weights and steps.
    """
    n_prototypes, n = factors.shape[:2]
    basis, logs, weights = np.empty_like(factors), np.empty((n_prototypes, n)), np.empty(n_prototypes)
    n_capped = 0
    for b in range(len(samples)):
        for k in range(n_prototypes):
            whitened = factors[k] @ samples[b] @ np.conj(factors[k]).T
            eigenvalues, eigenvectors = np.linalg.eigh(whitened)
            basis[k] = eigenvectors
            total = 0.0
            for i in range(n):
                logs[k, i] = math.log(max(eigenvalues[i], resolution * eigenvalues[n - 1]))
                total += logs[k, i] ** 2
            sqdist[b, k] = total
        step = step_size * sample_weight[b]
        loss[b], capped = weigh(sqdist[b], targets[b], labels, scale, step, max_weight, max_length, weights)
        n_capped += capped
        for k in range(n_prototypes):
            moved = np.conj(basis[k]).T @ factors[k]
            for i in range(n):
                factor = math.exp(-0.5 * weights[k] * logs[k, i])
                for j in range(n):
                    factors[k, i, j] = factor * moved[i, j]
    return n_capped
