"""Deterministic training against stochastic descent: cost, accuracy and seconds, with the same prototypes and sigma2.

Settings are those of :mod:`examples.beyond.steps`; of BCI 2a only subject 1 is used. Conjugate gradients take as many
steps as the stochastic trainer has epochs, and twice as many. Trust regions, whose steps take longer, take half as
many, and as many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from examples.beyond.steps import DATA, FILES, mean_of, scored, splits
from examples.paper.bci2a import PAPER_SETTINGS
from examples.paper.data import is_available
from examples.paper.runner import Job, Record
from rplvq import AdaptiveStep, RiemannianLVQ
from rplvq.arrays import Samples
from rplvq.protocols import Array
from rplvq.training.solvers import minimize

__all__ = ["METHODS", "Solved", "jobs", "smoke", "train"]

METHODS: dict[str, tuple[str | None, dict[str, Any], float]] = {
    "sgd, paper": (None, {"step_size": "paper"}, 1),
    "sgd, adaptive": (None, {}, 1),
    "cg": ("cg", {}, 1),
    "cg, twice": ("cg", {}, 2),
    "trust regions, half": ("trust_regions", {}, 0.5),
    "trust regions": ("trust_regions", {}, 1),
}
"""Solver (None for stochastic descent), arguments of RiemannianLVQ, and steps as a share of the epochs."""


class Solved:
    """A classifier whose prototypes a solver moves from the initial ones to a nearby minimum of the cost.

    Parameters
    ----------
    model : RiemannianLVQ
        Not fitted. It gives the parts and the initial prototypes; ``max_epochs`` is the number of the solver's steps.
    solver : {"cg", "trust_regions"}
        Name of the solver.
    """

    def __init__(self, model: RiemannianLVQ, solver: str) -> None:
        self.model, self.solver = model, solver

    def fit(self, X: Array, y: Array) -> Self:
        """Minimise the cost of matrices (N, n, n) with labels (N,)."""
        start = clone(self.model).set_params(max_epochs=0).fit(X, y)
        manifold, classes = start.trainer_.manifold, start.classes_
        samples = Samples(manifold.encode(X), classes.searchsorted(y))
        state, self.history_ = minimize(
            self.solver, manifold, start.trainer_.cost, start.state_, samples, max_iterations=self.model.max_epochs
        )
        prototypes = manifold.decode(state.prototypes), classes[state.labels]
        self.solution_ = RiemannianLVQ(init=prototypes, sigma2=state.sigma2, max_epochs=0).fit(X, y)
        self.classes_, self.sigma2_ = classes, state.sigma2
        self.n_epochs_ = int(np.count_nonzero(self.history_["epoch"]))
        return self

    def predict(self, X: Array) -> Array:
        """Return the labels (N,) of the nearest prototypes."""
        return self.solution_.predict(X)

    def predict_log_proba(self, X: Array) -> Array:
        """Return the logarithms (N, C) of the class probabilities."""
        return self.solution_.predict_log_proba(X)

    def score(self, X: Array, y: Array) -> float:
        """Return the share of correct labels."""
        return float(self.solution_.score(X, y))


def train(
    *, repetition: int, method: str, data: str, subjects: Sequence[Sequence[float]] = (), **settings: Any
) -> Record:
    """Train by a solver or by stochastic descent.

    Parameters
    ----------
    repetition : int
        Seed of the split and of training.
    method : str
        A name of METHODS.
    data : str
        A name of DATA.
    subjects : sequence of [subject, prototypes per class, epochs, sigma2]
        Subjects of "bci2a" with their settings.
    **settings
        Arguments of RiemannianLVQ.

    Returns
    -------
    dict
        As :func:`examples.beyond.steps.train`.
    """
    solver, arguments, share = METHODS[method]
    rows = []
    for split, own in splits(data, repetition, subjects, settings):
        n_steps = max(1, round(share * own["max_epochs"]))
        if method == "sgd, adaptive":
            arguments = {"step_size": AdaptiveStep(split.X_train.shape[-1] * own["prototypes_per_class"] / 100)}
        model = RiemannianLVQ(random_state=repetition, **own | arguments | {"max_epochs": n_steps})
        rows.append(scored(model, split, None if solver is None else Solved(model, solver)))
    return mean_of(rows)


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: 3 repetitions of SynI and SynII, one of ETH-80 and BCI S1; ``quick`` has 1, of 3 epochs."""
    return list(_jobs(1, 3) if quick else _jobs(3, None))


def smoke() -> list[Job]:
    """Return jobs of seconds: SynII, two steps with one prototype per class."""
    settings = {"data": "syn2", "sigma2": 0.5, "prototypes_per_class": 1, "max_epochs": 2}
    return [Job("solvers-syn2", method, 0, settings, train) for method in METHODS]


def _jobs(n_repetitions: int, max_epochs: int | None) -> Iterator[Job]:
    for repetition, (data, settings), method in product(range(n_repetitions), DATA.items(), METHODS):
        if data in FILES and (repetition > 0 or not is_available(FILES[data])):
            continue
        short = {} if max_epochs is None else {"max_epochs": max_epochs}
        own: Record = {"data": data} | settings | short
        if data == "bci2a":
            own["subjects"] = PAPER_SETTINGS[:1]
        yield Job(f"solvers-{data}", method, repetition, own, train)
