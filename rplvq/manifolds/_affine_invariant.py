"""Positive definite matrices under the affine-invariant metric: the reference geometry."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.arrays import (
    adjoint,
    check_definite,
    check_hermitian,
    lower_inverse,
    precision_of,
    row_slices,
    squared_roots,
)
from rplvq.manifolds._lower_bound import common_frame, nearest_by_bound
from rplvq.parts import auto_or_bool, library_part
from rplvq.protocols import Array, Prototypes

__all__ = ["AffineInvariant"]

EPS = np.array(np.finfo(float).eps)
ILL_CONDITIONED = 1e8
"""Rounding of a whitened spectrum, in units of eps, beyond which sqdist takes singular values of roots instead."""
FEW = 3
"""Prototypes from which on bounds pay: before, their cost is that of the distances they save."""


@library_part
class InverseFactors:
    """Prototypes W_k carried as G_k with G_k W_k G_k^H = I: all that training needs of them.

    Parameters
    ----------
    factors : ndarray of shape (K, n, n)
        Any inverse factors; they need not be triangular. Not to be written to.
    """

    __slots__ = ("factors",)

    def __init__(self, factors: Array) -> None:
        self.factors = factors

    def __len__(self) -> int:
        return len(self.factors)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the matrices W = G^-1 G^-H, shape (K, n, n)."""
        return np.asarray(squared_roots(np.linalg.inv(self.factors)), dtype=dtype)


class AffineInvariantGeodesics(NamedTuple):
    """Spectra of the samples whitened by each prototype.

    ``G_k X_b G_k^H = U diag(exp(log_eigenvalues)) U^H``.
    """

    sqdist: Array  # (B, K)
    log_eigenvalues: Array  # (B, K, n)
    eigenvectors: Array  # (B, K, n, n)
    factors: Array  # (K, n, n)


def inverse_factors(prototypes: Prototypes) -> Array:
    """Return G (K, n, n) with G W G^H = I: carried along, or the inverse of the Cholesky factor."""
    if isinstance(prototypes, InverseFactors):
        return prototypes.factors
    return lower_inverse(np.linalg.cholesky(prototypes))


def whiten(factors: Array, samples: Array) -> Array:
    """Return G_k X_b G_k^H for factors (K, n, n) and samples (B, n, n), shape (B, K, n, n)."""
    n_prototypes, n = factors.shape[:2]
    left: Array = factors.reshape(n_prototypes * n, n) @ samples
    whitened: Array = left.reshape(len(samples), n_prototypes, n, n) @ adjoint(factors)
    return whitened


def log_spectrum(eigenvalues: Array) -> Array:
    """Logarithms of whitened eigenvalues (..., n), ascending.

    Eigenvalues below eps times the largest are rounding: they are read as that, so that a pair further
    apart than float64 resolves has a large distance instead of NaN.
    """
    logs = np.maximum(eigenvalues, eigenvalues[..., -1:] * EPS)
    return np.asarray(np.log(logs, out=logs))


def follow(factors: Array, halves: Array, basis: Array) -> InverseFactors:
    """Return ``diag(exp(halves)) U^H G`` for factors G and bases U (K, n, n) and minus half log-eigenvalues (K, n)."""
    moved = adjoint(basis) @ factors
    moved *= np.exp(halves)[..., None]
    return InverseFactors(moved)


def sharpen(logs: Array, factors: Array, samples: Array) -> None:
    """Compute anew, in place, the logarithmic spectra (B, K, n) that rounding of ``G X G^H`` has spoilt.

    Its eigenvalues are known to ``eps |G|^2 |X|`` only. With X = L L^H they are the squares of the singular values of
    ``G L``, whose rounding counts by the square roots of the condition numbers. Covariances of real
    data hardly ever need it.

    Parameters
    ----------
    logs : ndarray of shape (B, K, n)
        From :func:`log_spectrum`; ill-conditioned pairs are overwritten.
    factors, samples : ndarray of shape (K, n, n) and (B, n, n)
        G and X.
    """
    size = np.linalg.norm(factors, axis=(1, 2)) ** 2 * np.linalg.norm(samples, axis=(1, 2))[:, None]
    rows, columns = np.nonzero(np.log(size / ILL_CONDITIONED) > logs[..., 0])
    if not len(rows):
        return
    try:
        roots = np.linalg.cholesky(samples[rows])
    except np.linalg.LinAlgError:  # codes that encode would refuse
        return
    singular = np.linalg.svd(factors[columns] @ roots, compute_uv=False)[:, ::-1]
    logs[rows, columns] = 2 * log_spectrum(singular)


