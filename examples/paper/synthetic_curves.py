"""Curves of the synthetic problems: accuracy against sigma2, cost and errors against epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from examples.paper.evaluate import score_before_training
from examples.paper.runner import Record
from examples.paper.synthetic_methods import METHODS, draw
from rplvq import AffineInvariant, Annealed
from rplvq.presets import plrsq_const
from rplvq.protocols import Array
from rplvq.training import EpochReport, EpochScore, State

__all__ = ["POWERS", "TestError", "convergence", "sigma2_curve"]

# Exponent of beta in Annealed: 1.1 as in the paper, 1 for a beta fixed at .99, None for a constant sigma2.
POWERS = {"PLRSQ-Const": None, "PLRSQ-AN": 1.1, "PLRSQ-AN, beta fixed": 1.0}


def sigma2_curve(
    *, repetition: int, method: str, problem: str, sigma2: Sequence[float], n_per_class: int = 250, **settings: Any
) -> Record:
    """Score a method at each value of sigma2, with everything else fixed; a remark may follow its name after a comma.

    Returns
    -------
    dict of lists
        sigma2, and the accuracy on test, validation and training data at each value.
    """
    data = draw(problem, repetition, n_per_class)
    name = method.split(",")[0]
    result: Record = {"sigma2": list(sigma2), "accuracy": [], "validation_accuracy": [], "train_accuracy": []}
    for variance in sigma2:
        model = METHODS[name](sigma2=variance, random_state=repetition, **settings).fit(data.X, data.y)
        result["accuracy"].append(float(model.score(data.X_test, data.y_test)))
        result["validation_accuracy"].append(float(model.score(data.X_validation, data.y_validation)))
        result["train_accuracy"].append(float(model.score(data.X, data.y)))
    return result


@attrs.define
class TestError:
    """Callback that records the error of the nearest prototype on test samples after each epoch."""

    __test__ = False  # not a test case, whatever its name

    codes: Array
    y: Array
    errors: list[float] = attrs.field(factory=list)

    def __call__(self, report: EpochReport) -> None:
        self.record(report.state)

    def record(self, state: State) -> None:
        """Append the error of the prototypes of a state."""
        nearest = AffineInvariant().sqdist(state.prototypes, self.codes).argmin(axis=1)
        self.errors.append(float(np.mean(state.labels[nearest] != self.y)))


def convergence(
    *, repetition: int, method: str, problem: str, sigma2: float, n_per_class: int = 250, **settings: Any
) -> Record:
    """Train, and measure cost and errors before the first epoch and after each epoch.

    Parameters
    ----------
    method : str
        A name of POWERS.
    sigma2 : float
        Constant, or the start of the annealing.

    Returns
    -------
    dict of lists
        epoch (0 is before training), sigma2, cost (the sum over the training data), training_error and test_error (as
        shares).
    """
    data = draw(problem, repetition, n_per_class)
    power = POWERS[method]
    schedule = sigma2 if power is None else Annealed(sigma2, power=power)
    model = plrsq_const(schedule, random_state=repetition, **settings)
    state, score = score_before_training(model, data.X, data.y)
    recorder = TestError(AffineInvariant().encode(data.X_test), data.y_test)
    recorder.record(state)
    history = model.set_params(callbacks=(EpochScore(), recorder)).fit(data.X, data.y).history_
    first = {"sigma2": state.sigma2, "cost": score.cost, "training_error": score.error}
    columns = {name: [first[name], *history[name]] for name in first} | {"test_error": recorder.errors}
    rounded = {name: [float(f"{value:.6g}") for value in values] for name, values in columns.items()}
    return {"epoch": [0, *history["epoch"].astype(int).tolist()]} | rounded
