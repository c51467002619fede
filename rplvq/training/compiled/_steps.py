"""Steps on single samples for all prototypes at once, in plain Python that numba can compile.

``rplvq/lanes/_rotations.py`` explains the layout of the arrays, the tuples of arrays, and the argument ``like``.
Inverse factors are stored by rows: number (i n + j) W + k of a block is entry (i, j) of its matrix k.
"""

import math

import numpy as np

from rplvq.lanes import Lanes, Parts, fill, fused, load, orthogonalise, raw, store
from rplvq.protocols import Array


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
    """Fill one block of ``columns`` with the columns of G L, for its inverse factors G and L from :func:`cholesky`."""
    width = len(like)
    start = block * n * n * width
    factors, columns = raw(factors), raw(columns)
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


def move(factors: Parts, columns: Parts, scales: Array, spare: Parts, block: int, n: int, like: Lanes) -> None:
    """Replace the inverse factors G of a block by ``diag(scales) C^H G``, where C has the columns of the block.

    ``spare`` holds n n W numbers to work in.
    """
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


def log_spectra(squares: Array, resolution: float, n: int, width: int, logs: Array, sqdist: Array) -> None:
    """Fill ``logs`` with the logarithms of the eigenvalues ``squares``, both (blocks n W,), and ``sqdist`` (K,).

    Eigenvalues below ``resolution`` times the largest one are raised to this value.
    """
    for k in range(len(sqdist)):
        start = k // width * n * width + k % width
        largest, total = 0.0, 0.0
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
        step = math.exp(-0.5 * weights[k] * logs[i]) if k < len(weights) else 1.0
        squares[i] = step / math.sqrt(squares[i])


def capped_weights(
    sqdist: Array,
    target: int,
    labels: Array,
    scale: float,
    step: float,
    max_weight: float,
    max_length: float,
    weights: Array,
) -> tuple[float, int]:
    """Fill ``weights`` (K,) with the capped weights of one sample under RSLVQ, and return its loss and number of caps.

    ``scale`` is 1 / (2 sigma2), and ``step`` is the step size times the weight of the sample. All exponents are at most
    0, because the smallest distance is subtracted first.
    """
    nearest, nearest_own = np.inf, np.inf
    for k in range(len(labels)):
        nearest = min(nearest, sqdist[k])
        if labels[k] == target:
            nearest_own = min(nearest_own, sqdist[k])
    joint, joint_own = 0.0, 0.0
    for k in range(len(labels)):
        weights[k] = math.exp(scale * (nearest - sqdist[k]))
        joint += weights[k]
        if labels[k] == target:
            joint_own += math.exp(scale * (nearest_own - sqdist[k]))
    n_capped = 0
    for k in range(len(labels)):
        share = -weights[k] / joint
        if labels[k] == target:
            share += math.exp(scale * (nearest_own - sqdist[k])) / joint_own
        weight = 2.0 * step * scale * share
        if abs(weight) > max_weight:
            weight = math.copysign(max_weight, weight)
            n_capped += 1
        length = abs(weight) * math.sqrt(sqdist[k])
        if length > max_length:
            weight *= max_length / length
            n_capped += 1
        weights[k] = weight
    return math.log(joint) - math.log(joint_own) + scale * (nearest_own - nearest), n_capped


def run_steps(
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
    work: Array,
    like: Lanes,
) -> int:
    """Take one step per sample, for samples (M, n, n) and K prototypes, and return the number of caps.

    ``factors``, arrays (blocks n n W,), hold the inverse factors and are moved in place; lanes beyond the K prototypes
    hold arbitrary factors. ``sqdist`` (M, K) and ``loss`` (M,) are filled with the values before each step. ``scale``
    is 1 / (2 sigma2), infinite caps mean none, and ``resolution`` is the smallest singular value, relative to the
    largest, that can be told from zero. ``columns`` (blocks n n W,), ``lower`` (n, n) and ``spare`` (n n W,) and
    ``work`` (5 n W,) are to work in.
    """
    n, width, n_capped = samples.shape[1], len(like), 0
    blocks = len(factors[0]) // (n * n * width)
    weights, squares = np.empty(len(labels)), np.empty(blocks * n * width)
    logs = np.empty_like(squares)
    for b in range(len(samples)):
        cholesky(samples[b], resolution, lower)
        for block in range(blocks):
            whiten(factors, lower, columns, block, n, like)
            orthogonalise(columns, squares, block, n, work, like)
        log_spectra(squares, resolution * resolution, n, width, logs, sqdist[b])
        step = step_size * sample_weight[b]
        loss[b], capped = capped_weights(sqdist[b], targets[b], labels, scale, step, max_weight, max_length, weights)
        n_capped += capped
        column_scales(squares, logs, n, width, weights)
        for block in range(blocks):
            move(factors, columns, squares, spare, block, n, like)
    return n_capped
