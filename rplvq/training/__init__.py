"""Moves prototypes; knows no scikit-learn estimator.

:class:`rplvq.Trainer` runs epochs of steps. Compiled steps are in :mod:`rplvq.training.compiled`.
"""

from rplvq.training._growth import Grow, Growth, Prune
from rplvq.training._loop import (
    Callback,
    EarlyStopping,
    EpochScore,
    Hook,
    calling,
    decoded,
    diverged,
    edge_trouble,
    hooks_of,
    require_finite,
    run_epochs,
    step_trouble,
    warn_of,
    worse_trouble,
)
from rplvq.training._resize import Window, new_codes, restored, with_prototypes, without_prototypes
from rplvq.training._state import (
    EpochReport,
    Meter,
    Origin,
    Progress,
    Result,
    Score,
    State,
    append_columns,
    columns,
    estimate,
    history_row,
    if_possible,
    measure,
    untrained_history,
)
from rplvq.training._step import Contribution, Step, contribution, follow, pair_weights
from rplvq.training._trainer import Trainer
from rplvq.training.compiled import Decision, one_decision

__all__ = [
    "Callback", "Contribution", "Decision", "EarlyStopping", "EpochReport", "EpochScore", "Grow", "Growth", "Hook",
    "Meter", "Origin", "Progress", "Prune", "Result", "Score", "State", "Step", "Trainer", "Window",
    "append_columns", "calling", "columns", "contribution", "decoded", "diverged", "edge_trouble", "estimate", "follow",
    "history_row", "hooks_of", "if_possible", "measure", "new_codes", "one_decision", "pair_weights", "require_finite",
    "restored", "run_epochs", "step_trouble", "untrained_history", "warn_of", "with_prototypes",
    "without_prototypes", "worse_trouble",
]  # fmt: skip
