"""More prototypes with an adaptive step, and a vote of three such classifiers, on whole images of ETH-80 with C = 8.

The classifiers have 24 prototypes per class from k-means, sigma2 = 0.1, :class:`rplvq.AdaptiveStep`, batches of 16 and
50 epochs. The vote is that of scikit-learn, over three seeds. They are compared with the paper's settings. All predict
the most probable class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import VotingClassifier

from examples.paper import eth80
from examples.paper.runner import Job, Record
from rplvq import AdaptiveStep, RiemannianLVQ
from rplvq.presets import plrsq_annealed

__all__ = ["METHODS", "classify", "jobs", "smoke"]

METHODS = ("the paper's", "24 prototypes, adaptive", "vote of three of these")


def one(seed: int, prototypes_per_class: int, max_epochs: int) -> RiemannianLVQ:
    """Return one classifier that is not fitted."""
    return RiemannianLVQ(
        sigma2=0.1,
        step_size=AdaptiveStep(5 * prototypes_per_class / 100),
        init="kmeans",
        prototypes_per_class=prototypes_per_class,
        batch_size=16,
        max_epochs=max_epochs,
        decision="posterior",
        random_state=seed,
    )


def model(method: str, repetition: int, prototypes_per_class: int, max_epochs: int) -> Any:
    """Return the classifier of a method, not fitted."""
    if method == METHODS[0]:
        paper = plrsq_annealed(eth80.SIGMA2, eth80.PROTOTYPES[8], 2 * max_epochs, random_state=repetition)
        return paper.set_params(decision="posterior")
    seeds = [3 * repetition + member for member in range(3)]
    members = [(f"seed {seed}", one(seed, prototypes_per_class, max_epochs)) for seed in seeds]
    return members[0][1] if method == METHODS[1] else VotingClassifier(members, voting="soft")


def classify(*, repetition: int, method: str, prototypes_per_class: int, max_epochs: int) -> Record:
    """Train and test on one split of ETH-80.

    Returns
    -------
    dict
        accuracy on the test data.
    """
    split = eth80.split("full256", 8, repetition)
    fitted = model(method, repetition, prototypes_per_class, max_epochs).fit(split.X_train, split.y_train)
    return {"accuracy": float(np.mean(fitted.predict(split.X_test) == split.y_test))}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: ten splits per method."""
    options = (
        {"prototypes_per_class": 24, "max_epochs": 50} if not quick else {"prototypes_per_class": 2, "max_epochs": 2}
    )
    return [Job("votes", method, seed, options, classify) for seed in range(1 if quick else 10) for method in METHODS]


def smoke() -> list[Job]:
    """Return jobs of seconds: two prototypes per class, one epoch."""
    return [Job("votes", method, 0, {"prototypes_per_class": 2, "max_epochs": 1}, classify) for method in METHODS]
