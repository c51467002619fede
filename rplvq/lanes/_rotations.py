"""Decomposes many small matrices at once, one matrix per lane, in plain Python that numba can compile.

For ``A = M M^H``, one-sided Jacobi rotations make the columns of M orthogonal: ``M V = U diag(s)``. The eigenvalues of
A are then s^2, and the normalised columns are the eigenvectors U. Neither A nor V is formed, so small eigenvalues are
as accurate as M allows. (Hestenes 1958, doi:10.1137/0106005; Demmel and Veselic 1992, doi:10.1137/0613074.)

Four things make this fast:

- Rotations come in rounds. A round rotates pairs of neighbouring columns, beginning at even and at odd places in turn,
  and swaps the columns of each pair. After n rounds every column has met every other one. While a column is rotated, it
  is also multiplied with its neighbour of the next round.
- Each column is stored as a vector and a separate scale. For ``x = d X`` and ``y = e Y``, a rotation by an angle with
  tangent t replaces X by ``X - t (e / d) Y`` and d by ``d / sqrt(1 + t^2)``, which takes half of the multiplications.
  Only the squares of the scales are needed, so no square root of ``1 + t^2`` is taken.
- The rotations of a round are independent, so the processor overlaps their square roots and divisions.
- Rotation stops after n consecutive rounds without a rotation that matters, wherever they begin.

A block of W matrices (n, n) takes n n W numbers of a flat array: number (j n + i) W + k is entry (i, j) of matrix k, so
that columns are contiguous. Arrays are passed as tuples: one array for real matrices, the real and the imaginary parts
for complex ones. The argument ``like``, a tuple of W floats, only passes the width W.
"""

import math

import numpy as np

from rplvq.lanes._simd import Lanes, any_positive, fill, fused, larger, load, magnitude, raw, root, signed, store
from rplvq.protocols import Array

Parts = tuple[Array, ...]
CONVERGED = 4e-14
"""Squared angle of a rotation, relative to the ratio of the norms, up to which its two columns count as orthogonal.

If all angles of a round are this small, the cosines between all columns are rounding errors.
"""
MAX_SWEEPS = 40
TINY = 1e-150
SMALL = 1e-100
LARGE = 1e100
"""If the sum of all eigenvalues is in this range, no product of two squares under- or overflows."""
LINE = 64
"""Size of a line of the processor's cache, in bytes."""


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


def multiply(matrix: Parts, first: int, length: int, turns: Array, slot: int, like: Lanes) -> None:
    """Store the product ``sum x conj(y)`` of neighbouring columns, the one at ``first`` and the next, in ``turns``."""
    real, imaginary = fill(0.0, like), fill(0.0, like)
    for j in range(first, first + length, len(like)):
        x, y = load(matrix[0], j, like), load(matrix[0], j + length, like)
        real = fused(x, y, real)
        if len(matrix) == 2:
            u, v = load(matrix[1], j, like), load(matrix[1], j + length, like)
            real, imaginary = fused(u, v, real), fused(u, y, imaginary) - x * v
    store(turns, slot, real)
    if len(matrix) == 2:
        store(turns, slot + len(like), imaginary)


def angle(squares: Array, scales: Array, turns: Array, i: int, moves: Array, parts: Parts, like: Lanes) -> Array:
    """Find the rotation that makes the columns at i and i + 1 orthogonal, and update their norms and scales.

    ``squares`` and ``scales`` hold the squared norms of the columns and the squares of their scales. Slot i + 1 of
    ``turns`` holds the product of the unscaled columns, and receives the factors of :func:`turn`. ``moves`` (W,) is 1,
    or 0 in lanes whose columns stay as they are, bit for bit. Returns a number (W,) that is positive in lanes whose
    columns were not orthogonal yet.
    """
    width = len(like)
    p = i * width
    q = (i + 1) * width
    zero, half = fill(0.0, like), fill(0.5, like)
    real = imaginary = moves * load(turns, 4 * q, like)
    size = real * real
    if len(parts) == 2:
        imaginary = moves * load(turns, 4 * q + width, like)
        size = fused(imaginary, imaginary, size)
    mine, other = load(squares, p, like), load(squares, q, like)
    left, right = load(scales, p, like), load(scales, q, like)
    # With h = hypot(gap, 2 |x.y|), the tangent is 2 |x.y| / (|gap| + h), and 1 / (1 + tangent^2) = (|gap| / h + 1) / 2.
    size = left * right * size
    gap = other - mine
    wide = magnitude(gap) + fill(TINY, like)
    whole = root(fused(wide, wide, fill(4.0, like) * size))
    slope = signed(fill(2.0, like), gap) / (wide + whole)
    kept = fused(half, wide / whole, half)
    change = slope * size
    store(squares, p, other + change)
    store(squares, q, mine - change)
    store(scales, p, right * kept)
    store(scales, q, left * kept)
    back, forth = zero - slope * right, slope * left
    store(turns, 4 * q, back * real)
    store(turns, 4 * q + width, forth * real)
    if len(parts) == 2:
        store(turns, 4 * q + 2 * width, back * imaginary)
        store(turns, 4 * q + 3 * width, forth * imaginary)
    total = mine + other
    off: Array = slope * change * total * total - fill(CONVERGED, like) * mine * other
    return off


