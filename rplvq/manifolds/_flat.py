"""Manifolds that have coordinates in which geodesics are straight lines.

They differ only in these coordinates, which ``encode`` computes; :class:`FlatMethods` has their other methods.
Codes of any shape (N, ...) are read as vectors, complex ones as pairs of real numbers.
"""

from collections.abc import Callable
from typing import NamedTuple

import attrs
import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_array

from rplvq.arrays import (
    check_hermitian,
    check_positive_definite,
    expm,
    parts_of,
    precision_of,
    reads_parts,
    require_finite,
    squared_roots,
    unmasked,
)
from rplvq.capabilities import Components
from rplvq.manifolds._logarithms import logarithms
from rplvq.manifolds._shrinkage import as_vectors
from rplvq.parts import has_kernel, library_part, number_in
from rplvq.protocols import Array, ArrayLike

FEW_DIFFERENCES = 50_000
"""Up to this many differences between entries of samples and of prototypes, a matrix product is not faster."""


class FlatGeodesics(NamedTuple):
    """The line segments from K prototypes to B samples."""

    sqdist: Array  # (B, K)
    prototypes: Array  # (K, ...)
    samples: Array  # (B, ...)


def flat_sqdist(prototypes: Array, samples: Array) -> Array:
    """Return the squared Euclidean distances of samples (B, ...) to prototypes (K, ...), shape (B, K).

    They are computed from differences, so that a sample at a prototype has distance 0, and the result for one sample
    does not depend on the others.
    """
    return np.asarray(cdist(*_both_as_vectors(samples, prototypes), "sqeuclidean"))


def _both_as_vectors(samples: Array, prototypes: Array) -> tuple[Array, Array]:
    """Return samples (B, ...) and prototypes (K, ...) as real vectors of one length."""
    if np.iscomplexobj(prototypes) != np.iscomplexobj(samples):
        prototypes = prototypes.astype(complex)
        samples = samples.astype(complex)
    return as_vectors(samples), as_vectors(prototypes)


def flat_nearest(prototypes: Array, samples: Array, groups: Array | None = None) -> Array:  # noqa: ARG001
    """Return ``flat_sqdist(prototypes, samples).argmin(axis=1)`` (B,), by a product if large; ``groups`` are unused."""
    if len(prototypes) * samples.size <= FEW_DIFFERENCES:
        return np.asarray(flat_sqdist(prototypes, samples).argmin(axis=1))
    # |x - w|^2 = |x|^2 - 2 x.w + |w|^2 loses digits by cancellation. If the second-nearest prototype may be as near
    # within rounding, the distances of that sample are recomputed as |x - w|^2.
    ends, starts = _both_as_vectors(samples, prototypes)
    own = np.vecdot(starts, starts)
    partial = (-2.0 * starts) @ ends.T  # (K, B), so that minima over K run over whole rows
    partial += own[:, None]
    slack = 16 * ends.shape[1] * np.finfo(float).eps * (np.vecdot(ends, ends) + own.max())
    near = ~(partial > partial.min(axis=0) + slack)  # at least one of each sample, and all of them if they are NaN
    winner = (np.arange(len(own)) @ near.astype(float)).astype(np.intp)  # the index of the only one that is near
    if np.count_nonzero(near) > len(ends):
        tied = np.count_nonzero(near, axis=0) > 1
        winner[tied] = flat_sqdist(prototypes, samples[tied]).argmin(axis=1)
    return np.asarray(winner)


@has_kernel("flat", "projected_euclidean")
def flat_connect(prototypes: Array, samples: Array) -> FlatGeodesics:
    """Connect samples (B, ...) with prototypes (K, ...) by straight lines."""
    prototypes = np.asarray(prototypes)
    return FlatGeodesics(flat_sqdist(prototypes, samples), prototypes, samples)


