"""Steps on single samples under the Bures-Wasserstein metric, in plain Python that numba can compile.

With ``X = L L^H`` and ``W = R R^H``, the root of the sample nearest to R is ``L U``, where the unitary U is the polar
factor of ``M = L^H R``. Rotations turn the columns of M into ``C = M V``, which are orthogonal. Normalised to Q, they
give ``U = Q diag(s)^-1 Q^H M`` for singular values s, and a Newton step removes what rounding took from its unitarity.
"""

import numpy as np

from rplvq.protocols import Array
from rplvq.training.compiled._costs import Rules, weigh
from rplvq.training.compiled._lanes import adjoint_product, may_be_indefinite, product
from rplvq.training.compiled._rotations import Parts, orthogonalise
from rplvq.training.compiled._simd import Lanes, fill, fused, load, root, store

MARGIN_OF_ERROR = 1e-14
"""Rounding of a factorisation relative to the trace times n, beyond which its answer holds for the exact matrix."""


def spread(sample: Array, out: Parts, n: int, like: Lanes) -> None:
    """Fill one block of ``out`` with copies of a sample (n, n) in all lanes."""
    for j in range(n):
        for i in range(n):
            store(out[0], (j * n + i) * len(like), fill(sample[i, j].real, like))
            if len(out) == 2:
                store(out[1], (j * n + i) * len(like), fill(sample[i, j].imag, like))


def polar(
    matrix: Parts,
    start: int,
    out: Parts,
    columns: Parts,
    spare: Parts,
    squares: Array,
    n: int,
    pairs: Array,
    like: Lanes,
) -> None:
    """Fill a block of ``out`` with the unitary polar factors of the matrices of the same block of ``matrix``.

    ``columns`` and ``spare`` hold one block to work in.
    """
    width = len(like)
    for part, copy in zip(matrix, columns):  # noqa: B905  (numba does not know the argument strict)
        for i in range(0, n * n * width, width):
            store(copy, i, load(part, start + i, like))
    orthogonalise(columns, squares, 0, n, pairs, like)
    for j in range(n):
        inverse = fill(1.0, like) / root(load(squares, j * width, like))
        for part in columns:
            for i in range(j * n * width, (j + 1) * n * width, width):
                store(part, i, inverse * load(part, i, like))
    adjoint_product(columns, 0, matrix, start, spare, 0, n, like)
    for i in range(n):
        inverse = fill(1.0, like) / root(load(squares, i * width, like))
        for part in spare:
            for j in range(n):
                at = (j * n + i) * width
                store(part, at, inverse * load(part, at, like))
    product(columns, 0, spare, 0, out, start, n, like)
    adjoint_product(out, start, out, start, spare, 0, n, like)
    for part in spare:
        for i in range(0, n * n * width, width):
            store(part, i, fill(-0.5, like) * load(part, i, like))
    for i in range(n):
        at = (i * n + i) * width
        store(spare[0], at, fill(1.5, like) + load(spare[0], at, like))
    product(out, start, spare, 0, columns, 0, n, like)
    for part, copy in zip(columns, out):  # noqa: B905
        for i in range(0, n * n * width, width):
            store(copy, start + i, load(part, i, like))


def square_difference(first: Parts, second: Parts, start: int, n: int, like: Lanes) -> Array:
    """Return the squared Frobenius distances (W,) of the matrices of two blocks."""
    total = fill(0.0, like)
    for one, other in zip(first, second):  # noqa: B905
        for i in range(start, start + n * n * len(like), len(like)):
            difference = load(one, i, like) - load(other, i, like)
            total = fused(difference, difference, total)
    return total


