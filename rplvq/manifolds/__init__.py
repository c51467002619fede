"""Manifolds see points, never a label; each meets :class:`rplvq.protocols.Manifold`, and any of them has means."""

from rplvq.manifolds._affine_invariant import (
    EPS,
    AffineInvariant,
    AffineInvariantGeodesics,
    InverseFactors,
    inverse_factors,
)
from rplvq.manifolds._bures_wasserstein import BuresWasserstein
from rplvq.manifolds._flat import (
    EuclideanVectors,
    FlatGeodesics,
    LogCholesky,
    LogEuclidean,
    flat_connect,
    flat_exp,
    flat_move,
    flat_nearest,
    flat_pull,
    flat_sqdist,
)
from rplvq.manifolds._from_pymanopt import FromPymanopt
from rplvq.manifolds._learned_log_euclidean import LearnedLogEuclidean
from rplvq.manifolds._means import Look, Mean, descend, is_additive, riemannian_mean
from rplvq.manifolds._projected_euclidean import ProjectedEuclidean

__all__ = [
    "EPS",
    "AffineInvariant",
    "AffineInvariantGeodesics",
    "BuresWasserstein",
    "EuclideanVectors",
    "FlatGeodesics",
    "FromPymanopt",
    "InverseFactors",
    "LearnedLogEuclidean",
    "LogCholesky",
    "LogEuclidean",
    "Look",
    "Mean",
    "ProjectedEuclidean",
    "descend",
    "flat_connect",
    "flat_exp",
    "flat_move",
    "flat_nearest",
    "flat_pull",
    "flat_sqdist",
    "inverse_factors",
    "is_additive",
    "riemannian_mean",
]
