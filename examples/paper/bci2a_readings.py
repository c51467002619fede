"""Readings of two publications on BCI IV 2a: why our TSSM+LDA is below the published one, and GLRSQ in 30 folds.

Each reading of TSSM+LDA is scored at several sizes m of the projected matrices, so that the effect of choosing m can be
seen apart. The 30 folds of GLRSQ are of the trials of one session or of both, which the accuracy of MDRM may tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

from examples.paper.data import load_bci2a
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ
from rplvq.presets import glrsq

__all__ = ["READINGS", "folds", "jobs", "smoke", "submanifold"]

# Arguments of examples.paper.tssm.submanifold_lda by the name of the row.
READINGS: dict[str, Record] = {
    "class means": {"criterion": "means"},
    "class means, plain LDA": {"criterion": "means", "shrinkage": None},
    "global structure": {"criterion": "global"},
    "global over local structure": {"criterion": "local"},
    "between over within classes": {"criterion": "classes"},
}


def submanifold(*, repetition: int, method: str, subjects: Sequence[int], n_components: Sequence[int]) -> Record:
    """Score one reading of TSSM+LDA at each size of the submanifold; ``repetition`` has no effect.

    Returns
    -------
    dict
        n_components, and kappa: one list over the sizes for each subject.
    """
    del repetition
    from examples.paper import tssm

    kappas = []
    for subject in subjects:
        data = load_bci2a(subject)
        row = []
        for size in n_components:
            model = tssm.submanifold_lda(size, **READINGS[method]).fit(data.X_train, data.y_train)
            row.append(float(cohen_kappa_score(data.y_test, model.predict(data.X_test))))
        kappas.append(row)
    return {"n_components": list(n_components), "kappa": kappas}


def folds(
    *, repetition: int, method: str, sessions: int, subjects: Sequence[int], n_folds: int, max_epochs: int
) -> Record:
    """Cross-validate MDRM or GLRSQ with one prototype per class on the trials of session 1, or of both sessions.

    Returns
    -------
    dict
        accuracy: the mean over the folds for each subject.
    """
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=repetition)
    found = []
    for subject in subjects:
        data = load_bci2a(subject)
        X, y = data.X_train, data.y_train
        if sessions == 2:
            X, y = np.concatenate([X, data.X_test]), np.concatenate([y, data.y_test])
        is_glrsq = method.startswith("GLRSQ")
        model = glrsq(1, max_epochs, random_state=repetition) if is_glrsq else RiemannianLVQ(max_epochs=0)
        found.append(float(cross_val_score(model, X, y, cv=splitter).mean()))
    return {"accuracy": found}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs; ``quick`` has two subjects, one size, two folds and two epochs."""
    return _jobs([1, 2], [6], 2, 2) if quick else _jobs(list(range(1, 10)), [6, 10, 14, 18, 22], 30, 20)


def smoke() -> list[Job]:
    """Return jobs of seconds: one subject, one size, two folds and one epoch."""
    return _jobs([1], [6], 2, 1)


def _jobs(subjects: list[int], sizes: list[int], n_folds: int, max_epochs: int) -> list[Job]:
    of_folds = {"subjects": subjects, "n_folds": n_folds, "max_epochs": max_epochs}
    settings = {"subjects": subjects, "n_components": sizes}
    return [Job("bci2a-tssm", reading, 0, settings, submanifold) for reading in READINGS] + [
        Job("bci2a-folds", f"{method}, {title}", 0, of_folds | {"sessions": sessions}, folds)
        for method in ("MDRM", "GLRSQ")
        for title, sessions in (("session 1", 1), ("both sessions", 2))
    ]
