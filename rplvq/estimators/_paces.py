"""The default step of a stream: copies of the prototypes learn at different paces, and the latest samples choose one.

The fast copy follows changes, the mean one learns most from samples that do not change, and the kept one is right where
learning on makes a fit worse. No single share serves all: on BCI 2a the share 0.1 lost 0.1 of kappa, and K / n alone
loses classes that turn.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from rplvq.arrays import Samples, distances, hard_targets
from rplvq.capabilities import StepOfShare, provides
from rplvq.costs import evaluate
from rplvq.estimators._following import WINDOW, with_resting
from rplvq.parts import library_part
from rplvq.protocols import Array, Prototypes
from rplvq.training import State, Trainer, restored

FAST_SHARE = 0.1
"""Share of sigma2 of the fast copy. Its prototypes stand for about the last ten samples of each, near a border."""
CLEAR = 2.0  # number of standard errors from which a difference of losses is clear


@library_part
class Paces(NamedTuple):
    """Copies of the prototypes that learn the same samples at P paces, slowest first.

    The first of three copies is kept since the fit, unless a change made it obsolete. The next one stands for the mean
    of all samples since the latest change, and the last one for the latest samples.
    """

    prototypes: tuple[Prototypes, ...]
    owners: Array  # (K,), the label of each prototype
    leader: int  # index of the copy that answers
    n_samples: float  # number of samples for which the mean copy stands
    losses: Array  # (M, P), of each copy for the latest samples before it learned them, times their weights
    errors: Array  # (M, P), the same with 1 for a wrong answer


def follows_by_paces(trainer: Trainer, state: State) -> bool:
    """Whether the step is left to the stream. A step of the user's own keeps a single copy."""
    return trainer.leaves_step and provides(state.step_schedule, StepOfShare)


def first_paces(prototypes: Prototypes, owners: Array, n_samples: float, count: int) -> Paces:
    """Return ``count`` copies of prototypes (K, ...), and no samples to judge them by; the mean one leads."""
    nothing = np.empty((0, count))
    return Paces((prototypes,) * count, owners, count - 2, n_samples, nothing, nothing)


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
    """Return the index of the copy that answers.

    It is the mean copy, unless the kept one has a lower loss or fewer errors. The fast copy takes over if its loss is
    lower and its errors are no more. Errors count because a loss that few samples rule may fall while errors rise.
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

    The step of the mean copy is the share K / n of sigma2, that of one sample in the mean of its prototype so far for
    n samples. Prototypes ``rests`` (M,) stay where they are.
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
