"""The steps of a trainer over partitions: prototypes go out, summed tangents come back, and one ``exp`` moves them.

A worker evaluates :func:`rplvq.training.contribution` for its part of the batch. It returns K tangents, K lengths, and
the sums of losses and errors: ``8 K (n^2 + 1)`` bytes for n x n matrices, however many samples it has.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.arrays import Samples, blocks
from rplvq.distributed._partitions import Partitions
from rplvq.protocols import Array, Cost, Manifold
from rplvq.training import (
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
    require_finite,
    run_epochs,
)


class Share(NamedTuple):
    """What one partition contributes to a step; all fields add up."""

    tangents: Array | float  # (K, ...), sums of weighted logarithms
    lengths: Array | float  # (K,), sums of |weight| distance, which bound the length of the step
    n_capped: int
    cost: float
    wrong: float


def share_of(
    block: Samples, manifold: Any, cost: Cost, state: State, max_weight: float | None, n_batch: int, rows: Array | None
) -> Share:
    """Evaluate what a partition contributes to a step on ``n_batch`` samples: all of it, or its samples at ``rows``."""
    part = block if rows is None else block.at(rows)
    if not len(part):
        return Share(0.0, 0.0, 0, 0.0, 0.0)
    found, meter = contribution(manifold, cost, state, part, max_weight, n_batch), Meter(state.labels)
    meter.add(found.sqdist, found.loss, part)
    return Share(found.tangents, found.lengths, found.n_capped, meter.cost, meter.wrong)


def score_of(block: Samples, manifold: Manifold[Any], cost: Cost, state: State) -> tuple[float, float]:
    """Add up the losses and errors of a partition."""
    meter = measure(manifold, cost, state, block)
    return meter.cost, meter.wrong


@attrs.frozen(eq=False)
class DistributedTrainer:
    """The steps of a trainer over partitions, with the same batches and the same caps as :class:`rplvq.Trainer`."""

    trainer: Trainer
    partitions: Partitions

    def step(self, state: State, rows: Array | None) -> tuple[State, Share]:
        """Take one step on global rows (B,), or on all samples; return the new state and the sums before the step."""
        trainer, n_batch = self.trainer, len(self.partitions) if rows is None else len(rows)
        parts = [None] * len(self.partitions.blocks) if rows is None else self.partitions.split(np.sort(rows))
        shared = (trainer.manifold, trainer.cost, state, trainer.max_weight(state), n_batch)
        shares = self.partitions.map(share_of, *shared, each=[(part,) for part in parts])
        total = Share(*(sum(values) for values in zip(*shares, strict=True)))
        tangents, lengths = np.asarray(total.tangents), np.asarray(total.lengths)
        moved, n_shortened = follow(trainer.manifold, state.prototypes, tangents, lengths, trainer.max_length)
        return state._replace(prototypes=moved), total._replace(n_capped=total.n_capped + n_shortened)

    def sweep(self, state: State, rng: np.random.Generator) -> tuple[State, Score, int]:
        """Visit every sample once, as :meth:`rplvq.Trainer.sweep` does."""
        if state.rests:
            return state, self.score(state), 0
        cost, wrong, n_capped = 0.0, 0.0, 0
        try:
            for rows in self._batches(rng):
                state, share = self.step(state, rows)
                cost, wrong, n_capped = cost + share.cost, wrong + share.wrong, n_capped + share.n_capped
            require_finite(state, cost)
        except np.linalg.LinAlgError as error:
            raise diverged(state) from error
        return state, Score(cost, wrong / len(self.partitions)), n_capped

    def score(self, state: State) -> Score:
        """Measure cost and error of a state on all samples, by one pass of distances."""
        found = self.partitions.map(score_of, self.trainer.manifold, self.trainer.cost, state)
        cost, wrong = (sum(values) for values in zip(*found, strict=True))
        return Score(cost, wrong / len(self.partitions))

    def _batches(self, rng: np.random.Generator) -> Iterator[Array | None]:
        """Yield the global rows of each batch, as the trainer would draw them; None stands for all samples."""
        size = self.trainer.batch_size
        if size is None or size >= len(self.partitions):
            yield None  # a permutation would hold one number per sample in this process
            return
        for block, _, length in blocks(np.arange(len(self.partitions)), None, size, rng):
            for start in range(0, len(block), length):
                yield block[start : start + length]

    def epochs(self, progress: Progress, rng: np.random.Generator, origin: Origin | None = None) -> Iterator[Progress]:
        """Continue a run, and yield its progress after each epoch, as :meth:`rplvq.Trainer.epochs` does."""
        n_epochs = self.trainer.max_epochs

        def epoch(state: State) -> tuple[State, dict[str, float]]:
            began, state = time.perf_counter(), state.at_epoch(state.epoch + 1, n_epochs)
            state, score, n_capped = self.sweep(state, rng)
            return state, history_row(state, score, n_capped, time.perf_counter() - began)

        hooks = hooks_of(self.trainer, self.score, origin=origin)
        return run_epochs(epoch, progress, rng, n_epochs, hooks, self.trainer.verbose)
