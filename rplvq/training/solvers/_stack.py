"""K prototypes as one point of a pymanopt manifold: the product of K copies of a geometry of rplvq.

Tangents are what the geometry's ``pull`` returns and its ``exp`` follows. A solver needs two more things, which are
here: the inner product of two tangents, and how a tangent is carried to another point.
"""

from __future__ import annotations

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
    inverse_factors,
)
from rplvq.protocols import Array, Manifold, Prototypes

__all__ = ["TANGENTS", "PrototypeStack", "rotate"]


def rotate(starts: Array, ends: Array, tangents: Array) -> Array:
    """Carry whitened tangents along the geodesics of the affine-invariant metric.

    Parallel transport from W to ``W' = W^1/2 exp(S) W^1/2`` is ``V -> E V E^H`` with ``E = W^1/2 exp(S/2) W^-1/2`` (Sra
    and Hosseini 2015, doi:10.1137/140978168). In coordinates whitened by the inverse factors G and G' it is a rotation
    by U, the unitary polar factor of ``G' G^-1``.

    Parameters
    ----------
    starts, ends : ndarray of shape (K, n, n)
        Inverse factors G and G'.
    tangents : ndarray of shape (K, n, n)
        ``G V G^H``.

    Returns
    -------
    ndarray of shape (K, n, n)
        ``U (G V G^H) U^H``.

    Examples
    --------
    >>> turn = np.array([[[0.0, 1.0], [-1.0, 0.0]]])
    >>> rotate(np.eye(2)[None], turn, np.diag([1.0, 2.0])[None])
    array([[[2., 0.],
            [0., 1.]]])
    """
    left, _, right = np.linalg.svd(ends @ np.linalg.inv(starts))
    turn = left @ right
    return np.asarray(turn @ tangents @ adjoint(turn))


