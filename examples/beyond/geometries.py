"""Geometries with the same cost, rule for sigma2, rule for the step and number of prototypes: only the metric changes.

sigma2 is that of the rule "auto" and the step is that of the paper, both in the units of the distances of the metric.
The accuracy of the class means, before training, is recorded as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples.beyond.problems import RULE, cells, score_each
from examples.paper.data import Split
from examples.paper.evaluate import fit_and_score
from examples.paper.runner import Job, Record
from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    RiemannianLVQ,
)
from rplvq.protocols import Manifold

__all__ = ["METHODS", "PAPER", "jobs", "smoke", "train"]

PAPER = "AffineInvariant"
METHODS: dict[str, Manifold[Any]] = {
    PAPER: AffineInvariant(),
    "LogEuclidean": LogEuclidean(),
    "LearnedLogEuclidean": LearnedLogEuclidean(),
    "LogCholesky": LogCholesky(),
    "BuresWasserstein": BuresWasserstein(),
    "ProjectedEuclidean": ProjectedEuclidean(relative=True),
}

PROTOTYPES = {"syn2": 2, "syn1": 2, "bci2a": 1, "full256": 3, "mask256": 3}
"""Number of prototypes per class."""


def train(
    *, repetition: int, method: str, data: str, subjects: Sequence[Sequence[float]] = (), **settings: Any
) -> Record:
    """Train in a geometry.

    Parameters
    ----------
    repetition : int
        Seed of the split and of training.
    method : str
        A name of METHODS.
    data : str
        A name of PROTOTYPES, or of SPLITS.
    subjects : sequence of [subject]
        Subjects of "bci2a".
    **settings
        Arguments of RiemannianLVQ.

    Returns
    -------
    dict
        As :func:`examples.paper.evaluate.fit_and_score`, with start_accuracy and start_kappa of the class means. On
        "bci2a" lists over the subjects, and their means.
    """

    def scored(split: Split, own: Record) -> Record:
        start = fit_and_score(RiemannianLVQ(METHODS[method], max_epochs=0), split)
        result = fit_and_score(RiemannianLVQ(METHODS[method], **RULE, random_state=repetition, **own), split)
        return result | {f"start_{name}": start[name] for name in ("accuracy", "kappa")}

    return score_each(scored, data, repetition, subjects, settings)


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: 10 repetitions of SynI and SynII, 6 of ETH-80, 2 of BCI 2a; ``quick`` has 1, of 2 epochs."""
    counts = {"full256": 6, "mask256": 6, "bci2a": 2, "syn1": 10, "syn2": 10}
    found = []
    for data, repetition, method in cells(dict.fromkeys(counts, 1) if quick else counts, list(METHODS)):
        settings: Record = {"data": data, "max_epochs": 2 if quick else 5}
        settings["prototypes_per_class"] = PROTOTYPES[data]
        if data == "bci2a":
            settings["subjects"] = [[subject] for subject in range(1, 10)]
        found.append(Job(f"geometries-{data}", method, repetition, settings, train))
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: digits, one epoch with one prototype per class."""
    settings = {"data": "digits", "prototypes_per_class": 1, "max_epochs": 1}
    return [Job("geometries-digits", method, 0, settings, train) for method in METHODS]
