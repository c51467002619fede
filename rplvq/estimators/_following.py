"""How a stream adapts in each call: the step, sigma2, and which classes rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rplvq.arrays import Samples, distances
from rplvq.capabilities import StepOfShare, provides
from rplvq.parts import library_part
from rplvq.protocols import Array
from rplvq.schedules import Constant, InitialEvidence, likeliest_sigma2
from rplvq.training import State, Trainer, restored

SMALLEST_SHARE = 0.1
"""Share of sigma2 below which the default step of a stream does not fall, so that it follows changes.

With it the prototypes stand for about the last ten samples of each that were near a border. With 0.03, accuracy on a
stream whose classes rotate by 0.04 rad in 20 samples was 0.91, 0.85 and 0.82 (three spreads) in place of 0.97, 0.96 and
0.94; on stationary streams of SynI 0.950 in place of 0.945, and of BCI 2a 0.783 in place of 0.785."""
WINDOW = 300
"""Number of the latest samples whose distances a stream keeps, to choose sigma2 and to know which classes come."""
ABSENT = 2
"""A class rests when none of the last 2 C samples is of it, for C classes. A rest is short if its samples come."""


@library_part
class Recent(NamedTuple):
    """The latest samples of a stream as they were met, before the prototypes moved.

    Parameters
    ----------
    sqdist : ndarray of shape (M, K)
        Their squared distances to the prototypes of that time; without columns if sigma2 does not follow them.
    labels : ndarray of shape (M,)
        Their labels.
    owners : ndarray of shape (K,)
        The label of each prototype.
    """

    sqdist: Array
    labels: Array
    owners: Array


def with_call(
    recent: Recent | None, trainer: Trainer, state: State, samples: Samples, met: Array, *, measured: bool
) -> Recent | None:
    """Return the latest samples including those of this call; None for soft labels.

    ``met`` (M,) are the labels of the classes that have prototypes, which targets and prototypes index. Samples that
    were met by other prototypes, because some were added or removed since, are forgotten. Distances are ``measured``
    only for a stream whose sigma2 follows them; otherwise ``sqdist`` has no columns.
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

    The sigma2 of the first call comes from a few samples, and prototypes move. The state stays as it is if most of the
    samples coincide with their prototypes.
    """
    if recent is None:
        return state
    names = np.unique(recent.owners)
    targets = recent.labels
    labels = np.searchsorted(names, recent.owners)
    evidence = InitialEvidence(recent.sqdist, np.searchsorted(names, targets), labels, len(labels))
    try:
        return state._replace(sigma2_schedule=Constant(likeliest_sigma2(evidence)))
    except ValueError:
        return state


def at_call(trainer: Trainer, state: State, n_seen: float) -> State:
    """Return the state at the next call, with the step of a stream that has met ``n_seen`` samples.

    A schedule advances by one epoch per call, and stays at its last epoch. The default step is the share of one sample
    in the mean of those of its prototype so far, K / n, but at least :data:`SMALLEST_SHARE`.
    """
    last = max(trainer.max_epochs, 1)
    began = state.at_epoch(min(state.epoch + 1, last), last)
    if not trainer.leaves_step or not provides(state.step_schedule, StepOfShare):
        return began
    share = min(max(len(state.labels) / n_seen, SMALLEST_SHARE), 1.0)
    return began._replace(step_size=state.step_schedule.of_share(share, began.sigma2))


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
