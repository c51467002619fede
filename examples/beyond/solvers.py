"""Deterministic training against stochastic descent: cost, accuracy and seconds, with the same prototypes and sigma2.

Settings are those of :mod:`examples.beyond.steps`; on BCI 2a subject 1 alone. Each solver runs as many steps as the
stochastic trainer has epochs, and twice as many; trust regions, whose steps cost more, half as many, and as many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from examples.beyond.steps import DATA, FILES, mean_of, scored, splits
from examples.paper.bci2a import PAPER_SETTINGS
from examples.paper.data import is_available
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ

__all__ = ["METHODS", "jobs", "smoke", "train"]

METHODS: dict[str, tuple[dict[str, Any], float]] = {
    "sgd, paper": ({}, 1),
    "sgd, adaptive": ({"step_size": "adaptive"}, 1),
    "cg": ({"solver": "cg"}, 1),
    "cg, twice": ({"solver": "cg"}, 2),
    "steepest descent": ({"solver": "steepest_descent"}, 1),
    "trust regions, half": ({"solver": "trust_regions"}, 0.5),
    "trust regions": ({"solver": "trust_regions"}, 1),
}
"""Arguments, and steps as a share of the epochs of stochastic descent."""


def train(
    *, repetition: int, method: str, data: str, subjects: Sequence[Sequence[float]] = (), **settings: Any
) -> Record:
    """Train by a solver.

    Parameters
    ----------
    repetition : int
        Seed of the split and of training.
    method : str
        A name of METHODS.
    data : str
        A name of DATA.
    subjects : sequence of [subject, prototypes a class, epochs, sigma2]
        Those of "bci2a".
    **settings
        Arguments of RiemannianLVQ.

    Returns
    -------
    dict
        As :func:`examples.beyond.steps.train`.
    """
    arguments, share = METHODS[method]
    rows = []
    for split, own in splits(data, repetition, subjects, settings):
        n_steps = max(1, round(share * own["max_epochs"]))
        own = own | arguments | {"max_epochs": n_steps}
        rows.append(scored(RiemannianLVQ(random_state=repetition, monitor="epoch", **own), split))
    return mean_of(rows)


def jobs(quick: bool = False) -> list[Job]:
    """All jobs: 3 repetitions of SynI and SynII, one of ETH-80 and BCI S1; ``quick`` has 1, of 3 epochs."""
    return list(_jobs(1, 3) if quick else _jobs(3, None))


def smoke() -> list[Job]:
    """SynII, two steps with one prototype a class: seconds."""
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
