"""Geometries: one file each, all of them meeting :class:`rplvq.protocols.Manifold`."""

from rplvq.manifolds.affine_invariant import AffineInvariant
from rplvq.manifolds.bures_wasserstein import BuresWasserstein
from rplvq.manifolds.euclidean import EuclideanVectors
from rplvq.manifolds.from_pymanopt import FromPymanopt
from rplvq.manifolds.learned_log_euclidean import LearnedLogEuclidean
from rplvq.manifolds.log_cholesky import LogCholesky
from rplvq.manifolds.log_euclidean import LogEuclidean
from rplvq.manifolds.projected_euclidean import ProjectedEuclidean

__all__ = [
    "AffineInvariant",
    "BuresWasserstein",
    "EuclideanVectors",
    "FromPymanopt",
    "LearnedLogEuclidean",
    "LogCholesky",
    "LogEuclidean",
    "ProjectedEuclidean",
]
