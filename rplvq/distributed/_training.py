"""Epochs of a trainer over parts: local epochs that are averaged on the manifold, or full batches.

- **Local epochs.** Every part is swept by :meth:`rplvq.Trainer.sweep` from the same prototypes, which are then averaged
  (Zinkevich et al. 2010, "Parallelized stochastic gradient descent", NIPS 23; Stich 2019, "Local SGD converges fast and
  communicates little", ICLR; on manifolds Li and Ma 2022, arXiv:2206.05668).
- **Full batches.** Workers return K tangents and K lengths, and one ``exp`` moves the prototypes by their sums.
"""

import copy
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import attrs
import dask
import numpy as np
from dask.delayed import Delayed

from rplvq.arrays import Samples, evenly_spaced_rows, subset, visits
from rplvq.distributed._partitions import Partitions
from rplvq.initializers import places_means, prototype_counts
from rplvq.manifolds import is_stateful, riemannian_mean
from rplvq.parts import fields_of
from rplvq.protocols import AnyManifold, Array, Cost, Prototypes
from rplvq.training import (
    Decision,
    Meter,
    Origin,
    Progress,
    Score,
    State,
    Trainer,
    contribution,
    diverged,
    follow,
    history_row,
    hooks_of,
    measure,
    one_decision,
    require_finite,
    run_epochs,
    untrained_history,
)

PRECISION = 1e-4  # tolerance of means by the spread of what is averaged; far below the error of class means


class Swept(NamedTuple):
    """What one part returns after a local epoch."""

    prototypes: Prototypes
    by_class: Array  # (C,), summed weights
    cost: float
    wrong: float
    n_capped: int
    rng: Any  # random state after the epoch


def share_of(
    part: Samples, manifold: AnyManifold, cost: Cost, state: State, max_weight: float | None, n_batch: int
) -> tuple[Array, Array, int, float, float, float]:
    """Return terms of a step on ``n_batch`` visits: tangents, lengths, weights cut, sums of loss, error and weight."""
    if part.weights is not None:
        rows, weights = visits(len(part), part.weights)
        part = Samples(part.codes[rows], part.targets[rows], weights)
    pulled = contribution(manifold, cost, state, part, max_weight, n_batch)
    meter = Meter(state.labels)
    meter.add(pulled.sqdist, pulled.loss, part)
    return pulled.tangents, pulled.lengths, pulled.n_capped, meter.cost, meter.wrong, meter.total


def score_of(part: Samples, manifold: AnyManifold, cost: Cost, state: State) -> tuple[float, float, float]:
    """Add up losses, errors and weights of a part."""
    meter = measure(manifold, cost, state, part)
    return meter.cost, meter.wrong, meter.total


def swept(
    part: Samples, trainer: Trainer, state: State, decision: Decision, turn: tuple[int, int], rng: np.random.Generator
) -> Swept:
    """Sweep a part, or its share of an epoch: ``turn`` is the number of the round, and that of rounds per epoch."""
    rng = copy.deepcopy(rng)  # a task that is repeated must draw the same numbers
    if turn[1] > 1:
        part = part.at(np.sort(rng.permutation(len(part))[turn[0] :: turn[1]]))
    by_class = np.bincount(part.classes, part.filled_weights, minlength=int(state.labels.max()) + 1)
    if not len(part):
        return Swept(state.prototypes, by_class, 0.0, 0.0, 0, None)
    with one_decision(attrs.evolve(decision)):
        state, score, n_capped = trainer.sweep(state, part, rng)
    wrong = score.error * part.total_weight
    return Swept(state.prototypes, by_class, score.cost, wrong, n_capped, rng.bit_generator.state)


