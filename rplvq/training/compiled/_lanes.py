"""Products and factorisations of matrices in lanes, in plain Python that numba can compile.

The layout is that of ``rplvq/lanes/_rotations.py``, with columns contiguous; ``at`` and ``start`` say where blocks
begin.
"""

from typing import NamedTuple

from rplvq.lanes import TINY, Lanes, Parts, any_positive, cholesky_lanes, fill, fused, larger, load, raw, root, store
from rplvq.protocols import Array

MARGIN_OF_ERROR = 1e-14
"""Rounding of a factorisation relative to the trace times n, beyond which its answer holds for the exact matrix."""


class Work(NamedTuple):
    """Memory to work in: two blocks of matrices, and what rotations of one block need."""

    columns: Parts  # (n n W,)
    spare: Parts  # (n n W,)
    squares: Array  # (n W,)
    turns: Array  # (5 n W,)


def copy_block(matrix: Parts, at: int, out: Parts, into: int, n: int, like: Lanes) -> None:
    """Copy one block of ``matrix`` to one of ``out``."""
    for part, copy in zip(matrix, out):  # noqa: B905  (numba does not know the argument strict)
        for i in range(0, n * n * len(like), len(like)):
            store(copy, into + i, load(part, at + i, like))


def spread(sample: Array, out: Parts, n: int, like: Lanes) -> None:
    """Fill one block of ``out`` with copies of a sample (n, n) in all lanes."""
    for j in range(n):
        for i in range(n):
            store(out[0], (j * n + i) * len(like), fill(sample[i, j].real, like))
            if len(out) == 2:
                store(out[1], (j * n + i) * len(like), fill(sample[i, j].imag, like))


def square_difference(first: Parts, at: int, second: Parts, start: int, n: int, like: Lanes) -> Array:
    """Return the squared Frobenius distances (W,) of the matrices of two blocks."""
    total = fill(0.0, like)
    for one, other in zip(first, second):  # noqa: B905
        for i in range(0, n * n * len(like), len(like)):
            difference = load(one, at + i, like) - load(other, start + i, like)
            total = fused(difference, difference, total)
    return total


def follow(matrix: Parts, start: int, ends: Parts, at: int, rate: Array, n: int, like: Lanes) -> None:
    """Move the matrices of a block by shares (W,) of the way to those of a block of ``ends``."""
    for part, other in zip(matrix, ends):  # noqa: B905
        for i in range(0, n * n * len(like), len(like)):
            x = load(part, start + i, like)
            store(part, start + i, x + rate * (load(other, at + i, like) - x))


def product(left: Parts, at: int, right: Parts, start: int, out: Parts, into: int, n: int, like: Lanes) -> None:
    """Fill one block of ``out`` with the products A B of matrices in blocks of ``left`` and ``right``."""
    width = len(like)
    for j in range(n):
        for i in range(n):
            x, y, z = fill(0.0, like), fill(0.0, like), fill(0.0, like)
            for m in range(n):
                first, second = at + (m * n + i) * width, start + (j * n + m) * width
                a, u = load(left[0], first, like), load(right[0], second, like)
                x = fused(a, u, x)
                if len(left) == 2:
                    b, v = load(left[1], first, like), load(right[1], second, like)
                    y, z = fused(b, v, y), fused(a, v, fused(b, u, z))
            store(out[0], into + (j * n + i) * width, x - y)
            if len(left) == 2:
                store(out[1], into + (j * n + i) * width, z)


def adjoint_product(
    left: Parts, at: int, right: Parts, start: int, out: Parts, into: int, strides: tuple[int, int], n: int, like: Lanes
) -> None:
    """Fill one block of ``out`` with the products A^H B of matrices in blocks of ``left`` and ``right``.

    The columns of A are contiguous. ``strides`` are the distances of neighbouring rows and columns of B and of the
    product, in vectors: (1, n) if their columns are contiguous, and (n, 1) if their rows are. Four entries are computed
    at once, so that each number that is loaded is used twice, and additions need not wait for each other.
    """
    width = len(like)
    zero = fill(0.0, like)
    row, column = strides[0] * width, strides[1] * width
    these, those, products = raw(left), raw(right), raw(out)
    for i in range(0, n, 2):
        below = min(i + 1, n - 1)  # the last row or column of odd n is computed twice
        for j in range(0, n, 2):
            beside = min(j + 1, n - 1)
            p, q, r, s = zero, zero, zero, zero
            f, g, h, k = zero, zero, zero, zero
            for m in range(n):
                first, second = at + (i * n + m) * width, at + (below * n + m) * width
                third, fourth = start + m * row + j * column, start + m * row + beside * column
                a, b = load(these[0], first, like), load(these[0], second, like)
                c, d = load(those[0], third, like), load(those[0], fourth, like)
                p, q, r, s = fused(a, c, p), fused(a, d, q), fused(b, c, r), fused(b, d, s)
                if len(left) == 2:
                    u, v = load(these[1], first, like), load(these[1], second, like)
                    x, y = load(those[1], third, like), load(those[1], fourth, like)
                    p, q, r, s = fused(u, x, p), fused(u, y, q), fused(v, x, r), fused(v, y, s)
                    u, v = zero - u, zero - v
                    f, g = fused(a, x, fused(u, c, f)), fused(a, y, fused(u, d, g))
                    h, k = fused(b, x, fused(v, c, h)), fused(b, y, fused(v, d, k))
            first, second = into + i * row, into + below * row
            store(products[0], first + j * column, p)
            store(products[0], first + beside * column, q)
            store(products[0], second + j * column, r)
            store(products[0], second + beside * column, s)
            if len(left) == 2:
                store(products[1], first + j * column, f)
                store(products[1], first + beside * column, g)
                store(products[1], second + j * column, h)
                store(products[1], second + beside * column, k)


