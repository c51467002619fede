"""Spectral functions of Hermitian matrices, and the checks on matrices that come from outside.

All functions broadcast over leading axes: ``(..., n, n)`` in, ``(..., n, n)`` out. Real symmetric and
complex Hermitian matrices are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rplvq.protocols import Array

__all__ = [
    "adjoint",
    "expm",
    "from_spectrum",
    "invsqrtm",
    "logm",
    "lower_inverse",
    "positive_inverse",
    "powm",
    "spectral_map",
    "sqrtm",
]


def adjoint(matrices: Array) -> Array:
    """Conjugate transpose over the last two axes, shape (..., n, m) -> (..., m, n)."""
    swapped = matrices.swapaxes(-1, -2)
    return swapped.conj() if matrices.dtype.kind == "c" else swapped


def hermitian_part(matrices: Array) -> Array:
    """Half the sum of matrices (..., n, n) and their conjugate transposes: what rounding took away."""
    return np.asarray(0.5 * (matrices + adjoint(matrices)))


def congruence(matrices: Array, basis: Array) -> Array:
    """Return ``V^H X V`` for matrices (N, n, n) and V (n, p), shape (N, p, p), exactly Hermitian."""
    return hermitian_part(adjoint(basis) @ matrices @ basis)


def squared_roots(roots: Array) -> Array:
    """Return ``R R^H`` for roots (..., n, n), exactly Hermitian."""
    return hermitian_part(roots @ adjoint(roots))


def from_spectrum(eigenvalues: Array, eigenvectors: Array) -> Array:
    """Return U diag(lam) U^H for eigenvalues (..., n) and eigenvectors (..., n, n), exactly Hermitian."""
    return hermitian_part((eigenvectors * eigenvalues[..., None, :]) @ adjoint(eigenvectors))


def spectral_map(function: Callable[[Array], Array], matrices: Array) -> Array:
    """Apply a real function to the eigenvalues of Hermitian matrices.

    Parameters
    ----------
    function : callable
        Maps eigenvalues (..., n) to (..., n).
    matrices : ndarray of shape (..., n, n)
        Hermitian; only the lower triangles are read.

    Returns
    -------
    ndarray of shape (..., n, n)
        ``U f(lam) U^H``.

    Examples
    --------
    >>> spectral_map(np.sqrt, np.diag([4.0, 9.0]))
    array([[2., 0.],
           [0., 3.]])
    """
    eigenvalues, eigenvectors = np.linalg.eigh(matrices)
    return from_spectrum(function(eigenvalues), eigenvectors)


def sqrtm(matrices: Array) -> Array:
    """Principal square root of positive definite matrices (..., n, n)."""
    return spectral_map(np.sqrt, matrices)


def invsqrtm(matrices: Array) -> Array:
    """Inverse principal square root of positive definite matrices (..., n, n)."""
    return spectral_map(lambda lam: 1.0 / np.sqrt(lam), matrices)


def logm(matrices: Array) -> Array:
    """Principal logarithm of positive definite matrices (..., n, n)."""
    return spectral_map(np.log, matrices)


def expm(matrices: Array) -> Array:
    """Exponential of Hermitian matrices (..., n, n)."""
    return spectral_map(np.exp, matrices)


def powm(matrices: Array, exponent: float) -> Array:
    """Real power of positive definite matrices (..., n, n)."""
    return spectral_map(lambda lam: lam**exponent, matrices)


def lower_inverse(lower: Array) -> Array:
    """Invert lower triangular matrices (..., n, n) by forward substitution.

    Row by row, without pivoting: a general inverse would lose the small entries of factors whose rows
    differ by many orders of magnitude (a covariance in mixed units).
    """
    n = lower.shape[-1]
    inverse = np.zeros_like(lower)
    for i in range(n):
        pivot = lower[..., i, i, None]
        row = lower[..., i, None, :i] @ inverse[..., :i, :i]
        inverse[..., i, :i] = -row[..., 0, :] / pivot
        inverse[..., i, i] = 1.0 / pivot[..., 0]
    return inverse


def positive_inverse(matrices: Array) -> Array:
    """Inverse of positive definite matrices (..., n, n), from batched Cholesky factors.

    Several times faster than a general inverse of many small matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.
    """
    inverse = lower_inverse(np.linalg.cholesky(matrices))
    return np.asarray(adjoint(inverse) @ inverse)
