"""What files of older versions hold that has another place today."""

from typing import Any

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


def with_choice(values: dict[str, Any], trials: str = "trials_", choice: str = "choice_") -> dict[str, Any]:
    """Return the values of a file with a ``choice``, which takes the place of the ``trials`` of older versions.

    The losses of older trials are left out, because they are of different folds. What was chosen, and the calibration
    of sigma2, which later calls of ``partial_fit`` need, are kept. Values without a ``trainer_`` have no choice.
    """
    if trials == "trials_" and "trainer_" not in values:
        return values
    values = dict(values)
    table = values.pop(trials, None) or {}
    values.setdefault(choice, None)
    for row, is_chosen in enumerate(table.get("chosen", ())):
        if is_chosen:
            trains = bool(table["n_epochs"][row] > 0)
            values[choice] = Choice(str(table["candidate"][row]), trains, calibration=float(table["calibration"][row]))
    return values


def restored(estimator: BaseEstimator) -> BaseEstimator:
    """Return an estimator, or the reject option around it, which older versions stored as an attribute of it."""
    rejection = vars(estimator).pop("rejection_", None)
    return estimator if rejection is None else rejection.around(estimator)
