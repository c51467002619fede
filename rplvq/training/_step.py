"""The steps of stochastic descent on a block of samples.

Every step connects the batch to the prototypes, evaluates the cost, turns its slope into weights, and moves the
prototypes. A batch that is too large to be decomposed at once, or that lies on several machines, is evaluated part by
part (:func:`contribution`); the results are added up, and one ``exp`` moves the prototypes (:func:`follow`).
"""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.arrays import LARGE_BLOCKS, Samples, parts_of_batch
from rplvq.capabilities import Bounded, provides
from rplvq.costs import evaluate
from rplvq.manifolds import is_additive
from rplvq.protocols import AnyManifold, Array, Cost, Prototypes
from rplvq.training._state import Meter, State
from rplvq.training.compiled import Connect, compiled_steps, connection


class Step(NamedTuple):
    """The prototypes after one step, the distances and losses before it, and what was cut."""

    prototypes: Prototypes
    sqdist: Array  # (B, K), before the step
    loss: Array  # (B,), before the step
    n_capped: int  # weights that were cut, plus prototypes whose step was shortened
    memory: object = None  # memory of a step rule
    step_size: float = np.nan


class Contribution(NamedTuple):
    """The result of :func:`contribution`; the first three fields add up over the parts of a batch."""

    tangents: Array  # (K, ...), sums of weighted logarithms
    lengths: Array  # (K,), sums of |weight| distance, which bound the length of the step
    n_capped: int
    sqdist: Array  # (M, K)
    loss: Array  # (M,)


def longest_step(manifold: AnyManifold) -> float:
    """Return the field ``max_step_length`` of a manifold; infinite if it has none."""
    return float(manifold.max_step_length) if provides(manifold, Bounded) else math.inf


def step_lengths(weights: Array, sqdist: Array) -> Array:
    """Return the sum of ``|weight| distance`` over the samples, shape (K,), which bounds the length of each step."""
    return np.asarray(np.sum(np.abs(weights) * np.sqrt(sqdist), axis=0))


def pair_weights(
    slope: Array, sqdist: Array, step_size: float, max_weight: float | None, max_length: float,
    n_batch: int | None = None,
) -> tuple[Array, int]:  # fmt: skip
    """Turn slopes (M, K) into the weights ``2 step_size slope / B`` of the logarithms, with two caps.

    M is B, unless the samples are a part of a batch of ``n_batch`` samples. A weight of 1 moves a prototype to the
    sample, and more is never useful. Weights are therefore cut to ``max_weight min(B, K) / B``: about B / K samples of
    a batch are those of one prototype, and together they then move it at most to their mean. After that the weights of
    each prototype are scaled so that the sum of ``|weight| distance``, which bounds the length of its step, is at most
    ``max_length``. Returns the weights (M, K), and the number of weights that were cut plus the number of prototypes
    whose step was shortened.
    """
    n_batch = n_batch or len(slope)
    weights = slope * (2.0 * step_size)
    if n_batch > 1 and max_weight is not None:
        max_weight *= min(n_batch, slope.shape[1])
    n_capped = 0
    # Two cheap upper bounds show that most steps need neither cap; only otherwise the exact values are computed.
    norm = float(np.vdot(weights, weights))
    reach = len(weights) * norm * math.sqrt(np.vdot(sqdist, sqdist))
    if max_weight is not None and norm > max_weight * max_weight:
        n_capped = int(np.count_nonzero(np.abs(weights) > max_weight))
        weights = np.clip(weights, -max_weight, max_weight)
    if n_batch > 1:
        weights = weights / n_batch
    if reach > max_length * max_length:
        lengths = step_lengths(weights, sqdist)
        n_capped += int(np.count_nonzero(lengths > max_length))
        weights = weights * (max_length / np.maximum(lengths, max_length))
    return weights, n_capped


def gradient_norm(slope: Array, sqdist: Array) -> float:
    """Return a bound on the gradient's norm, from slopes and squared distances (B, K); the norm itself for B = 1."""
    norms = step_lengths(slope, sqdist) * (2.0 / len(slope))
    return math.sqrt(np.vdot(norms, norms))


def contribution(
    manifold: Any, cost: Cost, state: State, part: Samples, max_weight: float | None, n_batch: int,
    connect: Connect | None = None,
) -> Contribution:  # fmt: skip
    """Evaluate a part of M samples of a batch of ``n_batch`` samples, on a manifold with ``pull`` and ``exp``.

    ``connect`` may replace ``manifold.connect`` by a faster function with the same result.
    """
    geodesics = (connect or manifold.connect)(state.prototypes, part.codes)
    sqdist = geodesics.sqdist
    loss, slope = evaluate(cost, sqdist, part.targets, state.labels, state.sigma2)
    if part.weights is not None:
        slope = slope * part.weights[:, None]
    weights, n_capped = pair_weights(slope, sqdist, state.step_size, max_weight, np.inf, n_batch)
    return Contribution(manifold.pull(geodesics, weights), step_lengths(weights, sqdist), n_capped, sqdist, loss)


