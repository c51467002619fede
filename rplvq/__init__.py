"""Prototype learning on Riemannian manifolds: pluggable metric, cost and schedules."""

from rplvq.costs import PLVQ, RSLVQ
from rplvq.estimator import RiemannianLVQ
from rplvq.initializers import ClassKMeans, ClassMeans
from rplvq.manifolds import AffineInvariant, EuclideanVectors, FromPymanopt, LogEuclidean, ProjectedEuclidean
from rplvq.schedules import Annealed, Constant, GeometricDecay, StepDecay
from rplvq.trainer import Trainer

__version__ = "0.1.0"

__all__ = [
    "PLVQ",
    "RSLVQ",
    "AffineInvariant",
    "Annealed",
    "ClassKMeans",
    "ClassMeans",
    "Constant",
    "EuclideanVectors",
    "FromPymanopt",
    "GeometricDecay",
    "LogEuclidean",
    "ProjectedEuclidean",
    "RiemannianLVQ",
    "StepDecay",
    "Trainer",
]
