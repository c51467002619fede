"""Decides where compiled steps run, and prepares their arrays: whole blocks of samples, and the layout in lanes."""

from typing import Any

import numpy as np

from rplvq.arrays import Samples
from rplvq.costs import PLVQ, RSLVQ
from rplvq.lanes import aligned, from_lanes, into_lanes
from rplvq.manifolds import EPS, AffineInvariant, InverseFactors, inverse_factors
from rplvq.protocols import Array, Prototypes
from rplvq.training.compiled._build import Kernels

SHARES = {4: (0.019, 0.025), 8: (0.018, 0.024)}
"""Measured time of a compiled step per lane and n, relative to LAPACK: by width, for real and complex matrices."""
LAPACK_OVERHEAD = 1.1
"""Measured time of a step in NumPy, relative to its decompositions alone."""


def is_known(manifold: Any, cost: Any, targets: Array, size: int) -> bool:
    """Whether the kernel can take whole steps: these exact types, no priors, hard labels, and one sample per step."""
    return (
        type(manifold) is AffineInvariant
        and type(cost) in (RSLVQ, PLVQ)
        and cost.priors is None
        and targets.ndim == 1
        and size == 1
    )


def lane_width(n: int, count: int, is_complex: bool) -> int:
    """Return the vector width with which ``count`` matrices of size n are rotated fastest.

    Empty lanes take as much time as full ones, so narrow vectors can be faster for few matrices.
    """
    return min(SHARES, key=lambda width: _cost(width, n, count, is_complex))


def is_worthwhile(n: int, count: int, is_complex: bool) -> bool:
    """Whether rotations decompose ``count`` matrices of size n faster than LAPACK."""
    return relative_time(n, count, is_complex) < LAPACK_OVERHEAD * count


def relative_time(n: int, count: int, is_complex: bool) -> float:
    """Return the time of the rotations of ``count`` matrices of size n, in units of LAPACK's time for one matrix."""
    return _cost(lane_width(n, count, is_complex), n, count, is_complex)


def _cost(width: int, n: int, count: int, is_complex: bool) -> float:
    """Return the time of the rotations, in units of LAPACK's time for one matrix."""
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
    """Take one compiled step per sample of a block of M samples.

    Returns the moved prototypes, squared distances (M, K) and losses (M,) before each step, and the number of caps.
    """
    codes = np.asarray(samples.codes)
    dtype = np.result_type(inverse_factors(prototypes), codes)
    factors = np.array(inverse_factors(prototypes), dtype=dtype, order="C")
    count, n = factors.shape[:2]
    sqdist, loss = np.empty((len(codes), count)), np.empty(len(codes))
    width = lane_width(n, count, dtype.kind == "c")
    lanes = into_lanes(factors, width)
    columns, spare = (tuple(aligned(size) for _ in lanes) for size in (len(lanes[0]), n * n * width))
    lower = tuple(np.zeros((n, n)) for _ in lanes)
    # One type each, because numba compiles anew for every combination of types.
    given = (codes, dtype), (samples.targets, np.intp), (samples.filled_weights, float), (labels, np.intp)
    data = (np.ascontiguousarray(values, dtype=kind) for values, kind in given)
    numbers = 0.5 / sigma2, step_size, *caps, float(EPS)
    work = columns, lower, spare, aligned(5 * n * width), (0.0,) * width
    n_capped = kernels.run_steps(lanes, *data, *numbers, sqdist, loss, *work)
    return InverseFactors(from_lanes(lanes, count, n, width)), sqdist, loss, int(n_capped)
