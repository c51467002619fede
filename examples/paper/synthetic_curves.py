"""Curves of the synthetic problems: accuracy against sigma2, cost and errors against epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from examples.paper.runner import Record
from examples.paper.synthetic_methods import METHODS, draw
from rplvq import AffineInvariant, Annealed
from rplvq.presets import plrsq_const
from rplvq.protocols import Array
from rplvq.training import EpochReport

__all__ = ["POWERS", "TestError", "convergence", "sigma2_curve"]

# Exponent of beta in Annealed: 1.1 as in the paper, 1 for a beta fixed at .99, None for a constant sigma2.
POWERS = {"PLRSQ-Const": None, "PLRSQ-AN": 1.1, "PLRSQ-AN, beta fixed": 1.0}


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
