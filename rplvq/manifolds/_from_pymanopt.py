"""Any manifold of pymanopt that has exp and log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np

from rplvq.arrays import require_finite, unmasked
from rplvq.exceptions import PointError
from rplvq.parts import library_part
from rplvq.protocols import Array, ArrayLike

if TYPE_CHECKING:
    from pymanopt.manifolds.manifold import Manifold as PymanoptManifold


def is_from_pymanopt(value: object) -> bool:
    """Whether a value is a manifold of pymanopt; this package imports pymanopt only where it computes with it."""
    module = sys.modules.get("pymanopt.manifolds.manifold")  # absent: nobody has made such a manifold
    return module is not None and isinstance(value, module.Manifold)


class TangentGeodesics(NamedTuple):
    """Logarithms of the samples at each prototype."""

    sqdist: Array  # (B, K)
    logarithms: Array  # (B, K, ...)
    prototypes: Array  # (K, ...)


@library_part
@attrs.frozen
class FromPymanopt:
    """A pymanopt manifold (sphere, Grassmann, hyperbolic space, ...) as a geometry of rplvq.

    It is slow, because pymanopt sums distances over stacks of points, so that pairs must be computed one by one.

    Parameters
    ----------
    manifold : pymanopt.manifolds.manifold.Manifold
        A manifold with ``exp`` and ``log`` whose points are single arrays; TypeError is raised if it lacks a method.

    Notes
    -----
    Squared distances are squared norms of the logarithms, so that ``-2 Log_w(x)`` is exactly their gradient.

    Examples
    --------
    >>> from pymanopt.manifolds import Sphere
    >>> from rplvq import FromPymanopt
    >>> manifold = FromPymanopt(Sphere(3))
    >>> north, east = np.eye(3)[2:], np.eye(3)[:1]
    >>> geodesics = manifold.connect(north, east)
    >>> np.sqrt(geodesics.sqdist)
    array([[1.57079633]])
    >>> manifold.move(geodesics, np.array([[0.5]])).round(6)
    array([[0.707107, 0.      , 0.707107]])
    """

    manifold: PymanoptManifold = attrs.field(repr=str)

    @manifold.validator
    def _has_exp_and_log(self, attribute: attrs.Attribute[object], value: PymanoptManifold) -> None:
        if not is_from_pymanopt(value):
            raise TypeError(f"manifold must be a pymanopt manifold, got {value!r}")
        from pymanopt.manifolds.manifold import Manifold as PymanoptManifold

        needed = ("exp", "log", "norm", "retraction", "zero_vector")  # the base class only raises errors in them
        missing = [name for name in needed if getattr(type(value), name) is getattr(PymanoptManifold, name)]
        if missing:
            why = f"{value} lacks {', '.join(missing)}, which rplvq needs to move prototypes"
            raise TypeError(f"{why}: choose a pymanopt manifold that defines them")
        if value.point_layout != 1:
            raise TypeError(f"the points of {value} are not single arrays")

    def encode(self, points: ArrayLike) -> Array:
        """Check that points (N, ...) are finite and on the manifold, and remove rounding.

        ValueError is raised at the first point that a retraction of the zero tangent changes by more than 1e-6 of its
        norm, such as a vector off the unit sphere, or that has no logarithm to the first point.
        """
        array = np.asarray(unmasked(points))
        if array.dtype.kind not in "biufc" or array.ndim < 2:
            raise ValueError(f"X must be numbers of shape (n_points, ...), got {array.dtype} of shape {array.shape}")
        if len(array) == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required")
        require_finite(array)
        codes = array.astype(complex if np.iscomplexobj(array) else float)
        return np.array([self._on_manifold(index, point, codes[0]) for index, point in enumerate(codes)])

    def _on_manifold(self, index: int, point: Array, other: Array) -> Array:
        """Return the point, or its retraction if rounding, such as that of float32, has moved it off the manifold."""
        with np.errstate(all="ignore"):
            try:
                retracted = self.manifold.retraction(point, self.manifold.zero_vector(point))
                gap = np.abs(retracted - point).max()
                logarithm = self.log(point, other)
            except (ValueError, np.linalg.LinAlgError) as error:
                raise PointError(index, f"is not a point of {self.manifold}: {error}") from error
        if gap > 1e-6 * np.abs(point).max():
            raise PointError(index, f"is not a point of {self.manifold}: off by {gap:.3g} (largest entry)")
        if not np.isfinite(logarithm).all():
            raise PointError(index, f"is not a point of {self.manifold}: its logarithm to X[0] is not finite")
        return np.asarray(retracted) if gap > 1e-12 * np.abs(point).max() else point

    def log(self, base: Array, point: Array) -> Array:
        """Return the logarithm (...) of one point at another, which is zero if both agree up to rounding."""
        # Some logarithms of pymanopt are 0 / 0 if both points agree.
        if np.array_equal(base, point):
            return np.zeros_like(base)
        with np.errstate(invalid="ignore", divide="ignore"):
            logarithm = np.asarray(self.manifold.log(base, point))
        if not np.isfinite(logarithm).all() and np.allclose(base, point, rtol=1e-12, atol=0):
            return np.zeros_like(base)
        return logarithm

    def _sqdist(self, base: Array, point: Array, logarithm: Array) -> float:
        """Return the squared norm of the logarithm, or the square of pymanopt's ``dist`` for antipodes."""
        # The logarithm of a cut point is not unique, and pymanopt returns zero.
        if not logarithm.any() and not np.array_equal(base, point):
            return float(self.manifold.dist(base, point)) ** 2
        return float(self.manifold.norm(base, logarithm)) ** 2

    def decode(self, codes: Array) -> Array:
        """Return the points themselves, shape (K, ...)."""
        return np.array(codes)

    def sqdist(self, prototypes: Array, samples: Array) -> Array:
        """Return the squared distances, shape (B, K)."""
        return self.connect(prototypes, samples).sqdist

    def connect(self, prototypes: Array, samples: Array) -> TangentGeodesics:
        """Compute the logarithm of each sample (B, ...) at each prototype (K, ...)."""
        prototypes = np.asarray(prototypes)
        pairs = [[(base, point, self.log(base, point)) for base in prototypes] for point in samples]
        logarithms = np.array([[logarithm for _, _, logarithm in row] for row in pairs])
        sqdist = np.array([[self._sqdist(*pair) for pair in row] for row in pairs])
        return TangentGeodesics(sqdist, logarithms, prototypes)

    def move(self, geodesics: TangentGeodesics, weights: Array) -> Array:
        """Follow the weighted sum of the logarithms at each prototype, shape (K, ...)."""
        return self.exp(geodesics.prototypes, self.pull(geodesics, weights))

    def pull(self, geodesics: TangentGeodesics, weights: Array) -> Array:
        """Return the weighted sums of the logarithms, shape (K, ...), in pymanopt's coordinates of tangents."""
        return np.asarray(np.einsum("bk,bk...->k...", weights, geodesics.logarithms))

    def exp(self, prototypes: Array, tangents: Array) -> Array:
        """Follow tangents (K, ...) of :meth:`pull`."""
        pairs = zip(np.asarray(prototypes), tangents, strict=True)
        return np.array([self.manifold.exp(base, tangent) if tangent.any() else base for base, tangent in pairs])
