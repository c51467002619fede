"""BCI 2a as a stream: session 1 trains, then each trial of session 2 is first classified and then learned from.

The settings are those of :mod:`examples.beyond.recentering`: one prototype per class, sigma2 = 4, 50 epochs, the same
for all nine subjects. "frozen" learns nothing from session 2. The other rules call ``partial_fit`` with each trial and
its label after it was classified. ``online`` re-centres each trial by those before it, without labels. In the rows "a
class late", session 1 lacks the last of the four classes.
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
from rplvq import Grow, Prune, RiemannianLVQ, Share
from rplvq.protocols import Array

__all__ = ["METHODS", "VIEWS", "answer_then_learn", "follow", "jobs", "smoke"]

VIEWS = ("as measured", "online")
METHODS: dict[str, dict[str, Any] | None] = {
    "frozen": None,
    "partial_fit": {},
    "partial_fit, share 0.02": {"share": 0.02},
    "partial_fit, grow and prune": {"growth": (Prune(every=20), Grow(at_most=3, every=20))},
}
"""A constant share of sigma2, if the step is not that of the paper, and parameters that are set before session 2.

None means no learning. The step of the paper stays at its last value in session 2. A share of 0.02 moves a prototype by
1 / 50 of the way to a trial, so that it remembers about 50 trials of its class, or 200 of all four classes. It is the
step of session 1, too, because a stream goes on with the step of its fit."""
LATE = "a class late, "


def answer_then_learn(model: RiemannianLVQ, X: Array, y: Array) -> Array:
    """Return the labels (N,) that a model gives to samples (N, n, n), each before the model learns from it."""
    classes = np.union1d(model.classes_, y)
    answers = []
    for sample, label in zip(X[:, None], y[:, None], strict=True):
        answers.append(model.predict(sample)[0])
        model.partial_fit(sample, label, classes=classes)
    return np.array(answers)


@lru_cache(maxsize=20)
def trained(
    subject: int, view: str, late: bool, max_epochs: int, seed: int, share: float | None = None
) -> tuple[RiemannianLVQ, Split]:
    """Return the classifier that session 1 of a subject trains, and both sessions in a view."""
    data = seen(load_bci2a(subject), view, 10.0)
    rows = data.y_train != data.y_train.max() if late else np.ones(len(data.y_train), dtype=bool)
    step_size: Any = "auto" if share is None else Share(share, ratio=1.0)
    model = RiemannianLVQ(sigma2=4.0, step_size=step_size, max_epochs=max_epochs, random_state=seed)
    return model.fit(data.X_train[rows], data.y_train[rows]), data


def follow(
    *, repetition: int, method: str, rule: str, view: str, subjects: list[int], late: bool = False, max_epochs: int = 50
) -> Record:
    """Train on session 1 of each subject and process session 2; ``method`` is only a name for the settings.

    Returns
    -------
    dict
        kappa (a list over the subjects) and mean_kappa of the predictions, each made before learning from its trial;
        mean_prototypes, the mean number of prototypes at the end; and with a late class mean_recall, the share of its
        trials that were recognised.
    """
    del method
    kappas, recalls, counts = [], [], []
    for subject in subjects:
        settings = dict(METHODS[rule] or {})
        model, data = trained(subject, view, late, max_epochs, repetition, settings.pop("share", None))
        if METHODS[rule] is None:
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
    """Return all jobs: three seeds per rule and view, and per rule with a late class."""
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
    """Return jobs of seconds: one subject, one epoch, a frozen and a learning model, with all classes and one late."""
    options: dict[str, Any] = {"subjects": [3], "max_epochs": 1, "view": "online"}
    cases = [("frozen", False), ("partial_fit, grow and prune", False), ("frozen", True), ("partial_fit", True)]
    return [
        Job("stream", f"{LATE if late else ''}{rule}", 0, options | {"rule": rule, "late": late}, follow)
        for rule, late in cases
    ]