def may_be_indefinite(matrix: Parts, n: int, like: Lanes) -> bool:
    """Whether the Cholesky factorisation of a Hermitian matrix of the first block fails; the block is overwritten."""
    cholesky_lanes(matrix, 0, n, like)
    # A pivot that fails is NaN or 0, and all later ones are NaN. The number is 1 for a positive one, and 0 for others.
    pivot = larger(load(matrix[0], (n * n - 1) * len(like), like), fill(0.0, like))
    return any_positive(fill(0.5, like) - pivot / (pivot + fill(TINY, like)))


def trace(matrix: Parts, start: int, n: int, like: Lanes) -> Array:
    """Return the traces (W,) of the matrices of a block."""
    total = fill(0.0, like)
    for i in range(n):
        total = total + load(matrix[0], start + (i * n + i) * len(like), like)
    return total


def add_to_diagonal(matrix: Parts, shift: Array, n: int, like: Lanes) -> None:
    """Add multiples (W,) of the identity to the matrices of the first block."""
    for i in range(n):
        at = (i * n + i) * len(like)
        store(matrix[0], at, load(matrix[0], at, like) + shift)


def subtract_column(matrix: Parts, at: int, other: Parts, start: int, x: Array, y: Array, n: int, like: Lanes) -> None:
    """Subtract from the column at ``at`` the column of ``other`` at ``start``, times x + iy."""
    for m in range(0, n * len(like), len(like)):
        a = load(other[0], start + m, like)
        store(matrix[0], at + m, load(matrix[0], at + m, like) - a * x)
        if len(matrix) == 2:
            b = load(other[1], start + m, like)
            store(matrix[0], at + m, load(matrix[0], at + m, like) + b * y)
            store(matrix[1], at + m, load(matrix[1], at + m, like) - (a * y + b * x))


def orthonormalise(columns: Parts, upper: Parts, n: int, like: Lanes) -> None:
    """Replace the matrices R of the first block by Q, where ``R = Q T``, and fill ``upper`` with the triangles T.

    Each column is made orthogonal to the ones before it twice, so that Q is unitary to rounding.
    """
    width = len(like)
    for j in range(n):
        for i in range(n):
            for part in upper:
                store(part, (j * n + i) * width, fill(0.0, like))
        for _ in range(2):
            for i in range(j):
                x, y, z = fill(0.0, like), fill(0.0, like), fill(0.0, like)
                for m in range(n):
                    a, u = load(columns[0], (i * n + m) * width, like), load(columns[0], (j * n + m) * width, like)
                    x = fused(a, u, x)
                    if len(columns) == 2:
                        b, v = load(columns[1], (i * n + m) * width, like), load(columns[1], (j * n + m) * width, like)
                        x, y, z = fused(b, v, x), fused(a, v, y), fused(b, u, z)
                y = y - z
                place = (j * n + i) * width
                store(upper[0], place, load(upper[0], place, like) + x)
                if len(columns) == 2:
                    store(upper[1], place, load(upper[1], place, like) + y)
                subtract_column(columns, j * n * width, columns, i * n * width, x, y, n, like)
        total = fill(0.0, like)
        for part in columns:
            for i in range(j * n * width, (j + 1) * n * width, width):
                total = fused(load(part, i, like), load(part, i, like), total)
        total = root(total)
        store(upper[0], (j * n + j) * width, total)
        for part in columns:
            for i in range(j * n * width, (j + 1) * n * width, width):
                store(part, i, load(part, i, like) / total)
