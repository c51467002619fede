"""Positive definite matrices under the Frobenius distance, projected back after each step."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from rplvq.arrays import by_block, check_definite, check_hermitian, first_bad, from_spectrum, precision_of, reads_parts
from rplvq.exceptions import PointError
from rplvq.manifolds._flat import FlatGeodesics, flat_connect, flat_exp, flat_move, flat_nearest, flat_pull, flat_sqdist
from rplvq.parts import library_part
from rplvq.protocols import Array

__all__ = ["ProjectedEuclidean"]


def mean_eigenvalue(matrices: Array) -> Array:
    """Trace over n of Hermitian matrices (..., n, n)."""
    return np.asarray(np.trace(matrices, axis1=-2, axis2=-1).real / matrices.shape[-1])


@library_part
@attrs.frozen
class ProjectedEuclidean:
    """Positive definite matrices with ``d^2(X, W) = ||X - W||_F^2``; the paper's Euclidean baseline.

    A prototype steps along a straight line, then its eigenvalues below a floor are raised to the floor
    (Tang et al., "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite
    Matrices", the method called RSLVQ there).

    Parameters
    ----------
    tau : float, default=1e-4
        The floor, in the units of the matrices (the paper's data have mean eigenvalue 1).
    relative : bool, default=False
        Measure tau in mean eigenvalues (trace / n) of the prototype before its step instead. On the
        paper's data the two agree; on data in other units only this one means anything.

    Examples
    --------
    >>> from rplvq import ProjectedEuclidean
    >>> manifold = ProjectedEuclidean(tau=0.1)
    >>> codes = manifold.encode([np.eye(2), np.diag([3.0, 1.0])])
    >>> away = manifold.connect(codes[:1], codes[1:])
    >>> manifold.decode(manifold.move(away, np.array([[-0.6]])))[0]
    array([[0.1, 0. ],
           [0. , 1. ]])
    """

    tau: float = attrs.field(default=1e-4, validator=attrs.validators.gt(0))
    relative: bool = False

    def encode(self, points: Any) -> Array:
        """Check matrices (N, n, n).

        Raises
        ------
        ValueError
            If a matrix is not positive definite, or if an absolute tau is not below its mean eigenvalue:
            the floor would then replace the data.
        """
        matrices = check_hermitian(points)
        check_definite(matrices, precision_of(points))
        size = mean_eigenvalue(matrices)
        if not self.relative and (index := first_bad(size <= self.tau)) is not None:
            raise PointError(
                index,
                f"has mean eigenvalue {size[index]:.3g}, not above tau={self.tau:g}, to which eigenvalues "
                "are raised. Rescale the data or use ProjectedEuclidean(relative=True)",
            )
        return matrices

    def decode(self, codes: Array) -> Array:
        """Matrices are their own coordinates, shape (K, n, n)."""
        return np.array(codes)

    def sqdist(self, prototypes: Array, samples: Array) -> Array:
        """Squared distances, shape (B, K)."""
        return flat_sqdist(prototypes, samples)

    def nearest(self, prototypes: Array, samples: Array, groups: Array | None = None) -> Array:
        """Index of the nearest prototype, shape (B,), by one matrix product."""
        return flat_nearest(prototypes, samples)

    def connect(self, prototypes: Array, samples: Array) -> FlatGeodesics:
        """Connect samples (B, n, n) to prototypes (K, n, n)."""
        return flat_connect(prototypes, samples)

    def move(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Move straight, then raise the eigenvalues below the floor; shape (K, n, n)."""
        return self._raised(flat_move(geodesics, weights), geodesics.prototypes)

    def pull(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Weighted differences, shape (K, n, n); they add over batches."""
        return flat_pull(geodesics, weights)

    def exp(self, prototypes: Array, tangents: Array) -> Array:
        """Move straight by tangents from :meth:`pull`, then raise the eigenvalues below the floor; (K, n, n)."""
        return self._raised(flat_exp(prototypes, tangents), np.asarray(prototypes))

    def _raised(self, moved: Array, before: Array) -> Array:
        """Raise the eigenvalues of ``moved`` below the floor, in place; ``before``: prototypes before the step."""
        eigenvalues, eigenvectors = np.linalg.eigh(moved)
        floor = np.full(len(moved), self.tau)
        if self.relative:
            floor *= mean_eigenvalue(before)
        low = eigenvalues[:, 0] < floor
        if low.any():
            raised = np.maximum(eigenvalues[low], floor[low, None])
            moved[low] = from_spectrum(raised, eigenvectors[low])
        return moved

    @reads_parts
    def unit(self, codes: Array, weights: Array | None = None) -> float:
        """Squared mean eigenvalue of the data: 1 on the paper's, where its step sizes hold as they are."""
        return float(np.average(by_block(mean_eigenvalue, codes), weights=weights) ** 2)
