"""Positive definite matrices under the Log-Euclidean metric."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from rplvq.arrays import check_hermitian, check_positive, expm, from_spectrum, precision_of
from rplvq.manifolds._flat import FlatGeodesics, flat_connect, flat_exp, flat_move, flat_nearest, flat_pull, flat_sqdist
from rplvq.parts import library_part
from rplvq.protocols import Array

__all__ = ["LogEuclidean"]


@library_part
@attrs.frozen
class LogEuclidean:
    """Symmetric or Hermitian positive definite matrices under the Log-Euclidean metric.

    ``d^2(X, W) = ||log X - log W||_F^2`` (Arsigny, Fillard, Pennec and Ayache 2007, SIAM J. Matrix Anal.
    Appl. 29(1), doi:10.1137/050637996). Codes are the matrix logarithms, taken once; from there on everything is flat.
    The distance never exceeds the affine-invariant one (Bhatia 2007, Positive Definite Matrices, Theorem 6.1.4).

    Parameters
    ----------
    max_step_length : float, default=10
        Longest step of a prototype (Frobenius norm of the change of its logarithm).

    Examples
    --------
    >>> from rplvq import LogEuclidean
    >>> manifold = LogEuclidean()
    >>> codes = manifold.encode([np.eye(2), np.e * np.eye(2)])
    >>> manifold.sqdist(codes[:1], codes)
    array([[0.],
           [2.]])
    """

    max_step_length: float = attrs.field(default=10.0, validator=attrs.validators.gt(0))

    def encode(self, points: Any) -> Array:
        """Logarithms of matrices (N, n, n); raise ValueError at the first that is not positive definite."""
        eigenvalues, eigenvectors = np.linalg.eigh(check_hermitian(points))
        check_positive(eigenvalues, precision_of(points))
        return from_spectrum(np.log(eigenvalues), eigenvectors)

    def decode(self, codes: Array) -> Array:
        """Exponentials, shape (K, n, n)."""
        return expm(np.asarray(codes))

    def sqdist(self, prototypes: Array, samples: Array) -> Array:
        """Squared distances, shape (B, K)."""
        return flat_sqdist(prototypes, samples)

    def nearest(self, prototypes: Array, samples: Array, groups: Array | None = None) -> Array:
        """Index of the nearest prototype, shape (B,), by one matrix product."""
        return flat_nearest(prototypes, samples)

    def connect(self, prototypes: Array, samples: Array) -> FlatGeodesics:
        """Connect the logarithms of samples (B, n, n) to those of prototypes (K, n, n)."""
        return flat_connect(prototypes, samples)

    def move(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Move the logarithms of prototypes by the weighted differences, shape (K, n, n)."""
        return flat_move(geodesics, weights)

    def pull(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Weighted differences of codes, shape (K, n, n); they add over batches."""
        return flat_pull(geodesics, weights)

    def exp(self, prototypes: Array, tangents: Array) -> Array:
        """Move prototypes by tangents from :meth:`pull`, shape (K, n, n)."""
        return flat_exp(prototypes, tangents)
