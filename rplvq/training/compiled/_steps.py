"""Steps by rotations of all prototypes at once; plain Python that numba compiles as it stands.

See :mod:`rplvq.training.compiled` for how matrices lie in memory, and what the tuples of arrays are.
"""

from __future__ import annotations

import math

import numpy as np

from rplvq.protocols import Array
from rplvq.training.compiled._rotations import Parts, orthogonalise
from rplvq.training.compiled._simd import Lanes, fill, fused, load, store
from rplvq.training.compiled._weigh import weigh

__all__ = ["cholesky", "follow_lanes", "rescale", "spectra", "through_lanes", "whiten_lanes"]


def cholesky(sample: Array, resolution: float, lower: Parts) -> None:
    """Fill the lower halves of ``lower``, arrays (n, n), with L, where L L^H is the sample (n, n).

    Pivots below ``resolution`` times their diagonal entry are rounding, and read as that.
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


def whiten_lanes(factors: Parts, lower: Parts, columns: Parts, block: int, n: int, like: Lanes) -> None:
    """Write the columns of G L into a block, for its factors G and a lower triangular L, arrays (n, n)."""
    width = len(like)
    start = block * n * n * width
    for j in range(n):
        for i in range(n):
            x, y = fill(0.0, like), fill(0.0, like)
            for m in range(j, n):
                a, u = load(factors[0], start + (i * n + m) * width, like), fill(lower[0][m, j], like)
                x = fused(a, u, x)
                if len(lower) == 2:
                    b, v = load(factors[1], start + (i * n + m) * width, like), fill(lower[1][m, j], like)
                    x = fused(b, fill(-lower[1][m, j], like), x)
                    y = fused(a, v, fused(b, u, y))
            store(columns[0], start + (j * n + i) * width, x)
            if len(lower) == 2:
                store(columns[1], start + (j * n + i) * width, y)


def follow_lanes(factors: Parts, columns: Parts, scales: Array, spare: Parts, block: int, n: int, like: Lanes) -> None:
    """Replace the factors G of a block by ``diag(scales) C^H G``, C being its columns; ``spare`` has n n W numbers."""
    width = len(like)
    start = block * n * n * width
    for i in range(n):
        scale = load(scales, (block * n + i) * width, like)
        for j in range(n):
            x, y, z = fill(0.0, like), fill(0.0, like), fill(0.0, like)
            for m in range(n):
                own, other = start + (i * n + m) * width, start + (m * n + j) * width
                a, u = load(columns[0], own, like), load(factors[0], other, like)
                x = fused(a, u, x)
                if len(factors) == 2:
                    b, v = load(columns[1], own, like), load(factors[1], other, like)
                    x, y, z = fused(b, v, x), fused(a, v, y), fused(b, u, z)
            store(spare[0], (i * n + j) * width, scale * x)
            if len(factors) == 2:
                store(spare[1], (i * n + j) * width, scale * (y - z))
    for i in range(n * n * width):
        factors[0][start + i] = spare[0][i]
        if len(factors) == 2:
            factors[1][start + i] = spare[1][i]


def spectra(squares: Array, resolution: float, n: int, width: int, logs: Array, sqdist: Array) -> None:
    """Fill ``logs`` with logarithms of eigenvalues, both (blocks n W,), and ``sqdist`` (K,) with sums of squares."""
    for k in range(len(sqdist)):
        start = k // width * n * width + k % width
        largest, total = 0.0, 0.0
        for i in range(start, start + n * width, width):
            largest = max(largest, squares[i])
        for i in range(start, start + n * width, width):
            logs[i] = math.log(max(squares[i], resolution * largest)) if largest > 0.0 else np.nan
            total += logs[i] * logs[i]
        sqdist[k] = total


def rescale(squares: Array, logs: Array, n: int, width: int, weights: Array) -> None:
    """Turn eigenvalues lam (blocks n W,) into ``lam^(-w / 2)`` over the norms of their columns, for weights w (K,)."""
    for i in range(len(squares)):
        k = i // (n * width) * width + i % width
        step = math.exp(-0.5 * weights[k] * logs[i]) if k < len(weights) else 1.0
        squares[i] = step / math.sqrt(squares[i])


def through_lanes(
    factors: Parts,
    samples: Array,
    targets: Array,
    sample_weight: Array,
    labels: Array,
    scale: float,
    step_size: float,
    max_weight: float,
    max_length: float,
    resolution: float,
    sqdist: Array,
    loss: Array,
    columns: Parts,
    lower: Parts,
    spare: Parts,
    pairs: Array,
    like: Lanes,
) -> int:
    """Step through samples (M, n, n) one by one.

    Parameters
    ----------
    factors : tuple of arrays of shape (blocks n n W,)
        Inverse factors, moved in place: number (i n + j) W + k of a block is entry (i, j) of its matrix k. Lanes
        beyond the K prototypes hold any factors.
    samples, targets, sample_weight : ndarray of shape (M, n, n), (M,) and (M,)
        Samples, class indices, weights of the visits.
    labels : ndarray of int of shape (K,)
        Class indices of the prototypes.
    scale, step_size : float
        1 / (2 sigma2), and the step size.
    max_weight, max_length : float
        Caps, infinite for none.
    resolution : float
        Smallest eigenvalue that is distinguished from zero, relative to the largest.
    sqdist, loss : ndarray of shape (M, K) and (M,)
        Filled with what each step met.
    columns, lower, spare : tuples of arrays of shape (blocks n n W,), (n, n) and (n n W,)
        To work in.
    pairs, like : ndarray of shape (n (n - 1) / 2, 2) and tuple of W floats
        See ``orthogonalise`` in ``_rotations.py``.

    Returns
    -------
    int
        Number of capped weights and steps.
    """
    n, width, n_capped = samples.shape[1], len(like), 0
    blocks = len(factors[0]) // (n * n * width)
    weights, squares = np.empty(len(labels)), np.empty(blocks * n * width)
    logs = np.empty_like(squares)
    for b in range(len(samples)):
        cholesky(samples[b], resolution, lower)
        for block in range(blocks):
            whiten_lanes(factors, lower, columns, block, n, like)
            orthogonalise(columns, squares, block, n, pairs, like)
        spectra(squares, resolution, n, width, logs, sqdist[b])
        step = step_size * sample_weight[b]
        loss[b], capped = weigh(sqdist[b], targets[b], labels, scale, step, max_weight, max_length, weights)
        n_capped += capped
        rescale(squares, logs, n, width, weights)
        for block in range(blocks):
            follow_lanes(factors, columns, squares, spare, block, n, like)
    return n_capped
