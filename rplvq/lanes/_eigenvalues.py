"""Eigenvalues of many Hermitian matrices at once, one matrix per lane, in plain Python that numba can compile.

Reflections make a matrix tridiagonal, and QL steps make it diagonal, in the variant of Pal, Walker and Kahan without
square roots (Parlett 1998, The Symmetric Eigenvalue Problem, chapters 7 and 8, doi:10.1137/1.9781611971163). This takes
about a tenth of the time of LAPACK's ``eigvalsh`` (n = 3 to 96), with errors in proportion to the largest eigenvalue,
too. The rotations of ``_rotations.py`` are for eigenvectors, and for small eigenvalues that must be accurate.

``_rotations.py`` explains the layout of the arrays, the tuples of arrays, and the argument ``like``.
"""

import math

from rplvq.lanes._rotations import TINY, Parts, rescale, sum_squares
from rplvq.lanes._simd import Lanes, any_positive, chosen, fill, fused, load, raw, root, signed, store
from rplvq.protocols import Array

NEGLIGIBLE = 1e-33
"""Square of an entry beside the diagonal that counts as 0, for matrices whose mean eigenvalue is 1."""
NONZERO = 1e-40
"""Added to numbers that are divided by, for the same matrices: a change that is smaller than their rounding."""
MAX_STEPS = 40
"""Number of iterations for one eigenvalue after which the result is NaN. Three are common."""


def reflector(matrix: Parts, first: int, square: Array, like: Lanes) -> Array:
    """Replace a column x of squared norm ``square`` by v with ``x - f (v^H x) v`` of one entry; return f (W,)."""
    # v differs from x in the first entry, to which |x| is added in its own direction. The factor is 2 / |v|^2 for the v
    # that is stored, so that the reflection is unitary even if this direction is a rounding error.
    x = load(matrix[0], first, like)
    if len(matrix) == 2:
        y = load(matrix[1], first, like)
        own = fused(x, x, y * y)
        turned = root(square) / (root(own) + fill(TINY, like))
        a, b = fused(turned, x + fill(TINY, like), x), fused(turned, y, y)
        store(matrix[1], first, b)
        norm = square - own + fused(a, a, b * b)
    else:
        a = x + signed(root(square), x)
        norm = square - x * x + a * a
    store(matrix[0], first, a)
    factor: Array = fill(2.0, like) / (norm + fill(TINY, like))
    return factor


def multiply_lower(matrix: Parts, start: int, k: int, n: int, out: Parts, like: Lanes) -> None:
    """Store ``A v`` in ``out``, for the lower right block A behind column k, and the vector v below its diagonal."""
    width = len(like)
    vector = start + k * n * width
    zero = fill(0.0, like)
    for i in range(k + 1, n):
        for part in out:
            store(part, i * width, zero)
    for j in range(k + 1, n):
        column = start + j * n * width
        own = load(matrix[0], vector + j * width, like)
        a = load(matrix[0], column + j * width, like)
        x = fused(a, own, load(out[0], j * width, like))
        if len(matrix) == 2:
            side = load(matrix[1], vector + j * width, like)
            y = fused(a, side, load(out[1], j * width, like))
            for i in range(j + 1, n):
                a, b = load(matrix[0], column + i * width, like), load(matrix[1], column + i * width, like)
                u, v = load(matrix[0], vector + i * width, like), load(matrix[1], vector + i * width, like)
                x, y = fused(a, u, fused(b, v, x)), fused(a, v, fused(zero - b, u, y))
                p, q = load(out[0], i * width, like), load(out[1], i * width, like)
                store(out[0], i * width, fused(a, own, fused(zero - b, side, p)))
                store(out[1], i * width, fused(a, side, fused(b, own, q)))
            store(out[1], j * width, y)
        else:
            for i in range(j + 1, n):
                a = load(matrix[0], column + i * width, like)
                x = fused(a, load(matrix[0], vector + i * width, like), x)
                store(out[0], i * width, fused(a, own, load(out[0], i * width, like)))
        store(out[0], j * width, x)


def reflect(matrix: Parts, start: int, k: int, n: int, factor: Array, out: Parts, like: Lanes) -> None:
    """Replace the block A behind column k by ``H A H``, ``H = I - factor v v^H``; ``out``, now ``A v``, is lost."""
    # With p = f A v and w = p - (f / 2) (v^H p) v, H A H = A - v w^H - w v^H.
    width = len(like)
    vector = start + k * n * width
    zero = fill(0.0, like)
    total = zero
    for part in range(len(matrix)):
        for i in range(k + 1, n):
            total = fused(load(matrix[part], vector + i * width, like), load(out[part], i * width, like), total)
    total = fill(-0.5, like) * factor * factor * total
    for part in range(len(matrix)):
        for i in range(k + 1, n):
            along = total * load(matrix[part], vector + i * width, like)
            store(out[part], i * width, fused(factor, load(out[part], i * width, like), along))
    for j in range(k + 1, n):
        column = start + j * n * width
        v, w = zero - load(matrix[0], vector + j * width, like), zero - load(out[0], j * width, like)
        if len(matrix) == 2:
            f, g = zero - load(matrix[1], vector + j * width, like), zero - load(out[1], j * width, like)
            for i in range(j, n):
                x, y = load(matrix[0], vector + i * width, like), load(matrix[1], vector + i * width, like)
                p, q = load(out[0], i * width, like), load(out[1], i * width, like)
                a, b = load(matrix[0], column + i * width, like), load(matrix[1], column + i * width, like)
                store(matrix[0], column + i * width, fused(x, w, fused(y, g, fused(p, v, fused(q, f, a)))))
                b = fused(y, w, fused(zero - x, g, fused(q, v, fused(zero - p, f, b))))
                store(matrix[1], column + i * width, b)
        else:
            for i in range(j, n):
                a = load(matrix[0], column + i * width, like)
                a = fused(load(matrix[0], vector + i * width, like), w, a)
                store(matrix[0], column + i * width, fused(load(out[0], i * width, like), v, a))


