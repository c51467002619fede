"""Positive definite matrices as tangent vectors at their Riemannian mean, with the Euclidean distance."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from rplvq.arrays import (
    LazyRows,
    by_block,
    check_hermitian,
    check_positive_definite,
    encoded,
    from_spectrum,
    parts_of,
    squared_roots,
)
from rplvq.manifolds._affine_invariant import AffineInvariant, imprecise, log_spectrum, sharpen, whiten
from rplvq.manifolds._flat import FlatMethods
from rplvq.manifolds._means import riemannian_mean
from rplvq.manifolds._shrinkage import (
    LARGEST,
    SAME,
    LowRankCovariance,
    coordinates,
    from_coordinates,
    is_low_rank,
    n_coordinates,
    within_covariance,
)
from rplvq.parts import library_part, number_in, one_of
from rplvq.protocols import Array, ArrayLike


@library_part
class Frame(NamedTuple):
    """The matrices from which the coordinates at a reference M are computed."""

    root: Array  # (n, n), M^1/2
    inverse: Array  # (n, n), M^-1/2
    color: Array | LowRankCovariance | None  # (m, m), C with C C^T the covariance; if it is an array, lower triangular
    whitener: Array | LowRankCovariance | None  # (m, m), C^-1


def _as_matrix(name: str, value: object) -> Array | None:
    """Return a positive definite matrix that a user passes, as a read-only array, or None."""
    if value is None:
        return None
    matrix = np.asarray(value)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be one square matrix or None, got shape {matrix.shape}")
    try:
        check = check_positive_definite if name == "reference" else check_hermitian
        checked = np.array(check(matrix[None])[0])
    except ValueError as error:
        raise ValueError(f"{name} {getattr(error, 'reason', error)}") from error
    checked.setflags(write=False)  # what follows from it is computed only once
    return checked


def _as_reference(value: object) -> Array | None:
    return _as_matrix("reference", value)


def _as_covariance(value: object) -> Array | LowRankCovariance | None:
    return value if isinstance(value, LowRankCovariance) else _as_matrix("covariance", value)


def _as_shrinkage(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise ValueError(f"shrinkage must be a number above 0 and at most 1, or None, got {value!r}")
    return float(value)


def _shown(value: Array | LowRankCovariance | None) -> str:
    """Return the size and trace of a matrix as text."""
    if value is None:
        return "None"
    trace = value.trace if isinstance(value, LowRankCovariance) else np.trace(value).real
    return f"<{len(value)} x {len(value)}, trace {trace:.8g}>"


@library_part
@attrs.frozen
class TangentSpace(FlatMethods):
    """Positive definite matrices as tangent vectors at a reference M, with the Euclidean distance of these vectors.

    ``d^2(X, W) = ||log(M^-1/2 X M^-1/2) - log(M^-1/2 W M^-1/2)||_F^2``. The codes ``log(M^-1/2 X M^-1/2)`` are the
    tangent vectors of the affine-invariant metric at M (Barachant, Bonnet, Congedo and Jutten 2012,
    doi:10.1109/TBME.2011.2172210). By default ``fit`` takes the affine-invariant mean of the training samples as M.
    Distances then do not change under a congruence ``X -> A X A^H``. The Log-Euclidean metric is the case M = I.

    Parameters
    ----------
    reference : array-like of shape (n, n), optional
        The reference M. By default each new fit takes the affine-invariant mean of its training samples, and
        ``partial_fit`` that of its first call. A matrix that is given stays as it is.
    whiten : bool, default=False
        Whether codes are whitened by the covariance S of the tangent vectors within classes, which is shrunk towards a
        multiple of the identity. The squared distance is then that of Mahalanobis, ``v^T S^-1 v`` for a difference v of
        tangent vectors. With class means as prototypes (``max_epochs=0``) this is a linear discriminant analysis with
        equal priors. S is a matrix (m, m), with m = n (n + 1) / 2 for real matrices and n^2 for complex ones. If m is
        above 2080 and there are fewer than m / 2 samples, only the directions in which these vary are stored.
    covariance : array-like of shape (m, m) or LowRankCovariance, optional
        The covariance S. If ``whiten`` is True and S is not given, ``fit`` learns it. Pass S only together with the
        reference at which it was learned.
    shrinkage : float, optional
        The shrinkage s of S, above 0 and at most 1: with the covariance C of the tangent vectors within classes,
        ``S = (1 - s) C + s tr(C) / m I``. By default ``fit`` takes the one of 15 values with the smallest leave-one-out
        log-loss. Without classes it is that of Ledoit and Wolf (2004, doi:10.1016/S0047-259X(03)00096-4).
    max_step_length : float, default=10
        Longest step of a prototype, in the distance of this metric. With ``whiten=True``, the distance of a sample to
        its class mean is about sqrt(m).

    Notes
    -----
    Each fit learns the reference without the held-out samples of early stopping. The trials of ``sigma2="auto"`` use
    the reference and the shrinkage that were computed from all training samples. The reference needs no labels. The
    shrinkage does, but it is a single number. Each trial learns the covariance again without its held-out samples.

    For the probabilities of discriminant analysis, set ``whiten=True``, ``max_epochs=0`` and ``sigma2=1``. The rules
    for sigma2 only see training samples, which are nearer to their class means than new samples are.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ, TangentSpace
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> model = RiemannianLVQ(TangentSpace(whiten=True), max_epochs=0).fit(X, y)
    >>> model.trainer_.manifold.reference.shape
    (10, 10)
    >>> model.score(X, y)
    0.9875

    Without an estimator, `referenced` learns the reference and returns the codes of the points, too:

    >>> manifold, codes = TangentSpace().referenced([np.eye(2), np.diag([np.e**2, 1.0])])
    >>> manifold.reference.round(3)
    array([[2.718, 0.   ],
           [0.   , 1.   ]])
    >>> manifold.sqdist(codes[:1], codes).round(6)
    array([[0.],
           [4.]])
    """

    reference: Array | None = attrs.field(default=None, converter=_as_reference, repr=_shown, eq=SAME, hash=False)
    whiten: bool = attrs.field(default=False, validator=one_of(True, False))
    covariance: Array | LowRankCovariance | None = attrs.field(
        default=None, converter=_as_covariance, repr=_shown, eq=SAME, hash=False
    )
    shrinkage: float | None = attrs.field(default=None, converter=_as_shrinkage)
    max_step_length: float = attrs.field(default=10.0, validator=number_in())
    _frame: Frame | None = attrs.field(init=False, repr=False, eq=False)

    @_frame.default
    def _computed(self) -> Frame | None:
        if self.shrinkage is not None and not self.whiten:
            raise ValueError("shrinkage is given with whiten=False: it is that of the covariance, so set whiten=True")
        if self.covariance is not None:
            self._check_covariance(self.covariance)
        if self.reference is None:
            return None
        # Singular values of the Cholesky factor are more precise than the eigenvalues of M, whose range is the square.
        basis, singular, _ = np.linalg.svd(np.linalg.cholesky(self.reference))
        root = from_spectrum(singular, basis)
        inverse = from_spectrum(1.0 / singular, basis)
        if self.covariance is None:
            return Frame(root, inverse, None, None)
        if isinstance(self.covariance, LowRankCovariance):
            return Frame(root, inverse, self.covariance.power(0.5), self.covariance.power(-0.5))
        try:
            color = np.linalg.cholesky(self.covariance)
        except np.linalg.LinAlgError as error:
            raise ValueError("covariance is not positive definite") from error
        return Frame(root, inverse, color, solve_triangular(color, np.eye(len(color)), lower=True))

    def _check_covariance(self, covariance: Array | LowRankCovariance) -> None:
        if not self.whiten or self.reference is None:
            lacking = "reference=None" if self.whiten else "whiten=False"
            raise ValueError(f"covariance is given with {lacking}: it needs whiten=True and the reference of its fit")
        n = len(self.reference)
        real = n_coordinates(n, False)
        whole = n_coordinates(n, True)
        entries = covariance.basis if isinstance(covariance, LowRankCovariance) else covariance
        if len(covariance) not in (real, whole) or np.iscomplexobj(entries):
            raise ValueError(
                f"covariance must be real and have {real} rows (real matrices) or {whole} (complex ones) "
                f"for a reference of size {n}, got {len(covariance)} of type {entries.dtype}"
            )
        if entries is not covariance and not np.allclose(entries @ entries.T, np.eye(len(entries)), atol=1e-8):
            raise ValueError("covariance has a basis whose rows are not orthonormal")

    @property
    def ambient(self) -> AffineInvariant:
        """The affine-invariant metric. The reference is the mean of the training samples under it."""
        return AffineInvariant()

    def referenced(
        self, points: ArrayLike, groups: Array | None = None, weights: Array | None = None
    ) -> tuple[TangentSpace, Array]:
        """Return this metric with its reference, and the codes (N, n, n) of the points under it.

        The reference is the weighted affine-invariant mean of the points, and the covariance is that within ``groups``
        (N,); what this metric already has stays as it is. ValueError is raised if a point is not positive definite, if
        the covariance would take more than 256 MiB, or if it can't be learned because all points of each group are
        equal.
        """
        matrices: Any = points if isinstance(points, LazyRows) else encoded(self.ambient, points)
        m = self._n_coordinates(matrices)
        reference = self.reference
        if reference is None:
            # Under a congruence of the points, the arithmetic mean and all steps from it change as the Riemannian mean.
            shares = np.full(len(matrices), 1.0) if weights is None else weights
            total: Any = sum(np.tensordot(shares[rows], matrices[rows], 1) for rows in parts_of(matrices))
            start = total / shares.sum()
            reference = riemannian_mean(self.ambient, matrices, weights, start=start).code
        plain = attrs.evolve(self, reference=reference, whiten=False, covariance=None, shrinkage=None)
        codes = by_block(plain._tangents, matrices)
        if not self.whiten:
            return plain, codes
        covariance = self.covariance
        shrinkage = self.shrinkage
        if covariance is None:
            covariance, shrinkage, _ = within_covariance(codes, m, groups, weights, shrinkage)
        whitened = attrs.evolve(self, reference=reference, covariance=covariance, shrinkage=shrinkage)
        return whitened, whitened._whiten_in_place(codes)

    def relearned(
        self, kept: Array, held: Array, groups: Array, weights: Array | None = None
    ) -> tuple[TangentSpace, Array, Array]:
        """Return this metric with a covariance learned from codes ``kept`` (N, n, n) alone, and all codes in it."""
        if self._frame is None or self._frame.color is None:
            return self, kept, held
        inner = by_block(self._colored, kept)  # back to tangent vectors, a copy
        m = len(self._frame.color)
        covariance, shrinkage, _ = within_covariance(inner, m, groups, weights, self.shrinkage)
        learned = attrs.evolve(self, covariance=covariance, shrinkage=shrinkage)
        outer = by_block(lambda part: learned._whitened(self._colored(part)), held)
        return learned, learned._whiten_in_place(inner), outer

    def encode(self, points: ArrayLike) -> Array:
        """Return the codes of matrices (N, n, n); raise ValueError if one is not definite, or without a reference."""
        self._known()
        return self._whitened(self._tangents(check_positive_definite(points)))

    def decode(self, codes: Array) -> Array:
        """Return the matrices ``M^1/2 exp(T) M^1/2`` of codes, shape (K, n, n), where T are the tangent vectors."""
        eigenvalues, vectors = np.linalg.eigh(self._colored(np.asarray(codes)))
        return squared_roots(self._known().root @ (vectors * np.exp(0.5 * eigenvalues)[:, None, :]))

    def _known(self) -> Frame:
        if self._frame is None or (self.whiten and self.covariance is None):
            lacking = "reference" if self._frame is None else "covariance"
            raise ValueError(
                f"{self!r} has no {lacking} yet: fit a RiemannianLVQ with it, or take the metric that "
                "TangentSpace.referenced(points) returns"
            )
        return self._frame

    def _n_coordinates(self, matrices: Array) -> int:
        """Return the number m of real coordinates of matrices (N, n, n); refuse a size that can't be whitened."""
        n = int(matrices.shape[-1])
        is_complex = np.iscomplexobj(matrices) or (self.reference is not None and np.iscomplexobj(self.reference))
        m = n_coordinates(n, is_complex)
        n_rows = len(matrices) if is_low_rank(len(matrices), m) else m
        if self.whiten and self.covariance is None and 8 * m * n_rows > LARGEST:
            size = f"{8 * m * n_rows / 2**30:.2g} GiB"
            raise ValueError(
                f"X holds {len(matrices)} matrices of size {n}, whose covariance on {m} coordinates takes {size}: "
                "set whiten=False, or project the matrices first (SPDProjection)"
            )
        return m

    def _tangents(self, matrices: Array) -> Array:
        """Return ``log(M^-1/2 X M^-1/2)`` of matrices (N, n, n)."""
        factors = self._frame.inverse[None]  # type: ignore[union-attr]
        if matrices.shape[-1] != factors.shape[-1]:
            raise ValueError(
                f"X holds matrices of size {matrices.shape[-1]}, but the reference has size {factors.shape[-1]}"
            )
        eigenvalues, vectors = np.linalg.eigh(whiten(factors, matrices))
        logs = log_spectrum(eigenvalues)
        sharpen(imprecise(logs, factors, matrices), logs, factors, matrices, vectors)
        return from_spectrum(logs[:, 0], vectors[:, 0])

    def _whitened(self, tangents: Array) -> Array:
        """Return the codes of tangent vectors (N, n, n); without a covariance, the tangent vectors themselves."""
        return tangents if self._frame is None else _mapped(self._frame.whitener, tangents)

    def _whiten_in_place(self, tangents: Array) -> Array:
        """Replace tangent vectors (N, n, n) by their codes, part by part."""
        n = tangents.shape[-1]
        if len(self.covariance) > n_coordinates(n, False):  # type: ignore[arg-type]
            tangents = tangents.astype(complex, copy=False)
        for rows in parts_of(tangents):
            tangents[rows] = self._whitened(tangents[rows])
        return tangents

    def _colored(self, codes: Array) -> Array:
        """Return the tangent vectors of codes (N, n, n)."""
        return codes if self._frame is None else _mapped(self._frame.color, codes)


def _mapped(matrix: Array | LowRankCovariance | None, codes: Array) -> Array:
    """Apply a matrix (m, m) to the coordinates of Hermitian matrices (N, n, n)."""
    if matrix is None:
        return codes
    # One product per sample, so that its code does not depend on the samples beside it, not even by rounding.
    vectors = (matrix @ coordinates(codes, len(matrix))[..., None])[..., 0]
    return from_coordinates(vectors, codes.shape[-1])
