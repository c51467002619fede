"""Stochastic Riemannian descent over any manifold, cost and schedules.

    init -> per epoch: one permutation sweep of batches -> connect -> cost -> move

The trainer sees codes, class indices and the two (B, K) arrays between them. It never sees a matrix.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from rplvq.arrays import BLOCK_ROWS, Samples, blocks, materialise, subset, visits
from rplvq.costs import RSLVQ, class_groups
from rplvq.initializers import ClassMeans
from rplvq.parts import all_callable, count_from, library_part
from rplvq.protocols import Array, Cost, Initializer, Manifold, Prototypes, Schedule
from rplvq.schedules import (
    GeometricDecay,
    as_step_rule,
    default_starts,
    initial_evidence,
    is_auto,
    resolve,
    resolve_sigma2,
    wants_default,
)
from rplvq.training._growth import Growth, Window
from rplvq.training._loop import Callback, EarlyStopping, Hook, calling, run_epochs
from rplvq.training._state import Meter, Origin, Progress, Result, Score, State, history_row, measure
from rplvq.training._step import Step, Stepper

__all__ = ["Trainer", "diverged", "require_finite"]


@library_part
@attrs.frozen
class Trainer:
    """The generic stochastic trainer.

    Parameters
    ----------
    manifold : Manifold
        The geometry of samples and prototypes.
    cost : Cost, default=RSLVQ()
        The loss that is minimised.
    initializer : Initializer, default=ClassMeans()
        Chooses the first prototypes.
    sigma2 : float, Schedule, "blended", "half_median" or None, default=None
        Variance of the mixture's components. None is "blended", see :func:`rplvq.schedules.blended_sigma2`;
        "half_median" is half the median squared distance to the initial prototypes.
    step_size : float, Schedule, StepSize, AdaptiveStep, "auto", "adaptive" or None, default=None
        As for :class:`rplvq.RiemannianLVQ`.
    max_epochs : int, default=100
        Number of sweeps over the data.
    batch_size : int or None, default=1
        Number of samples per step; None uses all samples (full batch).
    early_stopping : EarlyStopping, optional
        If validation data are given, stop when their cost no longer falls, and return the best state.
    growth : sequence of callable, default=()
        Rules that add and remove prototypes between epochs, such as :class:`rplvq.Grow`, in this order.
    callbacks : sequence of callable, default=()
        Each is called with an :class:`rplvq.training.EpochReport` after each epoch. Returning True stops training, and
        a mapping of numbers is added to the row of the history.
    n_jobs : int or None, default=None
        Number of threads for the decompositions of large batches on :class:`rplvq.AffineInvariant`; -1 uses all cores.
        The result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar on standard error.

    Examples
    --------
    >>> from rplvq import EuclideanVectors, Trainer
    >>> from rplvq.arrays import Samples
    >>> samples = Samples(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1]))
    >>> trainer, rng = Trainer(EuclideanVectors(), max_epochs=5), np.random.default_rng(0)
    >>> state, history = trainer.run(trainer.init(samples, 2, rng), samples, rng)
    >>> history["training_error"]
    array([0., 0., 0., 0., 0.])
    """

    manifold: Manifold[Any]
    cost: Cost = attrs.field(factory=RSLVQ)
    initializer: Initializer = attrs.field(factory=ClassMeans)
    sigma2: float | Schedule | str | None = None
    step_size: Any = attrs.field(default=None, converter=as_step_rule)
    max_epochs: int = attrs.field(default=100, kw_only=True, validator=count_from(0))
    batch_size: int | None = attrs.field(default=1, kw_only=True, validator=count_from(1, or_none=True))
    early_stopping: EarlyStopping | None = attrs.field(default=None, kw_only=True)
    growth: Sequence[Growth] = attrs.field(default=(), kw_only=True, validator=all_callable)
    callbacks: Sequence[Callback] = attrs.field(default=(), kw_only=True, validator=all_callable)
    n_jobs: int | None = attrs.field(default=None, kw_only=True)
    verbose: int = attrs.field(default=0, kw_only=True)

    def init(self, samples: Samples, n_classes: int, rng: np.random.Generator) -> State:
        """Choose the first prototypes, and resolve both schedules for the data.

        Parameters
        ----------
        samples : Samples
            N samples.
        n_classes : int
            Number of classes C.
        rng : numpy.random.Generator
            Passed to the initializer.

        Returns
        -------
        State
            The state before the first epoch.

        Raises
        ------
        ValueError
            If a class gets no prototype, or if ``sigma2`` or ``step_size`` is neither a positive number nor a schedule
            of such.
        """
        return self.start(*self.first_prototypes(samples, n_classes, rng), samples, n_classes)

    def first_prototypes(self, samples: Samples, n_classes: int, rng: np.random.Generator) -> tuple[Prototypes, Array]:
        """Return K prototypes and their labels (K,), as the initializer chooses them; arguments as for :meth:`init`.

        Raises
        ------
        ValueError
            If a class gets no prototype.
        """
        extra = {} if samples.weights is None else {"sample_weight": samples.weights}
        codes = materialise(type(self.initializer).__call__, samples.codes)
        prototypes, labels = self.initializer(self.manifold, codes, samples.targets, n_classes, rng, **extra)
        if len(class_groups(labels).counts) != n_classes:
            raise ValueError(f"the initializer gave no prototype for class index {n_classes - 1}")
        return prototypes, labels

    def start(self, prototypes: Prototypes, labels: Array, samples: Samples, n_classes: int) -> State:
        """Resolve both schedules for the data and for chosen prototypes.

        Parameters
        ----------
        prototypes, labels : Prototypes and ndarray of int of shape (K,)
            The prototypes with which training starts.
        samples, n_classes
            As for :meth:`init`.

        Returns
        -------
        State
            The state before the first epoch.

        Raises
        ------
        ValueError
            As :meth:`init`; also if ``sigma2`` is a step rule.
        """
        if hasattr(self.sigma2, "update"):
            raise ValueError(f"sigma2={self.sigma2!r} adapts a step size; give sigma2 a number or another schedule")
        evidence = partial(initial_evidence, self.manifold, self.cost, prototypes, labels, samples)
        sigma2, first, rule = resolve_sigma2(self.sigma2, evidence), 1.0, self.step_size
        wanted = getattr(rule, "schedule", rule)
        if wants_default(wanted):
            at_first = sigma2(0, self.max_epochs)
            first, gentle = default_starts(self.manifold, at_first, len(labels), n_classes, samples)
            if is_auto(wanted) and wanted is not None:
                first = min(first, gentle)
        step_size = resolve(wanted, GeometricDecay(first), "step_size")
        memory = step_size.init(prototypes) if hasattr(step_size, "init") else None
        state = State(prototypes, labels, sigma2, step_size, memory=memory)
        return state.at_epoch(0, self.max_epochs)

    def step(self, state: State, samples: Samples) -> Step:
        """Take one step on a batch; all weights are computed before any prototype moves.

        Parameters
        ----------
        state : State
            At its epoch, see :meth:`rplvq.training.State.at_epoch`.
        samples : Samples
            The B samples of the batch.

        Returns
        -------
        Step
            Moved prototypes; distances (B, K) and losses (B,) before the step; how many weights were capped.
        """
        return next(self._stepper.steps(state, samples, len(samples)))

    @property
    def _stepper(self) -> Stepper:
        max_weight = getattr(self.step_size, "max_weight", 1.0)
        n_epochs = max(self.max_epochs, 1)
        return Stepper(self.manifold, self.cost, max_weight, self.max_length, self.n_jobs, n_epochs)

    @property
    def max_length(self) -> float:
        """Longest step, as the manifold says; infinite if it does not say anything."""
        return float(getattr(self.manifold, "max_step_length", np.inf))

    def sweep(self, state: State, samples: Samples, rng: np.random.Generator) -> tuple[State, Score, int]:
        """Visit every sample once, in random order.

        Parameters
        ----------
        state : State
            At its epoch.
        samples : Samples
            N samples; one of weight w is visited ceil(w) times, see :func:`rplvq.training.visits`.
        rng : numpy.random.Generator
            Source of the order.

        Returns
        -------
        state : State
            With the moved prototypes.
        score : Score
            Summed cost and training error as they were met during the sweep.
        n_capped : int
            Number of weights cut and steps shortened.

        Raises
        ------
        FloatingPointError
            If the cost is no longer finite: the step size is too large for sigma2 and the data.
        """
        meter, n_capped, stepper = Meter(state.labels), 0, self._stepper
        rows, weights = visits(len(samples), samples.weights)
        try:
            for block, block_weight, size in blocks(rows, weights, self.batch_size, rng):
                codes = subset(samples.codes, block) if size > BLOCK_ROWS else samples.codes[block]
                part = Samples(codes, samples.targets[block], block_weight)
                state, capped = stepper.block(state, part, size, meter)
                n_capped += capped
            require_finite(state, meter.cost)
        except np.linalg.LinAlgError as error:
            raise diverged(state) from error
        return state, meter.score(), n_capped

    def run(
        self, state: State, samples: Samples, rng: np.random.Generator, validation: Samples | None = None
    ) -> Result:
        """Train for ``max_epochs`` sweeps.

        Parameters
        ----------
        state : State
            From :meth:`init`.
        samples : Samples
            N training samples.
        rng : numpy.random.Generator
            Source of the permutations.
        validation : Samples, optional
            Scored after each epoch.

        Returns
        -------
        Result
            State, and history with the columns epoch, cost, training_error, sigma2, step_size, n_capped, seconds and
            n_prototypes, and with validation data validation_cost and validation_error.

        Raises
        ------
        FloatingPointError
            If training diverges.
        """
        progress = self.begin(state, rng, validation)
        for latest in self.epochs(progress, samples, rng, validation):
            progress = latest
        return progress.result()

    def begin(self, state: State, rng: np.random.Generator, validation: Samples | None = None) -> Progress:
        """Return the progress of a run from ``state`` before its first epoch; arguments as for :meth:`run`."""
        best_cost = np.inf
        if self.early_stopping is not None and validation is not None:
            best_cost = measure(self.manifold, self.cost, state, validation).cost
        return Progress(state, state, best_cost, (), rng.bit_generator.state)

    def epochs(
        self,
        progress: Progress,
        samples: Samples,
        rng: np.random.Generator,
        validation: Samples | None = None,
        origin: Origin | None = None,
    ) -> Iterator[Progress]:
        """Train from where a run stands, epoch by epoch.

        A caller who keeps the last item has a whole epoch in hand, whatever interrupts the next one.

        Parameters
        ----------
        progress : Progress
            From :meth:`begin`, or from a checkpoint; ``rng`` is set to its random state.
        samples, rng, validation
            As for :meth:`run`.
        origin : Origin, optional
            Passed to the callbacks.

        Yields
        ------
        Progress
            After each whole epoch.

        Raises
        ------
        FloatingPointError
            If training diverges.

        Examples
        --------
        >>> from rplvq import EuclideanVectors, Trainer
        >>> from rplvq.arrays import Samples
        >>> samples = Samples(np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1]))
        >>> trainer, rng = Trainer(EuclideanVectors(), max_epochs=3), np.random.default_rng(0)
        >>> start = trainer.begin(trainer.init(samples, 2, rng), rng)
        >>> [progress.state.epoch for progress in trainer.epochs(start, samples, rng)]
        [1, 2, 3]
        """

        def epoch(state: State) -> tuple[State, dict[str, float]]:
            if state.epoch > 0:
                state = self.resize(state, samples, state.epoch)
            return self.sweep_and_record(state.at_epoch(state.epoch + 1, self.max_epochs), samples, rng, validation)

        def score(state: State) -> Score:
            return measure(self.manifold, self.cost, state, samples).score()

        hooks: list[Hook] = [calling(callback, self.max_epochs, score, origin) for callback in self.callbacks]
        if self.early_stopping is not None and validation is not None:
            hooks.insert(0, self.early_stopping)
        return run_epochs(epoch, progress, rng, self.max_epochs, hooks, self.verbose)

    def resize(self, state: State, samples: Samples, sweep: int) -> State:
        """Let the rules of growth add and remove prototypes.

        Parameters
        ----------
        state : State
            After an epoch.
        samples : Samples
            The samples that the rules look at.
        sweep : int
            Number of epochs, or of calls of ``partial_fit``, so far.

        Returns
        -------
        State
            The same if there are no rules, or if no rule changes it.
        """
        if not self.growth:
            return state
        in_memory = Samples(np.asarray(samples.codes), samples.targets, samples.weights)
        window = Window(self.manifold, self.cost, state, in_memory, sweep)
        for rule in self.growth:
            window = rule(window)
        return window.state

    def sweep_and_record(
        self, state: State, samples: Samples, rng: np.random.Generator, validation: Samples | None = None
    ) -> tuple[State, dict[str, float]]:
        """Sweep once; return the new state and the row of the history. Arguments as for :meth:`sweep` and :meth:`run`.

        Raises
        ------
        FloatingPointError
            If training diverges.
        """
        began = time.perf_counter()
        state, score, n_capped = self.sweep(state, samples, rng)
        row = history_row(state, score, n_capped, time.perf_counter() - began)
        if validation is not None:
            found = measure(self.manifold, self.cost, state, validation).score()
            row |= {"validation_cost": found.cost, "validation_error": found.error}
        return state, row


def require_finite(state: State, cost: float) -> None:
    """Raise FloatingPointError if the prototypes or the cost of an epoch are not finite."""
    if not (np.isfinite(np.asarray(state.prototypes)).all() and np.isfinite(cost)):
        raise diverged(state)


def diverged(state: State) -> FloatingPointError:
    """Return the error that says in which epoch training diverged, and what helps."""
    return FloatingPointError(
        f"training diverged in epoch {state.epoch} (step_size {state.step_size:.3g}, sigma2 {state.sigma2:.3g}): "
        "lower step_size, raise sigma2, or leave max_weight at 1"
    )
