"""BCI 2a as a stream: session 1 trains, then session 2 comes trial by trial, each a test first and then a lesson.

The composition is that of the table on sessions: one prototype a class, sigma2 = 4, 50 epochs, the same for all nine
subjects and not selected on anything. "frozen" learns nothing from session 2; the others call ``partial_fit`` with each
trial and its label after it was classified. ``online`` re-centres each trial by those before it, without labels. In "a
class late" session 1 lacks the last of the four classes.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score

from examples.beyond.recentering import seen
from examples.paper.data import Split, load_bci2a
from examples.paper.runner import Job, Record
from rplvq import Grow, Prune, RiemannianLVQ
from rplvq.protocols import Array

__all__ = ["METHODS", "VIEWS", "answer_then_learn", "follow", "jobs", "smoke"]

VIEWS = ("as measured", "online")
METHODS: dict[str, dict[str, Any] | None] = {
    "frozen": None,
    "partial_fit": {},
    "partial_fit, horizon 200": {"horizon": 200},
    "partial_fit, grow and prune": {"growth": (Prune(every=20), Grow(at_most=3, every=20))},
}
"""What is set before the second session; None learns nothing from it."""
LATE = "a class late, "


def answer_then_learn(model: RiemannianLVQ, X: Array, y: Array) -> Array:
    """Labels (N,) that a model gives to samples (N, n, n) one by one, each before it learns from it."""
    classes = np.union1d(model.classes_, y)
    answers = []
    for sample, label in zip(X[:, None], y[:, None], strict=True):
        answers.append(model.predict(sample)[0])
        model.partial_fit(sample, label, classes=classes)
    return np.array(answers)


@lru_cache(maxsize=20)
def trained(subject: int, view: str, late: bool, max_epochs: int, seed: int) -> tuple[RiemannianLVQ, Split]:
    """Classifier of session 1 of a subject, and both sessions as a view shows them."""
    data = seen(load_bci2a(subject), view, 10.0)
    rows = data.y_train != data.y_train.max() if late else np.ones(len(data.y_train), dtype=bool)
    model = RiemannianLVQ(sigma2=4.0, max_epochs=max_epochs, random_state=seed)
    return model.fit(data.X_train[rows], data.y_train[rows]), data


def follow(
    *, repetition: int, method: str, rule: str, view: str, subjects: list[int], late: bool = False, max_epochs: int = 50
) -> Record:
    """Train on session 1 of each subject and go through session 2; ``method`` only names the settings.

    Returns
    -------
    dict
        kappa, a list over the subjects, and mean_kappa, of the answers given before learning from them; with a class
        late also mean_recall, the share of its trials that were recognised; mean_prototypes at the end.
    """
    del method
    kappas, recalls, counts = [], [], []
    for subject in subjects:
        model, data = trained(subject, view, late, max_epochs, repetition)
        settings = METHODS[rule]
        if settings is None:
            answers = model.predict(data.X_test)
        else:
            model = copy.deepcopy(model).set_params(**settings)
            answers = answer_then_learn(model, data.X_test, data.y_test)
        last = data.y_test == data.y_train.max()
        kappas.append(float(cohen_kappa_score(data.y_test, answers)))
        recalls.append(float(np.mean(answers[last] == data.y_test[last])))
        counts.append(len(model.prototypes_))
    result = {"kappa": kappas, "mean_kappa": float(np.mean(kappas)), "mean_prototypes": float(np.mean(counts))}
    return result | ({"mean_recall": float(np.mean(recalls))} if late else {})


def jobs(quick: bool = False) -> list[Job]:
    """Three seeds of each rule in each view, and of a class that comes late."""
    found = []
    options: dict[str, Any] = {"subjects": [3] if quick else list(range(1, 10))} | ({"max_epochs": 2} if quick else {})
    for seed in range(1 if quick else 3):
        for view in VIEWS:
            for rule in METHODS:
                settings = options | {"rule": rule, "view": view}
                found.append(Job("stream", f"{rule}, {view}", seed, settings, follow))
        for rule in ("frozen", "partial_fit"):
            settings = options | {"rule": rule, "view": "online", "late": True}
            found.append(Job("stream", f"{LATE}{rule}, online", seed, settings, follow))
    return found


def smoke() -> list[Job]:
    """One subject, one epoch: a frozen model and one that learns on, with all classes and with one late."""
    options: dict[str, Any] = {"subjects": [3], "max_epochs": 1, "view": "online"}
    cases = [("frozen", False), ("partial_fit, grow and prune", False), ("frozen", True), ("partial_fit", True)]
    return [
        Job("stream", f"{LATE if late else ''}{rule}", 0, options | {"rule": rule, "late": late}, follow)
        for rule, late in cases
    ]
