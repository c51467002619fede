"""What training records of itself, epoch by epoch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rplvq.initializers import hard_targets
from rplvq.protocols import Array, Cost, Manifold, Prototypes
from rplvq.samples import parts_of

__all__ = ["EpochReport", "Meter", "Score", "append_columns", "columns", "evaluate", "line", "measure"]


class Score(NamedTuple):
    """Summed loss and share of samples whose nearest prototype has another class, both weighted."""

    cost: float
    error: float


class EpochReport(NamedTuple):
    """What a callback is told after each epoch.

    Parameters
    ----------
    state : rplvq.steps.State
        After the epoch.
    n_epochs : int
        Epochs planned.
    row : dict of str to float
        This epoch's line of the history.
    progress : rplvq.progress.Progress
        All that the run needs to go on from here.
    origin : rplvq.progress.Origin, optional
        What the fit began from; a trainer without an estimator has none.
    """

    state: Any
    n_epochs: int
    row: dict[str, float]
    progress: Any = None
    origin: Any = None


class Meter:
    """Adds up losses and errors over the blocks of a sweep."""

    def __init__(self, labels: Array) -> None:
        self.labels = labels
        self.cost = self.wrong = self.total = 0.0

    def add(self, sqdist: Array, loss: Array, targets: Array, weights: Array | None) -> None:
        """Take in distances (M, K), losses (M,), targets (M,) or (M, C) and weights (M,)."""
        self.count(sqdist.argmin(axis=1), loss, targets, weights)

    def count(self, nearest: Array, loss: Array, targets: Array, weights: Array | None) -> None:
        """Take in the nearest prototypes (M,) in place of the distances."""
        weights = np.ones(len(loss)) if weights is None else weights
        self.cost += float(weights @ loss)
        self.wrong += float(weights @ (self.labels[nearest] != hard_targets(targets)))
        self.total += float(weights.sum())

    def score(self) -> Score:
        """Score of everything taken in so far."""
        return Score(self.cost, self.wrong / self.total)


def evaluate(
    manifold: Manifold[Any],
    cost: Cost,
    prototypes: Prototypes,
    labels: Array,
    sigma2: float,
    codes: Array,
    targets: Array,
    sample_weight: Array | None = None,
) -> Score:
    """Score prototypes on samples (N, ...): one pass of distances."""
    return measure(manifold, cost, prototypes, labels, sigma2, codes, targets, sample_weight).score()


def measure(
    manifold: Manifold[Any],
    cost: Cost,
    prototypes: Prototypes,
    labels: Array,
    sigma2: float,
    codes: Array,
    targets: Array,
    sample_weight: Array | None = None,
) -> Meter:
    """Sum up the losses and errors of samples (N, ...): one pass of distances, of which two numbers a sample stay."""
    nearest = np.empty(len(codes), dtype=np.intp)
    loss = np.empty(len(codes))
    for rows in parts_of(codes, len(labels)):
        sqdist = manifold.sqdist(prototypes, codes[rows])
        nearest[rows] = sqdist.argmin(axis=1)
        loss[rows] = cost(sqdist, targets[rows], labels, sigma2).loss
    meter = Meter(labels)
    meter.count(nearest, loss, targets, sample_weight)
    return meter


def line(state: Any, score: Score, n_capped: int, seconds: float) -> dict[str, float]:
    """One line of the history, after the epoch of ``state`` (:class:`rplvq.steps.State`)."""
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
    """Turn lines of a history into one array a column."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}


def append_columns(history: dict[str, Array], row: dict[str, float]) -> dict[str, Array]:
    """Return a history with one more line; the old one is left as it is."""
    if not history:
        return columns([row])
    return {name: np.append(values, row.get(name, np.nan)) for name, values in history.items()}
