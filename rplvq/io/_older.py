"""What files of older versions hold that has another place today."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from rplvq.selection import Choice

REMOVED_FIELDS = {"StepSize": ("horizon",)}
"""Fields that parts no longer have; they acted on later calls of ``partial_fit`` only."""


def with_metric(parameters: dict[str, object]) -> dict[str, object]:
    """Return the parameters of a file, or their JSON, without ``manifold``, which an absent ``metric`` stood for."""
    parameters = dict(parameters)
    if "manifold" in parameters:
        former = parameters.pop("manifold")
        metric = parameters.get("metric")
        if metric is None or (isinstance(metric, str) and metric == "null"):
            parameters["metric"] = former
    return parameters


def choice_of(trials: Mapping[str, Any] | None) -> Choice | None:
    """Return the choice that the trials of older versions made, None if there were none.

    Their losses are left out, because they are of different folds. What was chosen, and the calibration of sigma2,
    which later calls of ``partial_fit`` need, are kept.
    """
    table = trials or {}
    rows = np.flatnonzero(table.get("chosen", ()))
    if not len(rows):
        return None
    trains = bool(table["n_epochs"][rows[0]] > 0)
    return Choice(str(table["candidate"][rows[0]]), trains, calibration=float(table["calibration"][rows[0]]))


def restored(estimator: BaseEstimator) -> BaseEstimator:
    """Return an estimator, or the reject option around it, which older versions stored as an attribute of it."""
    rejection = vars(estimator).pop("rejection_", None)
    return estimator if rejection is None else rejection.around(estimator)
