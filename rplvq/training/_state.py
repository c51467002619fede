"""The values that training passes on: the state from step to step, the progress from epoch to epoch, the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rplvq.arrays import Samples, parts_of
from rplvq.costs import evaluate
from rplvq.parts import library_part
from rplvq.protocols import AnyManifold, Array, Cost, Evaluation, Prototypes, Schedule
from rplvq.schedules import evenly_spaced

UNTOLD = ("epoch", "n capped", "seconds", "n prototypes")
"""Columns of the history that a printed report leaves out or states otherwise."""
MANY = 256
"""Number of prototypes from which on a fit without epochs estimates its row of the history."""
STREAM_ROWS = 1000
"""Number of rows of the history that a stream keeps, so that a call takes the same time however many came before."""


@library_part
class State(NamedTuple):
    """The state of training after a step."""

    prototypes: Prototypes
    """K prototypes in the manifold's internal representation."""
    labels: Array
    """Class index of each prototype, shape (K,), sorted."""
    sigma2_schedule: Schedule
    """Resolved for the data, so that no ``start`` is None; the same holds for ``step_schedule``."""
    step_schedule: Schedule
    epoch: int = 0
    """Number of epochs begun."""
    sigma2: float = np.nan
    """Value of its schedule in this epoch, like ``step_size``."""
    step_size: float = np.nan
    memory: object = None
    """Memory of a :class:`rplvq.protocols.StepRule`; None for a schedule."""

    def at_epoch(self, epoch: int, n_epochs: int) -> State:
        """Return this state at ``epoch``, with the values of both schedules.

        ValueError is raised unless sigma2 is positive and finite, and the step size is finite and at least 0.
        """
        n_epochs = max(n_epochs, 1)  # schedules may divide by it
        sigma2 = float(self.sigma2_schedule(epoch, n_epochs))
        if not 0 < sigma2 < np.inf:
            given = f"{sigma2} in epoch {epoch} from {self.sigma2_schedule!r}"
            raise ValueError(f"sigma2 must be positive and finite, got {given}")
        step_size = float(self.step_schedule(epoch, n_epochs))  # may divide by sigma2, which is positive by now
        if not 0 <= step_size < np.inf:
            given = f"{step_size} in epoch {epoch} from {self.step_schedule!r}"
            raise ValueError(f"step_size must be finite and not negative, got {given}")
        return self._replace(epoch=epoch, sigma2=sigma2, step_size=step_size)

    @property
    def rests(self) -> bool:
        """Whether nothing moves in this epoch, because its step size is 0. A step rule decides for each step."""
        return self.step_size == 0 and self.memory is None


class Result(NamedTuple):
    """The outcome of a run: the final state, and the history with one array per column."""

    state: State
    history: dict[str, Array]


class Origin(NamedTuple):
    """The input of a fit; a checkpoint stores its fingerprint, so that it is not continued with other input."""

    parameters: dict[str, object]
    """Parameters of the estimator."""
    seed: int
    """Seed of its random generator."""
    classes: Array
    """Labels of the user, shape (C,)."""
    samples: Samples
    """All samples in canonical order, before some of them are held out."""


class Progress(NamedTuple):
    """A run after a complete epoch, or before the first one: everything that is needed to continue it."""

    state: State
    best: State
    """The state with the lowest validation cost so far."""
    best_cost: float
    """Its validation cost. It is infinite without early stopping, and ``best`` is then not used."""
    rows: tuple[dict[str, float], ...]
    """Rows of the history."""
    rng: Mapping[str, object]
    """State of the random bit generator."""
    stopped: bool = False
    """Whether training is over before its last epoch."""
    choice: Any = None
    """The :class:`rplvq.selection.Choice` of held-out samples; None if nothing was asked of them."""

    @property
    def row(self) -> dict[str, float]:
        """The last row of the history."""
        return self.rows[-1]

    def advance(self, state: State, row: dict[str, float], rng: np.random.Generator) -> Progress:
        """Return the progress one epoch later, with its ``state`` and its ``row`` of the history."""
        return self._replace(state=state, rows=(*self.rows, row), rng=rng.bit_generator.state)

    def with_row(self, more: dict[str, float]) -> Progress:
        """Return this progress with ``more`` values in the last row of the history."""
        return self._replace(rows=(*self.rows[:-1], self.row | more))

    def result(self) -> Result:
        """Return the history and the final state, which is the best one under early stopping, else the last one."""
        state = self.best if self.best_cost < np.inf else self.state
        return Result(state, columns(list(self.rows)))


class Score(NamedTuple):
    """The summed loss, and the share of samples whose nearest prototype has another class; both are weighted."""

    cost: float
    error: float