def turn(matrix: Parts, before: int, first: int, length: int, turns: Array, slot: int, like: Lanes) -> None:
    """Replace two neighbouring columns x and y by ``y + conj(b) x`` and ``x + a y``.

    The factors a and b, which :func:`angle` computes, are read from the slot after ``slot``. The product of the column
    that begins at ``before`` with the new first column is stored in ``slot``.
    """
    width = len(like)
    second = first + length
    place = slot + 4 * width
    a, b = load(turns, place, like), load(turns, place + width, like)
    real, more, left, right = fill(0.0, like), fill(0.0, like), fill(0.0, like), fill(0.0, like)
    if len(matrix) == 2:
        c, d = load(turns, place + 2 * width, like), load(turns, place + 3 * width, like)
        e, f = fill(0.0, like) - c, fill(0.0, like) - d
        for j in range(0, length, width):
            x, y = load(matrix[0], first + j, like), load(matrix[0], second + j, like)
            u, v = load(matrix[1], first + j, like), load(matrix[1], second + j, like)
            store(matrix[0], second + j, fused(e, v, fused(a, y, x)))
            store(matrix[1], second + j, fused(a, v, fused(c, y, u)))
            y, v = fused(d, u, fused(b, x, y)), fused(b, u, fused(f, x, v))
            store(matrix[0], first + j, y)
            store(matrix[1], first + j, v)
            x, u = load(matrix[0], before + j, like), load(matrix[1], before + j, like)
            real, more, left, right = fused(x, y, real), fused(u, v, more), fused(u, y, left), fused(x, v, right)
        store(turns, slot + width, left - right)
    else:
        for j in range(0, length, width):
            x, y = load(matrix[0], first + j, like), load(matrix[0], second + j, like)
            z = fused(b, x, y)
            store(matrix[0], second + j, fused(a, y, x))
            store(matrix[0], first + j, z)
            # Two sums in turn, so that an addition need not wait for the one before it.
            real, more = fused(load(matrix[0], before + j, like), z, more), real
    store(turns, slot, real + more)


def rotate(
    matrix: Parts, start: int, n: int, odd: int, squares: Array, scales: Array, turns: Array, moves: Array, like: Lanes
) -> Array:
    """Rotate one round of pairs: the pairs that begin at even columns, or at odd columns if ``odd`` is 1.

    The products of the pairs are read from ``turns``, and those of the next round are stored there. Returns a number
    (W,) that is positive in lanes where the columns of a pair were not orthogonal yet.
    """
    length = n * len(like)
    slot = 4 * len(like)
    worst = fill(-1.0, like)
    for i in range(odd, n - 1, 2):
        worst = larger(angle(squares, scales, turns, i, moves, matrix, like), worst)
    for i in range(odd, n - 1, 2):
        turn(matrix, start + max(i - 1, 0) * length, start + i * length, length, turns, i * slot, like)
    if (n - odd) % 2 == 1 and n > 1:  # the last column has stayed where it was
        multiply(matrix, start + (n - 2) * length, length, turns, (n - 1) * slot, like)
    return worst


def rescale(matrix: Parts, start: int, length: int, scale: Array, like: Lanes) -> None:
    """Multiply ``length`` numbers (whole vectors) from ``start`` on, in place, by the scale (W,) of their lanes."""
    for part in matrix:
        for j in range(start, start + length, len(like)):
            store(part, j, scale * load(part, j, like))


def measure(matrix: Parts, start: int, n: int, squares: Array, scales: Array, like: Lanes) -> Array:
    """Store the squared norms of the n columns in ``squares``, and return their sum (W,)."""
    width = len(like)
    total = fill(0.0, like)
    for i in range(n):
        unscaled = sum_squares(matrix, start + i * n * width, n * width, like)
        square = load(scales, i * width, like) * unscaled
        store(squares, i * width, square)
        total = total + square
    return total