def may_leave_the_cone(
    roots: Parts,
    crossed: Parts,
    unitary: Parts,
    start: int,
    rates: Array,
    floors: Array,
    columns: Parts,
    spare: Parts,
    n: int,
    like: Lanes,
) -> bool:
    """Whether a repelled prototype of a block may come too close to the boundary; False is certain.

    With ``G = R^H R``, ``P = R^H L U = M^H U`` and a weight -w, the step need not be shortened, and no eigenvalue needs
    to be raised, if ``c G - 2 w P - f 1`` is positive definite, where c is the smaller one of ``1 + w`` and
    ``2 (1 - min_stretch + w)``, and f is at least the floor divided by ``1 + w``. ``rates`` (2 W,) holds 2 w and c, and
    ``floors`` (2,) the trace of the sample and the share of traces to which eigenvalues are raised, four times.
    """
    width = len(like)
    adjoint_product(roots, start, roots, start, columns, 0, n, like)
    adjoint_product(crossed, start, unitary, start, spare, 0, n, like)
    weight, one = load(rates, 0, like), load(rates, width, like)
    own, both = fill(0.0, like), fill(0.0, like)
    for i in range(n):
        at = (i * n + i) * width
        own = own + load(columns[0], at, like)
        both = both + weight * load(spare[0], at, like)
    error = fill(MARGIN_OF_ERROR * n, like) * (fused(one, own, both))
    bound = error + fill(floors[1], like) * fused(weight * weight, fill(floors[0], like), own)
    for part, other in zip(columns, spare):  # noqa: B905
        for i in range(0, n * n * width, width):
            store(part, i, one * load(part, i, like) - weight * load(other, i, like))
    for i in range(n):
        at = (i * n + i) * width
        store(columns[0], at, load(columns[0], at, like) - bound)
    return may_be_indefinite(columns, 0, n, like)


def run_wasserstein(
    roots: Parts,
    samples: Array,
    first: int,
    targets: Array,
    multiplicity: Array,
    rules: Rules,
    room: float,
    floor: float,
    weights: Array,
    sqdist: Array,
    loss: Array,
    columns: Parts,
    crossed: Parts,
    unitary: Parts,
    turned: Parts,
    spare: Parts,
    pairs: Array,
    like: Lanes,
) -> tuple[int, int]:
    """Take steps from sample ``first`` on, until one may come too close to the boundary of the cone.

    ``roots``, arrays (blocks n n W,), are moved in place. Returns the index of the sample whose step was not taken, or
    M, and the number of caps, those of this sample included. ``weights`` (K,) are then those of this sample.
    ``crossed``, ``unitary`` and ``turned`` hold as many numbers as ``roots``, and ``columns`` and ``spare`` one block.
    """
    n, width, n_capped, count = samples.shape[1], len(like), 0, sqdist.shape[1]
    blocks = len(roots[0]) // (n * n * width)
    squares, rates, distances, floors = np.empty(n * width), np.zeros(2 * width), np.empty(width), np.empty(2)
    floors[1] = 4.0 * floor / n
    for b in range(first, len(samples)):
        for block in range(blocks):
            start = block * n * n * width
            spread(samples[b], columns, n, like)
            adjoint_product(columns, 0, roots, start, crossed, start, n, like)
            polar(crossed, start, unitary, columns, spare, squares, n, pairs, like)
            spread(samples[b], columns, n, like)
            product(columns, 0, unitary, start, turned, start, n, like)
            store(distances, 0, square_difference(turned, roots, start, n, like))
            for k in range(block * width, min((block + 1) * width, count)):
                sqdist[b, k] = distances[k - block * width]
        floors[0] = 0.0
        for i in range(n):
            for j in range(n):
                floors[0] += abs(samples[b, i, j]) ** 2
        loss[b], capped = weigh(sqdist[b], targets[b], multiplicity[b], rules, weights)
        n_capped += capped
        for block in range(blocks):
            repelled = False
            for i in range(width):
                k = block * width + i
                weight = weights[k] if k < count else 0.0
                if not weight <= 1.0:
                    return b, n_capped
                repelled = repelled or weight < 0.0
                rates[i] = max(0.0, -2.0 * weight)
                rates[width + i] = min(1.0 + 0.5 * rates[i], 2.0 * room + rates[i]) if weight < 0.0 else 1.0
            if repelled and may_leave_the_cone(
                roots, crossed, unitary, block * n * n * width, rates, floors, columns, spare, n, like
            ):
                return b, n_capped
        for block in range(blocks):
            for i in range(width):
                rates[i] = weights[block * width + i] if block * width + i < count else 0.0
            weight = load(rates, 0, like)
            for part, other in zip(roots, turned):  # noqa: B905
                for i in range(block * n * n * width, (block + 1) * n * n * width, width):
                    x = load(part, i, like)
                    store(part, i, x + weight * (load(other, i, like) - x))
    return len(samples), n_capped
