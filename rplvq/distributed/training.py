"""One step over partitions: prototypes go out, summed tangents come back, one ``exp`` moves them.

A worker evaluates ``connect -> cost -> pull`` on its share of the batch and returns K tangents, K path lengths, and
the sums of losses and errors: ``8 K (n^2 + 1)`` bytes, whatever its number of samples.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.distributed.partitions import Block, Partitions
from rplvq.epochs import epoch_by_epoch
from rplvq.history import Meter, Score, line, measure
from rplvq.progress import Origin, Progress
from rplvq.protocols import Array, Cost, Manifold, Prototypes
from rplvq.steps import Result, State, pair_weights, shortened
from rplvq.sweeps import blocks
from rplvq.trainer import Trainer

__all__ = ["DistributedTrainer"]


class Share(NamedTuple):
    """What one block contributes to a step."""

    tangents: Array | float  # (K, ...) sums of weighted logarithms
    lengths: Array | float  # (K,) sums of |weight| distance, which bound the step
    cost: float
    wrong: float
    n_samples: int
    n_capped: int


def share_of(
    block: Block,
    manifold: Any,
    cost: Cost,
    prototypes: Prototypes,
    labels: Array,
    sigma2: float,
    step_size: float,
    max_weight: float | None,
    rows: Array | None,
) -> Share:
    """Evaluate a block's share of a step; ``rows`` (M,) of the block take part, or all of them."""
    codes, targets = (block.codes, block.targets) if rows is None else (block.codes[rows], block.targets[rows])
    if not len(codes):
        return Share(0.0, 0.0, 0.0, 0.0, 0, 0)
    geodesics = manifold.connect(prototypes, codes)
    loss, slope = cost(geodesics.sqdist, targets, labels, sigma2)
    weights, n_capped = pair_weights(slope, geodesics.sqdist, step_size, max_weight, np.inf)
    weights = weights * len(codes)  # the batch is longer than this share of it
    meter = Meter(labels)
    meter.add(geodesics.sqdist, loss, targets, None)
    lengths = np.sum(np.abs(weights) * np.sqrt(geodesics.sqdist), axis=0)
    return Share(manifold.pull(geodesics, weights), lengths, meter.cost, meter.wrong, len(codes), n_capped)


def score_of(
    block: Block, manifold: Manifold[Any], cost: Cost, prototypes: Prototypes, labels: Array, sigma2: float
) -> tuple[float, float]:
    """Sum up the losses and errors of a block."""
    meter = measure(manifold, cost, prototypes, labels, sigma2, block.codes, block.targets)
    return meter.cost, meter.wrong


@attrs.frozen(eq=False)
class DistributedTrainer:
    """The trainer's steps over partitions, with the same batches and the same caps.

    Parameters
    ----------
    trainer : Trainer
        Parts, schedules, batch size, caps, callbacks.
    partitions : Partitions
        Where the samples are.
    """

    trainer: Trainer
    partitions: Partitions

    def step(self, state: State, rows: Array | None) -> tuple[State, Share]:
        """Take one step on global rows (B,), or on all samples: the new state, and what was met before the step."""
        trainer, manifold = self.trainer, self.trainer.manifold
        own: list[tuple[Array | None]] = [(None,)] * len(self.partitions.blocks)
        if rows is not None:
            own = [(part,) for part in self.partitions.split(np.sort(rows))]
        shared = (manifold, trainer.cost, state.prototypes, state.labels, state.sigma2, state.step_size)
        shares = self.partitions.map(share_of, *shared, trainer.max_weight, each=own)
        total = Share(*(sum(values) for values in zip(*shares, strict=True)))
        tangents, lengths = np.asarray(total.tangents) / total.n_samples, np.asarray(total.lengths) / total.n_samples
        tangents, n_shortened = shortened(tangents, lengths, trainer.max_length)
        moved = manifold.exp(state.prototypes, tangents)  # type: ignore[attr-defined]
        return state._replace(prototypes=moved), total._replace(n_capped=total.n_capped + n_shortened)

    def sweep(self, state: State, rng: np.random.Generator) -> tuple[State, Score, int]:
        """Visit every sample once, as :meth:`rplvq.Trainer.sweep` does.

        Raises
        ------
        FloatingPointError
            If the cost is no longer finite.
        """
        cost = wrong = 0.0
        n_capped = 0
        try:
            for rows in self._batches(rng):
                state, share = self.step(state, rows)
                cost, wrong, n_capped = cost + share.cost, wrong + share.wrong, n_capped + share.n_capped
            self.trainer._require_finite(state, cost)
        except np.linalg.LinAlgError as error:
            raise self.trainer._diverged(state) from error
        return state, Score(cost, wrong / len(self.partitions)), n_capped

    def _batches(self, rng: np.random.Generator) -> Any:
        """Global rows of each batch: those that the trainer would draw."""
        size = self.trainer.batch_size
        if size is None or size >= len(self.partitions):
            yield None  # needs no permutation, which would hold a number for every sample here
            return
        for block, _, length in blocks(np.arange(len(self.partitions)), None, size, rng):
            for start in range(0, len(block), length):
                yield block[start : start + length]

    def run(self, state: State, rng: np.random.Generator) -> Result:
        """Train for ``max_epochs`` sweeps; the history has the columns of :meth:`rplvq.Trainer.run`."""
        progress = self.begin(state, rng)
        for latest in self.epochs(progress, rng):
            progress = latest
        return progress.result()

    def begin(self, state: State, rng: np.random.Generator) -> Progress:
        """Return where a run from ``state`` stands before its first epoch."""
        rows = (self._row(state, None, 0, 0.0),) if self.trainer.monitor == "epoch" else ()
        return Progress(state, state, np.inf, rows, rng.bit_generator.state)

    def epochs(self, progress: Progress, rng: np.random.Generator, origin: Origin | None = None) -> Iterator[Progress]:
        """Train from where a run stands, epoch by epoch, as :meth:`rplvq.Trainer.epochs` does."""
        trainer = self.trainer
        return epoch_by_epoch(
            lambda state: self._sweep_and_record(state, rng),
            progress,
            rng,
            trainer.max_epochs,
            callbacks=trainer.callbacks,
            verbose=trainer.verbose,
            origin=origin,
        )

    def _sweep_and_record(self, state: State, rng: np.random.Generator) -> tuple[State, dict[str, float]]:
        began = time.perf_counter()
        state, score, n_capped = self.sweep(state, rng)
        return state, self._row(state, score, n_capped, time.perf_counter() - began)

    def _row(self, state: State, score: Score | None, n_capped: int, seconds: float) -> dict[str, float]:
        if score is None or self.trainer.monitor == "epoch":
            shared = (self.trainer.manifold, self.trainer.cost, state.prototypes, state.labels, state.sigma2)
            found = self.partitions.map(score_of, *shared)
            cost, wrong = (sum(values) for values in zip(*found, strict=True))
            score = Score(cost, wrong / len(self.partitions))
        return line(state, score, n_capped, seconds)
