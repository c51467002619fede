"""Positive definite matrices under the log-Cholesky metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from rplvq.arrays import check_definite, check_hermitian, precision_of, squared_roots
from rplvq.manifolds._flat import FlatGeodesics, flat_connect, flat_exp, flat_move, flat_nearest, flat_pull, flat_sqdist
from rplvq.parts import library_part
from rplvq.protocols import Array

__all__ = ["LogCholesky"]


def map_diagonal(function: Callable[[Array], Array], lower: Array) -> Array:
    """Apply a real function to the diagonals of lower triangular matrices (N, n, n)."""
    result = lower.copy()
    places = np.arange(lower.shape[-1])
    result[:, places, places] = function(lower[:, places, places].real)
    return result


@library_part
@attrs.frozen
class LogCholesky:
    """Symmetric or Hermitian positive definite matrices under the log-Cholesky metric.

    With Cholesky factors ``X = L L^H`` and ``W = M M^H``,

    ``d^2(X, W) = sum_{i > j} |L_ij - M_ij|^2 + sum_i (log L_ii - log M_ii)^2``

    (Lin 2019, SIAM J. Matrix Anal. Appl. 40(4), section 3, doi:10.1137/18M1221084). Codes are the Cholesky factors with
    the logarithms of their diagonals, taken once; from there on everything is flat. No eigenvectors are needed
    anywhere, and nothing swells: the determinant of a mean is the geometric mean of the determinants.

    Parameters
    ----------
    max_step_length : float, default=10
        Longest step of a prototype (Frobenius norm of the change of its code).

    Notes
    -----
    The metric depends on the order of the rows and, unlike the affine-invariant and the Log-Euclidean one, on the
    unit: entries below the diagonal carry the square root of the unit of X, logarithms of the diagonal carry none.
    Data in volts would be compared by their diagonals alone. Bring the matrices to mean eigenvalue about 1 first,
    for example by :class:`rplvq.Recenter`.

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

    max_step_length: float = attrs.field(default=10.0, validator=attrs.validators.gt(0))

    def encode(self, points: Any) -> Array:
        """Cholesky factors of matrices (N, n, n), their diagonals in logarithms.

        Raises
        ------
        ValueError
            At the first matrix that is not positive definite.
        """
        matrices = check_hermitian(points)
        check_definite(matrices, precision_of(points))
        return map_diagonal(np.log, np.linalg.cholesky(matrices))

    def decode(self, codes: Array) -> Array:
        """Matrices ``L L^H``, shape (K, n, n), exactly Hermitian."""
        return squared_roots(map_diagonal(np.exp, np.asarray(codes)))

    def sqdist(self, prototypes: Array, samples: Array) -> Array:
        """Squared distances, shape (B, K)."""
        return flat_sqdist(prototypes, samples)

    def nearest(self, prototypes: Array, samples: Array, groups: Array | None = None) -> Array:
        """Index of the nearest prototype, shape (B,), by one matrix product."""
        return flat_nearest(prototypes, samples)

    def connect(self, prototypes: Array, samples: Array) -> FlatGeodesics:
        """Connect the codes of samples (B, n, n) to those of prototypes (K, n, n)."""
        return flat_connect(prototypes, samples)

    def move(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Move the codes of prototypes by the weighted differences, shape (K, n, n)."""
        return flat_move(geodesics, weights)

    def pull(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Weighted differences of codes, shape (K, n, n); they add over batches."""
        return flat_pull(geodesics, weights)

    def exp(self, prototypes: Array, tangents: Array) -> Array:
        """Move codes of prototypes by tangents from :meth:`pull`, shape (K, n, n)."""
        return flat_exp(prototypes, tangents)
