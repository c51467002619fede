"""Spectral functions of Hermitian matrices, and the checks on matrices that come from outside.

All functions broadcast over leading axes: ``(..., n, n)`` in, ``(..., n, n)`` out. Real symmetric and
complex Hermitian matrices are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from rplvq.protocols import Array

__all__ = [
    "PointError",
    "adjoint",
    "as_number_array",
    "check_definite",
    "check_hermitian",
    "check_positive",
    "expm",
    "first_bad",
    "from_spectrum",
    "invsqrtm",
    "logm",
    "lower_inverse",
    "positive_inverse",
    "powm",
    "require_finite",
    "spectral_map",
    "sqrtm",
]

ADVICE_RANK = (
    "Regularise it, e.g. rplvq.features.trial_covariances(..., shrinkage=0.1), "
    "or drop channels that are linear combinations of others"
)


class PointError(ValueError):
    """A point that is not on the manifold.

    Parameters
    ----------
    index : int
        First offending index along the batch axis.
    reason : str
        What is wrong, beginning with a verb, and what can be done.
    name : str, default="X"
        The argument that holds the point.

    Examples
    --------
    >>> str(PointError(3, "is not square"))
    'X[3] is not square'
    """

    def __init__(self, index: int, reason: str, name: str = "X") -> None:
        super().__init__(index, reason, name)
        self.index, self.reason, self.name = index, reason, name

    def __str__(self) -> str:
        return f"{self.name}[{self.index}] {self.reason}"

    def renamed(self, name: str) -> PointError:
        """Return the same complaint about another argument."""
        return PointError(self.index, self.reason, name)

    def shifted(self, start: int) -> PointError:
        """Return the same complaint about a point of a larger array, of which this part begins at ``start``."""
        return PointError(self.index + start, self.reason, self.name)


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


def margin_of_roots(roots: Array) -> Array:
    """Smallest over largest eigenvalue of ``R R^H``, and of ``R^-1 R^-H``, for roots (K, n, n), shape (K,)."""
    singular = np.linalg.svd(roots, compute_uv=False)
    return np.asarray((singular[:, -1] / singular[:, 0]) ** 2)


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


def first_bad(bad: Array) -> int | None:
    """Index of the first True in a boolean array of shape (N,), or None."""
    return int(np.argmax(bad)) if bad.any() else None


def require_finite(points: Array) -> None:
    """Raise PointError at the first point (N, ...) that holds NaN or infinity."""
    finite = np.isfinite(points)
    if finite.all():
        return
    position = tuple(int(i) for i in np.argwhere(~finite)[0])
    value = points[position]
    raise PointError(
        position[0],
        f"contains NaN or infinity: its entry {list(position[1:])} is {value}. Remove or impute the sample",
    )


def as_number_array(points: Any, ndim: int, what: str) -> Array:
    """Return points as a plain float64 or complex128 array with ``ndim`` axes, or raise ValueError.

    A complex array without imaginary part becomes real. The input is never written to and is only
    copied where its type demands it.
    """
    if sparse.issparse(points):
        raise TypeError("Sparse data was passed, but dense data is required: use X.toarray()")
    try:
        array = np.asarray(points)
        if array.dtype == object:
            array = np.array(array.tolist())
    except ValueError as error:
        raise ValueError(f"X must be a rectangular array of numbers: {error}") from error
    if array.dtype.kind not in "biufc":
        raise ValueError(f"X must hold numbers, got dtype {array.dtype}")
    if array.ndim == ndim - 1:
        raise ValueError(
            f"X must have {ndim} axes, {what}, got shape {array.shape}: Reshape your data; a single "
            "sample is passed as X[None]"
        )
    if array.ndim != ndim:
        raise ValueError(f"X must have {ndim} axes, {what}, got shape {array.shape}")
    if array.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required")
    if np.iscomplexobj(array) and not array.imag.any():
        array = array.real
    return array


def precision_of(points: Any) -> float:
    """Relative spacing of the numbers in which points came: coarser for float32 and float16."""
    dtype = getattr(points, "dtype", None)
    if dtype is None or np.dtype(dtype).kind not in "fc":
        return float(np.finfo(float).eps)
    return max(float(np.finfo(dtype).eps), float(np.finfo(float).eps))


def check_hermitian(points: Any) -> Array:
    """Check a stack of Hermitian matrices that comes from outside.

    Parameters
    ----------
    points : array-like of shape (N, n, n)
        Real or complex.

    Returns
    -------
    ndarray of shape (N, n, n)
        float64 or complex128, exactly Hermitian.

    Raises
    ------
    ValueError
        If the shape is wrong, an entry is NaN or infinite, or a matrix differs from its conjugate
        transpose by more than rounding: 1e-10 of its largest entry, 32 eps for float32 and float16.
    """
    array = as_number_array(points, 3, "(n_matrices, n, n)")
    n_rows, n_columns = array.shape[1:]
    if n_rows != n_columns:
        raise ValueError(f"X must hold square matrices, got shape {array.shape}: X[0] is not square")
    if n_rows == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required")
    require_finite(array)
    tolerance = max(1e-10, 32 * precision_of(points))
    array = array.astype(complex if np.iscomplexobj(array) else float, copy=False)
    if np.array_equal(array, adjoint(array)):
        return array
    gap = np.abs(array - adjoint(array)).max(axis=(1, 2))
    size = np.abs(array).max(axis=(1, 2))
    if (index := first_bad(gap > tolerance * size)) is not None:
        kind = "Hermitian" if np.iscomplexobj(array) else "symmetric"
        raise PointError(
            index,
            f"is not {kind}: it differs from its conjugate transpose by {gap[index]:.3g} "
            f"({gap[index] / size[index]:.3g} of its largest entry, allowed {tolerance:.3g}). "
            "If that is intended, pass 0.5 * (X + X.conj().swapaxes(1, 2))",
        )
    return hermitian_part(array)


def check_definite(matrices: Array, precision: float) -> None:
    """Raise what :func:`check_positive` raises for the eigenvalues of matrices (N, n, n), mostly without them.

    A matrix that still has a Cholesky factor after twice the tolerance times its trace is taken off its diagonal
    has a smallest eigenvalue well above the tolerance. Only where one has none, eigenvalues decide.
    """
    n = matrices.shape[-1]
    shifted = matrices.copy()
    diagonal = np.einsum("...ii->...i", shifted)
    diagonal -= 2 * rank_tolerance(n, precision) * diagonal.real.sum(axis=-1, keepdims=True)
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        check_positive(np.linalg.eigvalsh(matrices), precision)


def rank_tolerance(n: int, precision: float = float(np.finfo(float).eps)) -> float:
    """Share of the largest eigenvalue of an n x n matrix below which another one is rounding."""
    return min(10 * n * precision, 1e-6)


def check_positive(eigenvalues: Array, precision: float) -> None:
    """Raise PointError at the first matrix that is not positive definite beyond rounding.

    Parameters
    ----------
    eigenvalues : ndarray of shape (N, n)
        In ascending order.
    precision : float
        Relative rounding of the input, from :func:`precision_of`.

    Raises
    ------
    PointError
        If a smallest eigenvalue is at most ``min(10 n precision, 1e-6)`` times the largest: below that
        it is rounding, and its logarithm means nothing.
    """
    tolerance = rank_tolerance(eigenvalues.shape[-1], precision)
    smallest, largest = eigenvalues[:, 0], eigenvalues[:, -1]
    if (index := first_bad(~(smallest > tolerance * largest))) is None:
        return
    low, high = smallest[index], largest[index]
    kind = "is not positive definite" if low <= -tolerance * abs(high) or high <= 0 else "is singular to rounding"
    share = f", {low / high:.3g} of its largest {high:.3g}" if high > 0 else ""
    raise PointError(
        index,
        f"{kind}: its smallest eigenvalue is {low:.3g}{share} "
        f"(needed: more than {tolerance:.3g} of the largest). {ADVICE_RANK}",
    )
