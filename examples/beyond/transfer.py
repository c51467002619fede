"""BCI 2a with the other eight subjects: no trial of one's own, trials without labels, or a few labelled ones.

The first session of the other subjects, and of one's own if there is any, trains. The second session tests. Each
session of each subject is re-centred at its own mean, the own labelled trials at the mean of these few alone. All
classifiers are the same: one prototype per class, sigma2 = 1 and four epochs under the Log-Euclidean metric. The own
labelled trials are drawn at random from the first session.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, cohen_kappa_score

from examples.paper.data import Split, load_bci2a
from examples.paper.runner import Job, Record
from rplvq import LogEuclidean, Recenter, RiemannianLVQ, TransferClassifier
from rplvq.protocols import Array

__all__ = ["COUNTS", "FEW", "NONE", "SUBJECTS", "classify", "jobs", "smoke"]

SUBJECTS = tuple(range(1, 10))
COUNTS = (5, 10, 20, 40, 72)
"""Numbers of own labelled trials per class; the first session has 72."""
NONE = {
    "class means": (),
    "other subjects": (),
    "and own session 1 without labels": ("first",),
    "and session 2 without labels": ("second",),
}
"""Methods without own labelled trials, with the sessions whose trials take part without labels."""
FEW = {
    "own trials alone": (),
    "pooled": (),
    "warm start": (),
    "TransferClassifier": (),
    "TransferClassifier, and session 2 without labels": ("second",),
}
"""Methods with own labelled trials. One learns from own trials, and starts from the prototypes of others."""


def _model(seed: int, **settings: Any) -> RiemannianLVQ:
    return RiemannianLVQ("euclidean_vectors", **{"sigma2": 1.0, "max_epochs": 4, "random_state": seed, **settings})


def _recentred(X: Array) -> Array:
    """Re-centre matrices at their mean; return vectors whose distance is the Log-Euclidean one of these matrices.

    The logarithms are computed once for all fits. Entries beside the diagonal count twice, and stand once.
    """
    rows, columns = np.triu_indices(X.shape[1])
    logs = LogEuclidean().encode(Recenter().fit_transform(X))[:, rows, columns]
    return np.asarray(logs * np.where(rows == columns, 1.0, np.sqrt(2.0)))


@cache
def _sessions(subject: int) -> Split:
    """Return both sessions of a subject, each re-centred at its own mean."""
    data = load_bci2a(subject)
    return data._replace(X_train=_recentred(data.X_train), X_test=_recentred(data.X_test))


def _own(subject: int, count: int, repetition: int) -> tuple[Array, Array]:
    """Draw own labelled trials of session 1 in their order, and re-centre them at their own mean."""
    data, rng = load_bci2a(subject), np.random.default_rng([subject, count, repetition])
    if not count:
        return _sessions(subject).X_train[:0], data.y_train[:0]
    rows = [rng.permutation(np.flatnonzero(data.y_train == label))[:count] for label in np.unique(data.y_train)]
    drawn = np.sort(np.concatenate(rows))
    return _recentred(data.X_train[drawn]), data.y_train[drawn]


def _fitted(method: str, subject: int, count: int, seed: int) -> Any:
    """Return the classifier of a subject, fitted."""
    others = [number for number in SUBJECTS if number != subject]
    X, y = (np.concatenate([getattr(_sessions(number), name) for number in others]) for name in Split._fields[:2])
    own, labels = _own(subject, count, seed)
    if method == "own trials alone":
        return _model(seed).fit(own, labels)
    if method == "warm start":
        first = _model(seed).fit(X, y)
        return _model(seed, init=(first.prototypes_, first.prototype_labels_)).fit(own, labels)
    if method == "pooled":
        return _model(seed).fit(np.concatenate([X, own]), np.concatenate([y, labels]))
    sessions = {"first": _sessions(subject).X_train, "second": _sessions(subject).X_test}
    hidden = [sessions[name] for name in (NONE | FEW)[method]]
    n_own = len(own) + sum(map(len, hidden))
    marked = np.full(n_own - len(own), -1)
    domains = np.concatenate(
        [np.repeat(others, [len(_sessions(number).y_train) for number in others]), np.full(n_own, subject)]
    )
    model = _model(seed, max_epochs=0) if method == "class means" else _model(seed)
    transfer = TransferClassifier(model, target=subject if n_own else None, unlabeled=-1)
    return transfer.fit(np.concatenate([X, own, *hidden]), np.concatenate([y, labels, marked]), groups=domains)


def classify(*, repetition: int, method: str, count: int, subjects: list[int]) -> Record:
    """Train and test each subject; ``method`` is a name of the tables, after it the number of own trials per class.

    Returns
    -------
    dict
        accuracy and kappa of session 2 (lists over the subjects), mean_accuracy, mean_kappa, and weight, the chosen
        weights of the other subjects where there was a choice.
    """
    found: dict[str, list[float]] = {"accuracy": [], "kappa": [], "weight": []}
    for subject in subjects:
        model, test = _fitted(method.removesuffix(f", {count}"), subject, count, repetition), _sessions(subject)
        predicted = model.predict(test.X_test)
        found["accuracy"].append(float(accuracy_score(test.y_test, predicted)))
        found["kappa"].append(float(cohen_kappa_score(test.y_test, predicted)))
        if count and hasattr(model, "weight_"):
            found["weight"].append(model.weight_)
    return {**found, **{f"mean_{name}": float(np.mean(found[name])) for name in ("accuracy", "kappa")}}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: three draws of the own trials, which are also the seeds; ``quick`` has one."""
    every: dict[str, Any] = {"subjects": list(SUBJECTS)}
    found = []
    for draw in range(1 if quick else 3):
        found += [Job("transfer", name, draw, every | {"count": 0}, classify) for name in NONE]
        for count in COUNTS:
            found += [Job("transfer", f"{name}, {count}", draw, every | {"count": count}, classify) for name in FEW]
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: one subject."""
    one: dict[str, Any] = {"subjects": [3]}
    few = [Job("transfer", f"{name}, 5", 0, one | {"count": 5}, classify) for name in FEW]
    return [Job("transfer", name, 0, one | {"count": 0}, classify) for name in NONE] + few
