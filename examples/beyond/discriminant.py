"""What the discriminant adds to the default where samples are few, on splits of :mod:`examples.beyond.default`.

Each job draws one split, and fits all classifiers on it, under one metric and with one prototype per class:

- "without": the default without "discriminant" among its candidates;
- "default": the default;
- "discriminant": the prototypes of the discriminant alone, without training;
- "LDA": scikit-learn's linear discriminant analysis of pyRiemann's tangent vectors, with the shrinkage of Ledoit and
  Wolf for each class (``shrinkage="auto"``). It does not depend on the metric, and only jobs of the first one run it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from examples.beyond.default import EPOCHS, FILES, loss_of, splits, tangent_space
from examples.paper.data import is_available
from examples.paper.runner import Job, Record
from rplvq import HeldOut, RiemannianLVQ

__all__ = ["METHODS", "METRICS", "SIZES", "jobs", "score", "smoke"]

METHODS = ("without", "default", "discriminant", "LDA")
METRICS = ("affine_invariant", "log_euclidean")
SIZES: tuple[tuple[str, Any, int], ...] = (
    ("syn1", 30, 10),
    ("syn2", 30, 10),
    ("syn2", 60, 10),
    ("syn2", 120, 10),
    ("digits", 50, 10),
    ("digits", 100, 10),
    ("digits", 200, 10),
    ("bci2a", 20, 3),
    ("bci2a", 72, 2),
    ("bci2a", "folds", 1),
    ("airsar", 20, 10),
    ("eegmmi", "runs", 10),
)
"""Data set, size and number of repetitions; BCI 2a has nine subjects."""


def classifiers(metric: str, seed: int, max_epochs: int) -> dict[str, Any]:
    """Return the classifiers by name."""
    without = HeldOut(("auto", "untrained"))
    found = {
        "without": RiemannianLVQ(metric, sigma2=without, max_epochs=max_epochs, random_state=seed),
        "default": RiemannianLVQ(metric, max_epochs=max_epochs, random_state=seed),
        "discriminant": RiemannianLVQ(metric, init="discriminant", max_epochs=0),
    }
    if metric == METRICS[0]:
        found["LDA"] = tangent_space().set_params(
            logisticregression=LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        )
    return found


def score(*, repetition: int, method: str, data: str, size: Any, max_epochs: int = EPOCHS) -> Record:
    """Return accuracy and log_loss of each classifier under the metric ``method``, as means over the splits."""
    rows: dict[str, list[list[float]]] = {}
    for split in splits(data, size, repetition):
        for name, model in classifiers(method, repetition, max_epochs).items():
            model.fit(split.X_train, split.y_train)
            loss = loss_of(model, split, model.predict_proba(split.X_test))
            rows.setdefault(name, []).append([float(model.score(split.X_test, split.y_test)), loss])
    columns = "accuracy", "log_loss"
    return {name: dict(zip(columns, np.mean(own, axis=0).tolist(), strict=True)) for name, own in rows.items()}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, the first repetition of each first; ``quick`` has one of 3 epochs."""
    found = []
    for (data, size, n_repetitions), metric in product(SIZES, METRICS):
        if data in FILES and not is_available(FILES[data]):
            continue
        settings = {"data": data, "size": size} | ({"max_epochs": 3} if quick else {})
        repetitions = range(1 if quick else n_repetitions)
        found += [Job(f"discriminant-{data}-{size}", metric, i, settings, score) for i in repetitions]
    return sorted(found, key=lambda job: job.repetition)


def smoke() -> list[Job]:
    """Return jobs of seconds: few digits, few epochs."""
    settings = {"data": "digits", "size": 50, "max_epochs": 3}
    return [Job("discriminant-digits-50", metric, 0, settings, score) for metric in METRICS]
