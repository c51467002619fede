"""Real coordinates of Hermitian matrices, and covariances on many of them that are known from few samples."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from rplvq.parts import library_part
from rplvq.protocols import Array

LARGEST = 1 << 28
"""Largest size in bytes of a matrix on coordinates. Full rank is within it for real matrices up to 107 x 107."""
SAME: Any = attrs.cmp_using(eq=np.array_equal)


def n_coordinates(n: int, is_complex: bool) -> int:
    """Return the number of real coordinates of Hermitian n x n matrices: n (n + 1) / 2, or n^2 for complex ones."""
    return n * n if is_complex else n * (n + 1) // 2


@lru_cache(maxsize=8)
def _above(n: int) -> tuple[Array, Array]:
    """Return the rows and columns of the entries above the diagonal; finding them takes as long as reading them."""
    rows, columns = np.triu_indices(n, 1)
    return rows, columns


def coordinates(codes: Array, m: int) -> Array:
    """Return real coordinates (N, m) of Hermitian matrices (N, n, n), orthonormal for the Frobenius product.

    They are the diagonal, sqrt 2 times the real parts of the entries above it, and, if m is n^2, sqrt 2 times their
    imaginary parts.
    """
    n = codes.shape[-1]
    if m < n * n and np.iscomplexobj(codes):
        raise ValueError("X is complex, but the metric was learned on real matrices: learn it on complex ones")
    rows, columns = _above(n)
    places = np.arange(n)
    above = np.sqrt(2.0) * codes[:, rows, columns]
    parts = [codes[:, places, places].real, above.real]
    if m > n_coordinates(n, False):
        parts.append(above.imag)
    return np.hstack(parts)


def as_vectors(codes: Array) -> Array:
    """Return codes (N, ...) as real vectors (N, m) of the same Euclidean length."""
    vectors = codes.reshape(len(codes), -1)
    return np.ascontiguousarray(vectors).view(float) if np.iscomplexobj(vectors) else vectors


def from_coordinates(vectors: Array, n: int) -> Array:
    """Return the Hermitian matrices (N, n, n) whose real coordinates are vectors (N, m), as `coordinates` has them."""
    rows, columns = _above(n)
    places = np.arange(n)
    n_above = len(rows)
    is_complex = vectors.shape[1] > n + n_above
    result = np.zeros((len(vectors), n, n), dtype=complex if is_complex else float)
    result[:, places, places] = vectors[:, :n]
    above = vectors[:, n : n + n_above] / np.sqrt(2.0)
    if is_complex:
        above = above + 1j * (vectors[:, n + n_above :] / np.sqrt(2.0))
    result[:, rows, columns] = above
    result[:, columns, rows] = above.conj()
    return result


@library_part
@attrs.frozen
class LowRankCovariance:
    """The positive definite matrix ``B^T diag(v) B + c (I - B^T B)`` of shape (m, m), which is never formed.

    The deviations of N samples span fewer than N directions. A covariance that is shrunk towards a multiple of the
    identity has the same variance c in all others, so that it takes ``r m`` numbers for r directions, and its powers
    need no further decomposition. ``numpy.asarray`` forms the matrix.

    Parameters
    ----------
    basis : ndarray of shape (r, m)
        The directions B, as orthonormal rows.
    variances : ndarray of shape (r,)
        The variances v in these directions, which are positive.
    rest : float
        The variance c in all other directions, which is positive.

    Examples
    --------
    >>> covariance = LowRankCovariance(np.array([[0.6, 0.8]]), np.array([4.0]), 1.0)
    >>> np.asarray(covariance)
    array([[2.08, 1.44],
           [1.44, 2.92]])
    >>> whitener = np.asarray(covariance.power(-0.5))
    >>> np.allclose(whitener @ np.asarray(covariance) @ whitener, np.eye(2))
    True
    """

    basis: Array = attrs.field(eq=SAME, hash=False, repr=False)
    variances: Array = attrs.field(eq=SAME, hash=False, repr=False)
    rest: float = attrs.field(converter=float)

    def __attrs_post_init__(self) -> None:
        if np.ndim(self.basis) != 2 or np.shape(self.variances) != np.shape(self.basis)[:1]:
            shapes = f"{np.shape(self.basis)} and {np.shape(self.variances)}"
            raise ValueError(f"basis and variances must have the shapes (r, m) and (r,), got {shapes}")
        if not (0 < self.rest < np.inf and (self.variances > 0).all()):
            raise ValueError("variances and rest must be positive: the covariance is not positive definite")

    def __len__(self) -> int:
        return int(self.basis.shape[1])

    @property
    def trace(self) -> float:
        """The sum of the variances in all directions."""
        return float(self.variances.sum() + (len(self) - len(self.variances)) * self.rest)

    def power(self, exponent: float) -> LowRankCovariance:
        """Return the matrix to the power of ``exponent``, with the same directions."""
        return attrs.evolve(self, variances=self.variances**exponent, rest=self.rest**exponent)

    def __matmul__(self, vectors: Array) -> Array:
        """Return the products with column vectors (..., m, 1)."""
        inner = (self.variances - self.rest)[:, None] * (self.basis @ vectors)
        return np.asarray(self.rest * vectors + self.basis.T @ inner)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the matrix, shape (m, m)."""
        return np.asarray(self @ np.eye(len(self)), dtype=dtype)
