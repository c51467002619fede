"""Logarithms, and sums of shifted inverses, of many small matrices at once, one matrix per lane.

It is plain Python that numba can compile. ``_rotations.py`` explains the layout of the arrays, the tuples of arrays,
and the argument ``like``.
"""

import math

import numpy as np

from rplvq.lanes._rotations import Parts, find_order, orthogonalise
from rplvq.lanes._simd import Lanes, fill, fused, load, raw, root, store
from rplvq.protocols import Array


def cholesky_lanes(matrix: Parts, start: int, n: int, like: Lanes) -> None:
    """Replace each matrix A of the block that begins at ``start`` by its Cholesky factor, NaN if A is not definite."""
    width = len(like)
    zero = fill(0.0, like)
    for j in range(n):
        for i in range(n):
            place = start + (j * n + i) * width
            x = load(matrix[0], place, like) if i >= j else zero
            y = load(matrix[1], place, like) if len(matrix) == 2 and i > j else zero
            for m in range(j if i >= j else 0):
                own, other = start + (m * n + i) * width, start + (m * n + j) * width
                a, c = load(matrix[0], own, like), load(matrix[0], other, like)
                x = fused(zero - a, c, x)
                if len(matrix) == 2:
                    b, d = load(matrix[1], own, like), load(matrix[1], other, like)
                    x = fused(zero - b, d, x)
                    y = fused(a, d, fused(zero - b, c, y))
            pivot = root(x) if i == j else load(matrix[0], start + (j * n + j) * width, like)
            if i != j:
                x = x / pivot if i > j else zero
            store(matrix[0], place, pivot if i == j else x)
            if len(matrix) == 2:
                store(matrix[1], place, y / pivot if i > j else zero)


def combine(matrix: Parts, start: int, n: int, factors: Array, order: Array, spare: Parts, like: Lanes) -> None:
    """Replace each matrix C of the block that begins at ``start`` by ``C diag(f) C^H``, with the factors f (n W,).

    ``spare`` (n n W,) is temporary memory. ``order`` (n,) undoes the permutation of the columns, so that terms are
    always added in the same order.
    """
    width = len(like)
    zero = fill(0.0, like)
    for j in range(n):
        for i in range(j, n):
            x, y = zero, zero
            for m in order:
                own, other = start + (m * n + i) * width, start + (m * n + j) * width
                factor = load(factors, m * width, like)
                a, c = load(matrix[0], own, like), factor * load(matrix[0], other, like)
                x = fused(a, c, x)
                if len(matrix) == 2:
                    b, d = load(matrix[1], own, like), factor * load(matrix[1], other, like)
                    x = fused(b, d, x)
                    y = fused(b, c, fused(zero - a, d, y))
            store(spare[0], (j * n + i) * width, x)
            store(spare[0], (i * n + j) * width, x)
            if len(matrix) == 2:
                store(spare[1], (j * n + i) * width, y if i > j else zero)
                store(spare[1], (i * n + j) * width, zero - y if i > j else zero)
    for k in range(n * n):
        store(matrix[0], start + k * width, load(spare[0], k * width, like))
        if len(matrix) == 2:
            store(matrix[1], start + k * width, load(spare[1], k * width, like))


def batch_logs(
    matrix: Parts, squares: Array, first: int, last: int, n: int, work: Array, spare: Parts, like: Lanes
) -> None:
    """Replace the matrices of the blocks ``first`` to ``last - 1`` by their logarithms.

    ``squares`` (blocks n W,) receives the eigenvalues, unsorted; they are NaN for a matrix that is not positive
    definite. ``work`` (6 n W,) and ``spare`` (n n W,) are temporary memory.
    """
    size = n * len(like)
    order = np.empty(n, dtype=np.intp)
    for block in range(first, last):
        cholesky_lanes(raw(matrix), block * n * size, n, like)
        # Sums in the same order whatever the other lanes hold.
        find_order(orthogonalise(matrix, squares, block, n, work, like), order)
        for k in range(size):
            value = squares[block * size + k]
            work[5 * size + k] = math.log(value) / value if value > 0.0 else math.nan  # columns have the length s
        combine(raw(matrix), block * n * size, n, raw(work[5 * size :]), order, raw(spare), like)


