"""Converts arrays of matrices to the layout of kernels that work on one matrix per lane, and back."""

import numpy as np

from rplvq.lanes._rotations import Parts
from rplvq.protocols import Array

LINE = 64
"""Size of a line of the processor's cache, in bytes."""


def into_lanes(matrices: Array, width: int) -> Parts:
    """Return matrices (P, n, n) as flat blocks of W matrices, where W is ``width``.

    Number (i n + j) W + k of a block is entry (i, j) of its matrix k. The result is one array of shape (blocks n n W,),
    or two for complex matrices: the real and the imaginary part. The last block is filled up with identity matrices.
    """
    count, n = matrices.shape[:2]
    full = count // width
    blocks = -(-count // width)
    parts = (matrices.real, matrices.imag) if matrices.dtype.kind == "c" else (matrices,)
    lanes = tuple(aligned(blocks * n * n * width) for _ in parts)
    for lane, part in zip(lanes, parts, strict=True):
        found = lane.reshape(blocks, n, n, width)
        if full:
            found[:full] = part[: full * width].reshape(full, width, n, n).transpose(0, 2, 3, 1)
        if full < blocks:
            if part is parts[0]:
                found[full].reshape(n * n, width)[:: n + 1] = 1.0
            found[full, ..., : count - full * width] = part[full * width :].transpose(1, 2, 0)
    return lanes


def aligned(size: int) -> Array:
    """Return an array (size,) that begins where a line of the processor's cache begins.

    No vector then spans two lines, which was measured to make rotations up to 1.6 times faster.
    """
    whole = np.zeros(size + LINE // 8 - 1)
    first = -whole.ctypes.data % LINE // 8
    return whole[first : first + size]


def from_lanes(lanes: Parts, count: int, n: int, width: int) -> Array:
    """Undo :func:`into_lanes`: return the first ``count`` matrices, shape (count, n, n)."""
    whole = lanes[0] + 1j * lanes[1] if len(lanes) == 2 else lanes[0]
    last = whole.reshape(-1, n, n, width)
    return np.ascontiguousarray(np.moveaxis(last, -1, 1)).reshape(-1, n, n)[:count]
