"""Epochs of a trainer over parts: local epochs that are averaged on the manifold, or full batches.

- **Local epochs.** Every part is swept by :meth:`rplvq.Trainer.sweep` from the same prototypes, and the prototypes are
  averaged: Zinkevich, Weimer, Smola and Li (2010, "Parallelized stochastic gradient descent", NIPS 23), and Stich (2019,
  "Local SGD converges fast and communicates little", ICLR); on manifolds Li and Ma (2022, "Federated learning on
  Riemannian manifolds", arXiv:2206.05668).
- **Full batches.** Workers return sums of tangents, :func:`rplvq.training.contribution`, and one ``exp`` moves the
  prototypes: K tangents and K lengths for each part, however many samples it has.
"""

import copy
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.arrays import Samples, visits
from rplvq.distributed._partitions import Partitions
from rplvq.manifolds import is_stateful, riemannian_mean
from rplvq.parts import fields_of
from rplvq.protocols import Array, Cost, Manifold, Prototypes
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
)


class Share(NamedTuple):
    """What one part contributes to a full batch; all fields add up."""

    tangents: Array | float  # (K, ...), sums of weighted logarithms
    lengths: Array | float  # (K,), sums of |weight| distance, which bound the length of the step
    n_capped: int
    cost: float
    wrong: float
    total: float  # weight of the samples


class Swept(NamedTuple):
    """What one part returns after a local epoch."""

    prototypes: Prototypes
    by_class: Array  # (C,), summed weights
    cost: float
    wrong: float
    n_capped: int
    rng: Any  # random state after the epoch


def share_of(
    part: Samples, manifold: Any, cost: Cost, state: State, max_weight: float | None, n_batch: int
) -> Share:
    """Evaluate what a part contributes to a step on ``n_batch`` visits of samples."""
    if part.weights is not None:
        rows, weights = visits(len(part), part.weights)
        part = Samples(part.codes[rows], part.targets[rows], weights)
    found, meter = contribution(manifold, cost, state, part, max_weight, n_batch), Meter(state.labels)
    meter.add(found.sqdist, found.loss, part)
    return Share(found.tangents, found.lengths, found.n_capped, meter.cost, meter.wrong, meter.total)


def score_of(part: Samples, manifold: Manifold[Any], cost: Cost, state: State) -> tuple[float, float, float]:
    """Add up losses, errors and weights of a part."""
    meter = measure(manifold, cost, state, part)
    return meter.cost, meter.wrong, meter.total


def visits_of(part: Samples) -> int:
    """Return how many samples an epoch visits in a part."""
    return part.n_visits


def swept(
    part: Samples, trainer: Trainer, state: State, decision: Decision, turn: tuple[int, int],
    rng: np.random.Generator,
) -> Swept:  # fmt: skip
    """Sweep a part, or its share of an epoch: ``turn`` is the number of the round, and that of rounds per epoch."""
    number, count = turn
    rng = copy.deepcopy(rng)  # a task that is repeated must draw the same numbers
    if count > 1:
        part = part.at(np.sort(rng.permutation(len(part))[number::count]))
    by_class = np.bincount(part.classes, part.filled_weights, minlength=int(state.labels.max()) + 1)
    if not len(part):
        return Swept(state.prototypes, by_class, 0.0, 0.0, 0, rng.bit_generator.state)
    with one_decision(attrs.evolve(decision)):
        state, score, n_capped = trainer.sweep(state, part, rng)
    wrong = score.error * part.total_weight
    return Swept(state.prototypes, by_class, score.cost, wrong, n_capped, rng.bit_generator.state)


def averaged(manifold: Manifold[Any], found: Sequence[Swept], state: State, reach: float) -> Prototypes:
    """Return the prototypes of a round: the means of those of all parts, each weighted by the samples of its class.

    P parts move a mean 1 / P of the way that their samples would move it one after another. Therefore the move is
    multiplied by a factor of 1 to P, as long as it cannot take a prototype beyond the mean of the samples: ``reach`` is
    the share of the way to a sample of which one visit moves a prototype at most, and n visits move it at most ``n
    reach`` of the way. Other learned state, such as a metric, is averaged by numbers of samples.
    """
    if len(found) == 1:
        return found[0].prototypes
    by_class = np.array([one.by_class for one in found])
    visits_each = np.maximum(by_class.mean(axis=0), by_class.sum() / by_class.size)  # (C,), in a part
    factors = np.clip(1 / (reach * visits_each), 1, len(found))[state.labels]
    weights, old = by_class[:, state.labels], np.asarray(state.prototypes)  # (P, K) and (K, ...)
    stacked, codes = np.stack([np.asarray(one.prototypes) for one in found]), old.copy()
    for k in np.flatnonzero(weights.any(axis=0)):
        mean = riemannian_mean(manifold, stacked[:, k], weights[:, k], tol=PRECISION).code[None]
        codes[k] = np.asarray(manifold.move(manifold.connect(old[[k]], mean), factors[[[k]]]))[0]
    if not is_stateful(found[0].prototypes):
        return codes
    sizes = by_class.sum(axis=1)
    return blended([one.prototypes for one in found], sizes / sizes.sum()).with_codes(codes)


