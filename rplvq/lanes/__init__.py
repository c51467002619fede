"""Decompositions of many small matrices at once, one matrix per lane of a vector register, compiled by numba.

The functions are plain Python that works on NumPy arrays; with numba (extra ``fast``) they are compiled. In training,
one-sided Jacobi rotations took less time than LAPACK's ``eigh`` for matrices from 3 x 3 to about 55 x 55 (complex ones:
45 x 45). Nothing here knows a metric or a cost.
"""

from rplvq.lanes._compile import (
    PLAIN_LANES,
    Kind,
    LaneKernels,
    compiled_rotations,
    compiler,
    lane_kernels,
    load_kernels,
    pays,
    source_hash,
    verbosity,
)
from rplvq.lanes._logs import cholesky_lanes
from rplvq.lanes._rotations import TINY, Parts, aligned, batch_spectra, from_lanes, into_lanes, orthogonalise, rescale
from rplvq.lanes._simd import Lanes, any_positive, fill, fused, larger, load, raw, root, store

__all__ = [
    "PLAIN_LANES", "TINY", "Kind", "LaneKernels", "Lanes", "Parts", "aligned", "any_positive", "batch_spectra",
    "cholesky_lanes", "compiled_rotations", "compiler", "fill", "from_lanes", "fused", "into_lanes", "lane_kernels",
    "larger", "load", "load_kernels", "orthogonalise", "pays", "raw", "rescale", "root", "source_hash", "store",
    "verbosity",
]  # fmt: skip


def __dir__() -> list[str]:
    """List nothing: all of these names are for rooms of the library."""
    return []
