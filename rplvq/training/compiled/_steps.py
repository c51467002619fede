"""Steps on single samples for all prototypes at once, in plain Python that numba can compile.

``rplvq/lanes/_rotations.py`` explains the layout of the arrays, the tuples of arrays, and the argument ``like``.
Inverse factors are stored by rows: number (i n + j) W + k of a block is entry (i, j) of its matrix k.
"""

import math

import numpy as np

from rplvq.lanes import Lanes, Parts, fill, fused, load, orthogonalise, raw, store
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Block, Rules, weigh
from rplvq.training.compiled._lanes import Work, adjoint_product


def cholesky(sample: Array, resolution: float, lower: Parts) -> None:
    """Fill the lower triangle of ``lower``, arrays (n, n), with L, where L L^H is the sample (n, n).

    Pivots below ``resolution`` times the diagonal entry are rounding errors, and are raised to this value.
    """
    n = len(sample)
    for j in range(n):
        for i in range(j, n):
            x = sample[i, j].real
            for m in range(j):
                x -= lower[0][i, m] * lower[0][j, m]
            if len(lower) == 2:
                y = sample[i, j].imag
                for m in range(j):
                    x -= lower[1][i, m] * lower[1][j, m]
                    y -= lower[1][i, m] * lower[0][j, m] - lower[0][i, m] * lower[1][j, m]
                lower[1][i, j] = y / lower[0][j, j] if i > j else 0.0
            if i == j and x < resolution * sample[j, j].real:
                x = resolution * sample[j, j].real
            lower[0][i, j] = x / lower[0][j, j] if i > j else math.sqrt(x)


def whiten(factors: Parts, lower: Parts, columns: Parts, block: int, n: int, like: Lanes) -> None:
    """Fill one block of ``columns`` with the columns of G L, for its inverse factors G and L from :func:`cholesky`.

    Four entries are computed at once, as in :func:`adjoint_product`. Above its diagonal, L is 0.
    """
    width = len(like)
    zero = fill(0.0, like)
    start = block * n * n * width
    factors, columns = raw(factors), raw(columns)
    for j in range(0, n, 2):
        beside = min(j + 1, n - 1)
        for i in range(0, n, 2):
            below = min(i + 1, n - 1)
            p, q, r, s = zero, zero, zero, zero
            f, g, h, k = zero, zero, zero, zero
            for m in range(j, n):  # L is 0 above its diagonal
                first, second = start + (i * n + m) * width, start + (below * n + m) * width
                a, b = load(factors[0], first, like), load(factors[0], second, like)
                c, d = fill(lower[0][m, j], like), fill(lower[0][m, beside], like)
                p, q, r, s = fused(a, c, p), fused(a, d, q), fused(b, c, r), fused(b, d, s)
                if len(lower) == 2:
                    u, v = load(factors[1], first, like), load(factors[1], second, like)
                    x, y = fill(lower[1][m, j], like), fill(lower[1][m, beside], like)
                    f, g = fused(a, x, fused(u, c, f)), fused(a, y, fused(u, d, g))
                    h, k = fused(b, x, fused(v, c, h)), fused(b, y, fused(v, d, k))
                    u, v = zero - u, zero - v
                    p, q, r, s = fused(u, x, p), fused(u, y, q), fused(v, x, r), fused(v, y, s)
            first, second = start + j * n * width, start + beside * n * width
            store(columns[0], first + i * width, p)
            store(columns[0], second + i * width, q)
            store(columns[0], first + below * width, r)
            store(columns[0], second + below * width, s)
            if len(lower) == 2:
                store(columns[1], first + i * width, f)
                store(columns[1], second + i * width, g)
                store(columns[1], first + below * width, h)
                store(columns[1], second + below * width, k)


def move(factors: Parts, columns: Parts, scales: Array, spare: Parts, block: int, n: int, like: Lanes) -> None:
    """Replace the inverse factors G of a block by ``diag(scales) C^H G`` for its columns C; ``spare`` is (n n W,)."""
    length = n * len(like)
    start = block * n * length
    adjoint_product(columns, start, factors, start, spare, 0, (n, 1), n, like)
    moved, products = raw(factors), raw(spare)
    for i in range(n):
        scale = load(scales, block * length + i * len(like), like)
        for j in range(i * length, (i + 1) * length, len(like)):
            store(moved[0], start + j, scale * load(products[0], j, like))
            if len(factors) == 2:
                store(moved[1], start + j, scale * load(products[1], j, like))


def log_spectra(squares: Array, resolution: float, n: int, width: int, logs: Array, sqdist: Array) -> None:
    """Fill ``logs`` with the logarithms of the eigenvalues ``squares``, both (blocks n W,), and ``sqdist`` (K,).

    Eigenvalues below ``resolution`` times the largest one are raised to this value.
    """
    for k in range(len(sqdist)):
        start = k // width * n * width + k % width  # of matrix k
        largest = 0.0
        total = 0.0
        for i in range(start, start + n * width, width):
            largest = max(largest, squares[i])
        for i in range(start, start + n * width, width):
            logs[i] = math.log(max(squares[i], resolution * largest)) if largest > 0.0 else np.nan
            total += logs[i] * logs[i]
        sqdist[k] = total


def column_scales(squares: Array, logs: Array, n: int, width: int, weights: Array) -> None:
    """Replace eigenvalues lam (blocks n W,) by ``lam^(-w / 2)`` over the norms of their columns, for weights w (K,)."""
    for i in range(len(squares)):
        k = i // (n * width) * width + i % width
        step = math.exp(-0.5 * weights[k] * logs[i]) if k < len(weights) else 1.0  # the lanes left over stay
        squares[i] = step / math.sqrt(squares[i])


def run_steps(
    factors: Parts, samples: Array, block: Block, rules: Rules, resolution: float, lower: Parts, work: Work, like: Lanes
) -> int:
    """Move inverse factors of K prototypes in place by one step per sample (n, n); return the number of weights cut.

    Lanes of ``factors``, arrays (blocks n n W,), beyond the K prototypes hold arbitrary ones. ``resolution`` is the
    smallest singular value, relative to the largest, that can be told from zero. ``work``, whose columns are as many as
    the factors, and ``lower`` (n, n) are to work in.
    """
    sqdist = block.sqdist
    n = samples.shape[1]
    width = len(like)
    n_capped = 0
    blocks = len(factors[0]) // (n * n * width)
    weights = np.empty(sqdist.shape[1])
    squares = np.empty(blocks * n * width)
    logs = np.empty_like(squares)
    for b in range(len(samples)):
        cholesky(samples[b], resolution, lower)
        for i in range(blocks):
            whiten(factors, lower, work.columns, i, n, like)
            orthogonalise(work.columns, squares, i, n, work.turns, like)
        log_spectra(squares, resolution * resolution, n, width, logs, sqdist[b])
        n_capped += weigh(block, b, rules, weights)
        column_scales(squares, logs, n, width, weights)
        for i in range(blocks):
            move(factors, work.columns, squares, work.spare, i, n, like)
    return n_capped