def blended(found: Sequence[Any], shares: Array) -> Any:
    """Return the prototypes whose arrays are the means, weighted by shares (P,), of those of P prototypes."""
    fields = {name: [fields_of(one)[name] for one in found] for name in fields_of(found[0])}
    means = {name: np.tensordot(shares, np.stack(values), axes=1) for name, values in fields.items()}
    return type(found[0])(**means)


PRECISION = 1e-6
"""Tolerance of the averages; the prototypes of parts are near each other, so that a few passes suffice."""


@attrs.frozen(eq=False)
class DistributedTrainer:
    """The epochs of a trainer over parts; each epoch of single samples or small batches has ``rounds`` averages.

    ``held_out`` are the samples of early stopping. ``decision`` says whether steps run compiled: it is made once, in
    the calling process, so that all workers give the same bits.
    """

    trainer: Trainer
    partitions: Partitions
    n_visits: int
    held_out: Partitions | None = None
    rounds: int = 1
    decision: Decision = attrs.field(factory=lambda: Decision(0, is_compiled=False))

    def step(self, state: State) -> tuple[State, Share]:
        """Take one step on all samples; return the new state and the sums before the step."""
        trainer = self.trainer
        shared = (trainer.manifold, trainer.cost, state, trainer.max_weight(state), self.n_visits)
        total = Share(*(sum(values) for values in zip(*self.partitions.map(share_of, *shared), strict=True)))
        tangents, lengths = np.asarray(total.tangents), np.asarray(total.lengths)
        moved, n_shortened = follow(trainer.manifold, state.prototypes, tangents, lengths, trainer.max_length)
        return state._replace(prototypes=moved), total._replace(n_capped=total.n_capped + n_shortened)

    def local_epoch(self, state: State, rng: np.random.Generator) -> tuple[State, Score, int]:
        """Sweep all parts at once, and average their prototypes after each round.

        If there is one part and one round, the generator itself visits it, so that the fit is that of one process.
        """
        count, found = len(self.partitions.blocks), []
        quiet = attrs.evolve(self.trainer, callbacks=(), early_stopping=None, verbose=0)
        is_one = count == self.rounds == 1
        seed = 0 if is_one else int(rng.integers(2**31))
        each = [(rng if is_one else np.random.default_rng([seed, p]),) for p in range(count)]
        cap, size = self.trainer.max_weight(state), self.trainer.batch_size or 1
        reach = np.inf if cap is None else cap * min(size, len(state.labels)) / size
        for number in range(self.rounds):
            turn = number, self.rounds
            found += (latest := self.partitions.map(swept, quiet, state, self.decision, turn, each=each))
            state = state._replace(prototypes=averaged(self.trainer.manifold, latest, state, reach))
        if is_one:
            rng.bit_generator.state = found[0].rng
        total = sum(one.by_class.sum() for one in found)
        score = Score(sum(one.cost for one in found), sum(one.wrong for one in found) / total)
        return state, score, sum(one.n_capped for one in found)

    def sweep(self, state: State, rng: np.random.Generator) -> tuple[State, Score, int]:
        """Visit every sample once, as :meth:`rplvq.Trainer.sweep` does."""
        if state.rests:
            return state, self.score(state), 0
        try:
            if self.trainer.batch_size is not None:
                state, score, n_capped = self.local_epoch(state, rng)
            else:
                state, share = self.step(state)
                score, n_capped = Score(share.cost, share.wrong / share.total), share.n_capped
            require_finite(state, score.cost)
        except np.linalg.LinAlgError as error:
            raise diverged(state) from error
        return state, score, n_capped

    def score(self, state: State, partitions: Partitions | None = None) -> Score:
        """Measure cost and error of a state on all samples, by one pass of distances."""
        found = (partitions or self.partitions).map(score_of, self.trainer.manifold, self.trainer.cost, state)
        cost, wrong, total = (sum(values) for values in zip(*found, strict=True))
        return Score(cost, wrong / total)

    def scores(self, state: State) -> list[Score]:
        """Return the score of the samples that train, and that of those held out, if there are any."""
        return [self.score(state, own) for own in (self.partitions, self.held_out) if own is not None]

    def begun(self, progress: Progress) -> Progress:
        """Return the progress with the validation cost of the first prototypes, if samples are held out."""
        best_cost = np.inf if self.held_out is None else self.score(progress.state, self.held_out).cost
        return progress._replace(best_cost=best_cost)

    def epochs(self, progress: Progress, rng: np.random.Generator, origin: Origin | None = None) -> Iterator[Progress]:
        """Continue a run, and yield its progress after each epoch, as :meth:`rplvq.Trainer.epochs` does."""
        n_epochs = self.trainer.max_epochs

        def epoch(state: State) -> tuple[State, dict[str, float]]:
            began, state = time.perf_counter(), state.at_epoch(state.epoch + 1, n_epochs)
            state, score, n_capped = self.sweep(state, rng)
            row = history_row(state, score, n_capped, time.perf_counter() - began)
            if self.held_out is not None:
                validation = self.score(state, self.held_out)
                row |= {"validation_cost": validation.cost, "validation_error": validation.error}
            return state, row

        hooks = hooks_of(self.trainer, self.score, origin=origin)
        if self.held_out is not None and self.trainer.early_stopping is not None:
            hooks.insert(0, self.trainer.early_stopping)
        return run_epochs(epoch, progress, rng, n_epochs, hooks, self.trainer.verbose)
