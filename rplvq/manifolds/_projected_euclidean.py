"""Positive definite matrices under the Frobenius distance, with a projection after each step."""

from typing import Any

import attrs
import numpy as np

from rplvq.arrays import by_block, check_positive_definite, first_bad, from_spectrum, reads_parts
from rplvq.exceptions import PointError
from rplvq.manifolds._flat import FlatGeodesics, FlatMethods, flat_exp, flat_move
from rplvq.parts import has_kernel, library_part, number_in
from rplvq.protocols import Array, ArrayLike

EPS = float(np.finfo(float).eps)


def _is_floor(part: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if not (isinstance(value, str) and value == "auto"):
        number_in(finite=True)(part, attribute, value)


def mean_eigenvalue(matrices: Array) -> Array:
    """Return the trace divided by n of Hermitian matrices (..., n, n)."""
    return np.asarray(np.trace(matrices, axis1=-2, axis2=-1).real / matrices.shape[-1])


@library_part
@attrs.frozen
class ProjectedEuclidean(FlatMethods):
    """Positive definite matrices with ``d^2(X, W) = ||X - W||_F^2``; the paper's Euclidean baseline.

    A prototype moves along a straight line; then its eigenvalues below a floor are raised to the floor (Tang et al.,
    "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite Matrices", the method called
    RSLVQ there). The methods that are not described here are functions such as :func:`rplvq.manifolds.flat_sqdist`.

    Parameters
    ----------
    tau : float or "auto", default="auto"
        The floor, in the units of the matrices. "auto" is 1e-4, the paper's, whose data have mean eigenvalue 1. If
        ``relative``, "auto" is the smallest share that float64 resolves, ``40 n^2 eps``: 1e-12 for n = 10. It is below
        the eigenvalues of samples with condition numbers up to 1e10, so that their mean is the arithmetic one.
    relative : bool, default=False
        Whether tau is multiplied by the mean eigenvalue (trace / n) of the prototype before its step, which is
        necessary for data in other units. The metric "euclidean" does so.

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

    tau: float | str = attrs.field(default="auto", validator=_is_floor)
    relative: bool = False

    def floor(self, n: int) -> float:
        """Return the smallest eigenvalue that n x n matrices may have; if ``relative``, over their mean eigenvalue."""
        smallest = 40 * n**2 * EPS if self.relative else 1e-4
        return smallest if self.tau == "auto" else float(self.tau)

    def encode(self, points: ArrayLike) -> Array:
        """Return matrices (N, n, n) as they are; raise ValueError at the first that is not positive definite.

        If tau is absolute, it must also be below the mean eigenvalue of every matrix, or it would replace the data.
        """
        matrices = check_positive_definite(points)
        size = mean_eigenvalue(matrices)
        floor = self.floor(matrices.shape[-1])
        index = None if self.relative else first_bad(size <= floor)
        if index is not None:
            raise PointError(
                index,
                f"has mean eigenvalue {size[index]:.3g}, not above tau={floor:g}, to which eigenvalues "
                "are raised. Rescale the data or use ProjectedEuclidean(relative=True)",
            )
        return matrices

    def decode(self, codes: Array) -> Array:
        """Return the matrices themselves, shape (K, n, n)."""
        return np.array(codes)

    @has_kernel("projected_euclidean")
    def move(self, geodesics: FlatGeodesics, weights: Array) -> Array:
        """Move along straight lines, then raise the eigenvalues below the floor; shape (K, n, n)."""
        return self._raised(flat_move(geodesics, weights), geodesics.prototypes)

    def exp(self, prototypes: Array, tangents: Array) -> Array:
        """Add tangents (K, n, n) of ``pull`` to the prototypes, then raise the eigenvalues below the floor."""
        return self._raised(flat_exp(prototypes, tangents), np.asarray(prototypes))

    def _raised(self, moved: Array, before: Array) -> Array:
        """Raise, in place, the eigenvalues below the floor of ``moved``, which were at ``before`` (K, n, n)."""
        eigenvalues, eigenvectors = np.linalg.eigh(moved)
        unit = mean_eigenvalue(before) if self.relative else np.ones(len(moved))
        floor = self.floor(moved.shape[-1]) * unit
        low = eigenvalues[:, 0] < floor  # the others keep their bits
        if low.any():
            moved[low] = from_spectrum(np.maximum(eigenvalues[low], floor[low, None]), eigenvectors[low])
        return moved

    @reads_parts
    def unit(self, codes: Array, weights: Array | None = None) -> float:
        """Return the squared mean eigenvalue of the weighted data (N, n, n), which is 1 for the paper's data."""
        return float(np.average(by_block(mean_eigenvalue, codes), weights=weights) ** 2)
