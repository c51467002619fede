"""What ``partial_fit`` remembers from call to call, and how the prototypes follow a stream in each of them.

With the default step, copies of the prototypes learn at different paces, and the latest samples choose one. The fast
copy follows changes, the mean one learns most from samples that do not change, and the kept one is right where learning
on makes a fit worse. No single share serves all: on BCI 2a the share 0.1 lost 0.1 of kappa, and K / n alone loses
classes that turn.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from rplvq.arrays import Samples, distances, hard_targets
from rplvq.capabilities import StepOfShare, provides
from rplvq.costs import evaluate
from rplvq.parts import library_part
from rplvq.protocols import Array, Cost, Prototypes
from rplvq.schedules import Constant, InitialEvidence, is_auto, likeliest_sigma2
from rplvq.training import State, Trainer, restored

WINDOW = 300
"""Number of the latest samples that a stream keeps, to choose sigma2 and its pace, and to know which classes come."""
ABSENT = 2
"""A class rests when none of the last 2 C samples is of it, for C classes. A rest is short if its samples come."""
FAST_SHARE = 0.1
"""Share of sigma2 of the fast copy. Its prototypes stand for about the last ten samples of each, near a border."""
CLEAR = 2.0  # number of standard errors from which a difference of losses is clear


@library_part
class Recent(NamedTuple):
    """The latest samples of a stream as they were met, before the prototypes moved."""

    sqdist: Array  # (M, K), to the prototypes of that time; without columns if sigma2 does not follow them
    labels: Array  # (M,)
    owners: Array  # (K,), the label of each prototype


@library_part
class Paces(NamedTuple):
    """Copies of the prototypes that learn the same samples at P paces: kept (until a change), mean, and fast."""

    prototypes: tuple[Prototypes, ...]
    owners: Array  # (K,), the label of each prototype
    leader: int  # index of the copy that answers
    n_samples: float  # number of samples for which the mean copy stands
    losses: Array  # (M, P), of each copy for the latest samples before it learned them, times their weights
    errors: Array  # (M, P), the same with 1 for a wrong answer


@library_part
class PendingClasses(NamedTuple):
    """Late classes whose prototypes are initialized anew in each call."""

    labels: Array  # (L,)
    samples: Samples  # those of all classes that came since these classes appeared, with labels as targets


@library_part
class Stream(NamedTuple):
    """What ``partial_fit`` remembers between calls, beside the state of training."""

    is_open: bool = False  # whether labels that were not announced are accepted
    cost: Cost | None = None  # for all classes; that of the trainer is for the classes that have prototypes
    recent: Samples | None = None  # the latest samples with their labels, for rules of growth
    pending: PendingClasses | None = None  # late classes that do not have enough samples yet
    alone: Samples | None = None  # samples with their labels as long as all are of one class
    seen: float = np.inf  # number of samples so far, infinite after a fit
    met: Recent | None = None  # the latest samples as they were met
    fitted: float | None = None  # sum of the weights of the samples of the fit; None in files of older versions
    paces: Paces | None = None  # what the default step remembers


def swept(
    trainer: Trainer, state: State, samples: Samples, stream: Stream, classes: Array, rng: np.random.Generator
) -> tuple[State, dict[str, float], Stream]:
    """Return state, row of the history and stream after a sweep; ``classes`` (M,) are those that have prototypes."""
    follows = bool(np.isfinite(stream.seen)) and is_auto(trainer.sigma2)  # no fit chose sigma2, and no user
    recent = with_call(stream.met, trainer, state, samples, classes, measured=follows)
    if follows and stream.met is not None and recent is not None:
        state = with_sigma2(state, recent)
    last = max(trainer.max_epochs, 1)
    began = state.at_epoch(min(state.epoch + 1, last), last)  # a schedule stays at its last epoch
    rests = resting(state, recent, classes, len(samples))
    later = stream._replace(seen=stream.seen + samples.total_weight, met=recent)
    if not (trainer.leaves_step and provides(state.step_schedule, StepOfShare)):  # a step of the user's own
        after, row = trainer.sweep_and_record(began, samples, rng)
        return with_resting(state, after, rests), row, later
    after, row, paces = learned(trainer, began, samples, paces_of(stream, began, classes), rests, rng)
    return after, row, later._replace(paces=paces)


def with_call(
    recent: Recent | None, trainer: Trainer, state: State, samples: Samples, met: Array, *, measured: bool
) -> Recent | None:
    """Return the latest samples including those of this call; None for soft labels.

    Targets and prototypes index the labels ``met`` (M,). Samples are forgotten once prototypes are added or removed.
    """
    if samples.targets.ndim != 1:
        return None
    owners = met[state.labels]
    sqdist = np.empty((len(samples), 0))
    if measured:
        sqdist = distances(trainer.manifold, state.prototypes, samples.codes)
    order = np.random.default_rng(0).permutation(len(samples))  # the samples of a call are sorted by class
    now = Recent(sqdist[order], met[samples.targets[order]], owners)
    if recent is None or not np.array_equal(recent.owners, owners):
        return now
    sqdist, labels = (np.concatenate(pair)[-WINDOW:] for pair in zip(recent[:2], now[:2], strict=True))
    return Recent(sqdist, labels, owners)


def with_sigma2(state: State, recent: Recent) -> State:
    """Return the state with the sigma2 that makes the labels of the latest samples likeliest.

    The sigma2 of the first call comes from a few samples, and prototypes move.
    """
    names = np.unique(recent.owners)
    labels = np.searchsorted(names, recent.owners)
    evidence = InitialEvidence(recent.sqdist, np.searchsorted(names, recent.labels), labels, len(labels))
    try:
        return state._replace(sigma2_schedule=Constant(likeliest_sigma2(evidence)))
    except ValueError:  # most samples coincide with their prototypes
        return state


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


def first_paces(prototypes: Prototypes, owners: Array, n_samples: float, count: int) -> Paces:
    """Return ``count`` copies of prototypes (K, ...), and no samples to judge them by; the mean one leads."""
    nothing = np.empty((0, count))
    return Paces((prototypes,) * count, owners, count - 2, n_samples, nothing, nothing)


def paces_of(stream: Stream, state: State, classes: Array) -> Paces:
    """Return the paces of a stream at a call; ``classes`` (M,) are those that have prototypes."""
    owners = classes[state.labels]
    if stream.paces is not None:
        return present_paces(stream.paces, state, owners)
    if np.isfinite(stream.seen):
        return first_paces(state.prototypes, owners, stream.seen, 2)
    n_samples = len(owners) / FAST_SHARE if stream.fitted is None else stream.fitted
    return first_paces(state.prototypes, owners, n_samples, 3)


def present_paces(paces: Paces, state: State, owners: Array) -> Paces:
    """Return the paces for the prototypes of a state, which late classes and rules of growth may have changed.

    If some were moved, all copies take them. If some were added or removed, the copies begin anew. The prototypes of a
    new class need many samples, so that the mean begins anew, too.
    """
    if not np.array_equal(paces.owners, owners):
        limit = np.inf if np.isin(owners, paces.owners).all() else len(owners) / FAST_SHARE
        return first_paces(state.prototypes, owners, min(paces.n_samples, limit), len(paces.prototypes))
    differs = np.asarray(state.prototypes) != np.asarray(paces.prototypes[paces.leader])
    rows = np.flatnonzero(differs.reshape(len(owners), -1).any(axis=1))
    if not len(rows):
        return paces
    copies = (restored(state._replace(prototypes=old), state.prototypes, rows) for old in paces.prototypes)
    return paces._replace(prototypes=tuple(one.prototypes for one in copies))


def judged(trainer: Trainer, state: State, samples: Samples, paces: Paces) -> Paces:
    """Return the paces with the losses and errors of each copy for the samples of a call, which none has learned."""
    first, *others = map(np.asarray, paces.prototypes)
    if all(np.array_equal(first, one) for one in others):
        return paces
    rows = np.random.default_rng(0).permutation(len(samples))[-WINDOW:]  # the samples of a call are sorted by class
    part = samples.at(rows)
    columns = [_loss_and_error(trainer, state._replace(prototypes=one), part) for one in paces.prototypes]
    losses, errors = (np.stack(column, axis=1) for column in zip(*columns, strict=True))
    return paces._replace(
        losses=np.concatenate([paces.losses, losses])[-WINDOW:], errors=np.concatenate([paces.errors, errors])[-WINDOW:]
    )


def _loss_and_error(trainer: Trainer, state: State, samples: Samples) -> tuple[Array, Array]:
    sqdist = distances(trainer.manifold, state.prototypes, samples.codes)
    loss = evaluate(trainer.cost, sqdist, samples.targets, state.labels, state.sigma2).loss
    wrong = state.labels[sqdist.argmin(axis=1)] != hard_targets(samples.targets)
    return loss * samples.filled_weights, wrong * samples.filled_weights


def has_changed(paces: Paces) -> bool:
    """Whether the fast copy has a clearly lower loss than each of the others, and no more errors.

    The standard error of a sum of paired differences x is ``sqrt(sum x^2)`` if they are 0 in the mean.
    """
    gains = paces.losses[:, :-1] - paces.losses[:, -1:]
    no_more = (paces.errors[:, :-1] - paces.errors[:, -1:]).sum(axis=0) >= 0
    clear = gains.sum(axis=0) > CLEAR * np.sqrt(np.square(gains).sum(axis=0))
    return bool((clear & no_more).all())


def after_change(paces: Paces) -> Paces:
    """Return the paces where the mean begins anew, as that of the samples for which the fast copy stands."""
    n_samples = min(paces.n_samples, len(paces.owners) / FAST_SHARE)
    return first_paces(paces.prototypes[-1], paces.owners, n_samples, 2)


def leading(paces: Paces) -> int:
    """Return the index of the copy that answers: the mean one, or a kept one of lower loss or fewer errors.

    The fast one takes over if its loss is lower and its errors are no more: few samples may rule a loss alone.
    """
    loss = paces.losses.sum(axis=0)
    error = paces.errors.sum(axis=0)
    fast = len(paces.prototypes) - 1
    leader = fast - 1
    if loss[0] < loss[leader] or error[0] < error[leader]:
        leader = 0
    return fast if loss[fast] < loss[leader] and error[fast] <= error[leader] else leader


def learned(
    trainer: Trainer, state: State, samples: Samples, paces: Paces, rests: Array, rng: np.random.Generator
) -> tuple[State, dict[str, float], Paces]:
    """Return the state that answers, its row of the history, and the paces after all copies learned from the samples.

    The mean copy takes the share K / n of sigma2, as a mean of n / K samples does. Prototypes ``rests`` (M,) stay.
    """
    paces = judged(trainer, state, samples, paces)
    if has_changed(paces):
        paces = after_change(paces)
    n_samples = paces.n_samples + samples.total_weight
    mean_share = len(paces.owners) / n_samples
    shares = (0.0, mean_share, max(mean_share, FAST_SHARE))[-len(paces.prototypes) :]
    leader = leading(paces)
    results: list[tuple[State, dict[str, float]]] = []
    for index, (prototypes, share) in enumerate(zip(paces.prototypes, shares, strict=True)):
        step_size = float(state.step_schedule.of_share(min(share, 1.0), state.sigma2))  # type: ignore[attr-defined]
        began = state._replace(prototypes=prototypes, step_size=step_size)
        if share == 0 and index != leader:
            results.append((began, {}))
            continue
        own_rng = rng if index == len(shares) - 1 else copy.deepcopy(rng)  # all in the same order
        after, row = trainer.sweep_and_record(began, samples, own_rng)
        results.append((with_resting(began, after, rests), row))
    copies = tuple(one.prototypes for one, _ in results)
    return *results[leader], paces._replace(prototypes=copies, leader=leader, n_samples=n_samples)
