"""Where a run of the trainer stands after a whole epoch: all that it needs to go on from there."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rplvq.history import columns
from rplvq.protocols import Array
from rplvq.steps import Result, State

__all__ = ["Origin", "Progress", "RunData"]

RunData: TypeAlias = tuple[Array, Array, np.random.Generator, Array | None, tuple[Array, Array, Array | None] | None]
"""Codes, targets, generator, sample weights and validation data: what a run of the trainer is given."""


class Origin(NamedTuple):
    """What a fit began from, by which a checkpoint knows it again.

    Parameters
    ----------
    parameters : dict of str to object
        Parameters of the estimator.
    seed : int
        Of its random generator.
    classes : ndarray of shape (C,)
        Labels.
    codes, targets, sample_weight : ndarray of shape (N, ...), (N,) or (N, C), and (N,) or None
        The data, in canonical order, before any are held out.
    """

    parameters: dict[str, Any]
    seed: int
    classes: Array
    codes: Array
    targets: Array
    sample_weight: Array | None


class Progress(NamedTuple):
    """A run after a whole epoch, or before the first one.

    Parameters
    ----------
    state : State
        After the epoch.
    best : State
        The state of the lowest validation cost so far; counts where ``best_cost`` is finite.
    best_cost : float
        Its validation cost; infinite where nothing is held out or no patience is set.
    rows : tuple of dict
        Lines of the history.
    rng : dict
        State of the generator's bits.
    stopped : bool, default=False
        Whether training is over before its last epoch.
    """

    state: State
    best: State
    best_cost: float
    rows: tuple[dict[str, float], ...]
    rng: Any
    stopped: bool = False

    def advance(self, state: State, row: dict[str, float], rng: np.random.Generator) -> Progress:
        """Return where the run stands one epoch later, ``state`` and ``row`` being those of that epoch."""
        return self._replace(state=state, rows=(*self.rows, row), rng=rng.bit_generator.state)

    def judge(self, cost: float, tol: float, patience: int) -> Progress:
        """Take in the validation cost of the epoch: it can be the best so far, and waiting can be over."""
        best, best_cost = self.best, self.best_cost
        if cost < best_cost * (1 - tol):
            best, best_cost = self.state, cost
        stopped = self.stopped or self.state.epoch - best.epoch >= patience
        return self._replace(best=best, best_cost=best_cost, stopped=stopped)

    def result(self) -> Result:
        """Return the outcome if the run ended here: the best state or else the last, and the history."""
        return Result(self.best if self.best_cost < np.inf else self.state, columns(list(self.rows)))
