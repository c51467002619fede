"""Real coordinates of Hermitian matrices."""

import numpy as np

from rplvq.protocols import Array

LARGEST = 1 << 28
"""Largest size in bytes of a matrix on coordinates. Full rank is within it for real matrices up to 107 x 107."""


def n_coordinates(n: int, is_complex: bool) -> int:
    """Return the number of real coordinates of Hermitian n x n matrices: n (n + 1) / 2, or n^2 for complex ones."""
    return n * n if is_complex else n * (n + 1) // 2


def coordinates(codes: Array, m: int) -> Array:
    """Return real coordinates (N, m) of Hermitian matrices (N, n, n), orthonormal for the Frobenius product.

    They are the diagonal, sqrt 2 times the real parts of the entries above it, and, if m is n^2, sqrt 2 times their
    imaginary parts.
    """
    n = codes.shape[-1]
    if m < n * n and np.iscomplexobj(codes):
        raise ValueError("X is complex, but the metric was learned on real matrices: learn it on complex ones")
    rows, columns = np.triu_indices(n, 1)
    places = np.arange(n)
    above = np.sqrt(2.0) * codes[:, rows, columns]
    parts = [codes[:, places, places].real, above.real]
    if m > n_coordinates(n, False):
        parts.append(above.imag)
    return np.hstack(parts)


def from_coordinates(vectors: Array, n: int) -> Array:
    """Return the Hermitian matrices (N, n, n) whose real coordinates are vectors (N, m), as `coordinates` has them."""
    rows, columns = np.triu_indices(n, 1)
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
