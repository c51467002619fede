"""Steps on single samples under the Bures-Wasserstein metric, in plain Python that numba can compile.

With ``X = L L^H`` and ``W = R R^H``, the root of the sample nearest to R is ``L U``, where the unitary U is the polar
factor of ``M = L^H R``. Rotations turn the columns of M into ``C = M V``, which are orthogonal. Normalised to Q, they
give ``U = Q diag(s)^-1 Q^H M`` for singular values s, and a Newton step removes what rounding took from its unitarity.
"""

import numpy as np

from rplvq.lanes import TINY, Lanes, Parts, any_positive, fill, larger, load, orthogonalise, rescale, root, store
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Block, Rules, weigh
from rplvq.training.compiled._lanes import (
    MARGIN_OF_ERROR,
    Work,
    add_to_diagonal,
    adjoint_product,
    copy_block,
    follow,
    may_be_indefinite,
    orthonormalise,
    product,
    spread,
    square_difference,
    subtract_column,
    trace,
)


def polar(matrix: Parts, start: int, out: Parts, work: Work, n: int, like: Lanes) -> None:
    """Fill the block at ``start`` of ``out`` with the unitary polar factors of the matrices there in ``matrix``."""
    width = len(like)
    columns, spare, squares, turns = work
    copy_block(matrix, start, columns, 0, n, like)
    orthogonalise(columns, squares, 0, n, turns, like)
    for j in range(n):
        inverse = fill(1.0, like) / root(load(squares, j * width, like))
        rescale(columns, j * n * width, n * width, inverse, like)
    adjoint_product(columns, 0, matrix, start, spare, 0, (1, n), n, like)
    for i in range(n):
        inverse = fill(1.0, like) / root(load(squares, i * width, like))
        for part in spare:
            for j in range(n):
                at = (j * n + i) * width
                store(part, at, inverse * load(part, at, like))
    product(columns, 0, spare, 0, out, start, n, like)
    adjoint_product(out, start, out, start, spare, 0, (1, n), n, like)
    # The Newton step for a unitary U is U (3 I - U^H U) / 2.
    rescale(spare, 0, n * n * width, fill(-0.5, like), like)
    add_to_diagonal(spare, fill(1.5, like), n, like)
    product(out, start, spare, 0, columns, 0, n, like)
    copy_block(columns, 0, out, start, n, like)


def may_shorten(
    roots: Parts, crossed: Parts, unitary: Parts, start: int, rate: Array, room: float, work: Work, n: int, like: Lanes
) -> bool:
    """Whether a step of a block with weights ``rate`` (W,) may have to be shortened; False is certain.

    With ``P = R^H L U = M^H U`` and a weight -w, it need not be if ``(room + w) R^H R - w P`` is positive definite,
    where room is ``1 - min_stretch``.
    """
    width = len(like)
    columns = work.columns
    spare = work.spare
    weight = larger(fill(0.0, like) - rate, fill(0.0, like))  # only repelled prototypes can leave the cone
    adjoint_product(roots, start, roots, start, columns, 0, (1, n), n, like)
    adjoint_product(crossed, start, unitary, start, spare, 0, (1, n), n, like)
    for part, other in zip(columns, spare):  # noqa: B905
        for i in range(0, n * n * width, width):
            store(part, i, (fill(room, like) + weight) * load(part, i, like) - weight * load(other, i, like))
    add_to_diagonal(columns, fill(-MARGIN_OF_ERROR * n, like) * trace(columns, 0, n, like), n, like)
    return may_be_indefinite(columns, n, like)


def shortened(
    roots: Parts, turned: Parts, maps: Parts, start: int, rate: Array, room: float, work: Work, n: int, like: Lanes
) -> Array:
    """Return the weights (W,) of a block, those of repelled prototypes as small as the cone demands.

    The transport map A with ``A R = L U`` is ``Y Q^H`` with ``Y T = L U`` and ``R = Q T``. If its largest eigenvalue is
    l, a step with the weight -w is shortened to the weight ``-room / (l - 1)`` unless w is smaller. A block of ``maps``
    is overwritten by Y.
    """
    width = len(like)
    columns, spare, squares, turns = work
    copy_block(roots, start, columns, 0, n, like)
    orthonormalise(columns, spare, n, like)
    copy_block(turned, start, maps, start, n, like)
    for j in range(n):
        for i in range(j):
            x = load(spare[0], (j * n + i) * width, like)
            y = fill(0.0, like)
            if len(maps) == 2:
                y = load(spare[1], (j * n + i) * width, like)
            subtract_column(maps, start + j * n * width, maps, start + i * n * width, x, y, n, like)
        pivot = load(spare[0], (j * n + j) * width, like)
        for part in maps:
            for i in range(start + j * n * width, start + (j + 1) * n * width, width):
                store(part, i, load(part, i, like) / pivot)
    adjoint_product(columns, 0, maps, start, spare, 0, (1, n), n, like)
    orthogonalise(spare, squares, 0, n, turns, like)
    largest = fill(0.0, like)
    for i in range(0, n * width, width):
        largest = larger(load(squares, i, like), largest)
    excess = larger(root(largest) - fill(1.0, like), fill(TINY, like))  # without any, the limit is far away
    return larger(rate, fill(0.0, like) - fill(room, like) / excess)


