"""BCI 2a after Recenter alone, with Rescale, and with Rotate, which needs some labelled trials of the target.

"session 2" is one subject: session 1 is the source, session 2 the target, of which the first trials of each class have
labels. "new subject" leaves one subject out: session 1 of the other eight are the sources, session 1 of the new subject
is the target, and its session 2 is tested. All rows train on the sources and the labelled trials, or on these alone,
re-centred ("target alone"). Session 2 is tested without the first 20 trials per class. Recenter and Rescale take all
trials of a session together, without labels.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from pyriemann.tangentspace import TangentSpace
from sklearn.metrics import cohen_kappa_score
from sklearn.pipeline import make_pipeline

from examples.paper.data import Split, load_bci2a
from examples.paper.runner import Job, Record
from examples.paper.tssm import shrinkage_lda
from rplvq import Recenter, Rescale, RiemannianLVQ, Rotate
from rplvq.protocols import Array

__all__ = ["PROTOCOLS", "VIEWS", "align", "jobs", "smoke"]

PROTOCOLS = ("session 2", "new subject")
ALONE = "target alone"
VIEWS = ("Recenter", "Recenter, Rescale", "Recenter, Rotate", "Recenter, Rescale, Rotate", ALONE)
LABELS = (0, 5, 20)
MODELS = {"session 2": ("prototypes", "tangent LDA"), "new subject": ("class means", "tangent LDA")}
KEPT = 20
"""The first trials per class of session 2 that are not tested."""


@lru_cache(maxsize=18)
def session(subject: int, number: int) -> tuple[Array, Array]:
    """Return the re-centred trials (288, 22, 22) of a session, 1 or 2, and their labels (288,)."""
    data = load_bci2a(subject)
    X, y = (data.X_train, data.y_train) if number == 1 else (data.X_test, data.y_test)
    return Recenter().fit_transform(X), y


def first(y: Array, count: int) -> Array:
    """Return which samples (N,) are among the first ``count`` of their class."""
    found = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        found[np.flatnonzero(y == label)[:count]] = True
    return found


def model(name: str, seed: int, max_epochs: int) -> Any:
    """Return a classifier, not fitted."""
    if name == "tangent LDA":
        return make_pipeline(TangentSpace(metric="logeuclid"), shrinkage_lda())
    if name == "class means":
        return RiemannianLVQ("log_euclidean", max_epochs=0)
    return RiemannianLVQ(sigma2=4.0, step_size="paper", max_epochs=max_epochs, random_state=seed)


@lru_cache(maxsize=36)
def prepared(protocol: str, subject: int, labels: int, view: str) -> Split:
    """Return the aligned training trials, and the tested trials of session 2 of a subject."""
    sources = [subject] if protocol == "session 2" else [other for other in range(1, 10) if other != subject]
    target = session(subject, 2 if protocol == "session 2" else 1)
    parts = [*(session(other, 1) for other in sources), target]
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    groups = np.repeat([*(f"source {other}" for other in sources), "target"], [len(part[1]) for part in parts])
    used = groups != "target"
    used[~used] = first(target[1], labels)
    if view == ALONE:
        used &= groups == "target"
    T, truth = session(subject, 2)
    tested = ~first(truth, KEPT)
    if "Rescale" in view:
        rescale = Rescale().fit(X, groups=groups)
        X, T = rescale.transform(X, groups=groups), rescale.transform(T, groups=np.full(len(T), "test"))
    X, y, groups = X[used], y[used], groups[used]
    if "Rotate" in view:
        X = Rotate("target").fit_transform(X, y, groups=groups)
    return Split(X, y, T[tested], truth[tested])


def align(
    *,
    repetition: int,
    method: str,
    protocol: str,
    labels: int,
    view: str,
    classifier: str,
    subjects: list[int],
    max_epochs: int,
) -> Record:
    """Train and test for each subject; ``method`` is only a name for the settings.

    Returns
    -------
    dict
        kappa (a list over the subjects) and mean_kappa.
    """
    del method
    kappas = []
    for subject in subjects:
        data = prepared(protocol, subject, labels, view)
        fitted = model(classifier, repetition, max_epochs).fit(data.X_train, data.y_train)
        kappas.append(float(cohen_kappa_score(data.y_test, fitted.predict(data.X_test))))
    return {"kappa": kappas, "mean_kappa": float(np.mean(kappas))}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: one seed, because the order of samples matters little beside the subjects."""
    found = []
    for protocol, labels, number, view in product(PROTOCOLS, LABELS, range(2), VIEWS):
        if labels or ("Rotate" not in view and view != ALONE):
            classifier = MODELS[protocol][number]
            options: dict[str, Any] = {"protocol": protocol, "labels": labels, "view": view, "classifier": classifier}
            options |= {"subjects": list(range(1, 10)), "max_epochs": 1 if quick else 10}
            found.append(Job("alignment", f"{protocol}, {labels} labels, {classifier}, {view}", 0, options, align))
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: one subject, one epoch."""
    options = {"protocol": "session 2", "labels": 5, "classifier": "prototypes", "subjects": [3], "max_epochs": 1}
    return [Job("alignment", view, 0, options | {"view": view}, align) for view in VIEWS]
