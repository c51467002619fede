"""Operations on vectors of W doubles, one number per lane.

The kernels use only these operations and ``+ - * /``. In plain Python a vector is a NumPy array; in compiled code it
is a vector register (``_registers.py``). Compiled loops over the lanes were tried, and were half as fast.
"""

from typing import TypeVar

import numpy as np

from rplvq.protocols import Array

Lanes = tuple[float, ...]
"""A tuple of W arbitrary numbers. Its type tells the compiler the width W of vectors."""
ArraysT = TypeVar("ArraysT", Array, tuple[Array, ...])


def raw(arrays: ArraysT) -> ArraysT:
    """Return an array, or a tuple of arrays, in the form that ``load`` and ``store`` access fastest.

    In compiled code this is the address of the first number. numba counts the references to an array at every call,
    which took as much time as the rotations. The array must exist as long as the address is used.
    """
    return arrays


def load(array: Array, index: int, like: Lanes) -> Array:
    """Read a vector (W,) from a flat array (M,), beginning at ``index``."""
    return array[index : index + len(like)].copy()


def store(array: Array, index: int, value: Array) -> None:
    """Write a vector (W,) into a flat array (M,), beginning at ``index``."""
    array[index : index + len(value)] = value


def fill(value: float, like: Lanes) -> Array:
    """Return a vector (W,) with the same ``value`` in each lane."""
    return np.full(len(like), value)


def fused(value: Array, other: Array, added: Array) -> Array:
    """Return ``value * other + added`` (W,). Compiled code rounds only once, if the processor can.

    The kernels call it explicitly, because a compiler that is free to fuse does so differently in different processes.
    """
    return value * other + added


def root(value: Array) -> Array:
    """Return the square roots (W,), NaN for negative numbers."""
    with np.errstate(invalid="ignore"):  # compiled code does not warn either
        return np.sqrt(value)


def magnitude(value: Array) -> Array:
    """Return the absolute values (W,)."""
    return np.abs(value)


def signed(value: Array, sign: Array) -> Array:
    """Return the magnitudes of ``value`` (W,) with the signs of ``sign`` (W,)."""
    return np.copysign(value, sign)


def larger(value: Array, other: Array) -> Array:
    """Return ``value`` (W,) where it is larger than ``other`` (W,), else ``other``. NaN in ``value`` is ignored."""
    return np.where(value > other, value, other)


def chosen(flag: Array, value: Array, other: Array) -> Array:
    """Return ``value`` (W,) where ``flag`` (W,) is positive, else ``other`` (W,)."""
    return np.where(flag > 0, value, other)


def any_positive(value: Array) -> bool:
    """Whether any lane (W,) is positive."""
    return bool((value > 0).any())
