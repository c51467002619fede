"""SynI and SynII: the table, the selection protocol, learning rates, sigma2 and convergence curves.

Each repetition draws its own bases, and from them 250 matrices per class for each of training, validation and test.
The class-mean baselines train on training and validation data together. The other methods train on the training data
only, because the paper selects their settings on the validation data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from examples.paper.evaluate import accuracy_and_kappa
from examples.paper.runner import Job, Record
from examples.paper.selection import coordinate_search, without_sigma2
from examples.paper.synthetic_curves import POWERS, convergence, sigma2_curve
from examples.paper.synthetic_methods import BASELINES, MAKERS, METHODS, PLRSQ, N, Problem, draw, settings_of
from rplvq import GeometricDecay, StepSize
from rplvq.protocols import Array

__all__ = ["jobs", "select", "smoke", "table_entry"]

SIGMA2_GRID = [0.45, 0.5, *np.arange(1.0, 6.0, 0.5).tolist(), 6.0, 7.0, 8.0, 9.0, 10.0, 20.0, 30.0, 50.0]
SELECTION = {
    "grid": {
        "sigma2": [0.45, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0],
        "prototypes_per_class": [1, 2, 3],
        "max_epochs": [20, 50, 100],
    },
    "start": {"sigma2": 4.0, "prototypes_per_class": 2, "max_epochs": 50},
}
SMALL_SELECTION = {
    "grid": {"sigma2": [0.5, 8.0], "prototypes_per_class": [1, 2], "max_epochs": [2, 5]},
    "start": {"sigma2": 8.0, "prototypes_per_class": 1, "max_epochs": 2},
}
PROTOTYPES = (1, 2, 3)
EPOCHS = (100, 50, 20)
# The paper's table of learning rates: sigma2 = 1.5, one prototype per class. The start of the step size is n xi over
# these divisors, for 100 epochs, and for 150 epochs with the slowest one.
RATES = ((50, 100), (100, 100), (200, 100), (200, 150))


def table_entry(
    *, repetition: int, method: str, problem: str, n_per_class: int = 250, rate: float = 1.0, **settings: Any
) -> Record:
    """Fit one method and score it.

    Parameters
    ----------
    repetition : int
        Seed of the data and of training.
    method : str
        A name of METHODS; a remark may follow after a comma.
    problem : {"syn1", "syn2"}
        Which of the two problems.
    n_per_class : int, default=250
        Matrices per class in each of the three parts.
    rate : float, default=1
        Factor on the paper's start value of the step size, ``n xi / 100``.
    **settings
        Arguments of the method.

    Returns
    -------
    dict
        accuracy and kappa on the test data, train_accuracy, validation_accuracy.
    """
    data = draw(problem, repetition, n_per_class)
    name = method.split(",")[0]
    if rate != 1.0:
        start = rate * N * settings["prototypes_per_class"] / 100
        settings["step_size"] = StepSize(GeometricDecay(start), max_weight=None)
    model = METHODS[name](**settings) if name in BASELINES else METHODS[name](**settings, random_state=repetition)
    X, y = _training_data(data, name)
    model.fit(X, y)
    predicted = model.predict(data.X_test)
    return {
        **accuracy_and_kappa(data.y_test, predicted),
        "train_accuracy": float(model.score(data.X, data.y)),
        "validation_accuracy": float(model.score(data.X_validation, data.y_validation)),
    }


def _training_data(data: Problem, name: str) -> tuple[Array, Array]:
    if name not in BASELINES:
        return data.X, data.y
    return np.concatenate([data.X, data.X_validation]), np.concatenate([data.y, data.y_validation])


def select(
    *,
    repetition: int,
    method: str,
    problem: str,
    grid: Mapping[str, Sequence[Any]],
    start: Mapping[str, Any],
    n_per_class: int = 250,
) -> Record:
    """Choose settings by validation accuracy, then score that classifier on the test data.

    The paper tries all combinations. Here :func:`examples.paper.selection.coordinate_search` begins at ``start`` and
    varies sigma2, then the number of prototypes, then the number of epochs.

    Returns
    -------
    dict
        chosen, validation_accuracy, accuracy, kappa, and tried: rows of sigma2, prototypes, epochs, validation
        accuracy.
    """
    data = draw(problem, repetition, n_per_class)

    def fitted(**settings: Any) -> Any:
        return METHODS[method](**settings, random_state=repetition).fit(data.X, data.y)

    def score(**settings: Any) -> float:
        return float(fitted(**settings).score(data.X_validation, data.y_validation))

    choice = coordinate_search(score, grid, start)
    predicted = fitted(**choice.chosen).predict(data.X_test)
    return {
        "chosen": choice.chosen,
        "validation_accuracy": choice.score,
        **accuracy_and_kappa(data.y_test, predicted),
        "tried": choice.tried,
    }


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, those of the tables first; ``quick`` has fewer repetitions and epochs."""
    if quick:
        return [
            *_table(range(3), {"max_epochs": 5}),
            *_learning_rates(range(1), 20),
            *_convergence(range(1), max_epochs=10),
            *_selection(range(1), SMALL_SELECTION),
            *_grid(range(1), SIGMA2_GRID[1::6], (1, 2), (5,)),
        ]
    repetitions = range(30)
    grid = list(_grid(repetitions, SIGMA2_GRID, PROTOTYPES, EPOCHS))
    return [
        *_table(repetitions, {}),
        *_learning_rates(repetitions, 1),
        *_convergence(repetitions, max_epochs=100),
        *_selection(repetitions[:10], SELECTION),
        *sorted(grid, key=lambda job: "K=1, T=100" not in job.method),  # those of the figure first
    ]


