"""The scikit-learn face: the classifier, its predictions, its streams, and the names of its parts."""

from rplvq.estimators._classifier import RiemannianLVQ
from rplvq.estimators._fitting import draw_seed, make_trainer, seed_to_resume, store
from rplvq.estimators._names import (
    resolve_cost,
    resolve_counts,
    resolve_early_stopping,
    resolve_initializer,
    resolve_manifold,
    resolve_sigma2_rule,
    resolve_step_size,
)

__all__ = [
    "RiemannianLVQ",
    "draw_seed",
    "make_trainer",
    "resolve_cost",
    "resolve_counts",
    "resolve_early_stopping",
    "resolve_initializer",
    "resolve_manifold",
    "resolve_sigma2_rule",
    "resolve_step_size",
    "seed_to_resume",
    "store",
]
