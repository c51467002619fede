"""Decomposes many small matrices at once, one matrix per lane, in plain Python that numba can compile.

For ``A = M M^H``, one-sided Jacobi rotations make the columns of M orthogonal: ``M V = U diag(s)``. The eigenvalues of
A are then s^2, and the normalised columns are the eigenvectors U. Neither A nor V is formed, so small eigenvalues are
as accurate as M allows. (Hestenes 1958, doi:10.1137/0106005; Demmel and Veselic 1992, doi:10.1137/0613074.)

A block of W matrices (n, n) takes n n W numbers of a flat array: number (j n + i) W + k is entry (i, j) of matrix k, so
that columns are contiguous. Arrays are passed as tuples: one array for real matrices, the real and the imaginary parts
for complex ones. The argument ``like``, a tuple of W floats, only passes the width W.
"""

import math
from functools import lru_cache

import numpy as np

from rplvq.protocols import Array
from rplvq.training.compiled._simd import Lanes, any_positive, fill, fused, larger, load, magnitude, root, signed, store

Parts = tuple[Array, ...]
CONVERGED = 1e-24
"""Squared cosine between two columns up to which they count as orthogonal."""
MAX_SWEEPS = 40
TINY = 1e-300
SMALL, LARGE = 1e-100, 1e100
"""Range of the sum of all eigenvalues in which no product of two squares under- or overflows."""


