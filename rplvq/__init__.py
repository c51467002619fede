"""Prototype learning on Riemannian manifolds: pluggable metric, cost and schedules."""

__version__ = "0.1.0"

from rplvq import _start  # noqa: F401  (first, because it answers Ctrl-C during the other imports)
from rplvq.costs import GLVQ, PLVQ, RSLVQ, Representability
from rplvq.estimators import RiemannianLVQ, TransferClassifier
from rplvq.evaluation import compare
from rplvq.features import CommonSubspace, TrialCovariances
from rplvq.initializers import ClassKMeans, ClassMeans, DiscriminantMeans
from rplvq.inspection import RejectOption, explain, model_card
from rplvq.io import Checkpoint, load_model, save_model
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
from rplvq.preprocessing import Recenter, SPDProjection
from rplvq.schedules import AdaptiveStep, Annealed, Constant, GeometricDecay, Share, StepDecay, StepSize
from rplvq.selection import HeldOut
from rplvq.training import EarlyStopping, Grow, Prune, Trainer

__all__ = [
    "GLVQ", "PLVQ", "RSLVQ", "AdaptiveStep", "AffineInvariant", "Annealed", "BuresWasserstein", "Checkpoint",
    "ClassKMeans", "ClassMeans", "CommonSubspace", "Constant", "DiscriminantMeans", "EarlyStopping", "EuclideanVectors",
    "FromPymanopt", "GeometricDecay", "Grow", "HeldOut", "LearnedLogEuclidean", "LogCholesky", "LogEuclidean",
    "Product", "ProjectedEuclidean", "Prune", "Recenter", "RejectOption", "Representability",
    "RiemannianLVQ", "SPDProjection", "Share", "StepDecay", "StepSize", "TangentSpace", "Trainer",
    "TransferClassifier", "TrialCovariances", "compare", "explain", "load_model", "model_card", "save_model",
]  # fmt: skip


def __dir__() -> list[str]:
    """List what completion shows: the names for users, and the rooms that hold further ones."""
    return [
        *("__version__", *__all__),
        "arrays", "capabilities", "costs", "datasets", "distributed", "estimators", "evaluation", "exceptions",
        "features", "initializers", "inspection", "io", "manifolds", "parts", "plotting", "preprocessing", "presets",
        "protocols", "schedules", "selection", "testing", "training",
    ]  # fmt: skip
