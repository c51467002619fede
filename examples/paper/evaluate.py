"""Fit a classifier on the training part of a split, score it on the test part; choose its settings before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from examples.paper.data import Split
from examples.paper.runner import Record

__all__ = ["fit_and_score", "select_and_score"]


def fit_and_score(model: Any, split: Split) -> Record:
    """Fit and score one classifier.

    Parameters
    ----------
    model : estimator
        Not fitted.
    split : Split
        Training and test data.

    Returns
    -------
    dict
        accuracy and kappa on the test data; train_accuracy; fit_seconds and predict_seconds (wall clock),
        fit_cpu_seconds and predict_cpu_seconds (of this process: what a busy machine does not change); and of a
        trained RiemannianLVQ its epochs, seconds_per_epoch (median), n_capped weights, final sigma2, and
        posterior_accuracy: that of the most probable class, where accuracy is that of the nearest prototype.
    """
    began, began_cpu = time.perf_counter(), time.process_time()
    model.fit(split.X_train, split.y_train)
    fitted, fitted_cpu = time.perf_counter(), time.process_time()
    predicted = model.predict(split.X_test)
    done, done_cpu = time.perf_counter(), time.process_time()
    result: Record = {
        "accuracy": float(np.mean(predicted == split.y_test)),
        "kappa": float(cohen_kappa_score(split.y_test, predicted)),
        "train_accuracy": float(model.score(split.X_train, split.y_train)),
        "fit_seconds": round(fitted - began, 3),
        "fit_cpu_seconds": round(fitted_cpu - began_cpu, 3),
        "predict_seconds": round(done - fitted, 4),
        "predict_cpu_seconds": round(done_cpu - fitted_cpu, 4),
    }
    history = getattr(model, "history_", None)
    if history:
        result["epochs"] = int(model.n_epochs_)
        result["seconds_per_epoch"] = round(float(np.median(history["seconds"])), 4)
        result["n_capped"] = int(np.sum(history["n_capped"]))
        result["sigma2"] = float(model.sigma2_)
        probable = model.classes_[model.predict_log_proba(split.X_test).argmax(axis=1)]
        result["posterior_accuracy"] = float(np.mean(probable == split.y_test))
    return result


def select_and_score(
    make: Callable[..., Any], grid: Mapping[str, Sequence[Any]], split: Split, *, n_folds: int, seed: int
) -> Record:
    """Choose settings by stratified cross-validation on the training part, then fit and score with them.

    Parameters
    ----------
    make : callable
        ``make(**settings)`` returns an estimator.
    grid : mapping of str to sequence
        Values of each setting; all combinations are tried.
    split : Split
        Training and test data.
    n_folds : int
        Folds.
    seed : int
        Of the folds.

    Returns
    -------
    dict
        As :func:`fit_and_score`, with chosen, the settings, and tried, rows of values and mean accuracy over the
        folds. Of equals the first wins.
    """
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    tried: list[list[Any]] = []
    for values in product(*grid.values()):
        model = make(**dict(zip(grid, values, strict=True)))
        tried.append([*values, float(cross_val_score(model, split.X_train, split.y_train, cv=folds).mean())])
    best = max(tried, key=lambda row: float(row[-1]))
    chosen = dict(zip(grid, best[:-1], strict=True))
    return fit_and_score(make(**chosen), split) | {"chosen": chosen, "tried": tried}
