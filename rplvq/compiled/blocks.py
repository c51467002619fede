"""Which parts the kernels know, which kernel suits a block, and how its arrays must lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rplvq.compiled.build import Kernels
from rplvq.compiled.rotations import Parts, rounds
from rplvq.costs import PLVQ, RSLVQ
from rplvq.manifolds import AffineInvariant
from rplvq.manifolds.affine_invariant import EPS, InverseFactors, inverse_factors
from rplvq.protocols import Array, Prototypes

__all__ = ["from_lanes", "into_lanes", "is_known", "lane_width", "run_block"]

SHARES = {4: (0.037, 0.045), 8: (0.026, 0.03)}
"""Share of LAPACK's time that a lane takes, by the width of vectors, over n: for real and for complex matrices."""
LAPACK_OVERHEAD = 1.1
"""Time of a step by LAPACK over that of its decompositions alone."""


def is_known(manifold: Any, cost: Any, targets: Array, size: int) -> bool:
    """Whether the kernel takes the steps of these parts: exact types, no priors, one label, one sample a step."""
    return (
        type(manifold) is AffineInvariant
        and type(cost) in (RSLVQ, PLVQ)
        and cost.priors is None
        and targets.ndim == 1
        and size == 1
    )


def lane_width(n: int, count: int, is_complex: bool) -> int:
    """Width of vectors for rotations of ``count`` matrices of size n at once, or 0 where LAPACK is faster.

    Empty lanes cost as much as full ones, so that narrower vectors can be better for few matrices.
    """
    costs = {0: LAPACK_OVERHEAD * count}
    for width, shares in SHARES.items():
        costs[width] = -(-count // width) * width * shares[is_complex] * max(n, 5)
    return min(costs, key=lambda width: costs[width])


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
    count, n = factors.shape[:2]
    sqdist, loss = np.empty((len(samples), count)), np.empty(len(samples))
    arguments = (
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
    width = lane_width(n, count, dtype.kind == "c")
    if not width:
        n_capped = kernels.through_lapack(factors, *arguments)
        return InverseFactors(factors), sqdist, loss, int(n_capped)
    lanes = into_lanes(factors, width)
    columns = tuple(np.empty_like(part) for part in lanes)
    lower, spare = (tuple(np.zeros(shape) for _ in lanes) for shape in ((n, n), n * n * width))
    n_capped = kernels.through_lanes(lanes, *arguments, columns, lower, spare, rounds(n), (0.0,) * width)
    return InverseFactors(from_lanes(lanes, count, n, width)), sqdist, loss, int(n_capped)


def into_lanes(matrices: Array, width: int) -> Parts:
    """Lay matrices (P, n, n) out in flat blocks: number (i n + j) W + k of a block is entry (i, j) of its matrix k.

    Returns
    -------
    tuple of arrays of shape (blocks n n W,)
        One, or for complex matrices the real and the imaginary part; lanes left over hold identities.
    """
    n = matrices.shape[1]
    filled = np.empty((-(-len(matrices) // width), width, n, n), dtype=matrices.dtype)
    flat = filled.reshape(-1, n, n)
    flat[: len(matrices)], flat[len(matrices) :] = matrices, np.eye(n)
    last = np.moveaxis(filled, 1, -1)
    parts = (last.real, last.imag) if matrices.dtype.kind == "c" else (last,)
    return tuple(np.ascontiguousarray(part).ravel() for part in parts)


def from_lanes(lanes: Parts, count: int, n: int, width: int) -> Array:
    """Return the first ``count`` matrices (P, n, n) of :func:`into_lanes`."""
    whole = lanes[0] + 1j * lanes[1] if len(lanes) == 2 else lanes[0]
    last = whole.reshape(-1, n, n, width)
    return np.ascontiguousarray(np.moveaxis(last, -1, 1)).reshape(-1, n, n)[:count]
