"""Geometries: one file each, all of them meeting :class:`rplvq.protocols.Manifold`."""

from rplvq.manifolds._affine_invariant import (
    EPS,
    AffineInvariant,
    AffineInvariantGeodesics,
    InverseFactors,
    inverse_factors,
)
from rplvq.manifolds._bures_wasserstein import BuresWasserstein
from rplvq.manifolds._euclidean import EuclideanVectors
from rplvq.manifolds._flat import FlatGeodesics, flat_connect, flat_exp, flat_move, flat_nearest, flat_pull, flat_sqdist
from rplvq.manifolds._from_pymanopt import FromPymanopt
from rplvq.manifolds._learned_log_euclidean import LearnedLogEuclidean
from rplvq.manifolds._log_cholesky import LogCholesky
from rplvq.manifolds._log_euclidean import LogEuclidean
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
