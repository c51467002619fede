"""Geometries: one file each, all of them meeting :class:`rplvq.protocols.Manifold`."""

from rplvq.manifolds.affine_invariant import AffineInvariant
from rplvq.manifolds.euclidean import EuclideanVectors
from rplvq.manifolds.from_pymanopt import FromPymanopt
from rplvq.manifolds.log_euclidean import LogEuclidean
from rplvq.manifolds.projected_euclidean import ProjectedEuclidean

__all__ = ["AffineInvariant", "EuclideanVectors", "FromPymanopt", "LogEuclidean", "ProjectedEuclidean"]
