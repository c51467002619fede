"""Matrices of which some channels are missing: their rows and columns are filled by what was usual in training."""

from __future__ import annotations

import attrs
import numpy as np

from rplvq.arrays import (
    adjoint,
    as_number_array,
    check_positive_definite,
    congruence,
    evenly_spaced_rows,
    expm,
    hermitian_part,
    lower_inverse,
    require_finite,
    spectral_map,
)
from rplvq.exceptions import PointError
from rplvq.manifolds._affine_invariant import log_spectrum
from rplvq.manifolds._shrinkage import (
    COINCIDENT,
    LARGEST,
    SAME,
    LowRankCovariance,
    as_vectors,
    coordinates,
    from_coordinates,
    n_coordinates,
)
from rplvq.parts import library_part
from rplvq.protocols import Array, ArrayLike

MOST_SAMPLES = 200
"""Number of training samples from which the variation is learned; they are taken at equal intervals."""
MOST_DIRECTIONS = 40
"""Number of directions in which the variation is stored. On BCI 2a, 20 and 80 were no better."""


@library_part
@attrs.frozen
class MissingChannels:
    """How positive definite matrices vary, from which the rows and columns of missing channels are predicted.

    Tangent vectors ``s = log(F^-1 X F^-H)`` at a reference ``M = F F^H`` are taken as normally distributed, with the
    covariance of probabilistic principal components (Tipping and Bishop 1999, doi:10.1111/1467-9868.00196). Let o be
    the observed channels of a sample. With a factor F of M that begins with them, the block ``s_oo`` of s follows to
    first order from the block ``X_oo`` alone, and the rest of s is its conditional mean given ``s_oo``. The matrix
    ``T = F exp(s) F^H`` then completes X as a normally distributed signal with this covariance would:
    ``X_mo = B X_oo`` and ``X_mm = T_mm - B T_om + B X_oo B^H``, with the regression ``B = T_mo T_oo^-1``. The block
    ``X_oo`` stays as it is.

    Parameters
    ----------
    reference : ndarray of shape (n, n)
        The reference M. Tangent vectors are computed with its Cholesky factor.
    center : ndarray of shape (m,)
        Mean of the tangent vectors, in the coordinates of :func:`rplvq.manifolds.coordinates`.
    covariance : LowRankCovariance, optional
        Their covariance. Without it, T is the reference.

    Examples
    --------
    >>> reference = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> filler = MissingChannels(reference, np.zeros(3))
    >>> filler.fill([[[4.0, np.nan], [np.nan, np.nan]]])
    array([[[4. , 2. ],
            [2. , 2.5]]])
    """

    reference: Array = attrs.field(eq=SAME)
    center: Array = attrs.field(eq=SAME)
    covariance: LowRankCovariance | None = None

    def __attrs_post_init__(self) -> None:
        check_positive_definite(self.reference[None])
        size = n_coordinates(len(self.reference), np.iscomplexobj(self.reference))
        basis = np.empty((0, size)) if self.covariance is None else self.covariance.basis
        if self.center.shape != (size,) or basis.shape[1] != size or not np.isfinite(self.center).all():
            raise ValueError(f"center and covariance must be of {size} finite coordinates, got {self.center}")
        if not np.allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-6):
            raise ValueError("the directions of the covariance are not orthonormal")

    def learned(self, points: Array, weights: Array) -> MissingChannels:
        """Return this with the center and the covariance of positive definite matrices (N, n, n), weighted (N,)."""
        factor = np.linalg.cholesky(self.reference)
        vectors = coordinates(_logs(points, lower_inverse(factor)), len(self.center))
        shares = weights / weights.sum()
        center = shares @ vectors
        deviations = np.sqrt(shares)[:, None] * (vectors - center)
        is_wide = len(points) < len(center)  # then the products of the samples are the smaller matrix
        products = deviations @ deviations.T if is_wide else deviations.T @ deviations
        variances, basis = np.linalg.eigh(products)
        total = float(variances.sum())
        n_kept = min(MOST_DIRECTIONS, len(points) // 2, len(center) // 2)
        if not total > COINCIDENT or not n_kept:
            return attrs.evolve(self, center=center)
        kept = variances[-n_kept:]
        kept = kept[kept > total / len(center)]  # beyond what every direction has on average
        # The mean of all other directions.
        rest = max(float(total - kept.sum()) / (len(center) - len(kept)), COINCIDENT)
        directions = basis[:, len(variances) - len(kept) :].T  # eigenvalues ascend
        if is_wide:
            directions = (directions / np.sqrt(kept)[:, None]) @ deviations
        return attrs.evolve(self, center=center, covariance=LowRankCovariance(directions, kept, rest))

    def fill(self, points: ArrayLike) -> Array:
        """Return matrices (N, n, n) in which rows and columns of NaN are filled; the others stay as they are.

        Real matrices are taken as complex if the reference is complex. PointError is raised at the first matrix in
        which NaN are no whole rows and columns, that has no observed channel, holds infinity, or whose observed block
        is not positive definite.
        """
        matrices = as_number_array(points, 3, "(n_matrices, n, n)")
        matrices = matrices.astype(np.result_type(matrices, self.reference, float))
        lacks = _missing(matrices)
        diagonal = np.where(lacks, 0.0, np.einsum("nii->ni", matrices).real)
        usual = diagonal.sum(axis=1) / (~lacks).sum(axis=1)  # within the range of the eigenvalues of the block
        blocks = np.where(lacks[:, :, None] | lacks[:, None, :], 0.0, matrices)
        blocks += np.where(lacks, usual[:, None], 0.0)[:, None, :] * np.eye(lacks.shape[1])
        blocks = check_positive_definite(blocks).astype(matrices.dtype)  # real values stay complex like the reference
        for mask in np.unique(lacks[lacks.any(axis=1)], axis=0):  # all that lack the same channels together
            rows = np.flatnonzero((lacks == mask).all(axis=1))
            order = np.argsort(mask, kind="stable")
            ordered = np.ix_(rows, order, order)
            matrices[ordered] = self._completed(blocks[ordered], order, int((~mask).sum()))
        return matrices

    def _completed(self, matrices: Array, order: Array, k: int) -> Array:
        """Return matrices (B, n, n) with their first k channels kept; ``order`` (n,) are the places of the channels."""
        own = matrices[:, :k, :k]
        template = self._templates(own, order, k)
        regression = np.linalg.solve(template[:, :k, :k], template[:, :k, k:])  # B^H
        across = own @ regression
        rest = template[:, k:, k:] + adjoint(regression) @ (across - template[:, :k, k:])
        return np.asarray(np.block([[own, across], [adjoint(across), hermitian_part(rest)]]))

    def _templates(self, own: Array, order: Array, k: int) -> Array:
        """Return the matrices T (B or 1, n, n) for observed blocks (B, k, k)."""
        reference = self.reference[np.ix_(order, order)]
        if self.covariance is None:
            return np.asarray(reference[None])
        factor = np.linalg.cholesky(reference)
        # Between the tangent vectors of two factors of M lies a rotation.
        turn = adjoint(lower_inverse(factor) @ np.linalg.cholesky(self.reference)[order])
        n = len(order)
        excess = self.covariance.variances - self.covariance.rest
        scaled = from_coordinates(np.sqrt(np.maximum(excess, 0.0))[:, None] * self.covariance.basis, n)
        directions = congruence(scaled, turn).astype(own.dtype)
        center = congruence(from_coordinates(self.center[None], n), turn)[0]
        logs = _logs(own, lower_inverse(factor[:k, :k]))
        inner = as_vectors(directions[:, :k, :k])
        gram = inner @ inner.T + self.covariance.rest * np.eye(len(inner))
        amounts = np.linalg.solve(gram, inner @ as_vectors(logs - center[:k, :k]).T)
        tangents = center + np.tensordot(amounts.T, directions, 1)
        tangents[:, :k, :k] = logs  # what was observed stays as it is
        return np.asarray(factor @ expm(tangents) @ adjoint(factor))


def _logs(matrices: Array, inverse: Array) -> Array:
    """Return ``log(G X G^H)`` of matrices (N, n, n), given the inverse factor G (n, n)."""
    return spectral_map(log_spectrum, congruence(matrices, adjoint(inverse)))


def _missing(matrices: Array) -> Array:
    """Return which channels (N, n) are missing in matrices (N, n, n); raise PointError where NaN is anything else."""
    require_finite(np.where(np.isnan(matrices), 0.0, matrices))
    gaps = np.isnan(matrices)
    lacks = np.einsum("nii->ni", gaps)
    odd = gaps != (lacks[:, :, None] | lacks[:, None, :])
    bad = odd.any(axis=(1, 2)) | lacks.all(axis=1)
    if not bad.any():
        return np.asarray(lacks)
    index = int(bad.argmax())
    if lacks[index].all():
        what = "so are all others: leave out samples without any observed channel"
    else:
        what = "its NaN are no whole rows with the same columns. If channel i is missing, set row i and column i to "
        what += "NaN, its variance included"
    i, j = (int(place) for place in np.argwhere(gaps[index])[0])
    entry = matrices[index, i, j]
    raise PointError(index, f"contains NaN or infinity: its entry [{i}, {j}] is {entry}, and {what}")


def variation_of(points: Array, weights: Array) -> MissingChannels | None:
    """Return what a fit remembers for missing channels; None if the points are no positive definite matrices.

    The training samples are points (N, ...) with positive weights (N,), and their arithmetic mean is the reference.
    """
    filler = filler_of(points, weights)
    if filler is None or len(filler.reference) < 2:
        return None
    try:
        return filler.learned(check_positive_definite(points), weights)
    except ValueError:
        return None


def filler_of(points: Array, weights: Array | None = None) -> MissingChannels | None:
    """Return what the weighted mean of points (K, ...) alone says of missing channels; None if it is not definite."""
    if points.ndim != 3 or points.shape[1] != points.shape[2]:
        return None
    try:
        reference = check_positive_definite(np.average(points, axis=0, weights=weights)[None])[0]
    except ValueError:
        return None
    return MissingChannels(reference, np.zeros(n_coordinates(len(reference), np.iscomplexobj(reference))))


def chosen_rows(count: int, n: int) -> Array:
    """Return sorted indices of at most 200 of ``count`` samples, fewer of large matrices (n, n), at equal intervals."""
    return evenly_spaced_rows(count, max(1, min(MOST_SAMPLES, LARGEST // (8 * n * n))))
