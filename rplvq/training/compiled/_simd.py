"""Vectors of doubles, one number a lane: NumPy arrays in plain Python, registers of the processor once compiled.

The kernels of :mod:`rplvq.training.compiled` are written in these few operations and ``+ - * /``;
:mod:`rplvq.training.compiled` tells numba what they are. Left to loops over lanes, compilers give up half of the
speed.
"""

from __future__ import annotations

import numpy as np

from rplvq.protocols import Array

__all__ = ["Lanes", "any_positive", "fill", "fused", "larger", "load", "magnitude", "root", "signed", "store"]

Lanes = tuple[float, ...]
"""Any W numbers: their count is the width of vectors, which the compiler has to know beforehand."""


def load(array: Array, index: int, like: Lanes) -> Array:
    """Numbers of a flat array (M,) from ``index`` on, shape (W,)."""
    return array[index : index + len(like)].copy()


def store(array: Array, index: int, value: Array) -> None:
    """Write a vector (W,) into a flat array (M,) from ``index`` on."""
    array[index : index + len(value)] = value


def fill(value: float, like: Lanes) -> Array:
    """Return the same ``value`` in each lane, shape (W,)."""
    return np.full(len(like), value)


def fused(value: Array, other: Array, added: Array) -> Array:
    """Return ``value * other + added`` (W,); compiled, it is rounded once, always, where the processor can.

    Left to choose, compilers fuse some operations and not others, differently in the process that compiles and in those
    that load its code from disk.
    """
    return value * other + added


def root(value: Array) -> Array:
    """Square roots (W,)."""
    return np.sqrt(value)


def magnitude(value: Array) -> Array:
    """Absolute values (W,)."""
    return np.abs(value)


def signed(value: Array, sign: Array) -> Array:
    """Magnitudes of ``value`` (W,) with the signs of ``sign`` (W,)."""
    return np.copysign(value, sign)


def larger(value: Array, other: Array) -> Array:
    """Return ``value`` (W,) where it is larger than ``other`` (W,), else ``other``; so NaN in ``value`` is left out."""
    return np.where(value > other, value, other)


def any_positive(value: Array) -> bool:
    """Whether any lane (W,) is positive."""
    return bool((value > 0).any())