def raise_roots(roots: Parts, start: int, rate: Array, lowest: float, work: Work, n: int, like: Lanes) -> None:
    """Raise the squared singular values of moved roots of a block to the share ``lowest`` of their mean.

    Only roots of prototypes with a negative weight ``rate`` (W,) are changed. They are turned, too, which does not
    change their matrices.
    """
    width = len(like)
    columns, spare, squares, turns = work
    copy_block(roots, start, columns, 0, n, like)
    adjoint_product(columns, 0, columns, 0, spare, 0, (1, n), n, like)
    add_to_diagonal(spare, fill(-2.0 * lowest / n - MARGIN_OF_ERROR * n, like) * trace(spare, 0, n, like), n, like)
    if not may_be_indefinite(spare, n, like):
        return
    orthogonalise(columns, squares, 0, n, turns, like)
    store(spare[0], 0, rate)
    for i in range(width):
        total = 0.0
        least = np.inf
        for m in range(i, n * width, width):
            total += squares[m]
            least = min(least, squares[m])
        floor = lowest * total / n
        if spare[0][i] < 0.0 and least < floor:  # the rates, stored above
            for m in range(n):
                factor = np.sqrt(max(1.0, floor / squares[m * width + i]))
                for part, raised in zip(columns, roots):  # noqa: B905
                    for j in range(n):
                        at = (m * n + j) * width + i
                        raised[start + at] = factor * part[at]


def run_wasserstein(
    roots: Parts, samples: Array, first: int, block: Block, rules: Rules, room: float, lowest: float, weights: Array,
    crossed: Parts, unitary: Parts, turned: Parts, work: Work, like: Lanes,
) -> tuple[int, int]:  # fmt: skip
    """Take steps from sample ``first`` on, until one has a weight above 1.

    ``roots``, arrays (blocks n n W,), are moved in place. Returns the index of the sample whose step was not taken, or
    M, and the number of weights cut, those of this sample included. ``weights`` (K,) are then those of this sample.
    ``crossed``, ``unitary`` and ``turned`` hold as many numbers as ``roots``.
    """
    n = samples.shape[1]
    width = len(like)
    n_capped = 0
    count = block.sqdist.shape[1]
    blocks = len(roots[0]) // (n * n * width)
    rates = np.empty(blocks * width)
    for b in range(first, len(samples)):
        for i in range(blocks):
            start = i * n * n * width
            spread(samples[b], work.columns, n, like)
            adjoint_product(work.columns, 0, roots, start, crossed, start, (1, n), n, like)
            polar(crossed, start, unitary, work, n, like)
            spread(samples[b], work.columns, n, like)
            product(work.columns, 0, unitary, start, turned, start, n, like)
            store(rates, i * width, square_difference(turned, start, roots, start, n, like))
        for k in range(count):
            block.sqdist[b, k] = rates[k]
        n_capped += weigh(block, b, rules, weights)
        for k in range(blocks * width):
            rates[k] = weights[k] if k < count else 0.0  # the lanes left over stay
            if not rates[k] <= 1.0:  # the manifold takes this step; NaN, too
                return b, n_capped
        for i in range(blocks):
            rate = load(rates, i * width, like)
            start = i * n * n * width
            repelled = any_positive(fill(0.0, like) - rate)
            if repelled and may_shorten(roots, crossed, unitary, start, rate, room, work, n, like):
                rate = shortened(roots, turned, unitary, start, rate, room, work, n, like)
            follow(roots, start, turned, start, rate, n, like)
            if repelled:
                raise_roots(roots, start, rate, lowest, work, n, like)
    return len(samples), n_capped
