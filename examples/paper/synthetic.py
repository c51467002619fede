"""SynI and SynII: the table, the selection protocol, learning rates, sigma2 and convergence curves.

Each repetition draws its own bases, and from them 250 matrices of each class for training, validation and test.
The class-mean baselines train on training and validation data together, the others on the training data: the
validation data are what the paper selects their settings with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import attrs
import numpy as np
from sklearn.metrics import cohen_kappa_score
from sklearn.utils import check_random_state

from examples.paper.runner import Job, Record
from rplvq import AffineInvariant, Annealed, GeometricDecay, RiemannianLVQ
from rplvq.datasets import make_syn1, make_syn2, random_bases
from rplvq.history import EpochReport
from rplvq.presets import plrsq_annealed, plrsq_const, rslvq_projected
from rplvq.protocols import Array

__all__ = ["METHODS", "convergence", "draw", "jobs", "select", "sigma2_curve", "smoke", "table_entry"]

N = 10
MAKERS = {"syn1": make_syn1, "syn2": make_syn2}
BASELINES = ("MDRM", "LE-MDM")
PLRSQ = ("PLRSQ-Const", "PLRSQ-AN")
OTHERS = ("Log-Euclidean PLRSQ", "RSLVQ", "GMLVQ")

# The paper's mean selections are sigma2 8-9 (SynI) and .45-.53 (SynII), 1.6-2.6 prototypes a class; here one value
# for all repetitions. Those of the methods it says nothing about were chosen on the validation data of the
# repetitions 1000 and 1001, which are not reported.
CLASS_COUNT = {"prototypes_per_class": 2, "max_epochs": 50}
SETTINGS: dict[str, dict[str, Record]] = {
    "syn1": {name: {"sigma2": 8.0} | CLASS_COUNT for name in PLRSQ}
    | {"Log-Euclidean PLRSQ": {"sigma2": 8.0} | CLASS_COUNT, "RSLVQ": {"sigma2": 0.5} | CLASS_COUNT, "GMLVQ": {}},
    "syn2": {name: {"sigma2": 0.5} | CLASS_COUNT for name in PLRSQ}
    | {"Log-Euclidean PLRSQ": {"sigma2": 0.5} | CLASS_COUNT, "RSLVQ": {"sigma2": 1.0} | CLASS_COUNT, "GMLVQ": {}},
}
SIGMA2_GRID = [0.45, 0.5, *np.arange(1.0, 6.0, 0.5).tolist(), 6.0, 7.0, 8.0, 9.0, 10.0, 20.0, 30.0, 50.0]
SELECTION = {"sigma2": [0.45, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0], "prototypes_per_class": [1, 2, 3]}
EPOCHS = [20, 50, 100]
# Exponent of beta in Annealed: 1.1 as in the paper, 1 for a beta fixed at .99, None for a constant sigma2.
POWERS = {"PLRSQ-Const": None, "PLRSQ-AN": 1.1, "PLRSQ-AN, beta fixed": 1.0}


def log_euclidean(sigma2: float, prototypes_per_class: int, max_epochs: int, **other: Any) -> RiemannianLVQ:
    """PLRSQ-Const with the metric exchanged and nothing else."""
    model = plrsq_const(sigma2, prototypes_per_class, max_epochs, **other)
    model.set_params(manifold="log_euclidean")
    return model


def gmlvq(**settings: Any) -> Any:
    """Generalized matrix LVQ on the matrices' entries, prototypes projected to positive definite ones."""
    from examples.paper.gmlvq import ProjectedGMLVQ

    return ProjectedGMLVQ(**settings)


METHODS: dict[str, Callable[..., Any]] = {
    "MDRM": lambda **_: RiemannianLVQ(max_epochs=0),
    "LE-MDM": lambda **_: RiemannianLVQ("log_euclidean", max_epochs=0),
    "PLRSQ-Const": plrsq_const,
    "PLRSQ-AN": plrsq_annealed,
    "Log-Euclidean PLRSQ": log_euclidean,
    "RSLVQ": rslvq_projected,
    "GMLVQ": gmlvq,
}


class Problem(NamedTuple):
    """Samples (4 * n_per_class, 10, 10) and labels of the three parts of one repetition."""

    X: Array
    y: Array
    X_validation: Array
    y_validation: Array
    X_test: Array
    y_test: Array


