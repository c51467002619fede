"""Which parts the kernels know, when they pay, and how their arrays must lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rplvq.arrays import Samples
from rplvq.costs import PLVQ, RSLVQ
from rplvq.manifolds import EPS, AffineInvariant, InverseFactors, inverse_factors
from rplvq.protocols import Array, Prototypes
from rplvq.training.compiled._build import Kernels
from rplvq.training.compiled._rotations import Parts, rounds

__all__ = ["from_lanes", "into_lanes", "is_known", "is_worthwhile", "lane_width", "run_block"]

SHARES = {4: (0.037, 0.045), 8: (0.026, 0.03)}
"""Time per lane and n, relative to LAPACK, by the width of the vectors: for real and for complex matrices."""
LAPACK_OVERHEAD = 1.1
"""Time of a plain step relative to its decompositions alone."""


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
    """Width of the vectors by which ``count`` matrices of size n are rotated fastest.

    Empty lanes take as much time as full ones, so narrower vectors can be better for few matrices.
    """
    return min(SHARES, key=lambda width: _cost(width, n, count, is_complex))


def is_worthwhile(n: int, count: int, is_complex: bool) -> bool:
    """Whether rotations of ``count`` matrices of size n are faster than LAPACK's decompositions."""
    return _cost(lane_width(n, count, is_complex), n, count, is_complex) < LAPACK_OVERHEAD * count


def _cost(width: int, n: int, count: int, is_complex: bool) -> float:
    """Time of the rotations, in units of LAPACK's time for one matrix."""
    return -(-count // width) * width * SHARES[width][is_complex] * max(n, 5)


def run_block(
    kernels: Kernels,
    prototypes: Prototypes,
    samples: Samples,
    labels: Array,
    sigma2: float,
    step_size: float,
    caps: tuple[float, float],
) -> tuple[Prototypes, Array, Array, int]:
    """Step through a block of M samples, one by one.

    Returns
    -------
    tuple
        Moved prototypes, squared distances (M, K), losses (M,), number of capped weights and steps.
    """
    codes = np.asarray(samples.codes)
    dtype = np.result_type(inverse_factors(prototypes), codes)
    factors = np.array(inverse_factors(prototypes), dtype=dtype, order="C")
    count, n = factors.shape[:2]
    sqdist, loss = np.empty((len(codes), count)), np.empty(len(codes))
    width = lane_width(n, count, dtype.kind == "c")
    lanes = into_lanes(factors, width)
    columns = tuple(np.empty_like(part) for part in lanes)
    lower, spare = (tuple(np.zeros(shape) for _ in lanes) for shape in ((n, n), n * n * width))
    n_capped = kernels.through_lanes(
        lanes,
        np.ascontiguousarray(codes, dtype=dtype),
        np.ascontiguousarray(samples.targets),
        np.ascontiguousarray(samples.filled_weights),
        np.ascontiguousarray(labels),
        0.5 / sigma2,
        step_size,
        *caps,
        float(EPS),
        sqdist,
        loss,
        columns,
        lower,
        spare,
        rounds(n),
        (0.0,) * width,
    )
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
