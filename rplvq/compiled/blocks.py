"""Which parts the kernels know, which kernel suits a block, and how its arrays must lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rplvq.compiled.build import Kernels
from rplvq.costs import PLVQ, RSLVQ
from rplvq.manifolds import AffineInvariant
from rplvq.manifolds.affine_invariant import EPS, InverseFactors, inverse_factors
from rplvq.protocols import Array, Prototypes

__all__ = ["is_known", "n_lanes", "run_block"]

LANES = 16
"""Prototypes come in multiples of this: two of the widest registers, below which compilers give up half the speed."""


def is_known(manifold: Any, cost: Any, targets: Array, size: int) -> bool:
    """Whether the kernel takes the steps of these parts: exact types, no priors, one label, one sample a step."""
    return (
        type(manifold) is AffineInvariant
        and type(cost) in (RSLVQ, PLVQ)
        and cost.priors is None
        and targets.ndim == 1
        and size == 1
    )


def n_lanes(n: int, n_prototypes: int, is_complex: bool) -> int:
    """Lanes for Jacobi's rotations, a multiple of 16, or 0 where LAPACK is faster for so many prototypes of size n.

    A lane costs a share of LAPACK's time that grows with n, measured as about .045 n - .1 for real matrices and never
    below .1; empty lanes cost as much as full ones. Hermitian matrices take twice the share.
    """
    lanes = -(-n_prototypes // LANES) * LANES
    share = max(0.1, 0.045 * n - 0.1) * (2 if is_complex else 1)
    return lanes if n_prototypes >= lanes * share else 0


def run_block(
    kernels: Kernels,
    prototypes: Prototypes,
    samples: Array,
    targets: Array,
    sample_weight: Array | None,
    labels: Array,
    sigma2: float,
    step_size: float,
    caps: tuple[float, float],
) -> tuple[Prototypes, Array, Array, int]:
    """Step through a block with the kernel that suits it.

    Returns
    -------
    tuple
        Moved prototypes, squared distances (M, K), losses (M,), number of capped weights and steps.
    """
    dtype = np.result_type(inverse_factors(prototypes), samples)
    factors = np.array(inverse_factors(prototypes), dtype=dtype, order="C")
    lanes = n_lanes(factors.shape[1], len(factors), dtype.kind == "c")
    layout, kernel = factors, kernels.lapack
    if lanes:
        kernel = kernels.complex_lanes if dtype.kind == "c" else kernels.lanes
        layout = into_lanes(factors, lanes)
    sqdist, loss = np.empty((len(samples), len(factors))), np.empty(len(samples))
    n_capped = kernel(
        layout,
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
    moved = from_lanes(layout, len(factors)) if lanes else factors
    return InverseFactors(moved), sqdist, loss, int(n_capped)


def into_lanes(factors: Array, lanes: int) -> Array:
    """Lay factors (K, n, n) out as (n, n, L), complex ones as (2, n, n, L); the lanes left over hold identities."""
    filled = np.empty((lanes, *factors.shape[1:]), dtype=factors.dtype)
    filled[: len(factors)], filled[len(factors) :] = factors, np.eye(factors.shape[1])
    last = np.moveaxis(filled, 0, -1)
    return np.stack([last.real, last.imag]) if factors.dtype.kind == "c" else np.ascontiguousarray(last)


def from_lanes(layout: Array, count: int) -> Array:
    """Return the first ``count`` factors (K, n, n) of a layout of :func:`into_lanes`."""
    last = layout[0] + 1j * layout[1] if layout.ndim == 4 else layout
    return np.ascontiguousarray(np.moveaxis(last[..., :count], -1, 0))