class EpochReport(NamedTuple):
    """The argument of a callback, which is called after each epoch.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]
    >>> settings = {"sigma2": 1.0, "step_size": 0.1, "max_epochs": 2, "random_state": 0}
    >>> model = RiemannianLVQ("euclidean_vectors", callbacks=[print], **settings).fit(X, y)
    epoch 1 of 2: cost 0.00504, training error 0, sigma2 1, step size 0.1, 2 prototypes
    epoch 2 of 2: cost 0.00503, training error 0, sigma2 1, step size 0.1, 2 prototypes
    """

    state: State
    """The state after the epoch."""
    n_epochs: int
    """Number of epochs planned."""
    row: dict[str, float]
    """The row of the history for this epoch."""
    progress: Any = None
    """The :class:`Progress`, with everything that is needed to continue the run from here."""
    score: Callable[[], Score] | None = None
    """Returns cost and error of the state on the training samples, at the price of one pass of distances."""
    origin: Origin | None = None
    """The input of the fit; None for a trainer without an estimator."""

    @property
    def epoch(self) -> int:
        """Number of this epoch, from 1 to ``n_epochs``."""
        return self.state.epoch

    def __str__(self) -> str:
        """Return one line: the epoch, and the values of its row without the time."""
        row = {name.replace("_", " "): value for name, value in self.row.items()}
        shown = [f"{name} {value:.3g}" for name, value in row.items() if name not in UNTOLD]
        count = len(self.state.labels)
        shown.append(f"{count} prototype{'s' * (count != 1)}")
        return f"epoch {self.epoch} of {self.n_epochs}: {', '.join(shown)}"


class Meter:
    """Adds up losses and errors over blocks of samples, given the labels (K,) of the prototypes."""

    def __init__(self, labels: Array) -> None:
        self.labels = labels
        self.cost = self.wrong = self.total = 0.0

    def add(self, sqdist: Array, loss: Array, samples: Samples) -> None:
        """Add squared distances (M, K) and losses (M,) of M samples."""
        self.count(sqdist.argmin(axis=1), loss, samples)

    def count(self, nearest: Array, loss: Array, samples: Samples) -> None:
        """Add losses (M,) and errors of M samples, given the indices (M,) of their nearest prototypes."""
        weights = samples.filled_weights
        self.cost += float(weights @ loss)
        self.wrong += float(weights @ (self.labels[nearest] != samples.classes))
        self.total += float(weights.sum())

    def score(self) -> Score:
        """Return the score of all samples that were added."""
        return Score(self.cost, self.wrong / self.total)


def measure(manifold: AnyManifold, cost: Cost, state: State, samples: Samples) -> Meter:
    """Return losses and errors of samples, computed block by block, so that only two numbers per sample are kept."""
    codes = samples.codes
    nearest = np.empty(len(codes), dtype=np.intp)
    loss = np.empty(len(codes))
    for rows in parts_of(codes, len(state.labels)):
        sqdist = manifold.sqdist(state.prototypes, codes[rows])
        nearest[rows] = sqdist.argmin(axis=1)
        loss[rows] = evaluate(cost, sqdist, samples.targets[rows], state.labels, state.sigma2).loss
    meter = Meter(state.labels)
    meter.count(nearest, loss, samples)
    return meter


def estimate(manifold: AnyManifold, cost: Cost, state: State, samples: Samples) -> Score:
    """Return the score of all samples, or with more than :data:`MANY` prototypes of evenly spaced ones for all."""
    # All pairs would take many times as long as the means, which is all that a fit without epochs computes.
    few = evenly_spaced(samples, len(state.labels)) if len(state.labels) > MANY else samples
    score = measure(manifold, cost, state, few).score()
    return Score(score.cost * samples.total_weight / few.total_weight, score.error)


def history_row(state: State, score: Score, n_capped: int, seconds: float) -> dict[str, float]:
    """Return the row of the history for the epoch of ``state``."""
    values = {"epoch": state.epoch, "cost": score.cost, "training_error": score.error, "sigma2": state.sigma2}
    steps = {"step_size": state.step_size, "n_capped": n_capped, "seconds": seconds}
    return {**values, **steps, "n_prototypes": len(state.labels)}


def validation_row(score: Score) -> dict[str, float]:
    """Return what validation samples add to a row of the history."""
    return {"validation_cost": score.cost, "validation_error": score.error}


def if_possible(cost: Cost) -> Cost:
    """Return a cost that is NaN where the given one raises ValueError, as RSLVQ does for soft labels."""

    def evaluate(sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        try:
            return cost(sqdist, targets, labels, sigma2)
        except ValueError:
            return Evaluation(np.full(len(sqdist), np.nan), np.zeros_like(sqdist))

    return evaluate


def untrained_history(state: State, score: Score, validation: Score | None = None) -> dict[str, Array]:
    """Return the history of a fit without epochs: one entry for epoch 0."""
    row = history_row(state, score, 0, 0.0)
    if validation is not None:
        row |= validation_row(validation)
    return columns([row])


def columns(rows: list[dict[str, float]]) -> dict[str, Array]:
    """Turn the rows of a history into one array per column; a value that a row lacks is NaN."""
    names = list(dict.fromkeys(name for row in rows for name in row))  # in the order in which they appear
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def append_columns(history: dict[str, Array], row: dict[str, float]) -> dict[str, Array]:
    """Return a new history with one more row, without the rows before the last :data:`STREAM_ROWS`."""
    if not history:
        return columns([row])
    return {name: np.append(values[1 - STREAM_ROWS :], row.get(name, np.nan)) for name, values in history.items()}