def draw(problem: str, repetition: int, n_per_class: int = 250) -> Problem:
    """Draw bases, then training, validation and test data; ``repetition`` is the seed."""
    rng = check_random_state(repetition)
    bases = random_bases(N, random_state=rng)
    parts = [MAKERS[problem](n_per_class, bases=bases, random_state=rng) for _ in range(3)]
    return Problem(*(array for part in parts for array in part))


def table_entry(
    *, repetition: int, method: str, problem: str, n_per_class: int = 250, rate: float = 1.0, **settings: Any
) -> Record:
    """Fit one method and score it.

    Parameters
    ----------
    repetition : int
        Seed of the data and of training.
    method : str
        A name of METHODS, perhaps followed by a comma and a remark.
    problem : {"syn1", "syn2"}
        Which data.
    n_per_class : int, default=250
        Matrices of each class in each part.
    rate : float, default=1
        Factor on the paper's initial step size ``n xi / 100``.
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
        settings["step_size"] = GeometricDecay(start)
    model = METHODS[name](**settings)
    if name not in BASELINES:
        model.set_params(random_state=repetition)
    X, y = _training_data(data, name)
    model.fit(X, y)
    predicted = model.predict(data.X_test)
    return {
        "accuracy": float(np.mean(predicted == data.y_test)),
        "kappa": float(cohen_kappa_score(data.y_test, predicted)),
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
    sigma2: Sequence[float],
    prototypes_per_class: Sequence[int],
    max_epochs: Sequence[int],
    n_per_class: int = 250,
) -> Record:
    """Choose settings by validation accuracy, then score that classifier on the test data.

    The paper tries all combinations. Here sigma2 and the number of prototypes are chosen together at the first
    number of epochs, then the number of epochs at that choice. Of equals the first wins.

    Returns
    -------
    dict
        chosen, validation_accuracy, accuracy, kappa, and tried: rows of sigma2, prototypes, epochs, validation
        accuracy.
    """
    data = draw(problem, repetition, n_per_class)
    tried: list[list[float]] = []
    fitted = []

    def attempt(*values: Any) -> None:
        model = METHODS[method](*values, random_state=repetition).fit(data.X, data.y)
        tried.append([*values, float(model.score(data.X_validation, data.y_validation))])
        fitted.append(model)

    for variance, count in product(sigma2, prototypes_per_class):
        attempt(variance, count, max_epochs[0])
    variance, count = tried[_best(tried)][:2]
    for epochs in max_epochs[1:]:
        attempt(variance, count, epochs)
    best = _best(tried)
    predicted = fitted[best].predict(data.X_test)
    return {
        "chosen": dict(zip(("sigma2", "prototypes_per_class", "max_epochs"), tried[best][:3], strict=True)),
        "validation_accuracy": tried[best][3],
        "accuracy": float(np.mean(predicted == data.y_test)),
        "kappa": float(cohen_kappa_score(data.y_test, predicted)),
        "tried": tried,
    }


def _best(tried: list[list[float]]) -> int:
    return int(np.argmax([row[-1] for row in tried]))


def sigma2_curve(
    *, repetition: int, method: str, problem: str, sigma2: Sequence[float], n_per_class: int = 250, **settings: Any
) -> Record:
    """Score a method at each value of sigma2, everything else fixed."""
    data = draw(problem, repetition, n_per_class)
    result: Record = {"sigma2": list(sigma2), "accuracy": [], "train_accuracy": []}
    for variance in sigma2:
        model = METHODS[method](sigma2=variance, random_state=repetition, **settings).fit(data.X, data.y)
        result["accuracy"].append(float(model.score(data.X_test, data.y_test)))
        result["train_accuracy"].append(float(model.score(data.X, data.y)))
    return result


@attrs.define
class TestError:
    """Callback that keeps the error on test samples after each epoch, by the nearest prototype."""

    __test__ = False  # not a test case, whatever its name

    codes: Array
    y: Array
    errors: list[float] = attrs.field(factory=list)

    def __call__(self, report: EpochReport) -> None:
        nearest = AffineInvariant().sqdist(report.state.prototypes, self.codes).argmin(axis=1)
        self.errors.append(float(np.mean(report.state.labels[nearest] != self.y)))


def convergence(
    *,
    repetition: int,
    method: str,
    problem: str,
    sigma2: float,
    n_per_class: int = 250,
    **settings: Any,
) -> Record:
    """Train with a look at the data after each epoch.

    Parameters
    ----------
    method : str
        A name of POWERS.
    sigma2 : float
        Constant, or the start of the annealing.

    Returns
    -------
    dict of lists
        epoch (from 0, before training), sigma2, cost (summed over the training data), training_error,
        test_error (shares).
    """
    data = draw(problem, repetition, n_per_class)
    power = POWERS[method]
    schedule = sigma2 if power is None else Annealed(sigma2, power=power)
    model = plrsq_const(schedule, monitor="epoch", random_state=repetition, **settings)
    start = model.__class__(**model.get_params(deep=False)).set_params(max_epochs=0).fit(data.X, data.y)
    recorder = TestError(AffineInvariant().encode(data.X_test), data.y_test)
    history = model.set_params(callbacks=(recorder,)).fit(data.X, data.y).history_
    test_error = [1 - float(start.score(data.X_test, data.y_test)), *recorder.errors]
    columns = {name: history[name] for name in ("sigma2", "cost", "training_error")} | {"test_error": test_error}
    rounded = {name: [float(f"{value:.6g}") for value in values] for name, values in columns.items()}
    return {"epoch": history["epoch"].astype(int).tolist()} | rounded


def jobs(quick: bool = False) -> list[Job]:
    """All jobs, the tables first; ``quick`` has fewer repetitions and epochs."""
    return [
        *_table(range(3 if quick else 30), {"max_epochs": 5} if quick else {}),
        *_learning_rates(range(2 if quick else 10), {"max_epochs": 5} if quick else {}),
        *_convergence(range(1 if quick else 3), max_epochs=10 if quick else 100),
        *_curves(range(1 if quick else 5), SIGMA2_GRID[1::5] if quick else SIGMA2_GRID, 5 if quick else 20),
        *_selection(range(1 if quick else 5), quick),
    ]


def smoke() -> list[Job]:
    """One small job of each kind and method: seconds."""
    small = {"n_per_class": 15}
    few = {"sigma2": [0.5, 8.0], "prototypes_per_class": [1, 2], "max_epochs": [1, 2]}
    short = {"problem": "syn2", "prototypes_per_class": 1, "max_epochs": 2}
    return [
        *_table(range(1), {"max_epochs": 2} | small),
        Job("syn2-selection", "PLRSQ-AN", 0, {"problem": "syn2"} | few | small, select),
        Job("syn2-sigma2", "PLRSQ-Const", 0, short | {"sigma2": [0.5, 8.0]} | small, sigma2_curve),
        Job("syn2-curves", "PLRSQ-AN", 0, short | {"sigma2": 0.5} | small, convergence),
    ]


def _table(repetitions: range, other: Record) -> Iterator[Job]:
    for problem, repetition in product(MAKERS, repetitions):
        sizes = {key: value for key, value in other.items() if key == "n_per_class"}
        for method in BASELINES:
            yield Job(problem, method, repetition, {"problem": problem} | sizes, table_entry)
        for method in PLRSQ + OTHERS:
            settings = {"problem": problem} | SETTINGS[problem][method] | other
            yield Job(problem, method, repetition, settings, table_entry)


def _learning_rates(repetitions: range, other: Record) -> Iterator[Job]:
    for problem, repetition, method in product(MAKERS, repetitions, PLRSQ):
        for divisor in (50, 200):  # 100 is in the table
            settings = {"problem": problem, "rate": 100 / divisor} | SETTINGS[problem][method] | other
            yield Job(f"{problem}-step", f"{method}, n xi/{divisor}", repetition, settings, table_entry)


def _convergence(repetitions: range, max_epochs: int) -> Iterator[Job]:
    for problem, repetition, method in product(MAKERS, repetitions, POWERS):
        settings = SETTINGS[problem]["PLRSQ-Const"] | {"problem": problem, "max_epochs": max_epochs}
        yield Job(f"{problem}-curves", method, repetition, settings, convergence)


def _curves(repetitions: range, sigma2: list[float], max_epochs: int) -> Iterator[Job]:
    for problem, repetition, method in product(MAKERS, repetitions, PLRSQ):
        settings = {"problem": problem, "sigma2": sigma2, "prototypes_per_class": 2, "max_epochs": max_epochs}
        yield Job(f"{problem}-sigma2", method, repetition, settings, sigma2_curve)


def _selection(repetitions: range, quick: bool) -> Iterator[Job]:
    few = {"sigma2": [0.5, 8.0], "prototypes_per_class": [1, 2], "max_epochs": [5, 10]}
    grid = few if quick else SELECTION | {"max_epochs": EPOCHS}
    for problem, repetition, method in product(MAKERS, repetitions, PLRSQ):
        yield Job(f"{problem}-selection", method, repetition, {"problem": problem} | grid, select)