@has_kernel("flat")
def flat_move(geodesics: FlatGeodesics, weights: Array) -> Array:
    """Return the moved prototypes ``w_k + sum_b weights[b, k] (x_b - w_k)``, shape (K, ...)."""
    prototypes = geodesics.prototypes
    samples = geodesics.samples
    if len(samples) == 1:  # in a step on one sample, the products below would take half of the time
        factors = weights.reshape(-1, *[1] * (prototypes.ndim - 1))
        return np.asarray(prototypes + factors * (samples - prototypes))
    pulled = np.tensordot(weights, samples, axes=(0, 0))
    kept = 1.0 - weights.sum(axis=0)
    return np.asarray(kept.reshape(-1, *[1] * (prototypes.ndim - 1)) * prototypes + pulled)


def flat_pull(geodesics: FlatGeodesics, weights: Array) -> Array:
    """Return the weighted differences ``sum_b weights[b, k] (x_b - w_k)``, shape (K, ...), which add over batches."""
    prototypes = geodesics.prototypes
    samples = geodesics.samples
    totals = weights.sum(axis=0).reshape(-1, *[1] * (prototypes.ndim - 1))
    return np.asarray(np.tensordot(weights, samples, axes=(0, 0)) - totals * prototypes)


def flat_exp(prototypes: Array, tangents: Array) -> Array:
    """Return prototypes plus tangents of :func:`flat_pull`, all of shape (K, ...)."""
    return np.asarray(np.asarray(prototypes) + tangents)


def flat_components(prototypes: Array, samples: Array) -> Components:
    """Split the squared distances (B, K) into the squared differences ``|x - w|^2`` by entry, shape (B, K, ...)."""
    return Components(np.abs(samples[:, None] - np.asarray(prototypes)) ** 2)


class FlatMethods:
    """The methods of a manifold in whose coordinates geodesics are straight lines."""

    __slots__ = ()

    sqdist = staticmethod(flat_sqdist)
    nearest = staticmethod(flat_nearest)
    connect = staticmethod(flat_connect)
    move = staticmethod(flat_move)
    pull = staticmethod(flat_pull)
    exp = staticmethod(flat_exp)
    components = staticmethod(flat_components)


@library_part
@attrs.frozen
class LogEuclidean(FlatMethods):
    """Symmetric or Hermitian positive definite matrices under the Log-Euclidean metric.

    ``d^2(X, W) = ||log X - log W||_F^2`` (Arsigny, Fillard, Pennec and Ayache 2007, SIAM J. Matrix Anal.
    Appl. 29(1), doi:10.1137/050637996). Codes are the matrix logarithms, computed once. In these coordinates the metric
    is flat, and all other methods are functions such as :func:`rplvq.manifolds.flat_sqdist`. The distance never exceeds
    the affine-invariant one (Bhatia 2007, Positive Definite Matrices, Theorem 6.1.4).

    Parameters
    ----------
    max_step_length : float, default=10
        Longest step of a prototype: the Frobenius norm of the change of its logarithm.

    Examples
    --------
    >>> from rplvq import LogEuclidean
    >>> manifold = LogEuclidean()
    >>> codes = manifold.encode([np.eye(2), np.e * np.eye(2)])
    >>> manifold.sqdist(codes[:1], codes)
    array([[0.],
           [2.]])
    """

    max_step_length: float = attrs.field(default=10.0, validator=number_in())

    def encode(self, points: ArrayLike) -> Array:
        """Return the logarithms of matrices (N, n, n); raise ValueError at the first that is not positive definite."""
        return logarithms(check_hermitian(points), precision_of(points))

    def decode(self, codes: Array) -> Array:
        """Return the exponentials of codes, shape (K, n, n)."""
        return expm(np.asarray(codes))


def map_diagonal(function: Callable[[Array], Array], lower: Array) -> Array:
    """Apply a real function to the diagonals of lower triangular matrices (N, n, n)."""
    result = lower.copy()
    places = np.arange(lower.shape[-1])
    result[:, places, places] = function(lower[:, places, places].real)
    return result


