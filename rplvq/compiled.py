"""Compiled sweeps, sample by sample: the extra ``fast``.

For single small matrices most of a step's time is Python and NumPy calling each other. This kernel takes the same
steps as :class:`rplvq.Trainer` on the affine-invariant manifold under RSLVQ, compiled by numba around the same LAPACK;
results agree to rounding. Everything else, and every machine without numba, takes the plain path.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from rplvq.costs import PLVQ, RSLVQ
from rplvq.manifolds import AffineInvariant
from rplvq.manifolds.affine_invariant import EPS, InverseFactors, inverse_factors
from rplvq.protocols import Array, Prototypes

__all__ = ["compiled_kernel", "is_known", "run_block", "step_through"]


def step_through(
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
    """Step through samples (M, n, n) one by one; plain Python that numba compiles as it stands.

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
    basis, logs = np.empty_like(factors), np.empty((n_prototypes, n))
    n_capped = 0
    for b in range(len(samples)):
        nearest, nearest_own = np.inf, np.inf
        for k in range(n_prototypes):
            whitened = factors[k] @ samples[b] @ np.conj(factors[k]).T
            eigenvalues, eigenvectors = np.linalg.eigh(whitened)
            basis[k] = eigenvectors
            total = 0.0
            for i in range(n):
                logs[k, i] = math.log(max(eigenvalues[i], resolution * eigenvalues[n - 1]))
                total += logs[k, i] ** 2
            sqdist[b, k] = total
            nearest = min(nearest, total)
            if labels[k] == targets[b]:
                nearest_own = min(nearest_own, total)
        joint, joint_own = 0.0, 0.0
        for k in range(n_prototypes):
            joint += math.exp(scale * (nearest - sqdist[b, k]))
            if labels[k] == targets[b]:
                joint_own += math.exp(scale * (nearest_own - sqdist[b, k]))
        loss[b] = math.log(joint) - math.log(joint_own) + scale * (nearest_own - nearest)
        for k in range(n_prototypes):
            share = -math.exp(scale * (nearest - sqdist[b, k])) / joint
            if labels[k] == targets[b]:
                share += math.exp(scale * (nearest_own - sqdist[b, k])) / joint_own
            weight = 2.0 * step_size * scale * sample_weight[b] * share
            if abs(weight) > max_weight:
                weight = math.copysign(max_weight, weight)
                n_capped += 1
            length = abs(weight) * math.sqrt(sqdist[b, k])
            if length > max_length:
                weight *= max_length / length
                n_capped += 1
            moved = np.conj(basis[k]).T @ factors[k]
            for i in range(n):
                factor = math.exp(-0.5 * weight * logs[k, i])
                for j in range(n):
                    factors[k, i, j] = factor * moved[i, j]
    return n_capped


@lru_cache(maxsize=1)
def compiled_kernel() -> Callable[..., int] | None:
    """Return the compiled :func:`step_through`, or None where numba is not installed."""
    if find_spec("numba") is None:
        return None
    import numba

    kernel: Callable[..., int] = numba.njit(cache=True)(step_through)
    return kernel


def is_known(manifold: Any, cost: Any, targets: Array, size: int) -> bool:
    """Whether the kernel takes the steps of these parts: exact types, no priors, one label, one sample a step."""
    return (
        type(manifold) is AffineInvariant
        and type(cost) in (RSLVQ, PLVQ)
        and cost.priors is None
        and targets.ndim == 1
        and size == 1
    )


def run_block(
    kernel: Callable[..., int],
    prototypes: Prototypes,
    samples: Array,
    targets: Array,
    sample_weight: Array | None,
    labels: Array,
    sigma2: float,
    step_size: float,
    caps: tuple[float, float],
) -> tuple[Prototypes, Array, Array, int]:
    """Step through a block with the kernel.

    Returns
    -------
    tuple
        Moved prototypes, squared distances (M, K), losses (M,), number of capped weights and steps.
    """
    dtype = np.result_type(inverse_factors(prototypes), samples)
    factors = np.array(inverse_factors(prototypes), dtype=dtype, order="C")
    sqdist, loss = np.empty((len(samples), len(factors))), np.empty(len(samples))
    n_capped = kernel(
        factors,
        np.ascontiguousarray(samples, dtype=dtype),
        np.ascontiguousarray(targets),
        np.ones(len(samples)) if sample_weight is None else np.ascontiguousarray(sample_weight),
        np.ascontiguousarray(labels),
        0.5 / sigma2,
        step_size,
        *caps,
        float(EPS),
        sqdist,
        loss,
    )
    return InverseFactors(factors), sqdist, loss, int(n_capped)