def tridiagonalise(matrix: Parts, start: int, n: int, diagonal: Array, squares: Array, out: Parts, like: Lanes) -> None:
    """Reduce the matrices of the block at ``start``, of which the lower triangles are read, to tridiagonal ones.

    ``diagonal`` (n W,) receives their diagonals, and ``squares`` (n W,) the squared entries beside them. ``out`` (n W,)
    is temporary memory.
    """
    width = len(like)
    for k in range(n):
        place = start + (k * n + k) * width
        store(diagonal, k * width, load(matrix[0], place, like))
        square = sum_squares(matrix, place + width, (n - k - 1) * width, like)
        store(squares, k * width, square)
        if k < n - 2:
            factor = reflector(matrix, place + width, square, like)
            multiply_lower(matrix, start, k, n, out, like)
            reflect(matrix, start, k, n, factor, out, like)


def ql_step(diagonal: Array, squares: Array, first: int, n: int, active: Array, like: Lanes) -> Array:
    """Make one QL step with rows ``first`` to n - 1; return the new square (W,) beside the diagonal at ``first``.

    The matrices of the lanes in which ``active`` (W,) is not positive stay as they are, bit for bit.
    """
    width = len(like)
    one = fill(1.0, like)
    small = fill(NONZERO, like)
    start = load(diagonal, first * width, like)
    side = root(load(squares, first * width, like))
    half = (load(diagonal, (first + 1) * width, like) - start) / (side + side + small)
    shift = start - side / (half + signed(root(fused(half, half, one)), half))
    alpha, square = load(diagonal, (n - 1) * width, like), load(squares, (n - 1) * width, like)
    gamma = alpha - shift
    gamma = gamma + signed(small, gamma)
    p = gamma * gamma
    s = fill(0.0, like)
    for i in range(n - 2, first - 1, -1):
        # The sine s and the cosine c are squared. No p is 0, because gamma is not.
        below, above = alpha, square
        alpha, square = load(diagonal, i * width, like), load(squares, i * width, like)
        r = p + square
        store(squares, (i + 1) * width, chosen(active, s * r, above))
        inverse, ratio = one / r, r / p
        c, s = p * inverse, square * inverse
        old = gamma
        gamma = c * (alpha - shift) - s * gamma
        store(diagonal, (i + 1) * width, chosen(active, old + (alpha - gamma), below))
        gamma = gamma + signed(small, gamma)
        p = gamma * gamma * ratio
    last = chosen(active, s * p, square)
    store(squares, first * width, last)
    store(diagonal, first * width, chosen(active, shift + gamma, alpha))
    return last


def batch_eigenvalues(matrix: Parts, values: Array, first: int, last: int, n: int, work: Parts, like: Lanes) -> None:
    """Store the eigenvalues of Hermitian matrices with positive traces, the blocks ``first`` to ``last - 1``.

    ``values`` (blocks n W,) receives them, unsorted; they are NaN where they cannot be computed. The matrices, of which
    the lower triangles are read, are overwritten. ``work`` (2 n W,) is temporary memory.
    """
    width = len(like)
    size = n * width
    limit = fill(NEGLIGIBLE, like)
    columns = raw(matrix)
    out = raw(work)
    squares = raw(work[0][size:])
    for block in range(first, last):
        start = block * n * size
        diagonal = raw(values[block * size :])
        trace = fill(0.0, like)
        for i in range(n):
            trace = trace + load(columns[0], start + (i * n + i) * width, like)
        mean = trace / fill(float(n), like)
        rescale(columns, start, n * size, fill(1.0, like) / mean, like)  # so that all limits are numbers
        tridiagonalise(columns, start, n, diagonal, squares, out, like)
        for i in range(n - 1):
            steps = 0
            active = load(squares, i * width, like) - limit
            while any_positive(active) and steps < MAX_STEPS:
                active = ql_step(diagonal, squares, i, n, active, like) - limit
                steps += 1
            if steps == MAX_STEPS:  # the caller then asks LAPACK
                store(diagonal, i * width, fill(math.nan, like))
        rescale((diagonal,), 0, size, mean, like)  # back to the scale of the matrices
