"""Prototype learning on Riemannian manifolds: pluggable metric, cost and schedules."""

__version__ = "0.1.0"

from rplvq import _start  # noqa: F401  (first, because it answers Ctrl-C during the other imports)
from rplvq.costs import GLVQ, PLVQ, RSLVQ, Representability
from rplvq.estimators import RiemannianLVQ, TransferClassifier
from rplvq.evaluation import RejectOption, compare, explain
from rplvq.initializers import ClassKMeans, ClassMeans, DiscriminantMeans
from rplvq.io import Checkpoint, load_model
from rplvq.manifolds import (
    AffineInvariant,
    BuresWasserstein,
    EuclideanVectors,
    FromPymanopt,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    Product,
    ProjectedEuclidean,
    TangentSpace,
)
from rplvq.preprocessing import Recenter, Rescale, Rotate, SPDProjection
from rplvq.schedules import AdaptiveStep, Annealed, Constant, GeometricDecay, HeldOut, StepDecay, StepSize
from rplvq.training import EarlyStopping, Grow, Prune, Trainer

__all__ = [
    "GLVQ", "PLVQ", "RSLVQ", "AdaptiveStep", "AffineInvariant", "Annealed", "BuresWasserstein", "Checkpoint",
    "ClassKMeans", "ClassMeans", "Constant", "DiscriminantMeans", "EarlyStopping", "EuclideanVectors", "FromPymanopt",
    "GeometricDecay", "Grow", "HeldOut", "LearnedLogEuclidean", "LogCholesky", "LogEuclidean", "Product",
    "ProjectedEuclidean", "Prune", "Recenter", "RejectOption", "Representability", "Rescale", "RiemannianLVQ", "Rotate",
    "SPDProjection", "StepDecay", "StepSize", "TangentSpace", "Trainer", "TransferClassifier", "compare", "explain",
    "load_model",
]  # fmt: skip
