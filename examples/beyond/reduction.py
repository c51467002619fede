"""BCI 2a reduced from 22 channels to 8 or 12 by a learned projection, against full size: kappa and seconds.

"pipeline" learns the projection for the class means and then trains prototypes. "jointly" alternates between the
projection and a quarter of the epochs of prototypes, and classifies by these prototypes. Session 1 trains, session 2
tests, with one prototype per class and the sigma2 of the rule "auto".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from examples.beyond.problems import RULE, score_each
from examples.paper.data import Split
from examples.paper.evaluate import fit_and_score
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ, SPDProjection
from rplvq.arrays import congruence
from rplvq.protocols import Array

__all__ = ["METHODS", "PAPER", "Joint", "jobs", "smoke", "train"]

PAPER = "full size"
TURNS = 4
KEPT = ("accuracy", "kappa", "train_accuracy", "fit_cpu_seconds", "predict_cpu_seconds")
METHODS: dict[str, tuple[int | None, bool]] = {
    PAPER: (None, False),
    "8, pipeline": (8, False),
    "8, jointly": (8, True),
    "12, pipeline": (12, False),
    "12, jointly": (12, True),
}
"""Size after projection, and whether training alternates between projection and prototypes."""


class Joint:
    """Projection and prototypes that were learned together.

    Parameters
    ----------
    projection : SPDProjection
        A projection with alternations, not fitted.
    """

    def __init__(self, projection: SPDProjection) -> None:
        self.projection = projection

    def fit(self, X: Array, y: Array) -> Self:
        """Learn both, and use the projected prototypes as they are."""
        small = self.projection.fit_transform(X, y)
        prototypes = congruence(self.projection.prototypes_, self.projection.components_)
        self.model = RiemannianLVQ(init=(prototypes, self.projection.prototype_labels_), max_epochs=0).fit(small, y)
        return self

    def predict(self, X: Array) -> Array:
        """Return the labels (N,) of the nearest prototypes."""
        return self.model.predict(self.projection.transform(X))

    def score(self, X: Array, y: Array) -> float:
        """Return the share of correct labels."""
        return float((self.predict(X) == y).mean())


def train(
    *, repetition: int, method: str, data: str, subjects: Sequence[Sequence[float]], max_epochs: int, **settings: Any
) -> Record:
    """Train after a projection, or at full size.

    Parameters
    ----------
    repetition : int
        Seed of the training of prototypes; the projection has no seed.
    method : str
        A name of METHODS.
    data : str
        "bci2a", or a name of SPLITS.
    subjects : sequence of [subject]
        Subjects of "bci2a".
    max_epochs : int
        Number of epochs that train the prototypes, over all alternations.
    **settings
        Other arguments of SPDProjection.

    Returns
    -------
    dict
        As :func:`examples.paper.evaluate.fit_and_score`; on "bci2a" lists over the subjects, and their means.
    """
    size, jointly = METHODS[method]

    def scored(split: Split, own: Record) -> Record:
        model: Any = RiemannianLVQ(**RULE, random_state=repetition, max_epochs=max_epochs)
        if jointly:
            short = clone(model).set_params(max_epochs=max(1, max_epochs // TURNS))
            model = Joint(SPDProjection(size, n_alternations=TURNS, classifier=short, **own))
        elif size is not None:
            model = make_pipeline(SPDProjection(size, **own), model)
        result = fit_and_score(model, split)
        return {name: result[name] for name in KEPT}

    return score_each(scored, data, repetition, subjects, settings)


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: two seeds per size; ``quick`` has one subject, few epochs and iterations."""
    settings: Record = {"data": "bci2a", "subjects": [[subject] for subject in range(1, 10)], "max_epochs": 20}
    if quick:
        settings |= {"subjects": [[3]], "max_epochs": 4, "max_iter": 5}
    repetitions = range(1 if quick else 2)
    return [Job("reduction", method, repetition, settings, train) for repetition in repetitions for method in METHODS]


def smoke() -> list[Job]:
    """Return jobs of seconds: subject 3, one epoch per alternation, and few iterations."""
    settings = {"data": "bci2a", "subjects": [[3]], "max_epochs": 4, "max_iter": 3}
    return [Job("reduction", method, 0, settings, train) for method in METHODS]