def pole_ladder(geometry: FromPymanopt, start: Array, end: Array, tangent: Array, length: float) -> Array:
    """Carry a tangent along the geodesic from one point of a pymanopt manifold to another.

    The tip ``p`` of the tangent is reflected at the midpoint m of the way: ``T v = -Log_end(Exp_m(-Log_m p))``. In
    symmetric spaces (spheres, Grassmann manifolds, hyperbolic space, positive definite matrices) this is parallel
    transport exactly, elsewhere to third order (Guigui and Pennec 2022, "Numerical accuracy of ladder schemes for
    parallel transport on manifolds", doi:10.1007/s10208-021-09515-x). pymanopt's own ``transport`` is the
    identity or a projection on some manifolds.

    Parameters
    ----------
    geometry : FromPymanopt
        The manifold.
    start, end : ndarray
        Two points.
    tangent : ndarray
        At ``start``.
    length : float
        Tangents are shortened to a tenth of this on the way.

    Returns
    -------
    ndarray
        Tangent at ``end``.
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
    """What a solver must know about the tangents of a geometry, beside how ``exp`` follows them.

    Parameters
    ----------
    products : callable
        ``products(geometry, point, first, second)`` returns K inner products.
    transport : callable
        ``transport(geometry, start, end, tangents, length)`` carries K tangents along the geodesics between two points.
    """

    products: Callable[..., Array]
    transport: Callable[..., Array]


def _plain_products(_: Any, __: Prototypes, first: Array, second: Array) -> Array:
    flat = (tangents.reshape(len(tangents), -1) for tangents in (first, second))
    return np.asarray(np.vecdot(*flat).real)


def _pymanopt_products(geometry: FromPymanopt, point: Prototypes, first: Array, second: Array) -> Array:
    inner, bases = geometry.manifold.inner_product, np.asarray(point)
    return np.array([float(inner(*triple)) for triple in zip(bases, first, second, strict=True)])


def _stay(_: Any, __: Prototypes, ___: Prototypes, tangents: Array, ____: float) -> Array:
    return tangents


def _rotate(_: Any, start: Prototypes, end: Prototypes, tangents: Array, __: float) -> Array:
    return rotate(inverse_factors(start), inverse_factors(end), tangents)


def _climb(geometry: FromPymanopt, start: Prototypes, end: Prototypes, tangents: Array, length: float) -> Array:
    triples = zip(np.asarray(start), np.asarray(end), tangents, strict=True)
    return np.array([pole_ladder(geometry, *triple, length) for triple in triples])


FLAT = Tangents(_plain_products, _stay)
TANGENTS: dict[type, Tangents] = {
    AffineInvariant: Tangents(_plain_products, _rotate),
    FromPymanopt: Tangents(_pymanopt_products, _climb),
    **dict.fromkeys((EuclideanVectors, LogCholesky, LogEuclidean, ProjectedEuclidean), FLAT),
}
"""The geometries that solvers know."""


class PrototypeStack(PymanoptManifold):  # type: ignore[misc]
    """The product of K copies of a geometry, for pymanopt's solvers.

    Points are prototypes as their geometry carries them, tangents arrays of shape (K, ...).

    Parameters
    ----------
    geometry : Manifold
        One of those in :data:`TANGENTS`.
    prototypes : Prototypes
        Of the shape of all points.
    scale : float
        Distance over which prototypes are expected to move: first steps have this length.
    max_length : float
        Longest step of a prototype; longer ones are cut.
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
        """The distance over which all prototypes together are expected to move."""
        return self._scale

    def lengths(self, point: Prototypes, tangents: Array) -> Array:
        """Squared norms of the tangents of each prototype, shape (K,)."""
        return self._products(point, tangents, tangents)

    def _products(self, point: Prototypes, first: Array, second: Array) -> Array:
        return self.tangents.products(self.geometry, point, first, second)

    def inner_product(self, point: Prototypes, tangent_vector_a: Array, tangent_vector_b: Array) -> float:
        """Sum over the prototypes of the inner products of their tangents (K, ...)."""
        return float(self._products(point, tangent_vector_a, tangent_vector_b).sum())

    def norm(self, point: Prototypes, tangent_vector: Array) -> float:
        """Length of a tangent (K, ...)."""
        return float(np.sqrt(max(self.inner_product(point, tangent_vector, tangent_vector), 0.0)))

    def retraction(self, point: Prototypes, tangent_vector: Array) -> Prototypes:
        """Follow the geodesics of a tangent (K, ...); prototypes whose step is too long go as far as they may."""
        if np.isfinite(self.max_length):
            lengths = np.sqrt(self.lengths(point, tangent_vector))
            if (lengths > self.max_length).any():
                shares = self.max_length / np.maximum(lengths, self.max_length)
                tangent_vector = tangent_vector * shares.reshape(-1, *[1] * (tangent_vector.ndim - 1))
        return self.geometry.exp(point, tangent_vector)  # type: ignore[attr-defined]

    exp = retraction

    def dist(self, point_a: Prototypes, point_b: Prototypes) -> float:
        """Root of the summed squared distances of the prototypes."""
        starts, ends, sqdist = np.asarray(point_a), np.asarray(point_b), self.geometry.sqdist
        pairs = (sqdist(starts[k : k + 1], ends[k : k + 1])[0, 0] for k in range(len(starts)))
        return float(np.sqrt(sum(pairs)))

    def transport(self, point_a: Prototypes, point_b: Prototypes, tangent_vector_a: Array) -> Array:
        """Carry a tangent (K, ...) from one point to another along the geodesics between them."""
        return self.tangents.transport(self.geometry, point_a, point_b, tangent_vector_a, self._scale)

    def projection(self, point: Prototypes, vector: Array) -> Array:
        """Tangents (K, ...) stay what they are."""
        return vector

    to_tangent_space = projection

    def zero_vector(self, point: Prototypes) -> Array:
        """Return the tangent 0, shape (K, ...)."""
        return np.zeros(self.shape, dtype=self.dtype)

    def random_point(self) -> Prototypes:
        """Raise NotImplementedError: solvers start from the prototypes of the initializer."""
        raise NotImplementedError("solvers start from the prototypes of the initializer")

    def random_tangent_vector(self, point: Prototypes) -> Array:
        """Raise NotImplementedError: no solver that is used here needs one."""
        raise NotImplementedError("no solver that is used here needs a random tangent")
