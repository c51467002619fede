"""The default classifier with the number of prototypes chosen by cross-validation.

The splits are some of those of :mod:`examples.beyond.default`. The scores stand in the table on the first page of the
documentation, beside those of the default and of other methods.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from examples.beyond.default import FILES, splits
from examples.paper.data import is_available
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ

__all__ = ["SIZES", "jobs", "score", "smoke"]

SIZES: dict[str, Any] = {"digits": 1000, "bci2a": 72, "eth80": "mask256", "airsar": 400}
"""Which split of each data set, as in :data:`examples.beyond.default.SIZES`."""
COUNTS = (1, 4)
"""Numbers of prototypes per class to choose from, by three folds of the training samples."""


def score(*, repetition: int, method: str, data: str, size: Any, max_epochs: int = 100) -> Record:
    """Return accuracy, fit_seconds and predict_seconds under the metric ``method``, as means over the splits."""
    rows = []
    for split in splits(data, size, repetition):
        model = RiemannianLVQ(method, init="kmeans", max_epochs=max_epochs, random_state=repetition)
        search = GridSearchCV(model, {"prototypes_per_class": COUNTS}, cv=3)
        began = time.perf_counter()
        search.fit(split.X_train, split.y_train)
        fitted = time.perf_counter()
        right = search.predict(split.X_test) == split.y_test
        rows.append([right.mean(), fitted - began, time.perf_counter() - fitted])
    return dict(zip(("accuracy", "fit_seconds", "predict_seconds"), np.mean(rows, axis=0).tolist(), strict=True))


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: three repetitions, but one of BCI 2a with its nine subjects; ``quick`` has one of 3 epochs."""
    found = []
    for data, size in SIZES.items():
        if data in FILES and not is_available(FILES[data]):
            continue
        settings = {"data": data, "size": size} | ({"max_epochs": 3} if quick else {})
        repetitions = range(1 if quick or data == "bci2a" else 3)
        found += [Job(f"tuned-{data}-{size}", "affine_invariant", i, settings, score) for i in repetitions]
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: few digits, few epochs."""
    settings = {"data": "digits", "size": 100, "max_epochs": 3}
    return [Job("tuned-digits-100", "affine_invariant", 0, settings, score)]
