"""The table and the figure on the first page of the documentation: five classifiers on four data sets.

The splits are some of those of :mod:`examples.beyond.default`. Each job fits all classifiers in turn on the same split,
so that their seconds can be compared:

- "MDM": pyRiemann's minimum distance to mean;
- "tangent space": pyRiemann's tangent space with scikit-learn's logistic regression;
- "rplvq, default": no argument but the seed;
- "rplvq, whitened": the metric is "whitened_tangent", and there is no other argument but the seed;
- "rplvq, tuned": the number of prototypes per class is chosen from 1 and 4 by cross-validation.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from examples.beyond.default import EPOCHS, FILES, splits, tangent_space
from examples.paper.data import is_available
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ

__all__ = ["METHODS", "SIZES", "jobs", "score", "smoke"]

METHODS = ("MDM", "tangent space", "rplvq, default", "rplvq, whitened", "rplvq, tuned")
SIZES: dict[str, Any] = {"digits": 1000, "bci2a": 72, "eth80": "mask256", "airsar": "regions"}
"""Which split of each data set, as in :data:`examples.beyond.default.SIZES`."""


def classifier(method: str, seed: int, max_epochs: int) -> Any:
    """Return a classifier that is not fitted."""
    from pyriemann.classification import MDM

    model = RiemannianLVQ(max_epochs=max_epochs, random_state=seed)
    if method == "MDM":
        return MDM(metric="riemann")
    if method == "tangent space":
        return tangent_space()
    if method == "rplvq, whitened":
        return model.set_params(metric="whitened_tangent")
    if method == "rplvq, tuned":
        return GridSearchCV(model.set_params(init="kmeans"), {"prototypes_per_class": [1, 4]}, cv=3)
    return model


def score(*, repetition: int, method: str, data: str, size: Any, max_epochs: int = EPOCHS) -> Record:
    """Return accuracy, fit_seconds and predict_seconds of each classifier, as means over the splits."""
    del method
    found: dict[str, list[list[float]]] = {name: [] for name in METHODS}
    for split in splits(data, size, repetition):
        for name in METHODS:
            model, began = classifier(name, repetition, max_epochs), time.perf_counter()
            model.fit(split.X_train, split.y_train)
            fitted = time.perf_counter()
            right = model.predict(split.X_test) == split.y_test
            found[name].append([right.mean(), fitted - began, time.perf_counter() - fitted])
    columns = ("accuracy", "fit_seconds", "predict_seconds")
    return {name: dict(zip(columns, np.mean(rows, axis=0).tolist(), strict=True)) for name, rows in found.items()}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: three repetitions, but one of BCI 2a with its nine subjects; ``quick`` has one of 3 epochs."""
    found = []
    for data, size in SIZES.items():
        if data in FILES and not is_available(FILES[data]):
            continue
        settings = {"data": data, "size": size} | ({"max_epochs": 3} if quick else {})
        repetitions = range(1 if quick or data == "bci2a" else 3)
        found += [Job(f"home-{data}", "all", i, settings, score) for i in repetitions]
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: few digits, few epochs."""
    return [Job("home-digits", "all", 0, {"data": "digits", "size": 100, "max_epochs": 3}, score)]
