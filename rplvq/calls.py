"""What a later call of partial_fit does to a model before its sweep: late classes, then growth."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.costs.algebra import among
from rplvq.late import met_classes, present_classes, relabelled, welcome
from rplvq.protocols import Array
from rplvq.steps import State
from rplvq.streaming import Stream, kept_of, recent_samples
from rplvq.trainer import Trainer

__all__ = ["Call", "receive"]


class Call(NamedTuple):
    """The samples of a call, in canonical order.

    Parameters
    ----------
    known : ndarray of shape (C,)
        Sorted labels of all classes, those that this call brings included.
    codes, targets : ndarray of shape (N, ...) and (N,) or (N, C)
        Encoded samples, and their indices among ``known`` or class probabilities.
    weights : ndarray of shape (N,), optional
        Multiplicities.
    """

    known: Array
    codes: Array
    targets: Array
    weights: Array | None


def receive(model: Any, call: Call, stream: Stream, rng: np.random.Generator) -> tuple[Array, Trainer, State, Stream]:
    """Take in a later call: late classes get prototypes, then rules of growth look at the latest samples.

    Parameters
    ----------
    model : RiemannianLVQ
        Fitted; it is not changed.
    call : Call
        The samples.
    stream : Stream
        What the calls before left.
    rng : numpy.random.Generator
        Handed to initializers.

    Returns
    -------
    met : ndarray of int of shape (M,)
        Indices among ``call.known`` of the classes that have prototypes now.
    trainer : Trainer
        With the cost for these classes, and the model's present rules of growth.
    state : State
        Labelled among ``met``.
    stream : Stream
        For the next call.

    Raises
    ------
    ValueError
        At soft labels while a class waits for its first sample.
    """
    trainer, state = model._fitted_trainer, model._state
    known, targets = call.known, call.targets
    before = met_classes(known, model.prototype_labels_)
    met = np.union1d(before, present_classes(targets, len(known)))
    if targets.ndim == 2 and len(met) > len(before):
        waiting = known[np.setdiff1d(met, before)].tolist()[0]
        raise ValueError(f"soft labels need prototypes of every class, and class {waiting!r} has none yet")
    whole = trainer.cost if stream.cost is None else stream.cost
    if len(met) > len(before):
        trainer = attrs.evolve(trainer, cost=among(whole, met) if len(met) < len(known) else whole)
    state, young = relabelled(state, before, met), stream.young
    samples = cache(lambda: kept_of(call.codes, targets, call.weights, known))
    if targets.ndim == 1 and (young is not None or len(met) > len(before)):
        state, young = welcome(model, trainer, state, known, known[met], known[before], samples(), young, rng)
    recent = recent_samples(model.growth, stream.recent, samples)
    trainer = attrs.evolve(trainer, growth=tuple(model.growth or ()))
    if recent is not None:
        seen = np.searchsorted(known[met], recent.labels) if recent.labels.ndim == 1 else recent.labels
        state = trainer.resize(state, recent.codes, seen, recent.weights, model.n_epochs_)
    return met, trainer, state, stream._replace(cost=whole, recent=recent, young=young)