def invert_lower(matrix: Parts, n: int, like: Lanes) -> None:
    """Replace the lower triangular matrices of the first block, whose diagonals are real, by their inverses."""
    width = len(like)
    zero = fill(0.0, like)
    for j in range(n - 1, -1, -1):
        diagonal = (j * n + j) * width
        pivot = fill(1.0, like) / load(matrix[0], diagonal, like)
        store(matrix[0], diagonal, pivot)
        # The block below and to the right of this pivot is inverted already. The column below the pivot becomes minus
        # the pivot's inverse times this block times the column. Row i needs the entries of the column down to row i
        # only, so the last row comes first, and no entry is overwritten while a later row still needs it.
        for i in range(n - 1, j, -1):
            x, y = zero, zero
            for m in range(j + 1, i + 1):
                own, other = (m * n + i) * width, (j * n + m) * width
                a, c = load(matrix[0], own, like), load(matrix[0], other, like)
                x = fused(a, c, x)
                if len(matrix) == 2:
                    b, d = load(matrix[1], own, like), load(matrix[1], other, like)
                    x, y = fused(zero - b, d, x), fused(a, d, fused(b, c, y))
            store(matrix[0], (j * n + i) * width, (zero - pivot) * x)
            if len(matrix) == 2:
                store(matrix[1], (j * n + i) * width, (zero - pivot) * y)


def add_gram(lower: Parts, factor: float, out: Parts, start: int, n: int, like: Lanes) -> None:
    """Add ``factor M^H M`` for the lower triangular matrices M of the first block to those of ``out`` at ``start``."""
    width = len(like)
    zero = fill(0.0, like)
    for j in range(n):
        for i in range(j, n):
            x, y = zero, zero
            for m in range(i, n):
                own, other = (i * n + m) * width, (j * n + m) * width
                a, c = load(lower[0], own, like), load(lower[0], other, like)
                x = fused(a, c, x)
                if len(lower) == 2:
                    b, d = load(lower[1], own, like), load(lower[1], other, like)
                    x, y = fused(b, d, x), fused(a, d, fused(zero - b, c, y))
            below, beside = start + (j * n + i) * width, start + (i * n + j) * width
            x = fused(fill(factor, like), x, load(out[0], below, like))
            store(out[0], below, x)
            store(out[0], beside, x)
            if len(lower) == 2:
                y = fused(fill(factor, like), y, load(out[1], below, like))
                store(out[1], below, y if i > j else zero)
                store(out[1], beside, zero - y if i > j else zero)


def batch_inverses(
    matrix: Parts, first: int, last: int, n: int, shifts: Array, factors: Array, spare: Parts, like: Lanes
) -> None:
    """Replace the matrices A of the blocks ``first`` to ``last - 1`` by ``sum_t factors[t] (A + shifts[t] I)^-1``.

    The result is NaN if a shifted matrix is not positive definite. ``spare`` (2 n n W,) is temporary memory: a copy of
    a block with its shift, and the sum.
    """
    width = len(like)
    size = n * n * width
    block_of = raw(matrix)
    work = raw(spare)
    for block in range(first, last):
        for k in range(0, size, width):
            for p in range(len(matrix)):
                store(work[p], size + k, fill(0.0, like))
        for t in range(len(shifts)):
            for k in range(0, size, width):
                for p in range(len(matrix)):
                    store(work[p], k, load(block_of[p], block * size + k, like))
            for i in range(n):
                k = (i * n + i) * width
                store(work[0], k, load(work[0], k, like) + fill(shifts[t], like))
            cholesky_lanes(work, 0, n, like)
            invert_lower(work, n, like)
            add_gram(work, factors[t], work, size, n, like)
        for k in range(0, size, width):
            for p in range(len(matrix)):
                store(block_of[p], block * size + k, load(work[p], size + k, like))