@lru_cache(maxsize=16)
def rounds(n: int) -> Array:
    """Return all pairs of columns, shape (n (n - 1) / 2, 2), in the order of a round-robin tournament.

    Pairs of the same round have no column in common, so that the processor can overlap their rotations.

    >>> rounds(4).tolist()
    [[0, 3], [1, 2], [0, 2], [1, 3], [0, 1], [2, 3]]
    """
    players = list(range(n + n % 2))
    pairs = []
    for _ in range(len(players) - 1):
        met = list(zip(players, reversed(players), strict=True))[: len(players) // 2]
        pairs += [sorted(pair) for pair in met if max(pair) < n]
        players = [players[0], players[-1], *players[1:-1]]
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def sum_squares(matrix: Parts, start: int, length: int, like: Lanes) -> Array:
    """Return the squared norms (W,) of the columns that begin at ``start`` and take ``length`` numbers."""
    total = fill(0.0, like)
    for j in range(start, start + length, len(like)):
        x = load(matrix[0], j, like)
        total = fused(x, x, total)
        if len(matrix) == 2:
            u = load(matrix[1], j, like)
            total = fused(u, u, total)
    return total


def rotate(matrix: Parts, first: int, second: int, length: int, squares: Array, p: int, q: int, like: Lanes) -> Array:
    """Make two columns x and y orthogonal by one rotation.

    With ``g = sum x conj(y)`` and its phase ``e = g / |g|``, x becomes ``c x - s e y`` and y becomes
    ``s conj(e) x + c y``. The columns begin at ``first`` and ``second`` and take ``length`` numbers; their squared
    norms, at p and q of the flat array ``squares``, are updated. Returns ``|g|^2 - CONVERGED |x|^2 |y|^2`` (W,), which
    is positive in lanes where the columns were not orthogonal before.
    """
    dot, inner = fill(0.0, like), fill(0.0, like)
    left, right = fill(0.0, like), fill(0.0, like)
    for j in range(0, length, len(like)):
        x, y = load(matrix[0], first + j, like), load(matrix[0], second + j, like)
        dot = fused(x, y, dot)
        if len(matrix) == 2:
            u, v = load(matrix[1], first + j, like), load(matrix[1], second + j, like)
            inner, left, right = fused(u, v, inner), fused(u, y, left), fused(x, v, right)
    dot, cross = dot + inner, left - right
    one, tiny = fill(1.0, like), fill(TINY, like)
    size = root(fused(dot, dot, cross * cross)) if len(matrix) == 2 else dot
    mine, other, twice = load(squares, p, like), load(squares, q, like), size + size
    gap = other - mine
    tangent = signed(one, gap) * twice / (magnitude(gap) + root(fused(gap, gap, twice * twice)) + tiny)
    store(squares, p, mine - tangent * size)
    store(squares, q, other + tangent * size)
    cosine = one / root(fused(tangent, tangent, one))
    sine, back = cosine * tangent, fill(0.0, like) - cosine * tangent
    if len(matrix) == 2:
        a, b = sine * dot / (size + tiny), sine * cross / (size + tiny)
        c, d = fill(0.0, like) - a, fill(0.0, like) - b
        for j in range(0, length, len(like)):
            x, y = load(matrix[0], first + j, like), load(matrix[0], second + j, like)
            u, v = load(matrix[1], first + j, like), load(matrix[1], second + j, like)
            store(matrix[0], first + j, fused(b, v, fused(c, y, cosine * x)))
            store(matrix[1], first + j, fused(d, y, fused(c, v, cosine * u)))
            store(matrix[0], second + j, fused(b, u, fused(a, x, cosine * y)))
            store(matrix[1], second + j, fused(d, x, fused(a, u, cosine * v)))
    else:
        for j in range(0, length, len(like)):
            x, y = load(matrix[0], first + j, like), load(matrix[0], second + j, like)
            store(matrix[0], first + j, fused(back, y, cosine * x))
            store(matrix[0], second + j, fused(sine, x, cosine * y))
    off: Array = size * size - fill(CONVERGED, like) * mine * other
    return off


def rescale(matrix: Parts, start: int, length: int, scale: Array, like: Lanes) -> None:
    """Multiply the ``length`` numbers of a block that begins at ``start`` by the scale (W,) of their matrix."""
    for part in matrix:
        for j in range(start, start + length, len(like)):
            store(part, j, scale * load(part, j, like))


def orthogonalise(matrix: Parts, squares: Array, block: int, n: int, pairs: Array, like: Lanes) -> None:
    """Rotate the columns of one block of M, arrays (blocks n n W,), until they are orthogonal.

    The block is overwritten by U diag(s), and its part of ``squares`` (blocks n W,) by the eigenvalues s^2, unsorted.
    ``pairs`` is from :func:`rounds`. Matrices far from 1 are scaled by a power of two while they are rotated.
    """
    width = len(like)
    length, start, values = n * width, block * n * n * width, block * n * width
    scale, scaled = fill(1.0, like), False
    for _ in range(MAX_SWEEPS):
        total = fill(0.0, like)
        for i in range(n):
            square = sum_squares(matrix, start + i * length, length, like)
            store(squares, values + i * width, square)
            total = total + square
        if not scaled and any_positive(larger(total - fill(LARGE, like), fill(SMALL, like) - total)):
            store(squares, values, total)
            for k in range(values, values + width):
                squares[k] = math.ldexp(1.0, -(math.frexp(squares[k])[1] // 2))
            scale, scaled = load(squares, values, like), True
            rescale(matrix, start, n * length, scale, like)
            continue
        worst = fill(0.0, like)
        for r in range(len(pairs)):
            p, q = pairs[r, 0], pairs[r, 1]
            first, second = start + p * length, start + q * length
            off = rotate(matrix, first, second, length, squares, values + p * width, values + q * width, like)
            worst = larger(off, worst)
        if not any_positive(worst):
            break
    if scaled:
        rescale(matrix, start, n * length, fill(1.0, like) / scale, like)
    for i in range(n):
        store(squares, values + i * width, sum_squares(matrix, start + i * length, length, like))


def batch_spectra(matrix: Parts, squares: Array, first: int, last: int, n: int, pairs: Array, like: Lanes) -> None:
    """Call :func:`orthogonalise` for the blocks ``first`` to ``last - 1``."""
    for block in range(first, last):
        orthogonalise(matrix, squares, block, n, pairs, like)
