"""Steps of batches too large to be decomposed at once: the same step, from sums over parts of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rplvq import chunks
from rplvq.protocols import Array, Cost, Manifold
from rplvq.samples import NEEDED, adds_up
from rplvq.steps import State, Step, pair_weights, shortened

__all__ = ["is_large", "step_by_parts"]


def is_large(manifold: Manifold[Any], samples: Array, size: int, n_prototypes: int) -> bool:
    """Whether a batch of ``size`` samples is cut: it fills more than LARGE_BLOCKS blocks, and its tangents add up."""
    return adds_up(manifold) and len(_parts(samples, min(size, len(samples)), n_prototypes)) > chunks.LARGE_BLOCKS


def _parts(samples: Array, size: int, n_prototypes: int) -> list[slice]:
    numbers = int(np.prod(samples.shape[1:])) * n_prototypes
    return list(chunks.block_slices(size, NEEDED * numbers * max(samples.dtype.itemsize, 8)))


def step_by_parts(
    manifold: Any,
    cost: Cost,
    state: State,
    samples: Array,
    targets: Array,
    sample_weight: Array | None,
    caps: tuple[float | None, float],
    connect: Callable[[Any, Array], Any],
) -> Step:
    """Take one step on a batch (B, ...), part by part.

    Parameters
    ----------
    manifold, cost
        The parts of training.
    state : State
        Before the step.
    samples, targets, sample_weight
        The batch: (B, ...), (B,) or (B, C), and (B,) or None.
    caps : tuple of (float or None) and float
        On the weight of a pair, and on the length of a step.
    connect : callable
        The manifold's ``connect``, perhaps compiled.

    Returns
    -------
    Step
        What :meth:`rplvq.Trainer.step` returns for the whole batch, up to rounding.
    """
    n_samples, max_length = len(targets), caps[1]
    sqdist, loss = np.empty((n_samples, len(state.labels))), np.empty(n_samples)
    lengths, tangents, n_capped = np.zeros(len(state.labels)), np.zeros(1), 0
    for rows in _parts(samples, n_samples, len(state.labels)):
        geodesics = connect(state.prototypes, samples[rows])
        sqdist[rows] = geodesics.sqdist
        loss[rows], slope = cost(geodesics.sqdist, targets[rows], state.labels, state.sigma2)
        if sample_weight is not None:
            slope = slope * sample_weight[rows, None]
        weights, capped = pair_weights(slope, geodesics.sqdist, state.step_size, caps[0], np.inf)
        weights = weights * (len(weights) / n_samples)  # the batch is longer than this part of it
        n_capped += capped
        lengths += np.sum(np.abs(weights) * np.sqrt(geodesics.sqdist), axis=0)
        tangents = tangents + manifold.pull(geodesics, weights)
    tangents, n_shortened = shortened(tangents, lengths, max_length)
    return Step(manifold.exp(state.prototypes, tangents), sqdist, loss, n_capped + n_shortened)
