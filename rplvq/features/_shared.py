"""The directions that all of many positive semidefinite matrices share."""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from rplvq.arrays import adjoint, by_block, congruence, first_bad, parts_of, principal_basis
from rplvq.exceptions import PointError
from rplvq.protocols import Array

LACKING = 1e-4
"""A direction is in no sample's null space if the squared cosines of their angles add up to less than this."""
KEPT = 0.01
"""Share of its smallest positive eigenvalue that every sample keeps in a common subspace."""


class Spectra(NamedTuple):
    """What the eigenvalues and eigenvectors of matrices (N, n, n) say about the directions in which they have power."""

    ranks: Array
    """Number of directions with power in each matrix (N,); n for matrices of weight 0, which are ignored."""
    smallest: Array
    """Smallest eigenvalue (M,) above the tolerance of each of the M matrices of positive weight."""
    lacking: Array
    """Mean projector (n, n) on the null spaces."""
    power: Array
    """Weighted mean (n, n) of the matrices, each divided by its trace."""


def spectra_of(matrices: Array, weights: Array, tol: float) -> Spectra:
    """Decompose positive semidefinite matrices (N, n, n); eigenvalues up to ``tol`` times the largest count as 0."""
    n = matrices.shape[1]
    lacking = np.zeros_like(matrices[0])
    power = np.zeros_like(matrices[0])
    ranks = np.full(len(matrices), n)
    smallest = np.empty(len(matrices))
    for rows in parts_of(matrices, n * n):
        part = matrices[rows]
        values, vectors = np.linalg.eigh(part)
        _check_semidefinite(values, tol, rows.start)
        is_null = (values <= tol * values[:, -1:]) & (weights[rows] > 0)[:, None]
        null = vectors * is_null[:, None, :]
        lacking += np.sum(null @ adjoint(null), axis=0)
        power += np.tensordot(weights[rows] / values.sum(axis=1), part, 1)
        ranks[rows] = n - is_null.sum(axis=1)
        smallest[rows] = values[np.arange(len(part)), n - ranks[rows]]
    there = weights > 0
    return Spectra(ranks, smallest[there], lacking / there.sum(), power / weights.sum())


def _check_semidefinite(values: Array, tol: float, start: int) -> None:
    """Raise PointError at the first matrix whose eigenvalues (N, n), ascending, are negative or all zero."""
    bad = (values[:, -1] <= 0) | (values[:, 0] < -tol * values[:, -1])
    if (index := first_bad(bad)) is not None:
        what = f"its eigenvalues are from {values[index, 0]:.3g} to {values[index, -1]:.3g}"
        remedy = "Covariance matrices have no negative ones: check the sign, and leave empty matrices out"
        raise PointError(start + index, f"is not positive semidefinite, or zero: {what}. {remedy}")


def split_space(matrices: Array, spectra: Spectra, wanted: int | None) -> tuple[Array, Array, Array]:
    """Return a basis of the common subspace (n, r), one of what is dropped (n, n - r), and the share that lacks it.

    ``wanted`` is r, or None for as many directions as the matrices (N, n, n) share.
    """
    n = matrices.shape[1]
    most = int(spectra.ranks.min()) if wanted is None else wanted
    if most == n:
        return np.eye(n), np.empty((n, 0)), np.empty(0)
    shares, vectors = np.linalg.eigh(spectra.lacking)
    n_shared = int(np.sum(shares < LACKING / len(matrices)))
    # Directions that no sample lacks come first, by their power, and then the others, by the share that lacks them.
    order = np.hstack([principal_basis(vectors[:, :n_shared], spectra.power), vectors[:, n_shared:]])

    def is_singular(size: int) -> bool:
        basis = order[:, :size]
        lowest = by_block(lambda part: np.linalg.eigvalsh(congruence(part, basis))[:, 0], matrices)
        return bool((lowest < KEPT * spectra.smallest).any())

    fewest = min(n_shared, most)
    size = fewest + bisect_left(range(fewest + 1, most + 1), True, key=is_singular)
    if size < (wanted or 1):
        what = f"share {size} of {n} directions, and {wanted or 1} must be shared"
        raise ValueError(f"the matrices in X {what}: leave out those of low rank, or choose fewer n_components")
    dropped = principal_basis(order[:, size:], spectra.lacking)
    missing = np.diagonal(congruence(spectra.lacking[None], dropped)[0]).real.clip(0.0, 1.0)
    return principal_basis(order[:, :size], spectra.power), dropped, missing
