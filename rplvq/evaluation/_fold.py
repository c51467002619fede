"""One estimator in one fold of a comparison: fit, predict, score, with names in errors."""

from __future__ import annotations

import time
import warnings
from types import TracebackType
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.metrics import check_scoring

from rplvq.evaluation._inputs import Fold, Scorer
from rplvq.exceptions import PointError, TrainingInterruptedWarning
from rplvq.protocols import Array

__all__ = ["Cell", "run_fold"]


class Cell(NamedTuple):
    """Outcome of one estimator in one fold."""

    scores: list[float]
    fit_seconds: float
    predict_seconds: float


class _Named:
    """Context that puts the names of the estimator and the fold, and the row of the data, into errors."""

    def __init__(self, name: str, fold: int, rows: Array) -> None:
        self.name, self.fold, self.rows = name, fold, rows

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception):
            return
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        if isinstance(error, PointError) and error.name == "X":
            what += f" (X[{error.index}] of this part of the fold is X[{self.rows[error.index]}] of the data)"
        message = f"estimator {self.name!r} failed in fold {self.fold}: {what}"
        raise (ValueError if isinstance(error, ValueError) else RuntimeError)(message) from error


def run_fold(
    name: str,
    estimator: Any,
    X: Any,
    y: Array,
    hard: Array,
    number: int,
    fold: Fold,
    seed: int | None,
    scorers: dict[str, Scorer],
) -> Cell:
    """Fit a clone on the training part and score it on the test part.

    Parameters
    ----------
    name : str
        Of the estimator, for messages.
    estimator : estimator
        Is not changed.
    X, y, hard : array-like of shape (N, ...)
        All samples, their labels for training, and their labels for scoring.
    number : int
        Of the fold, for messages.
    fold : tuple of (train, test)
        Row indices.
    seed : int or None
        Replaces every ``random_state`` in the estimator.
    scorers : dict of str to callable
        Metrics.

    Returns
    -------
    Cell

    Raises
    ------
    ValueError, RuntimeError
        If the estimator or a scorer raises ValueError, or anything else: with both names in the message.
    """
    train, test = fold
    with _Named(name, number, train):
        model = clone(estimator)
        if seed is not None:
            params = [key for key in model.get_params() if key.rpartition("__")[2] == "random_state"]
            model.set_params(**dict.fromkeys(params, seed))
        X_train, y_train = _take(X, train), y[train]
        began = time.perf_counter()
        _fit(model, X_train, y_train)
        fit_seconds = time.perf_counter() - began
    with _Named(name, number, test):
        X_test = _take(X, test)
        began = time.perf_counter()
        model.predict(X_test)
        predict_seconds = time.perf_counter() - began
        # One scorer for all metrics asks the model for its predictions once.
        found = check_scoring(model, scoring=scorers)(model, X_test, hard[test])
        return Cell([float(found[metric]) for metric in scorers], fit_seconds, predict_seconds)


def _fit(model: Any, X: Any, y: Any) -> None:
    """Fit, and let Ctrl-C end the comparison: a model that kept its last whole epoch is no result."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingInterruptedWarning)
        try:
            model.fit(X, y)
        except TrainingInterruptedWarning as warning:
            raise KeyboardInterrupt from warning


def _take(X: Any, rows: Array) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
