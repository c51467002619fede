"""Costs against the paper's, with the same metric, initial prototypes, step size, sigma2 and number of prototypes.

SpreadRSLVQ has one variance per class, measured around the class means, and predicts the most probable class. It is run
with the paper's sigma2 and with the geometric mean of these variances; with the latter each class keeps the density of
its own Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from examples.beyond.problems import SETTINGS, cells, score_each
from examples.paper.data import Split
from examples.paper.evaluate import fit_and_score
from examples.paper.runner import Job, Record
from rplvq import GLVQ, RSLVQ, Representability, RiemannianLVQ
from rplvq.costs import RiemannianGaussian, SpreadRSLVQ
from rplvq.protocols import Array

__all__ = ["METHODS", "PAPER", "jobs", "smoke", "spread_cost", "train"]

PAPER = "RSLVQ"


def spread_cost(X: Array, y: Array) -> tuple[SpreadRSLVQ, float]:
    """Return the cost with the variance of each class around its mean, and the geometric mean of these variances.

    Parameters
    ----------
    X : ndarray of shape (N, n, n)
        Positive definite matrices.
    y : ndarray of shape (N,)
        Labels of any sortable type.
    """
    means = RiemannianLVQ(max_epochs=0).fit(X, y)
    targets = means.classes_.searchsorted(y)
    labels = means.classes_.searchsorted(means.prototype_labels_)
    cost = SpreadRSLVQ.from_sqdist(means.transform(X) ** 2, targets, labels, RiemannianGaussian(X.shape[-1]))
    product = 1.0
    for variance in cost.variances:
        product *= variance ** (1 / len(cost.variances))
    return cost, product


def _fixed(**arguments: Any) -> Callable[[Split], Record]:
    return lambda _: arguments


def _spread(split: Split) -> Record:
    return {"cost": spread_cost(split.X_train, split.y_train)[0], "decision": "posterior"}


def _spread_alone(split: Split) -> Record:
    cost, sigma2 = spread_cost(split.X_train, split.y_train)
    return {"cost": cost, "sigma2": sigma2, "decision": "posterior"}


METHODS: dict[str, Callable[[Split], Record]] = {
    "start": _fixed(max_epochs=0, prototypes_per_class=1),
    PAPER: _fixed(cost=RSLVQ()),
    "RSLVQ + 0.1 Representability": _fixed(cost=RSLVQ() + 0.1 * Representability()),
    "GLVQ": _fixed(cost=GLVQ()),
    "SpreadRSLVQ, paper's sigma2": _spread,
    "SpreadRSLVQ": _spread_alone,
}
"""Arguments of RiemannianLVQ that differ from the paper's, as functions of the data, on which some of them depend."""


def train(
    *, repetition: int, method: str, data: str, subjects: Sequence[Sequence[float]] = (), **settings: Any
) -> Record:
    """Train with a cost.

    Parameters
    ----------
    repetition : int
        Seed of the split and of training.
    method : str
        A name of METHODS.
    data : str
        A name of SETTINGS.
    subjects : sequence of [subject, prototypes per class, sigma2]
        Subjects of "bci2a" with their settings.
    **settings
        Arguments of RiemannianLVQ.

    Returns
    -------
    dict
        As :func:`examples.paper.evaluate.fit_and_score`; on "bci2a" lists over the subjects, and their means.
    """

    def scored(split: Split, own: Record) -> Record:
        arguments = own | METHODS[method](split)
        return fit_and_score(RiemannianLVQ(random_state=repetition, step_size="paper", **arguments), split)

    return score_each(scored, data, repetition, subjects, settings)


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: 10 repetitions of SynI and SynII, 6 of ETH-80, 2 of BCI 2a; ``quick`` has 1, of 2 epochs."""
    counts = {"full256": 6, "mask256": 6, "bci2a": 2, "syn1": 10, "syn2": 10}
    epochs = {"syn2": 20, "syn1": 20, "full256": 6, "mask256": 6}
    found = []
    for data, repetition, method in cells(dict.fromkeys(counts, 1) if quick else counts, list(METHODS)):
        settings = {"data": data, "max_epochs": 2 if quick else epochs.get(data, 10)} | SETTINGS[data]
        found.append(Job(f"costs-{data}", method, repetition, settings, train))
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: digits, one epoch with one prototype per class."""
    settings = {"data": "digits", "sigma2": 0.5, "prototypes_per_class": 1, "max_epochs": 1}
    return [Job("costs-digits", method, 0, settings, train) for method in METHODS]