@library_part
@attrs.frozen
class LogCholesky(FlatMethods):
    """Symmetric or Hermitian positive definite matrices under the log-Cholesky metric.

    With Cholesky factors ``X = L L^H`` and ``W = M M^H``,

    ``d^2(X, W) = sum_{i > j} |L_ij - M_ij|^2 + sum_i (log L_ii - log M_ii)^2``

    (Lin 2019, SIAM J. Matrix Anal. Appl. 40(4), section 3, doi:10.1137/18M1221084). Codes are the Cholesky factors with
    the logarithms of their diagonals, computed once. In these coordinates the metric is flat, and all other methods are
    functions such as :func:`rplvq.manifolds.flat_sqdist`. No eigenvectors are needed, and means do not swell: the
    determinant of a mean is the geometric mean of the determinants.

    Parameters
    ----------
    max_step_length : float, default=10
        Longest step of a prototype: the Frobenius norm of the change of its code.

    Notes
    -----
    The metric depends on the order of the rows and, unlike the affine-invariant and the Log-Euclidean metric, on the
    unit: entries below the diagonal carry the square root of the unit of X, and logarithms of the diagonal carry none.
    Data in volts would be compared by their diagonals alone. Therefore scale the matrices to a mean eigenvalue of about
    1, for example by :class:`rplvq.Recenter`.

    Examples
    --------
    >>> from rplvq import LogCholesky
    >>> manifold = LogCholesky()
    >>> codes = manifold.encode([np.eye(2), [[1.0, 2.0], [2.0, 4.0 + np.e**2]]])
    >>> codes[1]
    array([[0., 0.],
           [2., 1.]])
    >>> manifold.sqdist(codes[:1], codes)
    array([[0.],
           [5.]])
    """

    max_step_length: float = attrs.field(default=10.0, validator=number_in())

    def encode(self, points: ArrayLike) -> Array:
        """Return the codes of matrices (N, n, n); raise ValueError at the first that is not positive definite."""
        return map_diagonal(np.log, np.linalg.cholesky(check_positive_definite(points)))

    def decode(self, codes: Array) -> Array:
        """Return the matrices ``L L^H``, shape (K, n, n), exactly Hermitian."""
        return squared_roots(map_diagonal(np.exp, np.asarray(codes)))


@library_part
@attrs.frozen
class EuclideanVectors(FlatMethods):
    """Vectors of R^d with the Euclidean metric, on which robust soft LVQ was defined (Seo and Obermayer 2003).

    ``d^2(x, w) = |x - w|^2`` and ``Exp_w(v) = w + v``; the methods are functions such as
    :func:`rplvq.manifolds.flat_sqdist`.

    Examples
    --------
    >>> from rplvq import EuclideanVectors
    >>> manifold = EuclideanVectors()
    >>> manifold.sqdist(np.zeros((1, 2)), manifold.encode([[3.0, 4.0]]))
    array([[25.]])
    """

    def encode(self, points: ArrayLike) -> Array:
        """Return vectors (N, d) as float64; raise ValueError at anything that is not finite and real."""
        if isinstance(unmasked(points), (list, tuple)):
            points = np.asarray(points)
        vectors = check_array(points, dtype=np.float64, ensure_all_finite=False, input_name="X")
        require_finite(vectors)
        return np.asarray(vectors)

    def decode(self, codes: Array) -> Array:
        """Return the vectors themselves, shape (K, d)."""
        return np.array(codes)

    @reads_parts
    def unit(self, codes: Array, weights: Array | None = None) -> float:
        """Return the mean variance of a coordinate of the weighted data (N, d)."""
        center = _average(lambda part: part, codes, weights)
        return float(_average(lambda part: (part - center) ** 2, codes, weights).mean())


def _average(function: Callable[[Array], Array], codes: Array, weights: Array | None) -> Array:
    """Return the weighted average (d,) of ``function(codes)`` over vectors (N, d), part by part."""
    parts = parts_of(codes)
    if len(parts) == 1:
        return np.asarray(np.average(function(codes[:]), axis=0, weights=weights))
    shares = np.ones(len(codes)) if weights is None else weights
    total = sum(shares[rows] @ function(codes[rows]) for rows in parts)
    return np.asarray(total / shares.sum())
