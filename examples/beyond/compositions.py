"""Every composition of 8 costs, 8 metrics and 17 schedules, in 5, 20 and 100 epochs, against the class means.

A fit is bad if its test accuracy ends more than 0.03 below that of its metric's class means. What counts is how many
fits are bad without a warning. Each job fits one cost under one metric with all schedules, on SynI and digits.

Beside this grid, RSLVQ is fitted on four data sets under three metrics: with a sigma2 that is a number, decays, is
annealed, or follows a schedule of one's own, with two step sizes, in 1, 5, 20 and 100 epochs. On all five data sets,
it is also fitted with the rule for sigma2, without trials, and with several amounts of training.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import attrs
import numpy as np

from examples.beyond.default import FILES
from examples.paper import eth80
from examples.paper.data import Split, is_available, load_bci2a
from examples.paper.runner import Job, Record
from rplvq import (
    GLVQ,
    PLVQ,
    RSLVQ,
    Annealed,
    Constant,
    GeometricDecay,
    HeldOut,
    Representability,
    RiemannianLVQ,
    Share,
    StepDecay,
)
from rplvq.datasets import load_digits_covariances, make_syn1, make_syn2
from rplvq.exceptions import DivergenceWarning
from rplvq.protocols import Array, Evaluation

__all__ = ["AMOUNTS", "BAD", "COSTS", "DATA", "EPOCHS", "GRID", "METRICS", "SCHEDULES", "jobs", "score", "smoke"]

BAD = 0.03
"""Loss of test accuracy against the class means from which on a fit is bad."""
EPOCHS = (5, 20, 100)


@attrs.frozen
class Cosine:
    """A schedule of a user's own: from its start to a tenth of it along a cosine."""

    start: float | None = None

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 0..n_epochs."""
        return float((self.start or 1.0) * (0.55 + 0.45 * math.cos(math.pi * epoch / n_epochs)))


@attrs.frozen
class Own:
    """A cost of a user's own that states no largest slope: RSLVQ, wrapped."""

    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K)."""
        return RSLVQ()(sqdist, targets, labels, sigma2)


COSTS: dict[str, Any] = {
    "RSLVQ": RSLVQ(),
    "PLVQ": PLVQ(),
    "GLVQ": GLVQ(),
    "GLVQ, steepness 10": GLVQ(10.0),
    "GLVQ, steepness 1 / sigma2": GLVQ(None),
    "RSLVQ + 0.1 Representability": RSLVQ() + 0.1 * Representability(),
    "RSLVQ + GLVQ": RSLVQ() + GLVQ(),
    "own": Own(),
}
METRICS = (
    "affine_invariant", "log_euclidean", "tangent", "whitened_tangent", "euclidean", "log_cholesky",
    "bures_wasserstein", "learned_log_euclidean",
)  # fmt: skip
RULE = HeldOut(("auto",))
"""The rule for sigma2, without trials."""
SCHEDULES: dict[str, Callable[[float], Record]] = {
    "all defaults": lambda _: {},
    "the rule": lambda _: {"sigma2": RULE},
    "half-median": lambda _: {"sigma2": "half_median"},
    "a tenth of it": lambda half: {"sigma2": half / 10},
    "ten times it": lambda half: {"sigma2": half * 10},
    "GeometricDecay()": lambda _: {"sigma2": GeometricDecay()},
    "StepDecay()": lambda _: {"sigma2": StepDecay()},
    "Annealed()": lambda _: {"sigma2": Annealed()},
    "own, from the rule": lambda _: {"sigma2": Cosine()},
    "GeometricDecay from half-median": lambda half: {"sigma2": GeometricDecay(half)},
    "the rule, steps Constant()": lambda _: {"sigma2": RULE, "step_size": Constant()},
    "half-median, steps StepDecay()": lambda _: {"sigma2": "half_median", "step_size": StepDecay()},
    "Annealed(), steps own": lambda _: {"sigma2": Annealed(), "step_size": Cosine()},
    "GeometricDecay(), steps Constant()": lambda _: {"sigma2": GeometricDecay(), "step_size": Constant()},
    "the rule, Share(0.1)": lambda _: {"sigma2": RULE, "step_size": Share(0.1)},
    "GeometricDecay(), Share(0.3)": lambda _: {"sigma2": GeometricDecay(), "step_size": Share(0.3)},
    "the rule, adaptive": lambda _: {"sigma2": RULE, "step_size": "adaptive"},
}
"""Settings of sigma2 and of the step size, as functions of half the median squared distance to the class means."""


SIGMA2: dict[str, Callable[[float], Any]] = {
    "a number": lambda half: half,
    "decaying": lambda _: GeometricDecay(),
    "annealed": lambda _: Annealed(),
    "own": lambda _: Cosine(),
}
"""Settings of sigma2 on the four data sets."""
STEPS: dict[str, Any] = {"the default's steps": "auto", "steps Constant()": Constant()}
"""Settings of the step size on the four data sets."""
FEW_METRICS = ("affine_invariant", "log_euclidean", "tangent")
FEW_EPOCHS = (1, 5, 20, 100)
AMOUNTS = (0.3, 1.0, 3.0, 10.0)
"""Amounts of training, epochs times the first share."""


def _synthetic(make: Callable[..., tuple[Array, Array]], repetition: int) -> Split:
    X, y = make(n_per_class=310, random_state=repetition)
    train = np.concatenate([np.flatnonzero(y == label)[:60] for label in np.unique(y)])
    test = np.setdiff1d(np.arange(len(y)), train)
    return Split(X[train], y[train], X[test], y[test])


def _digits(repetition: int) -> Split:
    X, y = load_digits_covariances()
    rows = np.random.default_rng(repetition).permutation(len(y))
    return Split(X[rows[:300]], y[rows[:300]], X[rows[300:]], y[rows[300:]])


GRID = ("SynI", "digits")
"""Data sets of the grid: 240 and 300 training samples."""
DATA: dict[str, Callable[[int], Split]] = {
    "SynI": lambda repetition: _synthetic(make_syn1, repetition),
    "digits": _digits,
    "SynII": lambda repetition: _synthetic(make_syn2, repetition),
    "BCI 2a, subject 3": lambda _: load_bci2a(3),
    "ETH-80": lambda repetition: eth80.split("full256", 8, repetition),
}
NEEDS = {"BCI 2a, subject 3": FILES["bci2a"], "ETH-80": FILES["eth80"]}
"""Files of the data sets that need one."""


def score(
    *, repetition: int, method: str, data: str, metric: str, epochs: tuple[int, ...] = EPOCHS, few: bool = False,
    amounts: bool = False,
) -> Record:  # fmt: skip
    """Fit one cost under one metric with all schedules, with ``few`` of them, or with the rule and all ``amounts``.

    Returns
    -------
    dict
        For each schedule and number of epochs, as "schedule, epochs": the gain of test accuracy over the class means,
        and whether a DivergenceWarning came.
    """
    split = DATA[data](repetition)
    means = RiemannianLVQ(metric, max_epochs=0).fit(split.X_train, split.y_train)
    start = means.score(split.X_test, split.y_test)
    half = 0.5 * float(np.median(means.transform(split.X_train) ** 2))
    found: Record = {}
    schedules = _amounts() if amounts else _schedules(half, few=few)
    for (name, settings), n_epochs in product(schedules.items(), epochs):
        model = RiemannianLVQ(metric, COSTS[method], max_epochs=n_epochs, random_state=repetition, **settings)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            model.fit(split.X_train, split.y_train)
        warned = any(issubclass(one.category, DivergenceWarning) for one in given)
        found[f"{name}, {n_epochs}"] = [round(model.score(split.X_test, split.y_test) - start, 4), warned]
    return found


def _schedules(half: float, *, few: bool) -> dict[str, Record]:
    """Return the settings by name; ``half`` is half the median squared distance to the class means."""
    if not few:
        return {name: settings(half) for name, settings in SCHEDULES.items()}
    pairs = product(SIGMA2.items(), STEPS.items())
    return {f"{name}, {steps}": {"sigma2": of(half), "step_size": step} for (name, of), (steps, step) in pairs}


def _amounts() -> dict[str, Record]:
    """Return the settings with the rule for sigma2, by amounts of training."""
    return {f"amount {amount:g}": {"sigma2": RULE, "step_size": Share(amount=amount)} for amount in AMOUNTS}


def _jobs() -> Iterator[Job]:
    for data, metric, cost in product(GRID, METRICS, COSTS):
        settings = {"data": data, "metric": metric, "epochs": list(EPOCHS)}
        yield Job(f"compositions-{data}-{metric}", cost, 0, settings, score)
    available = [data for data in DATA if data not in NEEDS or is_available(NEEDS[data])]
    for data, metric in product(available, FEW_METRICS):
        if data != "digits":
            settings = {"data": data, "metric": metric, "epochs": list(FEW_EPOCHS), "few": True}
            yield Job(f"compositions-few-{data}-{metric}", "RSLVQ", 0, settings, score)
    for data, metric, repetition in product(available, FEW_METRICS, range(3)):
        settings = {"data": data, "metric": metric, "epochs": list(EPOCHS), "amounts": True}
        yield Job(f"compositions-amounts-{data}-{metric}", "RSLVQ", repetition, settings, score)


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs; ``quick`` has one cost and one metric, and one epoch."""
    if quick:
        settings = {"data": "digits", "metric": "log_euclidean", "epochs": [1]}
        return [Job("compositions-digits-log_euclidean", "RSLVQ", 0, settings, score)]
    return list(_jobs())


def smoke() -> list[Job]:
    """Return jobs of seconds."""
    return jobs(quick=True)
