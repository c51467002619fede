"""What a stream of calls to ``partial_fit`` carries from call to call, and what each call does before its sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.arrays import Samples
from rplvq.costs import restrict_to_classes
from rplvq.estimators._late_classes import (
    PendingClasses,
    initialize_new_classes,
    met_classes,
    present_classes,
    relabelled,
)
from rplvq.parts import library_part
from rplvq.protocols import Array
from rplvq.training import Growth, State, Trainer

__all__ = ["Prepared", "Stream", "buffered", "next_epoch", "prepare_partial_fit", "recent_samples"]


@library_part
class Stream(NamedTuple):
    """What ``partial_fit`` remembers between calls, beside the state of training.

    Parameters
    ----------
    is_open : bool, default=False
        Whether labels that were not announced are accepted.
    cost : Cost, optional
        The cost for all classes; that of the trainer is for the classes that have prototypes.
    recent : Samples, optional
        The latest samples with their labels, for rules of growth.
    pending : PendingClasses, optional
        Late classes whose prototypes are still initialized anew in each call.
    """

    is_open: bool = False
    cost: Any = None
    recent: Samples | None = None
    pending: PendingClasses | None = None


class Prepared(NamedTuple):
    """What a call has ready before its sweep.

    Parameters
    ----------
    met : ndarray of int of shape (M,)
        Indices, among all classes, of those that have prototypes now.
    trainer : Trainer
        With the cost for these classes, and the present rules of growth of the model.
    state : State
        Its labels are indices among ``met``.
    stream : Stream
        For the next call.
    """

    met: Array
    trainer: Trainer
    state: State
    stream: Stream


def buffered(samples: Samples, classes: Array) -> Samples:
    """Return the samples of a call with labels as targets, to be kept for later calls.

    Their order is shuffled, so that any suffix is class-balanced in expectation.

    Parameters
    ----------
    samples : Samples
        In canonical order.
    classes : ndarray of shape (C,)
        Labels of the class indices.
    """
    order = np.random.default_rng(0).permutation(len(samples))
    labels = classes[samples.targets] if samples.targets.ndim == 1 else samples.targets
    return Samples(samples.codes[order], labels[order], samples.filled_weights[order])


def next_epoch(trainer: Trainer, state: State) -> State:
    """Move to the next epoch of the schedules, or to the step size of a stream after their last epoch.

    Parameters
    ----------
    trainer : Trainer
        With its step rule and the number of epochs.
    state : State
        After some epochs.

    Returns
    -------
    State
        With the values of this call.
    """
    last = max(trainer.max_epochs, 1)
    began = state.at_epoch(min(state.epoch + 1, last), last)
    in_stream = getattr(trainer.step_size, "in_stream", None)
    if state.epoch < last or in_stream is None:
        return began
    return began._replace(step_size=in_stream(began.step_size, began.sigma2, len(state.labels)))


def recent_samples(rules: Sequence[Growth], recent: Samples | None, call: Callable[[], Samples]) -> Samples | None:
    """Return the latest samples, as many as the rules of growth want to see; None if there are no rules.

    ``call`` returns the samples of this call, and is only called if there are rules. A rule states its wish by an
    attribute ``window``; if no rule has one, the samples of this call are returned.
    """
    if not tuple(rules or ()):
        return None
    found = call()
    at_most = max((getattr(rule, "window", 0) for rule in rules), default=0) or len(found)
    return (found if recent is None else recent.followed_by(found)).latest(at_most)


def prepare_partial_fit(
    model: Any, known: Array, samples: Samples, stream: Stream, rng: np.random.Generator
) -> Prepared:
    """Give late classes their prototypes, and let rules of growth look at the latest samples.

    Parameters
    ----------
    model : RiemannianLVQ
        Fitted; it is not changed.
    known : ndarray of shape (C,)
        Sorted labels of all classes, including those that this call brings.
    samples : Samples
        The samples of the call in canonical order; their targets are indices among ``known``, or class probabilities.
    stream : Stream
        From the call before.
    rng : numpy.random.Generator
        Passed to initializers.

    Returns
    -------
    Prepared

    Raises
    ------
    ValueError
        If there are soft labels while a class waits for its first sample.
    """
    trainer, state, targets = model.trainer_, model.state_, samples.targets
    before = met_classes(known, model.prototype_labels_)
    met = np.union1d(before, present_classes(targets, len(known)))
    grew = len(met) > len(before)
    if targets.ndim == 2 and grew:
        waiting = known[np.setdiff1d(met, before)].tolist()[0]
        raise ValueError(f"soft labels need prototypes of every class, and class {waiting!r} has none yet")
    whole = trainer.cost if stream.cost is None else stream.cost
    if grew:
        cost = restrict_to_classes(whole, met) if len(met) < len(known) else whole
        trainer = attrs.evolve(trainer, cost=cost)
    state, pending = relabelled(state, before, met), stream.pending
    call = cache(lambda: buffered(samples, known))
    if targets.ndim == 1 and (pending is not None or grew):
        state, pending = initialize_new_classes(
            model, trainer, state, known, known[met], known[before], call(), pending, rng
        )
    recent = recent_samples(model.growth, stream.recent, call)
    trainer = attrs.evolve(trainer, growth=tuple(model.growth or ()))
    if recent is not None:
        seen = np.searchsorted(known[met], recent.targets) if recent.targets.ndim == 1 else recent.targets
        window = Samples(recent.codes, seen, recent.weights)
        state = trainer.resize(state, window, model.n_epochs_)
    return Prepared(met, trainer, state, stream._replace(cost=whole, recent=recent, pending=pending))
