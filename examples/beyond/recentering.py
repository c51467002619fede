"""BCI 2a with the mean of every session moved to the identity: at once, online from past trials, or not at all.

"one for all" uses the same settings for all nine subjects: one prototype per class, sigma2 = 4, 50 epochs. It is
compared with the paper's settings and, to see how much these matrices tell, with classifiers of tangent vectors.
Session 1 trains, session 2 tests, and the score is kappa. ``transductive`` uses all trials of session 2 together,
without labels. ``online`` uses only the trials before the one that is classified.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from pyriemann.tangentspace import TangentSpace
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from examples.paper.bci2a import PAPER_SETTINGS
from examples.paper.data import Split, load_bci2a
from examples.paper.evaluate import fit_and_score
from examples.paper.runner import Job, Record
from examples.paper.tssm import shrinkage_lda
from rplvq import Recenter, RiemannianLVQ
from rplvq.presets import plrsq_const

__all__ = ["VIEWS", "classify", "jobs", "smoke"]

VIEWS = ("as measured", "online", "transductive")
TRAINED = ("one for all", "the paper's")
TANGENT = {
    "tangent LDA": shrinkage_lda,
    "tangent logistic": lambda: LogisticRegression(C=0.1, max_iter=3000),
    "tangent SVM": lambda: SVC(C=2.0),
}
SETTINGS = (*TRAINED, "class means", *TANGENT)


def seen(data: Split, view: str, prior_weight: float) -> Split:
    """Return the matrices of both sessions in a view."""
    if view == "as measured":
        return data
    recenter = Recenter(online=view == "online", prior_weight=prior_weight)
    day = ["first"] * len(data.X_train), ["second"] * len(data.X_test)
    return data._replace(
        X_train=recenter.fit_transform(data.X_train, groups=day[0]),
        X_test=recenter.transform(data.X_test, groups=day[1]),
    )


def model(settings: str, subject: int, seed: int, max_epochs: int | None) -> Any:
    """Return the classifier of a subject, not fitted."""
    if settings in TANGENT:
        return make_pipeline(TangentSpace(metric="riemann"), TANGENT[settings]())
    if settings == "class means":
        return RiemannianLVQ(max_epochs=0)
    if settings == "one for all":
        return RiemannianLVQ(sigma2=4.0, step_size="paper", max_epochs=max_epochs or 50, random_state=seed)
    _, count, epochs, sigma2 = PAPER_SETTINGS[subject - 1]
    return plrsq_const(sigma2, int(count), max_epochs or int(epochs), random_state=seed)


def classify(
    *,
    repetition: int,
    method: str,
    view: str,
    settings: str,
    subjects: list[int],
    prior_weight: float = 10.0,
    max_epochs: int | None = None,
) -> Record:
    """Train and test each subject; ``method`` is only a name for the pair of settings and view.

    Returns
    -------
    dict
        kappa (a list over the subjects) and mean_kappa.
    """
    del method
    kappas = [
        fit_and_score(model(settings, subject, repetition, max_epochs), seen(load_bci2a(subject), view, prior_weight))[
            "kappa"
        ]
        for subject in subjects
    ]
    return {"kappa": kappas, "mean_kappa": float(np.mean(kappas))}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: ten seeds if prototypes are trained, and one for the methods without a seed."""
    found = []
    for settings, view in product(SETTINGS, VIEWS):
        options: dict[str, Any] = {"view": view, "settings": settings, "subjects": list(range(1, 10))}
        if quick and settings in TRAINED:
            options |= {"max_epochs": 2}
        for seed in range(10 if settings in TRAINED and not quick else 1):
            found.append(Job("recentering", f"{settings}, {view}", seed, options, classify))
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: one subject, one epoch."""
    options = {"settings": "one for all", "subjects": [3], "max_epochs": 1}
    return [Job("recentering", view, 0, options | {"view": view}, classify) for view in VIEWS]
