"""Functions of real symmetric and complex Hermitian matrices; all of them broadcast over leading axes."""

from collections.abc import Callable

import numpy as np

from rplvq.protocols import Array


def adjoint(matrices: Array) -> Array:
    """Return the conjugate transposes (..., m, n) of matrices (..., n, m)."""
    swapped = matrices.swapaxes(-1, -2)
    return swapped.conj() if matrices.dtype.kind == "c" else swapped


def hermitian_part(matrices: Array) -> Array:
    """Return ``(A + A^H) / 2`` for matrices (..., n, n), which restores the symmetry that rounding has broken."""
    return np.asarray(0.5 * (matrices + adjoint(matrices)))


def congruence(matrices: Array, basis: Array) -> Array:
    """Return ``V^H X V`` for matrices (N, n, n) and V (n, p), shape (N, p, p), exactly Hermitian."""
    return hermitian_part(adjoint(basis) @ matrices @ basis)


def principal_basis(filters: Array, center: Array) -> Array:
    """Return an orthonormal basis (n, p) of the span of filters (n, p), in which the matrix ``center`` is diagonal.

    Its entries there descend, and the largest entry of each column of the basis is positive.
    """
    basis = np.linalg.qr(filters)[0]
    basis = basis @ np.linalg.eigh(congruence(center[None], basis)[0])[1][:, ::-1]
    largest = basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])]
    return np.asarray(basis * (np.abs(largest) / largest))


def squared_roots(roots: Array) -> Array:
    """Return ``R R^H`` for roots (..., n, n), exactly Hermitian."""
    return hermitian_part(roots @ adjoint(roots))


def from_spectrum(eigenvalues: Array, eigenvectors: Array) -> Array:
    """Return ``U diag(lam) U^H`` for eigenvalues (..., n) and eigenvectors (..., n, n), exactly Hermitian."""
    return hermitian_part((eigenvectors * eigenvalues[..., None, :]) @ adjoint(eigenvectors))


def spectral_map(function: Callable[[Array], Array], matrices: Array) -> Array:
    """Return ``U f(lam) U^H`` for Hermitian matrices ``U diag(lam) U^H`` (..., n, n); only lower triangles are read."""
    eigenvalues, eigenvectors = np.linalg.eigh(matrices)
    return from_spectrum(function(eigenvalues), eigenvectors)


def sqrtm(matrices: Array) -> Array:
    """Return the principal square roots of positive definite matrices (..., n, n)."""
    return spectral_map(np.sqrt, matrices)


def invsqrtm(matrices: Array) -> Array:
    """Return the inverse principal square roots of positive definite matrices (..., n, n)."""
    return spectral_map(lambda lam: 1.0 / np.sqrt(lam), matrices)


def logm(matrices: Array) -> Array:
    """Return the principal logarithms of positive definite matrices (..., n, n)."""
    return spectral_map(np.log, matrices)


def expm(matrices: Array) -> Array:
    """Return the exponentials of Hermitian matrices (..., n, n)."""
    return spectral_map(np.exp, matrices)


def lower_inverse(lower: Array) -> Array:
    """Invert lower triangular matrices (..., n, n) by forward substitution."""
    # Without pivoting, because a general inverse loses the small entries of factors whose rows differ by many orders of
    # magnitude, as those of a covariance in mixed units do.
    n = lower.shape[-1]
    inverse = np.zeros_like(lower)
    for i in range(n):
        pivot = lower[..., i, i, None]
        row = lower[..., i, None, :i] @ inverse[..., :i, :i]
        inverse[..., i, :i] = -row[..., 0, :] / pivot
        inverse[..., i, i] = 1.0 / pivot[..., 0]
    return inverse


def positive_inverse(matrices: Array) -> Array:
    """Invert positive definite matrices (..., n, n), faster than a general inverse; LinAlgError if one is not."""
    inverse = lower_inverse(np.linalg.cholesky(matrices))
    return np.asarray(adjoint(inverse) @ inverse)
