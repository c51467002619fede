"""From samples in order to moved prototypes: steps through a block, plain, compiled or of adaptive size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from rplvq.adaptive import adaptive_step
from rplvq.compiled import Kernels, compiled_kernels, connection, decomposes, is_known, run_block
from rplvq.history import Meter
from rplvq.large import is_large, step_by_parts
from rplvq.protocols import Array, Cost, Manifold, Prototypes
from rplvq.steps import State, Step, pair_weights

__all__ = ["Stepper"]


@attrs.frozen
class Stepper:
    """Steps of stochastic descent with given parts and caps.

    Parameters
    ----------
    manifold, cost, max_weight, compiled, n_jobs
        As for :class:`rplvq.Trainer`.
    max_length : float
        Longest step; infinite without a cap.
    n_epochs : int
        Epochs planned, at least 1.
    """

    manifold: Manifold[Any]
    cost: Cost
    max_weight: float | None
    max_length: float
    compiled: bool | str
    n_jobs: int | None
    n_epochs: int

    def steps(
        self, state: State, samples: Array, targets: Array, sample_weight: Array | None, size: int
    ) -> Iterator[tuple[Prototypes, Array, Array, int]]:
        """Step through samples (M, ...) in batches of ``size``, yielding the fields of a Step for each.

        Names are bound once: for one small matrix a step, looking them up is a share of the time that shows.
        """
        cost, move = self.cost, self.manifold.move
        prototypes, labels, sigma2 = state.prototypes, state.labels, state.sigma2
        step_size, max_weight, max_length = state.step_size, self.max_weight, self.max_length
        large = size > 1 and is_large(self.manifold, samples, size, len(labels))
        with connection(self.manifold, size, self.compiled, self.n_jobs) as connect:
            for start in range(0, len(samples), size):
                stop = start + size
                if large:
                    batch = samples if size >= len(samples) else samples[start:stop]
                    weight = None if sample_weight is None else sample_weight[start:stop]
                    before, caps = state._replace(prototypes=prototypes), (max_weight, max_length)
                    step = step_by_parts(self.manifold, cost, before, batch, targets[start:stop], weight, caps, connect)
                    prototypes = step.prototypes
                    yield step[:4]
                    continue
                geodesics = connect(prototypes, samples[start:stop])
                sqdist = geodesics.sqdist
                loss, slope = cost(sqdist, targets[start:stop], labels, sigma2)
                if sample_weight is not None:
                    slope = slope * sample_weight[start:stop, None]
                weights, n_capped = pair_weights(slope, sqdist, step_size, max_weight, max_length)
                prototypes = move(geodesics, weights)
                yield prototypes, sqdist, loss, n_capped

    def adaptive_steps(
        self, state: State, samples: Array, targets: Array, sample_weight: Array | None, size: int
    ) -> Iterator[Step]:
        """Step through samples (M, ...) in batches of ``size``, each step sized by those before it."""
        caps = self.max_weight, self.max_length
        with connection(self.manifold, size, self.compiled, self.n_jobs) as connect:
            for start in range(0, len(samples), size):
                rows = slice(start, start + size)
                weight = None if sample_weight is None else sample_weight[rows]
                batch = samples[rows], targets[rows], weight
                step = adaptive_step(self.manifold, self.cost, state, *batch, self.n_epochs, caps, connect)
                state = state._replace(prototypes=step.prototypes, memory=step.memory)
                yield step

    def block(
        self, state: State, samples: Array, targets: Array, weights: Array | None, size: int, meter: Meter
    ) -> tuple[State, int]:
        """Step through a block in batches of ``size`` and measure what was met on the way."""
        if state.memory is not None:
            state, sqdist, loss, n_capped = self._adaptive_block(state, samples, targets, weights, size)
            meter.add(sqdist, loss, targets, weights)
            return state, n_capped
        kernel = self._kernel(targets, size)
        if kernel is None:
            prototypes, sqdist, loss, n_capped = self._plain_block(state, samples, targets, weights, size)
        else:
            samples = np.asarray(samples)
            caps = np.inf if self.max_weight is None else self.max_weight, self.max_length
            prototypes, sqdist, loss, n_capped = run_block(
                kernel, state.prototypes, samples, targets, weights, state.labels, state.sigma2, state.step_size, caps
            )
        meter.add(sqdist, loss, targets, weights)
        return state._replace(prototypes=prototypes), n_capped

    def _plain_block(
        self, state: State, samples: Array, targets: Array, weights: Array | None, size: int
    ) -> tuple[Prototypes, Array, Array, int]:
        """Return moved prototypes and what the steps met: distances (M, K), losses (M,), weights capped."""
        sqdist, loss = np.empty((len(samples), len(state.labels))), np.empty(len(samples))
        prototypes, n_capped, start = state.prototypes, 0, 0
        for moved, batch_sqdist, batch_loss, capped in self.steps(state, samples, targets, weights, size):
            stop = start + size
            sqdist[start:stop], loss[start:stop] = batch_sqdist, batch_loss
            prototypes, n_capped, start = moved, n_capped + capped, stop
        return prototypes, sqdist, loss, n_capped

    def _adaptive_block(
        self, state: State, samples: Array, targets: Array, weights: Array | None, size: int
    ) -> tuple[State, Array, Array, int]:
        """Like :meth:`_plain_block`, with a state that carries what the steps remember."""
        if self.compiled is True and not decomposes(self.manifold, size):
            raise ValueError(f"compiled=True, but no kernel knows single samples under {state.step_schedule!r}")
        steps = list(self.adaptive_steps(state, samples, targets, weights, size))
        sqdist, loss = (np.concatenate(parts) for parts in zip(*((s.sqdist, s.loss) for s in steps), strict=True))
        last = steps[-1]
        state = state._replace(prototypes=last.prototypes, memory=last.memory, step_size=last.step_size)
        return state, sqdist, loss, sum(s.n_capped for s in steps)

    def _kernel(self, targets: Array, size: int) -> Kernels | None:
        """Return the compiled kernels if they are wanted, there, and know whole steps of these parts."""
        if self.compiled is False:
            return None
        whole = is_known(self.manifold, self.cost, targets, size)
        known = whole or decomposes(self.manifold, size)
        kernel = compiled_kernels() if known else None
        if self.compiled is True and kernel is None:
            why = "numba is not installed: pip install 'rplvq[fast]'" if known else "no kernel knows these parts"
            raise ValueError(f"compiled=True, but {why} ({self.manifold!r}, {self.cost!r}, batches of {size})")
        return kernel if whole else None
