"""Fit a classifier on the training part of a split and score it on the test part; settings can be chosen before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from examples.paper.data import Split
from examples.paper.runner import Record
from rplvq import RiemannianLVQ
from rplvq.arrays import Samples
from rplvq.protocols import Array
from rplvq.training import Score, State, measure

__all__ = ["accuracy_and_kappa", "fit_and_score", "score_before_training", "select_and_score"]


def accuracy_and_kappa(y: Array, predicted: Array) -> Record:
    """Return the accuracy and Cohen's kappa of predicted labels (N,)."""
    return {"accuracy": float(np.mean(predicted == y)), "kappa": float(cohen_kappa_score(y, predicted))}


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
        accuracy and kappa on the test data; train_accuracy; fit_seconds and predict_seconds (wall clock);
        fit_cpu_seconds and predict_cpu_seconds (of this process, which other load on the machine does not change). For
        a trained RiemannianLVQ also epochs, seconds_per_epoch (median), n_capped (number of weights), the final
        sigma2, and posterior_accuracy, which is the accuracy of the most probable class instead of the class of the
        nearest prototype.
    """
    began, began_cpu = time.perf_counter(), time.process_time()
    model.fit(split.X_train, split.y_train)
    fitted, fitted_cpu = time.perf_counter(), time.process_time()
    predicted = model.predict(split.X_test)
    done, done_cpu = time.perf_counter(), time.process_time()
    result: Record = {
        **accuracy_and_kappa(split.y_test, predicted),
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


def score_before_training(model: RiemannianLVQ, X: Array, y: Array) -> tuple[State, Score]:
    """Measure the initial prototypes of a classifier, which its history does not show.

    Parameters
    ----------
    model : RiemannianLVQ
        Not fitted; it is not changed.
    X : ndarray of shape (N, n, n)
        Training samples.
    y : ndarray of shape (N,)
        Their labels.

    Returns
    -------
    State, Score
        The initial prototypes with the values that the schedules have in epoch 0, and the summed cost and the error
        of the training samples.
    """
    first = clone(model).set_params(max_epochs=0, callbacks=()).fit(X, y)
    trainer, state = first.trainer_, first.state_.at_epoch(0, model.max_epochs)
    samples = Samples(trainer.manifold.encode(X), first.classes_.searchsorted(y))
    return state, measure(trainer.manifold, trainer.cost, state, samples).score()


def select_and_score(
    make: Callable[..., Any], grid: Mapping[str, Sequence[Any]], split: Split, *, n_folds: int, seed: int
) -> Record:
    """Choose settings by stratified cross-validation on the training part, then fit and score with them.

    Parameters
    ----------
    make : callable
        ``make(**settings)`` returns an estimator.
    grid : mapping of str to sequence
        Values of each setting. All combinations are tried.
    split : Split
        Training and test data.
    n_folds : int
        Number of folds.
    seed : int
        Seed of the folds.

    Returns
    -------
    dict
        As :func:`fit_and_score`, and also chosen (the settings) and tried (rows of values with the mean accuracy over
        the folds). Among equal accuracies the first one is chosen.
    """
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    tried: list[list[Any]] = []
    for values in product(*grid.values()):
        model = make(**dict(zip(grid, values, strict=True)))
        tried.append([*values, float(cross_val_score(model, split.X_train, split.y_train, cv=folds).mean())])
    best = max(tried, key=lambda row: float(row[-1]))
    chosen = dict(zip(grid, best[:-1], strict=True))
    return fit_and_score(make(**chosen), split) | {"chosen": chosen, "tried": tried}