def averaged(
    manifold: AnyManifold, ends: Sequence[Prototypes], by_class: Array, labels: Array, start: Prototypes, reach: float
) -> Prototypes:
    """Return the means of the prototypes at the ends of P parts, weighted by the samples (P, C) that each has by class.

    P parts move their mean 1 / P of the way that the same samples move a prototype one after another. The move from the
    ``start`` is therefore multiplied by up to P, as long as it cannot take a prototype beyond the mean of its samples:
    n visits move it at most ``n reach`` of the way. A learned metric is averaged in its coordinates, by all samples.
    """
    if len(ends) == 1:
        return ends[0]
    n_visits = np.maximum(by_class.mean(axis=0), by_class.sum() / by_class.size)  # (C,), of one part
    factors = np.clip(1 / (reach * n_visits), 1, len(ends))[labels]
    weights = by_class[:, labels]
    codes = np.array(start)
    reached = np.stack([np.asarray(one) for one in ends])
    for k in np.flatnonzero(weights.any(axis=0)):
        mean = riemannian_mean(manifold, reached[:, k], weights[:, k], tol=PRECISION).code
        if factors[k] > 1:
            mean = np.asarray(manifold.move(manifold.connect(codes[[k]], mean[None]), factors[[[k]]]))[0]
        codes[k] = mean
    if not is_stateful(ends[0]):
        return codes
    shares = by_class.sum(axis=1) / by_class.sum()
    fields = [fields_of(one) for one in ends]
    means = {name: np.tensordot(shares, np.stack([own[name] for own in fields]), axes=1) for name in fields[0]}
    return type(ends[0])(**means).with_codes(codes)


def means_of(part: Samples, manifold: AnyManifold, n_classes: int) -> tuple[Array, Array]:
    """Return the class means (C, ...) of a part, 0 for a class that it lacks, and the summed weights (C,)."""
    by_class = np.bincount(part.classes, part.filled_weights, minlength=n_classes)
    codes = np.zeros((n_classes, *part.codes.shape[1:]), dtype=part.codes.dtype)
    weights = part.filled_weights
    for label in np.flatnonzero(by_class):
        rows = np.flatnonzero(part.classes == label)
        few = rows[evenly_spaced_rows(len(rows), 200)]  # a near guess saves several passes over all
        start = riemannian_mean(manifold, subset(part.codes, few), weights[few], tol=PRECISION).code
        own = subset(part.codes, rows)
        codes[label] = riemannian_mean(manifold, own, weights[rows], start=start, tol=PRECISION).code
    return codes, by_class


def mean_of_parts(manifold: AnyManifold, of_parts: Sequence[Delayed]) -> Prototypes:
    """Return the class means (C, ...) of all samples, given the lazy results of :func:`means_of`."""
    means, by_class = zip(*dask.compute(*of_parts), strict=True)
    return averaged(manifold, means, np.array(by_class), np.arange(len(means[0])), np.sum(means, axis=0), np.inf)


def first_prototypes(
    trainer: Trainer, partitions: Partitions, some: Samples, n_classes: int, rng: np.random.Generator, *, is_all: bool
) -> tuple[Prototypes, Array, list[Delayed]]:
    """Choose prototypes (K, ...) and labels (K,) from ``some`` samples; lazy class means of all parts come last."""
    counts = prototype_counts(getattr(trainer.initializer, "per_class", None), n_classes)
    if is_all or not (places_means(trainer.initializer) and (counts == 1).all()):
        return *trainer.first_prototypes(some, n_classes, rng), []
    of_parts = list(dask.persist(*partitions.lazily(means_of, trainer.manifold, n_classes)))
    means, by_class = means_of(some, trainer.manifold, n_classes)
    if not by_class.all():  # a rare class
        means = np.asarray(mean_of_parts(trainer.manifold, of_parts))
    return means, np.arange(n_classes), of_parts


