"""Any pymanopt manifold with exp and log, given a stochastic solver and prototypes."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs
import numpy as np
from pymanopt.manifolds.manifold import Manifold as PymanoptManifold

from rplvq.arrays import require_finite
from rplvq.exceptions import PointError
from rplvq.parts import library_part
from rplvq.protocols import Array

__all__ = ["FromPymanopt"]


class TangentGeodesics(NamedTuple):
    """Logarithms of the samples at each prototype."""

    sqdist: Array  # (B, K)
    logarithms: Array  # (B, K, ...)
    prototypes: Array  # (K, ...)


@library_part
@attrs.frozen
class FromPymanopt:
    """A pymanopt manifold (sphere, Grassmann, hyperbolic space, ...) as a geometry of rplvq.

    pymanopt's ``dist`` sums over stacks, so points are visited pair by pair: general, not fast.

    Parameters
    ----------
    manifold : pymanopt.manifolds.manifold.Manifold
        Points must be single arrays, and ``exp`` and ``log`` must exist.

    Raises
    ------
    TypeError
        If ``manifold`` lacks a method.

    Notes
    -----
    Squared distances are squared norms of the logarithms, so that the gradient ``-2 Log_w(x)`` and the
    distance belong together exactly.

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
    def _has_exp_and_log(self, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not isinstance(value, PymanoptManifold):
            raise TypeError(f"manifold must be a pymanopt manifold, got {value!r}")
        missing = [
            name
            for name in ("exp", "log", "norm", "retraction", "zero_vector")
            if getattr(type(value), name) is getattr(PymanoptManifold, name)
        ]
        if missing:
            raise TypeError(f"{value} does not offer {', '.join(missing)}, which prototypes need")
        if value.point_layout != 1:
            raise TypeError(f"the points of {value} are not single arrays")

    def encode(self, points: Any) -> Array:
        """Check points (N, ...): finite, of the manifold's shape, and on it up to rounding, which is taken away.

        Raises
        ------
        ValueError
            At the first point that a retraction of the zero tangent changes by more than 1e-6 of its
            norm (a vector off the unit sphere, a basis that is not orthonormal), or that has no
            logarithm to the first point (outside the hyperbolic ball).
        """
        array = np.asarray(points)
        if array.dtype.kind not in "biufc" or array.ndim < 2:
            raise ValueError(f"X must be numbers of shape (n_points, ...), got {array.dtype} of shape {array.shape}")
        if len(array) == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required")
        require_finite(array)
        codes = array.astype(complex if np.iscomplexobj(array) else float)
        return np.array([self._on_manifold(index, point, codes[0]) for index, point in enumerate(codes)])

    def _on_manifold(self, index: int, point: Array, other: Array) -> Array:
        """Return the point, or what a retraction makes of it if it is off by rounding (of float32, say)."""
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
        """Logarithm of one point; zero where both agree up to rounding: some of pymanopt's are 0 / 0 there."""
        if np.array_equal(base, point):
            return np.zeros_like(base)
        with np.errstate(invalid="ignore", divide="ignore"):
            logarithm = np.asarray(self.manifold.log(base, point))
        if not np.isfinite(logarithm).all() and np.allclose(base, point, rtol=1e-12, atol=0):
            return np.zeros_like(base)
        return logarithm

    def _sqdist(self, base: Array, point: Array, logarithm: Array) -> float:
        """Squared norm of the logarithm; where that vanishes at a cut point (antipodes), of pymanopt's dist."""
        if not logarithm.any() and not np.array_equal(base, point):
            return float(self.manifold.dist(base, point)) ** 2
        return float(self.manifold.norm(base, logarithm)) ** 2

    def decode(self, codes: Array) -> Array:
        """Points are their own coordinates, shape (K, ...)."""
        return np.array(codes)

    def sqdist(self, prototypes: Array, samples: Array) -> Array:
        """Squared distances, shape (B, K)."""
        return self.connect(prototypes, samples).sqdist

    def connect(self, prototypes: Array, samples: Array) -> TangentGeodesics:
        """Take the logarithm of each sample (B, ...) at each prototype (K, ...)."""
        prototypes = np.asarray(prototypes)
        logarithms = np.array([[self.log(base, point) for base in prototypes] for point in samples])
        sqdist = np.array(
            [
                [self._sqdist(base, point, vector) for base, vector in zip(prototypes, row, strict=True)]
                for point, row in zip(samples, logarithms, strict=True)
            ]
        )
        return TangentGeodesics(sqdist, logarithms, prototypes)

    def move(self, geodesics: TangentGeodesics, weights: Array) -> Array:
        """Sum the weighted logarithms at each prototype and follow the geodesic, shape (K, ...)."""
        return self.exp(geodesics.prototypes, self.pull(geodesics, weights))

    def pull(self, geodesics: TangentGeodesics, weights: Array) -> Array:
        """Weighted sums of the logarithms, shape (K, ...), as pymanopt writes tangents; they add over batches."""
        return np.asarray(np.einsum("bk,bk...->k...", weights, geodesics.logarithms))

    def exp(self, prototypes: Array, tangents: Array) -> Array:
        """Follow the geodesics of tangents from :meth:`pull`, shape (K, ...)."""
        return np.array(
            [
                self.manifold.exp(base, tangent) if tangent.any() else base
                for base, tangent in zip(np.asarray(prototypes), tangents, strict=True)
            ]
        )
