"""K prototypes as one point of a pymanopt manifold, the product of K copies of a geometry of rplvq.

Tangents have the coordinates of the geometry's ``pull`` and ``exp``. A solver also needs inner products and the
transport of tangents, which this module adds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pymanopt.manifolds.manifold import Manifold as PymanoptManifold

from rplvq.arrays import adjoint
from rplvq.manifolds import (
    AffineInvariant,
    EuclideanVectors,
    FromPymanopt,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    TangentSpace,
    inverse_factors,
)
from rplvq.protocols import Array, Manifold, Prototypes
from rplvq.training._step import follow


def rotate(starts: Array, ends: Array, tangents: Array) -> Array:
    """Transport whitened tangents ``G V G^H`` along affine-invariant geodesics; all arrays have shape (K, n, n).

    Parallel transport from W to ``W' = W^1/2 exp(S) W^1/2`` is ``V -> E V E^H`` with ``E = W^1/2 exp(S/2) W^-1/2`` (Sra
    and Hosseini 2015, doi:10.1137/140978168). In coordinates whitened by the inverse factors G (``starts``) and G'
    (``ends``) it is a rotation by U, the unitary polar factor of ``G' G^-1``: the result is ``U (G V G^H) U^H``.
    """
    left, _, right = np.linalg.svd(ends @ np.linalg.inv(starts))
    turn = left @ right
    return np.asarray(turn @ tangents @ adjoint(turn))


def pole_ladder(geometry: FromPymanopt, start: Array, end: Array, tangent: Array, length: float) -> Array:
    """Transport a tangent along the geodesic from one point of a pymanopt manifold to another.

    The end point p of the tangent is reflected at the midpoint m of the geodesic: ``T v = -Log_end(Exp_m(-Log_m p))``.
    In symmetric spaces (spheres, Grassmann manifolds, hyperbolic space, positive definite matrices) this is exact
    parallel transport, elsewhere it is of third order (Guigui and Pennec 2022, doi:10.1007/s10208-021-09515-x).
    pymanopt's own ``transport`` is the identity or a projection on some manifolds. For the computation the tangent is
    shortened to a tenth of ``length``, so that p stays close to its start.
    """
    manifold, log = geometry.manifold, geometry.log
    size = float(manifold.norm(start, tangent))
    if size == 0 or np.array_equal(start, end):
        return tangent
    share = min(1.0, 0.1 * length / size)
    middle = manifold.exp(start, 0.5 * log(start, end))
    tip = manifold.exp(start, share * tangent)
    return np.asarray(-log(end, manifold.exp(middle, -log(middle, tip))) / share)


class Tangents(NamedTuple):
    """The operations on K tangents of a geometry that solvers need."""

    products: Callable[..., Array]  # (geometry, point, first, second) -> K inner products
    transport: Callable[..., Array]  # (geometry, start, end, tangents, length) -> tangents at the end


def _plain_products(_: Any, __: Prototypes, first: Array, second: Array) -> Array:
    flat = (tangents.reshape(len(tangents), -1) for tangents in (first, second))
    return np.asarray(np.vecdot(*flat).real)


def _pymanopt_products(geometry: FromPymanopt, point: Prototypes, first: Array, second: Array) -> Array:
    inner, bases = geometry.manifold.inner_product, np.asarray(point)
    return np.array([float(inner(*triple)) for triple in zip(bases, first, second, strict=True)])


def _by_rotation(_: Any, start: Prototypes, end: Prototypes, tangents: Array, __: float) -> Array:
    return rotate(inverse_factors(start), inverse_factors(end), tangents)


def _by_ladder(geometry: FromPymanopt, start: Prototypes, end: Prototypes, tangents: Array, length: float) -> Array:
    triples = zip(np.asarray(start), np.asarray(end), tangents, strict=True)
    return np.array([pole_ladder(geometry, *triple, length) for triple in triples])


FLAT = Tangents(_plain_products, lambda _, __, ___, tangents, ____: tangents)
TANGENTS: dict[type, Tangents] = {
    AffineInvariant: Tangents(_plain_products, _by_rotation),
    FromPymanopt: Tangents(_pymanopt_products, _by_ladder),
    **dict.fromkeys((EuclideanVectors, LogCholesky, LogEuclidean, ProjectedEuclidean, TangentSpace), FLAT),
}
"""The geometries for which solvers work."""


class PrototypeStack(PymanoptManifold):  # type: ignore[misc]
    """The product of K copies of a geometry, for pymanopt's solvers.

    Points are prototypes in the internal representation of the geometry; tangents are arrays (K, ...). ``scale``, the
    distance over which a prototype is expected to move, sets the length of first steps, and ``max_length`` is the
    longest step of a prototype.
    """

    def __init__(self, geometry: Manifold[Any], prototypes: Prototypes, scale: float, max_length: float) -> None:
        shape, n_prototypes = np.shape(prototypes), len(prototypes)
        self.geometry, self.shape, self.max_length = geometry, shape, max_length
        self.tangents = TANGENTS[type(geometry)]
        self.dtype = np.asarray(prototypes).dtype
        self._scale = scale * float(np.sqrt(n_prototypes))
        super().__init__(f"{n_prototypes} prototypes of {geometry!r}", int(np.prod(shape)))

    @property
    def typical_dist(self) -> float:
        """Distance over which all prototypes together are expected to move."""
        return self._scale

    def _products(self, point: Prototypes, first: Array, second: Array) -> Array:
        return self.tangents.products(self.geometry, point, first, second)

    def inner_product(self, point: Prototypes, tangent_vector_a: Array, tangent_vector_b: Array) -> float:
        """Return the inner product of two tangents (K, ...), summed over the prototypes."""
        return float(self._products(point, tangent_vector_a, tangent_vector_b).sum())

    def norm(self, point: Prototypes, tangent_vector: Array) -> float:
        """Return the length of a tangent (K, ...)."""
        return float(np.sqrt(max(self.inner_product(point, tangent_vector, tangent_vector), 0.0)))

    def retraction(self, point: Prototypes, tangent_vector: Array) -> Prototypes:
        """Move all prototypes along the geodesics of a tangent (K, ...), each by at most ``max_length``."""
        if np.isfinite(self.max_length):
            lengths = np.sqrt(self._products(point, tangent_vector, tangent_vector))
            return follow(self.geometry, point, tangent_vector, lengths, self.max_length)[0]
        return self.geometry.exp(point, tangent_vector)  # type: ignore[attr-defined]

    exp = retraction

    def dist(self, point_a: Prototypes, point_b: Prototypes) -> float:
        """Return the root of the summed squared distances of the prototypes."""
        # All pairs, from the internal representation: near the edge of the manifold, codes can be singular by rounding.
        return float(np.sqrt(self.geometry.sqdist(point_a, np.asarray(point_b)).trace()))

    def transport(self, point_a: Prototypes, point_b: Prototypes, tangent_vector_a: Array) -> Array:
        """Transport a tangent (K, ...) from one point to another, along the geodesics between them."""
        return self.tangents.transport(self.geometry, point_a, point_b, tangent_vector_a, self._scale)

    def projection(self, point: Prototypes, vector: Array) -> Array:
        """Return the tangent (K, ...) as it is, because every array is a tangent."""
        return vector

    to_tangent_space = projection

    def zero_vector(self, point: Prototypes) -> Array:
        """Return the zero tangent (K, ...)."""
        return np.zeros(self.shape, dtype=self.dtype)

    def random_point(self) -> Prototypes:
        """Raise NotImplementedError, because solvers start from given prototypes."""
        raise NotImplementedError("solvers start from the prototypes of the initializer")

    def random_tangent_vector(self, point: Prototypes) -> Array:
        """Raise NotImplementedError, because the solvers in use need no random tangent."""
        raise NotImplementedError("no solver that is used here needs a random tangent")
