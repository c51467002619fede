"""Default training against its own starting point: does a sigma2 that sets itself end below the class means?

Each repetition draws its data or split and its seed; on BCI 2a, where session 1 trains and session 2 tests, only the
seed differs, and the scores are means over the nine subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from examples.paper import eth80
from examples.paper.data import Split, is_available, load_bci2a
from examples.paper.evaluate import fit_and_score
from examples.paper.runner import Job, Record
from examples.paper.synthetic_methods import draw
from rplvq import Learned, RiemannianLVQ
from rplvq.costs import RiemannianGaussian, SpreadRSLVQ
from rplvq.datasets import load_digits_covariances

__all__ = ["METHODS", "jobs", "smoke", "train"]

METHODS: dict[str, dict[str, Any]] = {
    "start": {"max_epochs": 0},
    "auto": {},
    "auto, step auto": {"step_size": "auto"},
    "half-median": {"sigma2": "half_median"},
    "heldout": {"sigma2": "heldout"},
    "heldout, step auto": {"sigma2": "heldout", "step_size": "auto"},
    "learned": {"sigma2": Learned(), "validation_fraction": 0.2},
    "learned in training": {"sigma2": Learned(data="training")},
    "spread, start": {"max_epochs": 0, "decision": "posterior"},
    "spread, auto": {"decision": "posterior"},
}
"""Arguments of RiemannianLVQ; "spread" adds the cost of a variance for each class, which is for SynII."""


def _synthetic(problem: str, repetition: int) -> Split:
    data = draw(problem, repetition)
    return Split(data.X, data.y, data.X_test, data.y_test)


def _digits(repetition: int) -> Split:
    X, y = load_digits_covariances()
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=repetition)
    return Split(X[train], y[train], X[test], y[test])


SPLITS: dict[str, Callable[[int], Split]] = {
    "syn2": lambda repetition: _synthetic("syn2", repetition),
    "syn1": lambda repetition: _synthetic("syn1", repetition),
    "full256": lambda repetition: eth80.split("full256", 8, repetition),
    "mask256": lambda repetition: eth80.split("mask256", 8, repetition),
    "digits": _digits,
}
FILES = {"full256": "eth80_cov5.npz", "mask256": "eth80_cov5.npz", "bci2a": "bci2a_cov22.npz"}


def _spread(split: Split) -> SpreadRSLVQ:
    """Cost with the variances of the training classes around their means."""
    means = RiemannianLVQ(max_epochs=0).fit(split.X_train, split.y_train)
    targets = np.searchsorted(means.classes_, split.y_train)
    labels = np.arange(len(means.classes_))
    return SpreadRSLVQ.from_sqdist(
        means.transform(split.X_train) ** 2, targets, labels, RiemannianGaussian(split.X_train.shape[-1])
    )


def train(*, repetition: int, method: str, data: str, subjects: Sequence[int] = (), **settings: Any) -> Record:
    """Fit a classifier with its default arguments but for ``settings``, and score it.

    Parameters
    ----------
    repetition : int
        Seed of the split and of training.
    method : str
        A name of METHODS.
    data : str
        A name of SPLITS, or "bci2a".
    subjects : sequence of int
        Subjects of "bci2a".
    **settings
        Arguments of RiemannianLVQ that replace those of the method.

    Returns
    -------
    dict
        accuracy, kappa, train_accuracy, epochs, posterior_accuracy and sigma2 where trained; on "bci2a" lists over the
        subjects, and mean_accuracy and mean_kappa.
    """

    def scored(split: Split) -> Record:
        cost = {"cost": _spread(split)} if method.startswith("spread") else {}
        model = RiemannianLVQ(random_state=repetition, **METHODS[method] | cost | settings)
        return {"epochs": 0} | fit_and_score(model, split)

    if data != "bci2a":
        return scored(SPLITS[data](repetition))
    rows = [scored(load_bci2a(subject)) for subject in subjects]
    common = [name for name in rows[0] if all(name in row for row in rows)]  # a fit may choose not to train
    result: Record = {name: [row[name] for row in rows] for name in common}
    return result | {f"mean_{name}": float(np.mean(result[name])) for name in ("accuracy", "kappa")}


def jobs(quick: bool = False) -> list[Job]:
    """All jobs: 30 repetitions of SynII (10 of a learned sigma2), 10 of the others; ``quick``: 3 and 1, of 3 epochs."""
    return list(_jobs(1, {"max_epochs": 3}) if quick else _jobs(10, {}))


def smoke() -> list[Job]:
    """Digits, one epoch: seconds."""
    return [
        Job("sigma2-digits", method, 0, {"data": "digits", "max_epochs": 1}, train) for method in _methods("digits")
    ]


def _methods(data: str) -> list[str]:
    return [name for name in METHODS if data == "syn2" or not name.startswith("spread")]


def _jobs(n_repetitions: int, short: Record) -> Iterator[Job]:
    for name in (*SPLITS, "bci2a"):
        if name in FILES and not is_available(FILES[name]):
            continue
        settings: Record = {"data": name} | ({"subjects": list(range(1, 10))} if name == "bci2a" else {})
        for repetition, method in product(
            range(3 * n_repetitions if name == "syn2" else n_repetitions), _methods(name)
        ):
            if repetition >= n_repetitions and method.startswith("learned"):
                continue
            own = settings if method.endswith("start") else settings | short
            yield Job(f"sigma2-{name}", method, repetition, own, train)
