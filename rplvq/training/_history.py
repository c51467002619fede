"""What training records of itself, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rplvq.arrays import Samples, parts_of
from rplvq.protocols import Array, Cost, Manifold

__all__ = ["EpochReport", "Meter", "Score", "append_columns", "columns", "history_row", "measure"]


class Score(NamedTuple):
    """Summed loss, and share of samples whose nearest prototype has another class, both weighted."""

    cost: float
    error: float


class EpochReport(NamedTuple):
    """What a callback is told after each epoch.

    Parameters
    ----------
    state : rplvq.training.State
        The state after the epoch.
    n_epochs : int
        Number of epochs planned.
    row : dict of str to float
        The row of the history for this epoch.
    progress : rplvq.training.Progress
        All that is needed to continue the run from here.
    score : callable, optional
        ``score()`` measures cost and error of the state on the training samples, by one more pass of distances.
    origin : rplvq.training.Origin, optional
        What the fit started from; None for a trainer without an estimator.
    """

    state: Any
    n_epochs: int
    row: dict[str, float]
    progress: Any = None
    score: Callable[[], Score] | None = None
    origin: Any = None


class Meter:
    """Adds up losses and errors over the blocks of a sweep."""

    def __init__(self, labels: Array) -> None:
        self.labels = labels
        self.cost = self.wrong = self.total = 0.0

    def add(self, sqdist: Array, loss: Array, samples: Samples) -> None:
        """Take in squared distances (M, K) and losses (M,) of M samples."""
        self.count(sqdist.argmin(axis=1), loss, samples)

    def count(self, nearest: Array, loss: Array, samples: Samples) -> None:
        """Take in the nearest prototypes (M,) instead of the distances."""
        weights = samples.filled_weights
        self.cost += float(weights @ loss)
        self.wrong += float(weights @ (self.labels[nearest] != samples.classes))
        self.total += float(weights.sum())

    def score(self) -> Score:
        """Score of everything taken in so far."""
        return Score(self.cost, self.wrong / self.total)


def measure(manifold: Manifold[Any], cost: Cost, state: Any, samples: Samples) -> Meter:
    """Add up losses and errors of samples by one pass of distances, which keeps two numbers per sample.

    Parameters
    ----------
    manifold, cost
        The geometry and the loss.
    state : rplvq.training.State
        Prototypes, labels and sigma2.
    samples : Samples
        N samples.

    Returns
    -------
    Meter
    """
    codes = samples.codes
    nearest, loss = np.empty(len(codes), dtype=np.intp), np.empty(len(codes))
    for rows in parts_of(codes, len(state.labels)):
        sqdist = manifold.sqdist(state.prototypes, codes[rows])
        nearest[rows] = sqdist.argmin(axis=1)
        loss[rows] = cost(sqdist, samples.targets[rows], state.labels, state.sigma2).loss
    meter = Meter(state.labels)
    meter.count(nearest, loss, samples)
    return meter


def history_row(state: Any, score: Score, n_capped: int, seconds: float) -> dict[str, float]:
    """Return the row of the history for the epoch of ``state`` (:class:`rplvq.training.State`)."""
    return {
        "epoch": state.epoch,
        "cost": score.cost,
        "training_error": score.error,
        "sigma2": state.sigma2,
        "step_size": state.step_size,
        "n_capped": n_capped,
        "seconds": seconds,
        "n_prototypes": len(state.labels),
    }


def columns(rows: list[dict[str, float]]) -> dict[str, Array]:
    """Turn the rows of a history into one array per column; a value that a row lacks is NaN."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def append_columns(history: dict[str, Array], row: dict[str, float]) -> dict[str, Array]:
    """Return a history with one more row; the old one is not changed."""
    if not history:
        return columns([row])
    return {name: np.append(values, row.get(name, np.nan)) for name, values in history.items()}
