"""Chooses between compiled steps and those of NumPy and LAPACK."""

from typing import Any, NamedTuple

import numpy as np

from rplvq.arrays import Samples
from rplvq.capabilities import Compilable, provides
from rplvq.parts import kernel_of
from rplvq.protocols import Cost
from rplvq.training._state import Meter, State
from rplvq.training.compiled._batches import decomposes
from rplvq.training.compiled._blocks import CONSTANT, PACES, rules_of
from rplvq.training.compiled._build import Kernels, compiled_kernels
from rplvq.training.compiled._costs import Rules
from rplvq.training.compiled._runs import is_due, run_block


class CompiledSteps(NamedTuple):
    """Compiled steps for the parts of one fit: kernels, and the rules by which they weigh and pace the steps."""

    kernels: Kernels
    rules: Rules
    manifold: Any
    n_epochs: int  # number of epochs planned, at least 1

    def take(self, state: State, samples: Samples, meter: Meter) -> tuple[State, int]:
        """Take one step per sample of a block; return the new state and the number of caps.

        Losses and errors before each step are added to ``meter``. A step rule interrupts the steps to measure.
        """
        rule: Any = state.step_schedule  # a StepRule if there is a memory
        total = 0
        start = 0
        while start < len(samples):
            memory = state.memory
            stop = len(samples)
            if memory is not None:
                self.rules.pace[:], until = rule.pace(memory, state.epoch, self.n_epochs)
                stop = min(stop, start + until)
            part = samples if stop - start == len(samples) else samples.at(slice(start, stop))
            prototypes, sqdist, loss, n_capped = run_block(
                self.kernels, self.manifold, state.prototypes, part, self.rules
            )
            state = state._replace(prototypes=prototypes)
            if memory is not None:
                memory, step_size = rule.after(memory, self.rules.pace, stop - start)
                state = state._replace(memory=rule.observe(memory, self.manifold, prototypes), step_size=step_size)
            meter.add(sqdist, loss, part)
            total += n_capped
            start = stop
        return state, total


def compiled_steps(
    manifold: Any,
    cost: Cost,
    state: State,
    samples: Samples,
    size: int,
    caps: tuple[float | None, float],
    n_epochs: int,
) -> CompiledSteps | None:
    """Return compiled steps for a block of samples if they are wanted, available and faster for these parts; else None.

    Steps take ``size`` samples each. ``caps`` are the cap on the weight of a pair, which may be None, and the longest
    step. ``n_epochs`` epochs are planned, at least 1. ValueError is raised if compiled steps are demanded
    (``compiled=True``), and these parts have none.
    """
    want = manifold.compiled if provides(manifold, Compilable) else "auto"
    rules = None if want is False else _rules(manifold, cost, state, samples, size, caps)
    known = rules is not None or (want is not False and decomposes(manifold, size))
    kernels = compiled_kernels() if known else None
    if want is True and kernels is None:
        unusable = "numba is not installed: pip install '.[fast]' in the folder of rplvq, or cannot be used"
        why = unusable if known else "no kernel knows these parts"
        raise ValueError(
            f"compiled=True, but {why} ({manifold!r}, {cost!r}, {state.step_schedule!r}, batches of {size})"
        )
    if rules is None or kernels is None:
        return None
    if want is True or is_due(manifold, samples.codes, len(state.labels)):
        return CompiledSteps(kernels, rules, manifold, n_epochs)
    return None


def _rules(
    manifold: Any, cost: Cost, state: State, samples: Samples, size: int, caps: tuple[float | None, float]
) -> Rules | None:
    """Return the rules of compiled steps, or None if these parts have no kernel that takes whole steps."""
    if size != 1 or (state.memory is not None and kernel_of(state.step_schedule, "update", "observe") not in PACES):
        return None
    limits = np.inf if caps[0] is None else caps[0], caps[1]
    pace = state.step_size, *CONSTANT
    return rules_of(manifold, cost, samples.targets, state.labels, state.sigma2, limits, pace)
