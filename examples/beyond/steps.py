"""The adaptive step size against the paper's decay: cost and accuracy by epochs and by start value.

The paper's start value is ``n xi / 100``. Each rule starts from a tenth of it, from it, and from ten times it. sigma2
and the number of prototypes are those of the paper (on ETH-80 six per class and sigma2 = 0.5), the same for both rules.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from examples.paper import eth80
from examples.paper.bci2a import PAPER_SETTINGS
from examples.paper.data import Split, is_available, load_bci2a
from examples.paper.evaluate import fit_and_score, score_before_training
from examples.paper.runner import Job, Record
from examples.paper.synthetic_methods import draw
from rplvq import AdaptiveStep, GeometricDecay, RiemannianLVQ
from rplvq.exceptions import DivergenceWarning
from rplvq.training import EpochScore

__all__ = ["DATA", "EPOCHS", "jobs", "scored", "smoke", "splits", "train"]

EPOCHS = (1, 2, 5, 10, 20, 50, 100)
"""Epochs after which the cost is recorded."""
FACTORS = (0.1, 1.0, 10.0)
RULES: dict[str, Callable[[float], dict[str, Any]]] = {
    "paper": lambda start: {"step_size": GeometricDecay(start)},
    "adaptive": lambda start: {"step_size": AdaptiveStep(start)},
}
DATA: dict[str, dict[str, Any]] = {
    "syn1": {"sigma2": 8.0, "prototypes_per_class": 2, "max_epochs": 50},
    "syn2": {"sigma2": 0.5, "prototypes_per_class": 2, "max_epochs": 50},
    "full256": {"sigma2": 0.5, "prototypes_per_class": 6, "max_epochs": 50},
    "bci2a": {},
}
FILES = {"full256": "eth80_cov5.npz", "bci2a": "bci2a_cov22.npz"}


def splits(
    data: str, repetition: int, subjects: Sequence[Sequence[float]], settings: dict[str, Any]
) -> Iterator[tuple[Split, dict[str, Any]]]:
    """Yield training and test data with their settings: one pair, or on "bci2a" one pair per subject."""
    if data == "bci2a":
        for subject, count, epochs, sigma2 in subjects:
            own = {"sigma2": sigma2, "prototypes_per_class": int(count), "max_epochs": int(epochs)}
            yield load_bci2a(int(subject)), own | settings
    elif data == "full256":
        yield eth80.split(data, 8, repetition), settings
    else:
        drawn = draw(data, repetition)
        yield Split(drawn.X, drawn.y, drawn.X_test, drawn.y_test), settings


def scored(model: RiemannianLVQ, split: Split, solved: Any = None) -> Record:
    """Return the scores of a classifier, and its cost per sample before training, after some epochs and at the end.

    If ``solved`` is given, it is fitted in place of ``model``. Both have the same initial prototypes.
    """
    fitted = model.set_params(callbacks=[EpochScore()]) if solved is None else solved
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # ten times the paper's step is sometimes too large
        result = fit_and_score(fitted, split)
    first = score_before_training(model, split.X_train, split.y_train)[1].cost
    history = fitted.history_
    cost = np.array([first, *history["cost"][history["epoch"] > 0]]) / len(split.y_train)
    seen = {str(epoch): float(cost[epoch]) for epoch in EPOCHS if epoch < len(cost)}
    return result | {"cost": float(cost[-1]), "start_cost": float(cost[0]), "costs": seen}


def train(
    *,
    repetition: int,
    method: str,
    data: str,
    rule: str,
    factor: float,
    subjects: Sequence[Sequence[float]] = (),
    **settings: Any,
) -> Record:
    """Train with a rule for the step size.

    Parameters
    ----------
    repetition : int
        Seed of the split and of training.
    method : str
        Name in the table.
    data : str
        A name of DATA.
    rule : str
        A name of RULES.
    factor : float
        Factor on the paper's start value.
    subjects : sequence of [subject, prototypes per class, epochs, sigma2]
        Subjects of "bci2a" with their settings.
    **settings
        Arguments of RiemannianLVQ.

    Returns
    -------
    dict
        As :func:`scored`; on "bci2a" the mean of each number over the subjects, and the list kappas.
    """
    del method
    rows = []
    for split, own in splits(data, repetition, subjects, settings):
        start = factor * split.X_train.shape[-1] * own["prototypes_per_class"] / 100
        model = RiemannianLVQ(random_state=repetition, **own | RULES[rule](start))
        rows.append(scored(model, split))
    return mean_of(rows)


def mean_of(rows: Sequence[Record]) -> Record:
    """Return the mean of each number over the rows, and the kappas of the rows if there are several."""
    if len(rows) == 1:
        return rows[0]
    result = {name: float(np.mean([row[name] for row in rows])) for name in rows[0] if name != "costs"}
    shared = set.intersection(*(set(row["costs"]) for row in rows))
    costs = {epoch: float(np.mean([row["costs"][epoch] for row in rows])) for epoch in sorted(shared, key=int)}
    return result | {"costs": costs, "kappas": [row["kappa"] for row in rows]}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs by repetition: 5 per data set, 3 on ETH-80 and BCI; ``quick`` has 1, of 3 epochs."""
    return list(_jobs(1, 3) if quick else _jobs(5, None))


def smoke() -> list[Job]:
    """Return jobs of seconds: SynII, one epoch with one prototype per class."""
    settings = {"data": "syn2", "sigma2": 0.5, "prototypes_per_class": 1, "max_epochs": 1}
    return [Job("steps-syn2", rule, 0, settings | {"rule": rule, "factor": 1.0}, train) for rule in RULES]


def _jobs(n_repetitions: int, max_epochs: int | None) -> Iterator[Job]:
    for repetition, (data, settings) in product(range(n_repetitions), DATA.items()):
        if data in FILES and (repetition >= 3 or not is_available(FILES[data])):
            continue
        short = {} if max_epochs is None else {"max_epochs": max_epochs}
        own: Record = {"data": data} | settings | short
        if data == "bci2a":
            own["subjects"] = PAPER_SETTINGS
        for rule, factor in product(RULES, FACTORS):
            method = f"{rule}, x {factor:g}"
            yield Job(f"steps-{data}", method, repetition, own | {"rule": rule, "factor": factor}, train)
