"""Fit a classifier on the training part of a split, score it on the test part."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score

from examples.paper.data import Split
from examples.paper.runner import Record

__all__ = ["fit_and_score"]


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
        trained RiemannianLVQ its epochs, seconds_per_epoch (median), n_capped weights and final sigma2.
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
    return result
