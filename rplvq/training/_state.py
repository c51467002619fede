"""What training carries: the state from step to step, the progress from epoch to epoch, the result at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rplvq.arrays import Samples
from rplvq.parts import library_part
from rplvq.protocols import Array, Prototypes, Schedule
from rplvq.training._history import columns

__all__ = ["Origin", "Progress", "Result", "State", "new_codes", "with_prototypes", "without_prototypes"]


@library_part
class State(NamedTuple):
    """What training carries from step to step.

    Parameters
    ----------
    prototypes : Prototypes
        K prototypes in the manifold's internal representation.
    labels : ndarray of int of shape (K,)
        Class index of each prototype, sorted.
    sigma2_schedule, step_schedule : Schedule
        Resolved for the data: no start is None.
    epoch : int
        Number of epochs begun.
    sigma2, step_size : float
        Values in this epoch.
    memory : object, optional
        What a :class:`rplvq.protocols.StepRule` remembers; None for a plain schedule.
    """

    prototypes: Prototypes
    labels: Array
    sigma2_schedule: Schedule
    step_schedule: Schedule
    epoch: int = 0
    sigma2: float = np.nan
    step_size: float = np.nan
    memory: Any = None

    def at_epoch(self, epoch: int, n_epochs: int) -> State:
        """Return this state with the values that the schedules have in ``epoch``.

        Raises
        ------
        ValueError
            If a schedule gives anything but a positive finite number.
        """
        return self._replace(
            epoch=epoch,
            sigma2=_value("sigma2", self.sigma2_schedule, epoch, n_epochs),
            step_size=_value("step_size", self.step_schedule, epoch, n_epochs),
        )


def _value(name: str, schedule: Schedule, epoch: int, n_epochs: int) -> float:
    value = float(schedule(epoch, n_epochs))
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value} in epoch {epoch} from {schedule!r}")
    return value


class Result(NamedTuple):
    """The outcome of a run: the final state, and the history with one array per column."""

    state: State
    history: dict[str, Array]


class Origin(NamedTuple):
    """What a fit started from; a checkpoint stores its fingerprint, so that it is not continued with other data.

    Parameters
    ----------
    parameters : dict of str to object
        Parameters of the estimator.
    seed : int
        Seed of its random generator.
    classes : ndarray of shape (C,)
        Labels.
    samples : Samples
        The data in canonical order, before any of them are held out.
    """

    parameters: dict[str, Any]
    seed: int
    classes: Array
    samples: Samples


class Progress(NamedTuple):
    """A run after a whole epoch, or before the first one: all that is needed to continue it.

    Parameters
    ----------
    state : State
        The state after the epoch.
    best : State
        The state with the lowest validation cost so far; it counts if ``best_cost`` is finite.
    best_cost : float
        Its validation cost; infinite without early stopping.
    rows : tuple of dict
        Rows of the history.
    rng : dict
        State of the random bit generator.
    stopped : bool, default=False
        Whether training is over before its last epoch.
    """

    state: State
    best: State
    best_cost: float
    rows: tuple[dict[str, float], ...]
    rng: Any
    stopped: bool = False

    @property
    def row(self) -> dict[str, float]:
        """The last row of the history."""
        return self.rows[-1]

    def advance(self, state: State, row: dict[str, float], rng: np.random.Generator) -> Progress:
        """Return the progress one epoch later, after which ``state`` and ``row`` were found."""
        return self._replace(state=state, rows=(*self.rows, row), rng=rng.bit_generator.state)

    def with_row(self, found: dict[str, float]) -> Progress:
        """Return this progress with more, or other, values in the last row of the history."""
        return self._replace(rows=(*self.rows[:-1], self.row | found))

    def result(self) -> Result:
        """Return the outcome if the run ended here: the best state or else the last one, and the history."""
        return Result(self.best if self.best_cost < np.inf else self.state, columns(list(self.rows)))


def new_codes(prototypes: Prototypes, codes: Array) -> Prototypes:
    """Return codes (M, ...) in the form of K prototypes, together with any state that these share.

    Examples
    --------
    >>> new_codes(np.zeros((1, 2)), np.ones((2, 2))).shape
    (2, 2)
    """
    keep = getattr(prototypes, "with_codes", None)
    return codes if keep is None else keep(codes)


def with_prototypes(state: State, codes: Array, labels: Array) -> State:
    """Add prototypes; each is placed after those of its class.

    Parameters
    ----------
    state : State
        With K prototypes.
    codes : ndarray of shape (M, ...)
        Codes of the new prototypes.
    labels : ndarray of int of shape (M,)
        Their class indices.

    Returns
    -------
    State
        With K + M prototypes, sorted by label.

    Examples
    --------
    >>> from rplvq import Constant
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [5.0]]), np.array([0, 1]), one, one)
    >>> more = with_prototypes(state, np.array([[1.0]]), np.array([0]))
    >>> more.prototypes.ravel(), more.labels
    (array([0., 1., 5.]), array([0, 0, 1]))
    """
    return _rebuilt(state, np.arange(len(state.labels)), codes, labels)


def without_prototypes(state: State, removed: Array) -> State:
    """Remove prototypes.

    Parameters
    ----------
    state : State
        With K prototypes.
    removed : ndarray of int of shape (M,)
        Indices of the prototypes to remove.

    Returns
    -------
    State
        With K - M prototypes in their old order.

    Examples
    --------
    >>> from rplvq import Constant
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1]), one, one)
    >>> without_prototypes(state, np.array([0])).prototypes.ravel()
    array([1., 5.])
    """
    kept = np.setdiff1d(np.arange(len(state.labels)), removed)
    return _rebuilt(state, kept, np.asarray(state.prototypes)[:0], state.labels[:0])


def _rebuilt(state: State, kept: Array, codes: Array, labels: Array) -> State:
    """State with the prototypes ``kept`` (M,) of the old ones and with new ones, sorted by label."""
    every = np.concatenate([state.labels[kept], labels])
    order = np.argsort(every, kind="stable")

    def rebuild(old: Prototypes) -> Array:
        return np.asarray(np.concatenate([np.asarray(old)[kept], codes])[order])

    memory = state.memory
    if memory is not None:
        resize: Callable[..., Any] = state.step_schedule.resize  # type: ignore[attr-defined]
        memory = resize(memory, rebuild)
    prototypes = new_codes(state.prototypes, rebuild(state.prototypes))
    return state._replace(prototypes=prototypes, labels=every[order], memory=memory)
