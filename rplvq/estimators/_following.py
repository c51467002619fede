"""How a stream adapts in each call: its schedules, sigma2, and which classes rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rplvq.arrays import Samples, distances
from rplvq.parts import library_part
from rplvq.protocols import Array
from rplvq.schedules import Constant, InitialEvidence, likeliest_sigma2
from rplvq.training import State, Trainer, restored

WINDOW = 300
"""Number of the latest samples that a stream keeps, to choose sigma2 and its pace, and to know which classes come."""
ABSENT = 2
"""A class rests when none of the last 2 C samples is of it, for C classes. A rest is short if its samples come."""


@library_part
class Recent(NamedTuple):
    """The latest samples of a stream as they were met, before the prototypes moved."""

    sqdist: Array  # (M, K), to the prototypes of that time; without columns if sigma2 does not follow them
    labels: Array  # (M,)
    owners: Array  # (K,), the label of each prototype


def with_call(
    recent: Recent | None, trainer: Trainer, state: State, samples: Samples, met: Array, *, measured: bool
) -> Recent | None:
    """Return the latest samples including those of this call; None for soft labels.

    ``met`` (M,) are the labels of the classes that have prototypes, which targets and prototypes index. Samples that
    were met by other prototypes, because some were added or removed since, are forgotten.
    """
    if samples.targets.ndim != 1:
        return None
    owners = met[state.labels]
    sqdist = np.empty((len(samples), 0))
    if measured:
        sqdist = distances(trainer.manifold, state.prototypes, samples.codes)
    order = np.random.default_rng(0).permutation(len(samples))  # the samples of a call are sorted by class
    found = Recent(sqdist[order], met[samples.targets[order]], owners)
    if recent is None or not np.array_equal(recent.owners, owners):
        return found
    sqdist, labels = (np.concatenate(pair)[-WINDOW:] for pair in zip(recent[:2], found[:2], strict=True))
    return Recent(sqdist, labels, owners)


def with_sigma2(state: State, recent: Recent | None) -> State:
    """Return the state with the sigma2 that makes the labels of the latest samples likeliest.

    The sigma2 of the first call comes from a few samples, and prototypes move.
    """
    if recent is None:
        return state
    names = np.unique(recent.owners)
    labels = np.searchsorted(names, recent.owners)
    evidence = InitialEvidence(recent.sqdist, np.searchsorted(names, recent.labels), labels, len(labels))
    try:
        return state._replace(sigma2_schedule=Constant(likeliest_sigma2(evidence)))
    except ValueError:  # most samples coincide with their prototypes
        return state


def at_call(trainer: Trainer, state: State) -> State:
    """Return the state at the next call: a schedule advances by one epoch per call, and stays at its last epoch."""
    last = max(trainer.max_epochs, 1)
    return state.at_epoch(min(state.epoch + 1, last), last)


def resting(state: State, recent: Recent | None, met: Array, n_call: int) -> Array:
    """Return the indices of the prototypes whose class is neither among the latest samples nor in a call of ``n_call``.

    Samples of other classes only push them away, and nothing would bring them back.
    """
    count = max(ABSENT * len(met), n_call)
    if recent is None or len(recent.labels) < count:
        return np.empty(0, dtype=int)
    return np.flatnonzero(~np.isin(met[state.labels], recent.labels[-count:]))


def with_resting(before: State, after: State, rests: Array) -> State:
    """Return the state after a call, in which the prototypes ``rests`` (M,) are where they were before."""
    return restored(after, before.prototypes, rests) if len(rests) else after
