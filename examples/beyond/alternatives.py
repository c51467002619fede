"""Other ways to keep training from doing harm, beside the default.

The splits are some of those of :mod:`examples.beyond.default`. Each classifier has one prototype per class and the
affine-invariant metric:

- "class means": no training;
- "default": held-out samples decide whether to train;
- "always": the same sigma2 and step size, but the fit trains in any case;
- "early stopping": as "always", and the epoch with the lowest cost on a tenth of the samples is kept;
- "shrunk": as "always", and then each prototype goes back towards its class mean along the geodesic, by the factor with
  the smallest loss on a quarter of the samples, for which a second fit trains on the other samples;
- "spread": the cost has one variance per class, and the most probable class is predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from examples.beyond.costs import spread_cost
from examples.beyond.default import FILES, loss_of, splits
from examples.paper.data import Split, is_available
from examples.paper.runner import Job, Record
from rplvq import HeldOut, RiemannianLVQ
from rplvq.costs import calibrated_loss
from rplvq.protocols import Array

__all__ = ["METHODS", "SIZES", "jobs", "score", "smoke"]

METHODS = ("class means", "default", "always", "early stopping", "shrunk", "spread")
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far a prototype may go on the geodesic from its class mean to where training moved it."""
SIZES: tuple[tuple[str, Any], ...] = (
    ("syn1", 60),
    ("syn2", 30),
    ("syn2", 120),
    ("syn2", 250),
    ("digits", 100),
    ("digits", 500),
    ("bci2a", 20),
    ("eth80", "mask256"),
)


def shrunk(model: RiemannianLVQ, means: RiemannianLVQ, factor: float) -> RiemannianLVQ:
    """Return the classifier between two fitted ones, on the geodesics between their prototypes."""
    manifold, start, end = model.trainer_.manifold, means.state_.prototypes, model.state_.prototypes
    codes = [
        np.asarray(manifold.move(manifold.connect(start[[k]], np.asarray(end)[[k]]), np.array([[factor]])))
        for k in range(len(model.prototypes_))
    ]
    points = manifold.decode(np.concatenate(codes)), model.prototype_labels_
    between = RiemannianLVQ(model.metric, init=points, sigma2=model.sigma2_, max_epochs=0)
    return between.fit(model.prototypes_, model.prototype_labels_)


def best_factor(model: RiemannianLVQ, X: Array, y: Array, seed: int) -> float:
    """Return the factor with the smallest loss on a quarter of the samples."""
    kept, held = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed)
    trained = clone(model).fit(X[kept], y[kept])
    means = clone(model).set_params(max_epochs=0).fit(X[kept], y[kept])

    def loss(factor: float) -> float:
        between = shrunk(trained, means, factor)
        targets, labels = np.searchsorted(between.classes_, y[held]), between.state_.labels
        return calibrated_loss(
            between.trainer_.cost, between.transform(X[held]) ** 2, targets, labels, between.sigma2_
        )[0]

    return min(FACTORS, key=loss)


def fitted(method: str, split: Split, seed: int, max_epochs: int) -> RiemannianLVQ:
    """Return the classifier of a method."""
    X, y = split.X_train, split.y_train
    always = RiemannianLVQ(sigma2=HeldOut(("auto",)), max_epochs=max_epochs, random_state=seed)
    if method == "class means":
        return RiemannianLVQ(max_epochs=0).fit(X, y)
    if method == "default":
        return RiemannianLVQ(max_epochs=max_epochs, random_state=seed).fit(X, y)
    if method == "early stopping":
        return always.set_params(early_stopping=True).fit(X, y)
    if method == "shrunk":
        factor = best_factor(always, X, y, seed)
        return shrunk(clone(always).fit(X, y), RiemannianLVQ(max_epochs=0).fit(X, y), factor)
    if method == "spread":
        cost, sigma2 = spread_cost(X, y)
        return always.set_params(cost=cost, sigma2=sigma2, decision="posterior").fit(X, y)
    return always.fit(X, y)


def score(*, repetition: int, method: str, data: str, size: Any, max_epochs: int = 100) -> Record:
    """Return accuracy and log_loss, both as means over the splits of the repetition."""
    rows = []
    for split in splits(data, size, repetition):
        model = fitted(method, split, repetition, max_epochs)
        loss = loss_of(model, split, model.predict_proba(split.X_test))
        rows.append([float(model.score(split.X_test, split.y_test)), loss])
    return dict(zip(("accuracy", "log_loss"), np.mean(rows, axis=0).tolist(), strict=True))


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: five repetitions, but one of BCI 2a with its nine subjects; ``quick`` has one of 3 epochs."""
    return sorted(_jobs({"max_epochs": 3} if quick else {}, 1 if quick else 5), key=lambda job: job.repetition)


def _jobs(short: Record, n_repetitions: int) -> Iterator[Job]:
    for data, size in SIZES:
        if data in FILES and not is_available(FILES[data]):
            continue
        for method in METHODS:
            for repetition in range(1 if data == "bci2a" else n_repetitions):
                settings = {"data": data, "size": size} | short
                yield Job(f"alternatives-{data}-{size}", method, repetition, settings, score)


def smoke() -> list[Job]:
    """Return jobs of seconds: few digits, few epochs."""
    settings = {"data": "digits", "size": 100, "max_epochs": 3}
    return [Job("alternatives-digits-100", method, 0, settings, score) for method in METHODS]
