"""What a stream of calls to partial_fit carries from one to the next, beside the state of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rplvq.growth import Growth
from rplvq.protocols import Array
from rplvq.schedules import is_auto
from rplvq.steps import State, shared_step
from rplvq.trainer import Trainer

__all__ = ["Kept", "Stream", "Young", "drop_weightless", "follow_on", "kept_of", "recent_samples"]


class Kept(NamedTuple):
    """Samples that are kept for later calls.

    Parameters
    ----------
    codes : ndarray of shape (M, ...)
        Encoded samples.
    labels : ndarray of shape (M,) or (M, C)
        Their labels, not indices: those may shift when a class turns up; or class probabilities.
    weights : ndarray of shape (M,)
        Multiplicities.
    """

    codes: Array
    labels: Array
    weights: Array

    def and_later(self, later: Kept) -> Kept:
        """Return these and later samples, or only the later ones if their labels are of another shape."""
        if self.labels.shape[1:] != later.labels.shape[1:]:
            return later
        return Kept(*(np.concatenate(pair) for pair in zip(self, later, strict=True)))

    def latest(self, at_most: int) -> Kept:
        """Return the last ``at_most`` samples."""
        first = max(0, len(self.codes) - at_most)
        return Kept(*(values[first:] for values in self))

    def those(self, rows: Array) -> Kept:
        """Return the samples of a mask (M,)."""
        return Kept(*(values[rows] for values in self))


class Young(NamedTuple):
    """Late classes whose prototypes are set anew in each call.

    Parameters
    ----------
    labels : ndarray of shape (L,)
        The classes.
    samples : Kept
        What came since they turned up, of all classes.
    """

    labels: Array
    samples: Kept


class Stream(NamedTuple):
    """What partial_fit remembers.

    Parameters
    ----------
    is_open : bool, default=False
        Whether labels that nobody announced are accepted.
    cost : Cost, optional
        For all classes, where that of the trainer is for the classes met.
    recent : Kept, optional
        The latest samples, for rules of growth.
    young : Young, optional
        Late classes that are not settled.
    """

    is_open: bool = False
    cost: Any = None
    recent: Kept | None = None
    young: Young | None = None


def kept_of(codes: Array, targets: Array, weights: Array | None, classes: Array) -> Kept:
    """Return the samples of a call, in an order that mixes the classes, so that any number from the end is a fair part.

    Parameters
    ----------
    codes, targets : ndarray of shape (N, ...) and (N,) or (N, C)
        In canonical order.
    weights : ndarray of shape (N,), optional
        Multiplicities.
    classes : ndarray of shape (C,)
        Labels of the class indices.
    """
    order = np.random.default_rng(0).permutation(len(codes))
    labels = classes[targets] if targets.ndim == 1 else targets
    return Kept(codes[order], labels[order], (np.ones(len(codes)) if weights is None else weights)[order])


def follow_on(trainer: Trainer, state: State, horizon: int) -> State:
    """Move to the next epoch of the schedules, or hold them where they ended.

    After the last epoch a default step size (None or "auto") is that of a stream: at least ``sigma2 K / horizon``, by
    which no sample weighs more than its share among the ``horizon / K`` that its prototype stands for.

    Parameters
    ----------
    trainer : Trainer
        With its rule for the step size and the number of epochs.
    state : State
        After some epochs.
    horizon : int
        Samples that count.

    Returns
    -------
    State
        With the values of this call.
    """
    last = max(trainer.max_epochs, 1)
    began = state.at_epoch(min(state.epoch + 1, last), last)
    if state.epoch < last or not is_auto(trainer.step_size):
        return began
    return began._replace(step_size=max(began.step_size, shared_step(began.sigma2, len(state.labels), horizon)))


def drop_weightless(codes: Array, targets: Array, weights: Array | None) -> tuple[Array, Array, Array | None]:
    """Return samples (N, ...), targets and weights (N,) without those of weight 0, which no sweep visits."""
    if weights is None or weights.all():
        return codes, targets, weights
    rows = weights > 0
    return codes[rows], targets[rows], weights[rows]


def recent_samples(rules: Sequence[Growth], recent: Kept | None, look: Callable[[], Kept]) -> Kept | None:
    """Return the latest samples, as many as rules of growth want to see; None without rules.

    ``look`` returns the samples of the call, and is only called where there are rules. A rule says how many by an
    attribute ``window``; where no rule has one, it is those of the call.
    """
    if not tuple(rules or ()):
        return None
    call = look()
    at_most = max((getattr(rule, "window", 0) for rule in rules), default=0) or len(call.codes)
    return (call if recent is None else recent.and_later(call)).latest(at_most)
