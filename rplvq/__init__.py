"""Prototype learning on Riemannian manifolds: pluggable metric, cost and schedules."""

__version__ = "0.1.0"

from rplvq.adaptive import AdaptiveStep
from rplvq.averaging import Averaging
from rplvq.checkpoint import Checkpoint
from rplvq.compare import compare
from rplvq.costs import GLVQ, PLVQ, RSLVQ, Representability
from rplvq.estimator import RiemannianLVQ
from rplvq.growth import Grow, Prune
from rplvq.heldout import HeldOut
from rplvq.initializers import ClassKMeans, ClassMeans
from rplvq.learned import Learned
from rplvq.manifolds import (
    AffineInvariant,
    BuresWasserstein,
    EuclideanVectors,
    FromPymanopt,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
)
from rplvq.persistence import load_model
from rplvq.projection import SPDProjection
from rplvq.recenter import Recenter
from rplvq.rejection import RejectOption
from rplvq.schedules import Annealed, Constant, GeometricDecay, StepDecay
from rplvq.trainer import Trainer

__all__ = [
    "GLVQ",
    "PLVQ",
    "RSLVQ",
    "AdaptiveStep",
    "AffineInvariant",
    "Annealed",
    "Averaging",
    "BuresWasserstein",
    "Checkpoint",
    "ClassKMeans",
    "ClassMeans",
    "Constant",
    "EuclideanVectors",
    "FromPymanopt",
    "GeometricDecay",
    "Grow",
    "HeldOut",
    "Learned",
    "LearnedLogEuclidean",
    "LogCholesky",
    "LogEuclidean",
    "ProjectedEuclidean",
    "Prune",
    "Recenter",
    "RejectOption",
    "Representability",
    "RiemannianLVQ",
    "SPDProjection",
    "StepDecay",
    "Trainer",
    "compare",
    "load_model",
]