def pair_spectra(factors: Array, samples: Array) -> Array:
    """Log-eigenvalues (M, n) of M pairs of an inverse factor and a sample, both of shape (M, n, n)."""
    return log_spectrum(np.linalg.eigvalsh(factors @ samples @ adjoint(factors)))


@library_part
@attrs.frozen
class AffineInvariant:
    """Symmetric or Hermitian positive definite matrices under the affine-invariant metric.

    ``d^2(X, W) = sum_i log^2 lam_i``, where lam are the eigenvalues of ``W^-1 X``. With ``G W G^H = I`` and
    ``G X G^H = U diag(lam) U^H``, one decomposition gives the distance, the logarithm
    ``Log_W(X) = G^-1 U diag(log lam) U^H G^-H`` and the step: after ``Exp_W(s Log_W X)`` the inverse factor is
    ``diag(lam^(-s/2)) U^H G`` (Tang et al., "Probabilistic Learning Vector Quantization on Manifold of
    Symmetric Positive Definite Matrices"; Pennec, Fillard and Ayache 2006, doi:10.1007/s11263-005-3222-z).

    Parameters
    ----------
    max_step_length : float, default=10
        Longest step of a prototype. A step of length r changes eigenvalues by up to ``exp(r)``; beyond
        about 30 the result leaves the cone by rounding.
    compiled : {"auto", True, False}, default="auto"
        Whether training runs compiled steps under this metric (extra ``fast``, numba). "auto" does so if numba is
        installed and the kernel knows the cost; True raises an error otherwise; False never does. The results agree up
        to rounding.

    Examples
    --------
    >>> from rplvq import AffineInvariant
    >>> manifold = AffineInvariant()
    >>> codes = manifold.encode([np.eye(2), np.diag([np.e, 1.0])])
    >>> geodesics = manifold.connect(codes[:1], codes)
    >>> geodesics.sqdist
    array([[0.],
           [1.]])
    >>> manifold.decode(manifold.move(geodesics, np.array([[0.0], [1.0]])))[0].round(6)
    array([[2.718282, 0.      ],
           [0.      , 1.      ]])
    """

    max_step_length: float = attrs.field(default=10.0, validator=attrs.validators.gt(0))
    compiled: bool | str = attrs.field(default="auto", validator=auto_or_bool)

    def encode(self, points: Any) -> Array:
        """Check matrices (N, n, n); raise ValueError at the first that is not positive definite."""
        matrices = check_hermitian(points)
        check_definite(matrices, precision_of(points))
        return matrices

    def decode(self, codes: Prototypes) -> Array:
        """Return the matrices, shape (K, n, n)."""
        return np.array(codes)

    def sqdist(self, prototypes: Prototypes, samples: Array) -> Array:
        """Squared distances (B, K) from eigenvalues alone, in chunks of bounded memory.

        Ill-conditioned pairs are computed again from Cholesky factors: see :func:`sharpen`. The distance of
        matrices of condition up to 1e8 is then the same to 1e-8 of itself whichever of the two is the prototype.
        """
        factors = inverse_factors(prototypes)
        result = np.empty((len(samples), len(factors)))
        for rows in row_slices(len(samples), 2 * factors.nbytes):
            logs = log_spectrum(np.linalg.eigvalsh(whiten(factors, samples[rows])))
            sharpen(logs, factors, samples[rows])
            result[rows] = np.vecdot(logs, logs)
        return result

    def nearest(self, prototypes: Prototypes, samples: Array, groups: Array | None = None) -> Array:
        """Index (B,) of the nearest prototype, or of one of the same group, mostly without computing all distances.

        Lower bounds that need no eigenvalues rank the prototypes and rule out nearly all of them (Bhatia 2007, Positive
        Definite Matrices, Theorem 6.1.4). Where two distances differ by rounding only, :meth:`sqdist` decides. The
        index, or its group, is therefore the one of ``sqdist(prototypes, samples).argmin(axis=1)``.

        Parameters
        ----------
        prototypes : Prototypes
            K prototypes.
        samples : ndarray of shape (B, n, n)
            Samples.
        groups : ndarray of int of shape (K,), optional
            Group of each prototype, such as its class. If given, the search ends as soon as the group is known, which
            takes fewer distances; without it every prototype is a group of its own.

        Returns
        -------
        ndarray of int of shape (B,)

        Examples
        --------
        >>> from rplvq import AffineInvariant
        >>> manifold = AffineInvariant()
        >>> prototypes = manifold.encode([np.eye(2), np.diag([9.0, 1.0]), np.diag([1.0, 9.0])])
        >>> manifold.nearest(prototypes, manifold.encode([np.diag([2.0, 8.0]), np.diag([2.0, 1.0])]))
        array([2, 0])
        """
        factors = inverse_factors(prototypes)
        if len(factors) < FEW:
            return np.asarray(self.sqdist(InverseFactors(factors), samples).argmin(axis=1))
        frame, groups = common_frame(factors), np.arange(len(factors)) if groups is None else groups
        result = np.empty(len(samples), dtype=np.intp)
        for rows in row_slices(len(samples), 4 * samples[0].nbytes + 32 * len(factors)):
            part, tied = nearest_by_bound(frame, factors, samples[rows], groups, pair_spectra)
            if tied.any():
                part[tied] = self.sqdist(InverseFactors(factors), samples[rows][tied]).argmin(axis=1)
            result[rows] = part
        return result

    def connect(self, prototypes: Prototypes, samples: Array) -> AffineInvariantGeodesics:
        """Decompose each whitened pair (b, k) once: B K eigendecompositions, plus factors if W came bare."""
        factors = inverse_factors(prototypes)
        eigenvalues, eigenvectors = np.linalg.eigh(whiten(factors, samples))
        logs = log_spectrum(eigenvalues)
        return AffineInvariantGeodesics(np.vecdot(logs, logs), logs, eigenvectors, factors)

    def move(self, geodesics: AffineInvariantGeodesics, weights: Array) -> InverseFactors:
        """Move along the logarithms, by weights (B, K).

        For one sample the step stays on its geodesic and reuses its spectrum; for more, the whitened
        logarithms are summed and decomposed, one eigendecomposition a prototype.
        """
        _, logs, eigenvectors, factors = geodesics
        if len(weights) > 1:
            return self.exp(InverseFactors(factors), self.pull(geodesics, weights))
        return follow(factors, weights.T * -0.5 * logs[0], eigenvectors[0])

    def pull(self, geodesics: AffineInvariantGeodesics, weights: Array) -> Array:
        """Weighted sums of the whitened logarithms ``G_k Log_k(x_b) G_k^H``, shape (K, n, n).

        In these coordinates the affine-invariant inner product is the plain one, ``Re tr(A B)``. They belong to
        the factors G that prototypes carry, so batches add up if all of them began at the same prototypes object,
        or all at its codes.
        """
        _, logs, eigenvectors, _ = geodesics
        scaled = (eigenvectors * (weights[..., None] * logs)[..., None, :]) @ adjoint(eigenvectors)
        return np.asarray(scaled.sum(axis=0))

    def exp(self, prototypes: Prototypes, tangents: Array) -> InverseFactors:
        """Follow whitened tangents (K, n, n) from :meth:`pull`: one eigendecomposition a prototype."""
        lengths, basis = np.linalg.eigh(tangents)
        return follow(inverse_factors(prototypes), -0.5 * lengths, basis)
