"""The data of several experiments: training and test samples by repetition, and scores over the subjects of BCI 2a."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from examples.paper import eth80
from examples.paper.bci2a import PAPER_SETTINGS
from examples.paper.data import Split, is_available, load_bci2a
from examples.paper.runner import Record
from examples.paper.synthetic_methods import draw
from rplvq import HeldOut
from rplvq.datasets import load_digits_covariances

__all__ = ["FILES", "RULE", "SETTINGS", "SPLITS", "TITLES", "cells", "score_each"]

FILES = {"full256": "eth80_cov5.npz", "mask256": "eth80_cov5.npz", "bci2a": "bci2a_cov22.npz"}
TITLES = {
    "syn1": "SynI",
    "syn2": "SynII",
    "full256": "ETH-80, whole image",
    "mask256": "ETH-80, mask",
    "bci2a": "BCI 2a",
    "digits": "digits",
}
RULE: Record = {"sigma2": HeldOut(("auto",)), "step_size": "paper"}
"""The sigma2 that the library's rule gives, without trials, and the steps of the paper."""
SETTINGS: dict[str, Record] = {
    "syn1": {"sigma2": 8.0, "prototypes_per_class": 2},
    "syn2": {"sigma2": 0.5, "prototypes_per_class": 2},
    "full256": {"sigma2": 0.5, "prototypes_per_class": 6},
    "mask256": {"sigma2": 0.5, "prototypes_per_class": 6},
    "bci2a": {"subjects": [[int(row[0]), int(row[1]), row[3]] for row in PAPER_SETTINGS]},
}
"""The paper's sigma2 and prototypes per class; on BCI 2a rows of subject, prototypes per class and sigma2."""


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


def score_each(
    score: Callable[[Split, Record], Record],
    data: str,
    repetition: int,
    subjects: Sequence[Sequence[float]],
    settings: Mapping[str, Any],
) -> Record:
    """Compute the scores of one split, or those of each subject of BCI 2a.

    Parameters
    ----------
    score : callable
        ``score(split, settings)`` returns a dict of numbers.
    data : str
        A name of SPLITS, or "bci2a".
    repetition : int
        Seed of the split.
    subjects : sequence of [subject, prototypes per class, sigma2]
        Subjects of "bci2a" with their settings; [subject] alone leaves the settings as they are.
    settings : mapping
        Arguments of RiemannianLVQ.

    Returns
    -------
    dict
        Numbers; on "bci2a" lists over the subjects, and the mean of each list as ``mean_<name>``.
    """
    if data != "bci2a":
        return score(SPLITS[data](repetition), dict(settings))
    rows = []
    for subject, *own in subjects:
        chosen = dict(zip(("prototypes_per_class", "sigma2"), own, strict=False))
        rows.append(score(load_bci2a(int(subject)), dict(settings) | chosen))
    common = [name for name in rows[0] if all(name in row for row in rows)]  # a fit may choose not to train
    result: Record = {name: [row[name] for row in rows] for name in common}
    means = {f"mean_{name}": float(np.mean(values)) for name, values in result.items()}
    return result | means


def cells(counts: Mapping[str, int], methods: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield data, repetition and method, ordered by repetition; absent data are left out."""
    there = {data: count for data, count in counts.items() if data not in FILES or is_available(FILES[data])}
    for repetition in range(max(there.values())):
        for data, method in product((data for data, count in there.items() if repetition < count), methods):
            yield data, repetition, method