def orthogonalise(matrix: Parts, squares: Array, block: int, n: int, work: Array, like: Lanes) -> int:
    """Rotate the columns of one block of M, arrays (blocks n n W,), until they are orthogonal.

    The block is overwritten by U diag(s), and its part of ``squares`` (blocks n W,) by the eigenvalues s^2, unsorted.
    Very large and very small matrices are scaled by a power of two while they are rotated. ``work`` (5 n W,) is
    temporary memory. The numbers of a lane do not depend on the other lanes; only the order of the columns does.
    Returns the number of rounds, from which :func:`find_order` finds this order.
    """
    width = len(like)
    start = block * n * n * width
    values = block * n * width
    columns, norms, scales, turns = raw(matrix), raw(squares[values:]), raw(work), raw(work[n * width :])
    half, one = fill(0.5, like), fill(1.0, like)
    for i in range(n):
        store(scales, i * width, one)
    total = measure(columns, start, n, norms, scales, like)
    scale = one
    if any_positive(larger(total - fill(LARGE, like), fill(SMALL, like) - total)):
        store(norms, 0, total)
        for k in range(values, values + width):
            squares[k] = math.ldexp(1.0, -(math.frexp(squares[k])[1] // 2))  # a power of two changes no digit
        scale = load(norms, 0, like)
        rescale(columns, start, n * n * width, scale, like)
        measure(columns, start, n, norms, scales, like)
    for i in range(0, n - 1, 2):
        multiply(columns, start + i * n * width, n * width, turns, 4 * (i + 1) * width, like)
    # clean counts the last rounds without a rotation that mattered, and a lane moves until there are n of them.
    moves = one
    clean = fill(0.0, like)
    needed = fill(n - 0.5, like)
    done = 0
    while any_positive(moves) and done < MAX_SWEEPS * n:
        if done % n == 0 and done > 0:  # updated norms have gathered rounding
            measure(columns, start, n, norms, scales, like)
        still = half - signed(half, rotate(columns, start, n, done % 2, norms, scales, turns, moves, like))
        clean = fused(clean, still, still)  # one more, or 0 again
        moves = half + signed(half, needed - clean)  # 0 after n clean rounds
        done += 1
    for i in range(n):
        rescale(columns, start + i * n * width, n * width, root(load(scales, i * width, like)) / scale, like)
        store(norms, i * width, sum_squares(columns, start + i * n * width, n * width, like))
    return done


def find_order(rounds: int, order: Array) -> None:
    """Set ``order[i]`` to the place of column i after so many rounds; ``order`` has the shape (n,)."""
    # At first, columns at even places move to the right, and those at odd places to the left. At the end of the row
    # they turn around.
    n = len(order)
    for i in range(n):
        begin = i if i % 2 == 0 else 2 * n - 1 - i
        way = (begin + rounds) % (2 * n)
        order[i] = way if way < n else 2 * n - 1 - way


def batch_spectra(matrix: Parts, squares: Array, first: int, last: int, n: int, work: Array, like: Lanes) -> None:
    """Call :func:`orthogonalise` for blocks ``first`` to ``last - 1``, and put the columns back in their first order.

    All numbers of a matrix are then the same whatever the other lanes hold.
    """
    length = n * len(like)
    order = np.empty(n, dtype=np.intp)
    for block in range(first, last):
        find_order(orthogonalise(matrix, squares, block, n, work, like), order)
        for i in range(n):
            j = order[i]
            while j < i:  # place j is final already, and the column that stood there was moved to place order[j]
                j = order[j]
            one, other = block * n + i, block * n + j
            swap(squares, one * len(like), other * len(like), len(like))
            for part in matrix:
                swap(part, one * length, other * length, length)


def swap(numbers: Array, first: int, second: int, length: int) -> None:
    """Exchange two ranges of so many numbers."""
    for j in range(length):
        numbers[first + j], numbers[second + j] = numbers[second + j], numbers[first + j]


def into_lanes(matrices: Array, width: int) -> Parts:
    """Return matrices (P, n, n) as flat blocks of W matrices, where W is ``width``.

    Number (i n + j) W + k of a block is entry (i, j) of its matrix k. The result is one array of shape (blocks n n W,),
    or two for complex matrices: the real and the imaginary part. The last block is filled up with identity matrices.
    """
    count, n = matrices.shape[:2]
    full = count // width
    blocks = -(-count // width)  # rounded up
    parts = (matrices.real, matrices.imag) if matrices.dtype.kind == "c" else (matrices,)
    lanes = tuple(aligned(blocks * n * n * width) for _ in parts)
    for lane, part in zip(lanes, parts, strict=True):
        by_block = lane.reshape(blocks, n, n, width)
        if full:
            by_block[:full] = part[: full * width].reshape(full, width, n, n).transpose(0, 2, 3, 1)
        if full < blocks:
            if part is parts[0]:
                by_block[full].reshape(n * n, width)[:: n + 1] = 1.0
            by_block[full, ..., : count - full * width] = part[full * width :].transpose(1, 2, 0)
    return lanes


def aligned(size: int) -> Array:
    """Return an array (size,) that begins where a line of the processor's cache begins."""
    # No vector then spans two lines, which was measured to make rotations up to 1.6 times faster.
    whole = np.zeros(size + LINE // 8 - 1)
    first = -whole.ctypes.data % LINE // 8
    return whole[first : first + size]


def from_lanes(lanes: Parts, count: int, n: int, width: int) -> Array:
    """Undo :func:`into_lanes`: return the first ``count`` matrices, shape (count, n, n)."""
    whole = lanes[0] + 1j * lanes[1] if len(lanes) == 2 else lanes[0]
    last = whole.reshape(-1, n, n, width)
    return np.ascontiguousarray(np.moveaxis(last, -1, 1)).reshape(-1, n, n)[:count]