def smoke() -> list[Job]:
    """Return one small job per kind and method, which take seconds."""
    small = {"n_per_class": 15}
    short = {"problem": "syn2", "prototypes_per_class": 1, "max_epochs": 2}
    return [
        *_table(range(1), {"max_epochs": 2} | small),
        Job("syn2-selection", "PLRSQ-AN", 0, {"problem": "syn2"} | SMALL_SELECTION | small, select),
        Job("syn2-grid", "PLRSQ-Const, K=1, T=2", 0, short | {"sigma2": [0.5, 8.0]} | small, sigma2_curve),
        Job("syn2-curves", "PLRSQ-AN", 0, short | {"sigma2": 0.5} | small, convergence),
    ]


def _table(repetitions: range, other: Record) -> Iterator[Job]:
    for problem, repetition, method in product(MAKERS, repetitions, METHODS):
        settings = {"problem": problem} | settings_of(method, problem) | other
        if method in BASELINES:
            settings.pop("max_epochs", None)
        yield Job(problem, method, repetition, settings, table_entry)


def _learning_rates(repetitions: range, shorter: int) -> Iterator[Job]:
    for repetition, problem, (divisor, epochs) in product(repetitions, MAKERS, RATES):
        settings = {"problem": problem, "rate": 100 / divisor, "sigma2": 1.5}
        settings |= {"prototypes_per_class": 1, "max_epochs": epochs // shorter}
        yield Job(f"{problem}-step", f"PLRSQ-Const, n xi/{divisor}, T={epochs}", repetition, settings, table_entry)


def _convergence(repetitions: range, max_epochs: int) -> Iterator[Job]:
    for repetition, problem, method in product(repetitions, MAKERS, POWERS):
        settings = settings_of("PLRSQ-Const", problem) | {"problem": problem, "max_epochs": max_epochs}
        yield Job(f"{problem}-curves", method, repetition, settings, convergence)


def _grid(
    repetitions: range, sigma2: Sequence[float], prototypes: Sequence[int], epochs: Sequence[int]
) -> Iterator[Job]:
    """Yield all combinations of the selection, as one curve over sigma2 per number of prototypes and of epochs."""
    for repetition, count, n_epochs, problem, method in product(repetitions, prototypes, epochs, MAKERS, PLRSQ):
        settings = {"problem": problem, "sigma2": sigma2, "prototypes_per_class": count, "max_epochs": n_epochs}
        yield Job(f"{problem}-grid", f"{method}, K={count}, T={n_epochs}", repetition, settings, sigma2_curve)


def _selection(repetitions: range, search: Record) -> Iterator[Job]:
    """Yield searches that vary one setting after another, which take minutes where the whole grid takes hours."""
    for problem, repetition, method in product(MAKERS, repetitions, (*PLRSQ, "GLRSQ")):
        if method in PLRSQ and repetition >= 5:
            continue  # their whole grid is searched, too
        settings = {"problem": problem} | (without_sigma2(search) if method == "GLRSQ" else search)
        yield Job(f"{problem}-selection", method, repetition, settings, select)
