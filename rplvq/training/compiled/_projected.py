"""Steps on single samples along straight lines, with raised eigenvalues, in plain Python that numba can compile.

A Cholesky factorisation shows for most prototypes that none of their eigenvalues is below the floor. Only otherwise are
they decomposed, beginning with the eigenvectors that were found for the same prototypes before.
"""

import numpy as np

from rplvq.lanes import Lanes, Parts, fill, fused, larger, load, orthogonalise, root, store
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Rules, weigh
from rplvq.training.compiled._lanes import (
    MARGIN_OF_ERROR,
    add_to_diagonal,
    copy_block,
    follow,
    may_be_indefinite,
    product,
    spread,
    square_difference,
    trace,
)


def raise_eigenvalues(
    matrix: Parts,
    basis: Parts,
    block: int,
    floor: Array,
    columns: Parts,
    spare: Parts,
    squares: Array,
    n: int,
    work: Array,
    like: Lanes,
) -> None:
    """Raise the eigenvalues of the matrices of a block that are below the floor (W,).

    ``basis``, laid out like ``matrix``, holds any unitary matrices, and becomes the eigenvectors; the nearer it is to
    them, the fewer rotations are needed. ``columns`` and ``spare`` hold one block to work in.
    """
    width = len(like)
    start, size = block * n * n * width, fill(0.0, like)
    for part in matrix:
        for i in range(start, start + n * n * width, width):
            x = load(part, i, like)
            size = fused(x, x, size)
    shift = fill(2.0, like) * root(size)  # so that all eigenvalues are far from 0, and are the singular values
    copy_block(matrix, start, spare, 0, n, like)
    add_to_diagonal(spare, shift, n, like)
    product(spare, 0, basis, start, columns, 0, n, like)
    orthogonalise(columns, squares, 0, n, work, like)
    for m in range(n):
        value = root(load(squares, m * width, like))
        inverse = fill(1.0, like) / value
        missing = larger(floor + shift - value, fill(0.0, like))
        for part, found in zip(columns, basis):  # noqa: B905
            for i in range(m * n * width, (m + 1) * n * width, width):
                store(found, start + i, inverse * load(part, i, like))
        for j in range(n):
            a = missing * load(basis[0], start + (m * n + j) * width, like)
            if len(matrix) == 2:
                b = missing * load(basis[1], start + (m * n + j) * width, like)
            for i in range(n):
                at, other = start + (j * n + i) * width, start + (m * n + i) * width
                u = load(basis[0], other, like)
                if len(matrix) == 2:
                    v = load(basis[1], other, like)
                    store(matrix[0], at, fused(a, u, fused(b, v, load(matrix[0], at, like))))
                    store(matrix[1], at, load(matrix[1], at, like) + (a * v - b * u))
                else:
                    store(matrix[0], at, fused(a, u, load(matrix[0], at, like)))


def run_projected(
    prototypes: Parts,
    basis: Parts,
    samples: Array,
    targets: Array,
    multiplicity: Array,
    rules: Rules,
    tau: float,
    relative: float,
    sqdist: Array,
    loss: Array,
    ends: Parts,
    columns: Parts,
    spare: Parts,
    work: Array,
    like: Lanes,
) -> int:
    """Take one step per sample, for samples (M, n, n) and K prototypes, and return the number of caps.

    Prototypes, arrays (blocks n n W,), are moved in place. The floor of the eigenvalues is ``tau``, times the mean
    eigenvalue of the prototype before its step if ``relative`` is 1. ``ends`` holds one block to work in. ``basis`` is
    as for :func:`raise_eigenvalues`, and the other arguments as for ``run_flat``.
    """
    n, width, n_capped, count = samples.shape[1], len(like), 0, sqdist.shape[1]
    blocks = len(prototypes[0]) // (n * n * width)
    weights, rates, squares = np.empty(count), np.zeros(blocks * width), np.empty(n * width)
    for b in range(len(samples)):
        spread(samples[b], ends, n, like)
        for block in range(blocks):
            store(rates, block * width, square_difference(ends, 0, prototypes, block * n * n * width, n, like))
        for k in range(count):
            sqdist[b, k] = rates[k]
        loss[b], capped = weigh(sqdist[b], targets[b], multiplicity[b], rules, weights)
        n_capped += capped
        for k in range(len(rates)):
            rates[k] = weights[k] if k < count else 0.0
        for block in range(blocks):
            start = block * n * n * width
            mean = trace(prototypes, start, n, like) * fill(1.0 / n, like)
            floor = fill(tau, like) * (fill(relative, like) * mean + fill(1.0 - relative, like))
            follow(prototypes, start, ends, 0, load(rates, block * width, like), n, like)
            error = fill(MARGIN_OF_ERROR * n, like) * trace(prototypes, start, n, like)
            copy_block(prototypes, start, spare, 0, n, like)
            add_to_diagonal(spare, fill(0.0, like) - floor - error, n, like)
            if may_be_indefinite(spare, n, like):
                raise_eigenvalues(prototypes, basis, block, floor, columns, spare, squares, n, work, like)
    return n_capped
