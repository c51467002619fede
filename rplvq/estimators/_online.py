"""What ``partial_fit`` remembers from call to call, and what each call does before its sweep."""

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


@library_part
class Stream(NamedTuple):
    """What ``partial_fit`` remembers between calls, beside the state of training.

    ``is_open`` says whether labels that were not announced are accepted. ``cost`` is the cost for all classes, whereas
    that of the trainer is for the classes that have prototypes. ``recent`` holds the latest samples with their labels,
    for rules of growth, and ``pending`` the late classes that do not have enough samples yet.
    """

    is_open: bool = False
    cost: Any = None
    recent: Samples | None = None
    pending: PendingClasses | None = None


class Prepared(NamedTuple):
    """What a call has ready before its sweep.

    ``met`` (M,) are the indices, among all classes, of those that have prototypes now, and the labels of ``state`` are
    indices among ``met``. The trainer has the cost for these classes, and ``stream`` is for the next call.
    """

    met: Array
    trainer: Trainer
    state: State
    stream: Stream


def buffered(samples: Samples, classes: Array) -> Samples:
    """Return the samples of a call with their labels as targets, to be kept for later calls.

    Their order is shuffled, so that any suffix is class-balanced in expectation.
    """
    order = np.random.default_rng(0).permutation(len(samples))
    labels = classes[samples.targets] if samples.targets.ndim == 1 else samples.targets
    return Samples(samples.codes[order], labels[order], samples.filled_weights[order])


def next_epoch(trainer: Trainer, state: State) -> State:
    """Move to the next epoch of the schedules, or to the step size of a stream after their last epoch."""
    last = max(trainer.max_epochs, 1)
    began = state.at_epoch(min(state.epoch + 1, last), last)
    in_stream = getattr(trainer.step_size, "in_stream", None)
    if state.epoch < last or in_stream is None:
        return began
    return began._replace(step_size=in_stream(began.step_size, began.sigma2, len(state.labels)))


def recent_samples(rules: Sequence[Growth], recent: Samples | None, call: Callable[[], Samples]) -> Samples | None:
    """Return as many of the latest samples as the rules of growth want to see, or None if there are no rules.

    A rule says how many by its attribute ``window``; without it, it sees the samples of this call. ``call`` returns
    these samples, and is only called if there are rules.
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

    The fitted ``model`` is not changed. ``known`` (C,) are the sorted labels of all classes, including those that this
    call brings. ``samples`` are in canonical order, with indices among ``known`` or class probabilities as targets. A
    ValueError says if there are soft labels while a class waits for its first sample.
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