@attrs.frozen(eq=False)
class DistributedTrainer:
    """The epochs of a trainer over parts. All follow one ``decision`` whether steps run compiled, for the same bits."""

    trainer: Trainer
    partitions: Partitions
    n_visits: int
    total_weight: float
    held_out: Partitions | None = None
    rounds: int = 1
    decision: Decision = attrs.field(factory=lambda: Decision(0, is_compiled=False))

    def step(self, state: State) -> tuple[State, Score, int]:
        """Take one step on all samples; return the new state, the score before it and the number of weights cut."""
        trainer = self.trainer
        shared = (trainer.manifold, trainer.cost, state, trainer.max_weight(state), self.n_visits)
        terms = zip(*self.partitions.map(share_of, *shared), strict=True)
        tangents, lengths, n_capped, cost, wrong, total = (sum(values[1:], values[0]) for values in terms)
        moved, n_shortened = follow(trainer.manifold, state.prototypes, tangents, lengths, trainer.max_length)
        return state._replace(prototypes=moved), Score(cost, wrong / total), n_capped + n_shortened

    def local_epoch(self, state: State, rng: np.random.Generator) -> tuple[State, Score, int]:
        """Sweep all parts and average, round by round; a single part is swept with the generator of the fit."""
        sweeps: list[Swept] = []
        is_one = len(self.partitions.blocks) == self.rounds == 1
        seed = 0 if is_one else int(rng.integers(2**31))
        each = [(rng if is_one else np.random.default_rng([seed, p]),) for p in range(len(self.partitions.blocks))]
        # Callbacks and progress bars belong to the process that fits.
        quiet = attrs.evolve(self.trainer, callbacks=(), early_stopping=None, verbose=0)
        cap = quiet.max_weight(state)
        size = quiet.batch_size or 1
        reach = np.inf if cap is None else cap * min(size, len(state.labels)) / size
        for number in range(self.rounds):
            latest = self.partitions.map(swept, quiet, state, self.decision, (number, self.rounds), each=each)
            by_class = np.array([one.by_class for one in latest])
            ends = [one.prototypes for one in latest]
            mean = averaged(quiet.manifold, ends, by_class, state.labels, state.prototypes, reach)
            state = state._replace(prototypes=mean)
            sweeps += latest
        if is_one:
            rng.bit_generator.state = sweeps[0].rng
        total = sum(one.by_class.sum() for one in sweeps)
        score = Score(sum(one.cost for one in sweeps), sum(one.wrong for one in sweeps) / total)
        return state, score, sum(one.n_capped for one in sweeps)

    def sweep(self, state: State, rng: np.random.Generator) -> tuple[State, Score, int]:
        """Visit every sample once, as :meth:`rplvq.Trainer.sweep` does."""
        if state.rests:
            return state, self.score(state), 0
        try:
            full = self.trainer.batch_size is None
            state, score, n_capped = self.step(state) if full else self.local_epoch(state, rng)
            require_finite(state, score.cost)
        except np.linalg.LinAlgError as error:
            raise diverged(state) from error
        return state, score, n_capped

    def score(self, state: State, partitions: Partitions | None = None) -> Score:
        """Measure cost and error of a state on all samples that train, or on others, by one pass of distances."""
        scores = (partitions or self.partitions).map(score_of, self.trainer.manifold, self.trainer.cost, state)
        cost, wrong, total = (sum(values) for values in zip(*scores, strict=True))
        return Score(cost, wrong / total)

    def untrained(self, state: State) -> dict[str, Array]:
        """Return the history of a fit without any epoch."""
        kinds = [parts for parts in (self.partitions, self.held_out) if parts is not None]
        return untrained_history(state, *(self.score(state, own) for own in kinds))

    def epochs(self, progress: Progress, rng: np.random.Generator, origin: Origin | None = None) -> Iterator[Progress]:
        """Continue a run, and yield its progress after each epoch, as :meth:`rplvq.Trainer.epochs` does."""
        n_epochs = self.trainer.max_epochs
        held = self.held_out
        hooks = hooks_of(self.trainer, self.score, origin=origin)

        def epoch(state: State) -> tuple[State, dict[str, float]]:
            began = time.perf_counter()
            state = state.at_epoch(state.epoch + 1, n_epochs)
            state, score, n_capped = self.sweep(state, rng)
            row = history_row(state, score, n_capped, time.perf_counter() - began)
            validation = () if held is None else self.score(state, held)
            return state, row | dict(zip(("validation_cost", "validation_error"), validation, strict=False))

        if held is not None and self.trainer.early_stopping is not None:
            hooks.insert(0, self.trainer.early_stopping)
        return run_epochs(epoch, progress, rng, n_epochs, hooks, self.trainer.verbose)
