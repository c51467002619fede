"""Steps on single samples along straight lines, with raised eigenvalues, in plain Python that numba can compile.

A Cholesky factorisation shows for most prototypes that none of their eigenvalues is below the floor. Only otherwise are
they decomposed, beginning with the eigenvectors that were found for the same prototypes before.
"""

import numpy as np

from rplvq.lanes import Lanes, Parts, fill, fused, larger, load, orthogonalise, root, store
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Block, Rules, weigh
from rplvq.training.compiled._lanes import (
    MARGIN_OF_ERROR,
    Work,
    add_to_diagonal,
    copy_block,
    follow,
    may_be_indefinite,
    product,
    spread,
    square_difference,
    trace,
)


def raise_eigenvalues(matrix: Parts, basis: Parts, start: int, floor: Array, work: Work, n: int, like: Lanes) -> None:
    """Raise the eigenvalues of the matrices of the block at ``start`` that are below the floor (W,).

    ``basis``, laid out like ``matrix``, holds any unitary matrices, and becomes the eigenvectors; the nearer it is to
    them, the fewer rotations are needed.
    """
    width = len(like)
    columns = work.columns
    size = fill(0.0, like)
    for part in matrix:
        for i in range(start, start + n * n * width, width):
            x = load(part, i, like)
            size = fused(x, x, size)
    shift = fill(2.0, like) * root(size)  # so that all eigenvalues are far from 0, and are the singular values
    copy_block(matrix, start, work.spare, 0, n, like)
    add_to_diagonal(work.spare, shift, n, like)
    product(work.spare, 0, basis, start, columns, 0, n, like)
    orthogonalise(columns, work.squares, 0, n, work.turns, like)
    for m in range(n):
        value = root(load(work.squares, m * width, like))
        inverse = fill(1.0, like) / value
        missing = larger(floor + shift - value, fill(0.0, like))
        for part, vectors in zip(columns, basis):  # noqa: B905
            for i in range(m * n * width, (m + 1) * n * width, width):
                store(vectors, start + i, inverse * load(part, i, like))
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
    prototypes: Parts, basis: Parts, samples: Array, block: Block, rules: Rules, tau: float, relative: float,
    ends: Parts, work: Work, like: Lanes,
) -> int:  # fmt: skip
    """Move K prototypes in place by one step per sample (n, n), and return the number of weights cut.

    Prototypes are arrays (blocks n n W,). The floor of the eigenvalues is ``tau``, times the mean eigenvalue of the
    prototype before its step if ``relative`` is 1. ``ends`` holds one block to work in. ``basis`` is as for
    :func:`raise_eigenvalues`.
    """
    sqdist = block.sqdist
    n = samples.shape[1]
    width = len(like)
    n_capped = 0
    count = sqdist.shape[1]
    blocks = len(prototypes[0]) // (n * n * width)
    weights = np.empty(count)
    rates = np.zeros(blocks * width)
    for b in range(len(samples)):
        spread(samples[b], ends, n, like)
        for i in range(blocks):
            store(rates, i * width, square_difference(ends, 0, prototypes, i * n * n * width, n, like))
        for k in range(count):
            sqdist[b, k] = rates[k]
        n_capped += weigh(block, b, rules, weights)
        for k in range(len(rates)):
            rates[k] = weights[k] if k < count else 0.0  # the lanes left over stay
        for i in range(blocks):
            start = i * n * n * width
            mean = trace(prototypes, start, n, like) * fill(1.0 / n, like)
            floor = fill(tau, like) * (fill(relative, like) * mean + fill(1.0 - relative, like))
            follow(prototypes, start, ends, 0, load(rates, i * width, like), n, like)
            error = fill(MARGIN_OF_ERROR * n, like) * trace(prototypes, start, n, like)  # in doubt, eigenvalues decide
            copy_block(prototypes, start, work.spare, 0, n, like)
            add_to_diagonal(work.spare, fill(0.0, like) - floor - error, n, like)
            if may_be_indefinite(work.spare, n, like):
                raise_eigenvalues(prototypes, basis, start, floor, work, n, like)
    return n_capped
