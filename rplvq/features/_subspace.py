"""CommonSubspace: the directions in which all samples have power, for matrices that have lost rank."""

import warnings
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rplvq.arrays import (
    MatrixTransformer,
    adjoint,
    by_block,
    check_definite,
    check_hermitian,
    check_weights,
    congruence,
    first_bad,
    matrix_size,
    mixed_units,
    numbered_names,
    parts_of,
    precision_of,
    principal_basis,
    rank_tolerance,
    single_blas_thread,
    stacked,
)
from rplvq.exceptions import PointError
from rplvq.io import probe_like
from rplvq.parts import library_estimator, require_count, require_number
from rplvq.protocols import Array, ArrayLike

LACKING = 1e-4  # a direction is in no null space if the squared cosines of their angles add up to less
KEPT = 0.01  # share of its smallest positive eigenvalue that every sample keeps in a common subspace


def _answers(model: BaseEstimator) -> list[Array]:
    """Return a matrix as it is projected to what is kept, and to what is dropped."""
    probe = probe_like(np.eye(model.n_features_in_)[None])
    return [congruence(probe, model.components_), congruence(probe, model.dropped_), model.missing_]


@library_estimator(answers=_answers)
class CommonSubspace(MatrixTransformer):
    """Transformer ``X -> V^H X V`` whose orthonormal V (n, r) spans directions in which all samples have power.

    An average reference, removed components of an ICA, Maxwell filters, interpolated and duplicated channels leave
    covariance matrices without power in some directions, which have no logarithm. This transformer drops them. If every
    sample has lost the same ones, affine-invariant distances do not depend on the choice of the basis V (Sabbagh et al.
    2020, doi:10.1016/j.neuroimage.2020.116893).

    Parameters
    ----------
    n_components : int, dict or None, default=None
        Size r of the projected matrices. None keeps as many directions as all training samples share. A dict is the
        rank by type of channel, as ``mne.compute_rank`` returns it, and r is the sum of its values. With fewer
        directions than the samples share, those of the largest mean power are kept.
    tol : float, default=1e-12
        A direction is without power in a sample if its eigenvalue is at most this share of the largest one. The default
        is MNE's, 1e-6 of the amplitude. Matrices in single or half precision have a tolerance of at least 1e-6.

    Attributes
    ----------
    components_ : ndarray of shape (n, r)
        V. If nothing is dropped, it is the identity, and matrices pass unchanged. Otherwise the mean of the samples is
        diagonal in this basis, and its entries descend. Filters and patterns w become those of the channels by
        ``V @ w``.
    dropped_, missing_ : ndarray of shape (n, n - r) and (n - r,)
        An orthonormal basis of what is dropped, and the share of training samples without power in each; descending.
    n_components_, n_features_in_ : int
        r and n.

    Notes
    -----
    If samples have lost different directions, as after one ICA per subject, V leaves out those that the most samples
    lack, and as many of them that every sample keeps at least a hundredth of its smallest positive eigenvalue.
    ``print(step)`` says what was dropped.

    New samples may have power outside the subspace, which is dropped: without an average reference they are projected
    to what they would be with one. Those that lack a direction of the subspace are refused, because they are singular.
    A UserWarning says that channels in different units should be brought to one scale before, because the tolerance
    compares their power, or that the samples share at most half of the directions that each of them has.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from rplvq import CommonSubspace, RiemannianLVQ, TrialCovariances
    >>> rng = np.random.default_rng(0)
    >>> trials, y = rng.normal(size=(40, 4, 100)), np.repeat(["rest", "move"], 20)
    >>> trials[20:, 0] *= 2
    >>> trials -= trials.mean(axis=1, keepdims=True)  # an average reference
    >>> model = make_pipeline(TrialCovariances(), CommonSubspace(), RiemannianLVQ(max_epochs=0)).fit(trials, y)
    >>> print(model[1])
    CommonSubspace keeps 3 of 4 directions; 100 % of the samples have no power in the 1 other(s)
    >>> model[1].inverse_transform(model[-1].prototypes_).shape  # in the channels again
    (2, 4, 4)
    """

    def __init__(self, n_components: int | Mapping[str, int] | None = None, *, tol: float = 1e-12) -> None:
        self.n_components = n_components
        self.tol = tol

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn V from positive semidefinite X (N, n, n), which share ``n_components`` directions, and return self.

        ``sample_weight`` (N,) weights the samples in their mean power; those of weight 0 are ignored, as ``y`` is. If
        ValueError is raised, nothing is changed.
        """
        with single_blas_thread(matrix_size(X)):
            matrices = check_hermitian(stacked(X))
            weights = check_weights(sample_weight, len(matrices))
            weights = np.ones(len(matrices)) if weights is None else weights
            require_number("tol", self.tol, 0, 1, closed=True)
            tol = max(float(self.tol), rank_tolerance(matrices.shape[1], precision_of(X)))
            spectra = spectra_of(matrices, weights, tol)
            components, dropped, missing = split_space(matrices[weights > 0], spectra, self._wanted(spectra.ranks))
            n_shared = components.shape[1]
            if len(missing) and (advice := mixed_units(np.diagonal(spectra.power).real)):
                warnings.warn(f"directions were dropped by their power. {advice}", UserWarning, stacklevel=2)
            if 2 * n_shared <= (rank := spectra.ranks.min()) and self.n_components is None:
                advice = "if they come from trials of few samples, a shrinkage such as 'oas' keeps all directions"
                text = f"the samples have rank {rank} or more, and share {n_shared} directions: {advice}"
                warnings.warn(text, UserWarning, stacklevel=2)
            validate_data(self, stacked(X), skip_check_array=True)
            self.components_ = components
            self.dropped_ = dropped
            self.missing_ = missing
            self.n_components_ = n_shared
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return ``V^H X V`` (N, r, r) of matrices X (N, n, n), exactly Hermitian and in the units of X.

        Raise ValueError if a matrix is not Hermitian, of another size, or has no power in a direction of V.
        """
        check_is_fitted(self)
        with single_blas_thread(matrix_size(X)):
            matrices = check_hermitian(stacked(X))
            validate_data(self, stacked(X), skip_check_array=True, reset=False)
            is_whole = self.n_components_ == self.n_features_in_
            projected = matrices if is_whole else by_block(lambda part: congruence(part, self.components_), matrices)
            try:
                check_definite(projected, precision_of(X))
            except PointError as error:
                smallest = np.linalg.eigvalsh(projected[error.index])[0]
                raise PointError(
                    error.index,
                    f"is not positive definite in the common subspace of {self.n_components_} directions: its smallest "
                    f"eigenvalue there is {smallest:.3g}. It has lost a direction that the training samples have. Fit "
                    "CommonSubspace with samples of its kind (its subject or montage), or lower n_components",
                ) from None
            return projected

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Return matrices X (K, r, r), such as prototypes, in the n channels: ``V X V^H`` (K, n, n), of rank r.

        Raise ValueError if they have another size or are not Hermitian.
        """
        check_is_fitted(self)
        matrices = check_hermitian(stacked(X))
        if matrices.shape[1] != self.n_components_:
            raise ValueError(f"X must hold matrices of size {self.n_components_}, got shape {matrices.shape}")
        return congruence(matrices, adjoint(self.components_))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the channels if nothing is dropped, else ``commonsubspace0`` and so on: (r,) objects."""
        names = super().get_feature_names_out(input_features)
        is_whole = self.n_components_ == self.n_features_in_
        return np.asarray(names) if is_whole else numbered_names(self, self.n_components_)

    def __str__(self) -> str:
        """Say what was dropped, or return the parameters before fit."""
        if not hasattr(self, "components_"):
            return repr(self)
        kept = f"{type(self).__name__} keeps {self.n_components_} of {self.n_features_in_} directions"
        if not len(self.missing_):
            return kept
        low, high = (f"{100 * share:.3g} %" for share in (self.missing_[-1], self.missing_[0]))
        shares = low if low == high else f"{low} to {high}"
        return f"{kept}; {shares} of the samples have no power in the {len(self.missing_)} other(s)"

    def _wanted(self, ranks: Array) -> int | None:
        """Return n_components as a number, or None; raise ValueError if a sample has fewer directions."""
        if self.n_components is None:
            return None
        wanted = sum(self.n_components.values()) if isinstance(self.n_components, Mapping) else self.n_components
        require_count("n_components", wanted, 1)
        if (ranks < wanted).any():
            index = int(ranks.argmin())
            raise ValueError(f"n_components={wanted}, but X[{index}] has rank {ranks[index]}: choose at most that")
        return wanted