def follow(
    manifold: Any, prototypes: Prototypes, tangents: Array, lengths: Array, max_length: float
) -> tuple[Prototypes, int]:
    """Move prototypes along summed tangents (K, ...), shortened where their lengths (K,) exceed ``max_length``.

    Returns the moved prototypes, and the number of prototypes whose step was shortened.
    """
    n_shortened = int(np.count_nonzero(lengths > max_length))
    if n_shortened:
        scale = max_length / np.maximum(lengths, max_length)
        tangents = tangents * scale.reshape(-1, *[1] * (tangents.ndim - 1))
    return manifold.exp(prototypes, tangents), n_shortened


@attrs.frozen
class Stepper:
    """Takes the steps of stochastic descent for given parts."""

    manifold: AnyManifold
    cost: Cost
    max_weight: float | None  # cap on the weight of a pair
    max_length: float  # longest step; infinite without a cap
    n_jobs: int | None
    n_epochs: int  # number of epochs planned, at least 1

    def steps(self, state: State, samples: Samples, size: int) -> Iterator[Step]:
        """Take one step per batch of ``size`` samples, and yield every step."""
        # Attributes are looked up before the loop, because that takes a noticeable share of a step on a small matrix.
        codes = samples.codes
        targets = samples.targets
        sample_weight = samples.weights
        cost = self.cost
        move = self.manifold.move
        max_weight = self.max_weight
        max_length = self.max_length
        rule: Any = state.step_schedule  # a StepRule if there is a memory
        prototypes = state.prototypes
        labels = state.labels
        sigma2 = state.sigma2
        step_size = state.step_size
        memory = state.memory
        # A step rule needs the gradient of the whole batch before the weights, so it cannot work part by part.
        large = size > 1 and memory is None and self._is_large(codes, size, len(labels))
        batches = connection(self.manifold, size, self.n_jobs) if size > 1 else nullcontext(self.manifold.connect)
        with batches as connect:
            for start in range(0, len(codes), size):
                stop = start + size
                if large:
                    batch = samples if size >= len(codes) else samples.at(slice(start, stop))
                    step = self._step_by_parts(state._replace(prototypes=prototypes), batch, connect)
                    prototypes = step.prototypes
                    yield step
                    continue
                geodesics = connect(prototypes, codes[start:stop])
                sqdist = geodesics.sqdist
                loss, slope = evaluate(cost, sqdist, targets[start:stop], labels, sigma2)
                if sample_weight is not None:
                    slope = slope * sample_weight[start:stop, None]
                if memory is not None:
                    memory, step_size = rule.update(memory, gradient_norm(slope, sqdist), state.epoch, self.n_epochs)
                weights, n_capped = pair_weights(slope, sqdist, step_size, max_weight, max_length)
                prototypes = move(geodesics, weights)
                if memory is not None:
                    memory = rule.observe(memory, self.manifold, prototypes)
                yield Step(prototypes, sqdist, loss, n_capped, memory, step_size)

    def _is_large(self, codes: Array, size: int, n_prototypes: int) -> bool:
        """Whether batches of ``size`` samples are evaluated in parts: they fill many blocks, and tangents add up."""
        size = min(size, len(codes))
        return is_additive(self.manifold) and len(parts_of_batch(codes, size, n_prototypes)) > LARGE_BLOCKS

    def _step_by_parts(self, state: State, batch: Samples, connect: Connect) -> Step:
        """Take one step on a batch (B, ...) part by part; the result is the same up to rounding."""
        n_batch = len(batch.targets)
        sqdist = np.empty((n_batch, len(state.labels)))
        loss = np.empty(n_batch)
        lengths = np.zeros(len(state.labels))
        tangents = np.zeros(1)
        n_capped = 0
        for rows in parts_of_batch(batch.codes, n_batch, len(state.labels)):
            part = contribution(self.manifold, self.cost, state, batch.at(rows), self.max_weight, n_batch, connect)
            sqdist[rows] = part.sqdist
            loss[rows] = part.loss
            tangents = tangents + part.tangents
            lengths = lengths + part.lengths
            n_capped += part.n_capped
        moved, n_shortened = follow(self.manifold, state.prototypes, tangents, lengths, self.max_length)
        return Step(moved, sqdist, loss, n_capped + n_shortened, None, state.step_size)

    def block(self, state: State, samples: Samples, size: int, meter: Meter) -> tuple[State, int]:
        """Take the steps on samples in batches of ``size``; return the new state and the number of weights cut.

        Losses and errors before each step are added to ``meter``.
        """
        caps = self.max_weight, self.max_length
        compiled = compiled_steps(self.manifold, self.cost, state, samples, size, caps, self.n_epochs)
        if compiled is not None:
            return compiled.take(state, samples, meter)
        sqdist = np.empty((len(samples), len(state.labels)))
        loss = np.empty(len(samples))
        n_capped = 0
        start = 0
        for step in self.steps(state, samples, size):
            stop = start + size
            sqdist[start:stop] = step.sqdist
            loss[start:stop] = step.loss
            n_capped += step.n_capped
            start = stop
        meter.add(sqdist, loss, samples)
        return state._replace(prototypes=step.prototypes, memory=step.memory, step_size=step.step_size), n_capped
