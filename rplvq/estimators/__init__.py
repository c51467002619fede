"""The scikit-learn interface: the classifier, its predictions and streams, transfer, and the names of its parts."""

from rplvq.estimators._classifier import RiemannianLVQ
from rplvq.estimators._fitting import (
    ambient_of,
    begin_training,
    initializer_of,
    make_trainer,
    new_or_resumed,
    planned,
    referenced,
    store,
)
from rplvq.estimators._names import (
    manifold_of,
    resolve_cost,
    resolve_counts,
    resolve_early_stopping,
    resolve_manifold,
    resolve_step_size,
)
from rplvq.estimators._transfer import TransferClassifier

__all__ = [
    "RiemannianLVQ", "TransferClassifier", "ambient_of", "begin_training", "initializer_of", "make_trainer",
    "manifold_of", "new_or_resumed", "planned", "referenced", "resolve_cost", "resolve_counts",
    "resolve_early_stopping", "resolve_manifold", "resolve_step_size", "store",
]  # fmt: skip


def __dir__() -> list[str]:
    """List what users call, which is what completion shows; the other names are for rooms of the library."""
    return ["RiemannianLVQ", "TransferClassifier"]