class Spectra(NamedTuple):
    """What the eigenvalues and eigenvectors of matrices (N, n, n) say about the directions in which they have power."""

    ranks: Array  # (N,), number of directions with power; n for matrices of weight 0, which are ignored
    smallest: Array  # (M,), smallest eigenvalue above the tolerance of each matrix of positive weight
    lacking: Array  # (n, n), mean projector on the null spaces
    power: Array  # (n, n), weighted mean of the matrices, each divided by its trace


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
        bad = (values[:, -1] <= 0) | (values[:, 0] < -tol * values[:, -1])
        if (index := first_bad(bad)) is not None:
            what = f"its eigenvalues are from {values[index, 0]:.3g} to {values[index, -1]:.3g}"
            remedy = "Covariance matrices have no negative ones: check the sign, and leave empty matrices out"
            raise PointError(rows.start + index, f"is not positive semidefinite, or zero: {what}. {remedy}")
        is_null = (values <= tol * values[:, -1:]) & (weights[rows] > 0)[:, None]
        null = vectors * is_null[:, None, :]
        lacking += np.sum(null @ adjoint(null), axis=0)
        power += np.tensordot(weights[rows] / values.sum(axis=1), part, 1)  # loud samples count as others do
        ranks[rows] = n - is_null.sum(axis=1)
        smallest[rows] = values[np.arange(len(part)), n - ranks[rows]]
    counted = weights > 0
    return Spectra(ranks, smallest[counted], lacking / counted.sum(), power / weights.sum())


def split_space(matrices: Array, spectra: Spectra, wanted: int | None) -> tuple[Array, Array, Array]:
    """Return bases of ``wanted``, or all, shared directions and of the rest, and the shares of matrices lacking it."""
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
