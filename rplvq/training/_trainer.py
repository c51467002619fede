"""Stochastic Riemannian descent for any manifold, cost and schedules.

    init -> per epoch: one sweep over a permutation of the samples, batch by batch -> connect -> cost -> move

The trainer sees codes, class indices and the two (B, K) arrays between them. It never sees a matrix.
"""

import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import attrs
import numpy as np

from rplvq.arrays import (
    BLOCK_ROWS,
    Samples,
    blocks,
    check_prototypes,
    materialise,
    matrix_size,
    single_blas_thread,
    subset,
    visits,
)
from rplvq.capabilities import Capped, StepOfShare, WithSchedule, provides
from rplvq.costs import RSLVQ
from rplvq.initializers import ClassMeans
from rplvq.parts import MANIFOLD_METHODS, by_name, callables, count_from, library_part, offers, plain, require_jobs
from rplvq.protocols import AnyManifold, Array, Cost, Initializer, Prototypes, Schedule
from rplvq.schedules import (
    ShareStep,
    as_step_rule,
    initial_evidence,
    is_auto,
    median_sqdist,
    paper_start,
    resolve_sigma2,
    resolve_step_size,
    step_of_share,
)
from rplvq.training._growth import Growth
from rplvq.training._loop import Callback, EarlyStopping, diverged, hooks_of, require_finite, run_epochs
from rplvq.training._resize import Window, new_codes
from rplvq.training._state import Meter, Origin, Progress, Result, Score, State, history_row, measure, validation_row
from rplvq.training._step import Step, Stepper, longest_step
from rplvq.training.compiled import Decision, one_decision

FEW_SAMPLES = 100
"""So many samples suffice for the median squared distance, above which sigma2 makes steps shorter."""


@library_part
@attrs.frozen
class Trainer:
    """The stochastic trainer that runs under every estimator.

    Parameters
    ----------
    manifold : Manifold
        The geometry of samples and prototypes.
    cost : Cost, default=RSLVQ()
        The loss that is minimised.
    initializer : Initializer, default=ClassMeans()
        The choice of the first prototypes.
    sigma2 : float, Schedule, "auto" or "half_median", default="auto"
        Variance of the mixture's components. "auto" is :func:`rplvq.schedules.blended_sigma2`, and "half_median" is
        half the median squared distance to the initial prototypes.
    step_size : float, Schedule, Share, StepSize, AdaptiveStep, "auto" or "paper", default="auto"
        As for :class:`rplvq.RiemannianLVQ`, like all parameters below.
    max_epochs : int, default=20
        Number of sweeps over the data.
    batch_size : int or None, default=1
        Number of samples per step; None uses all samples (full batch).
    early_stopping : EarlyStopping, optional
        Used if validation data are given; it then selects the best state.
    growth, callbacks : sequence of callable, default=()
        Rules of growth are called before each epoch except the first, and callbacks after each epoch, in their order.
    n_jobs : int or None, default=None
        Number of threads that decompose large batches.
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

    manifold: AnyManifold = attrs.field(validator=offers("a Manifold", *MANIFOLD_METHODS))
    cost: Cost = attrs.field(factory=RSLVQ, validator=offers("a Cost", "__call__"))
    initializer: Initializer = attrs.field(factory=ClassMeans, validator=offers("an Initializer", "__call__"))
    sigma2: float | Schedule | str | None = "auto"
    step_size: Any = attrs.field(default="auto", converter=as_step_rule)
    max_epochs: int = attrs.field(default=20, kw_only=True, converter=plain, validator=count_from(0))
    batch_size: int | None = attrs.field(
        default=1, kw_only=True, converter=plain, validator=count_from(1, or_none=True)
    )
    early_stopping: EarlyStopping | None = attrs.field(
        default=None, kw_only=True, validator=offers("an EarlyStopping", "__call__", or_none=True)
    )
    growth: Sequence[Growth] = attrs.field(default=(), kw_only=True, validator=by_name(callables))
    callbacks: Sequence[Callback] = attrs.field(default=(), kw_only=True, validator=by_name(callables))
    n_jobs: int | None = attrs.field(default=None, kw_only=True, converter=plain, validator=by_name(require_jobs))
    verbose: int = attrs.field(default=0, kw_only=True)

    def init(self, samples: Samples, n_classes: int, rng: np.random.Generator) -> State:
        """Return the state before the first epoch: the first prototypes, and both schedules resolved for the data.

        The samples have ``n_classes`` classes, and ``rng`` is passed to the initializer. ValueError is raised if a
        class gets no prototype, or if ``sigma2`` or ``step_size`` is neither a positive number nor a schedule of such
        numbers. A schedule of the step size may also give 0.
        """
        with single_blas_thread(matrix_size(samples.codes)):
            return self.start(*self.first_prototypes(samples, n_classes, rng), samples, n_classes)

    def first_prototypes(self, samples: Samples, n_classes: int, rng: np.random.Generator) -> tuple[Prototypes, Array]:
        """Return K prototypes of the initializer, sorted by label, and their labels (K,); see :meth:`init`."""
        extra = {} if samples.weights is None else {"sample_weight": samples.weights}  # need not be known otherwise
        codes = materialise(type(self.initializer).__call__, samples.codes)
        answer = self.initializer(self.manifold, codes, samples.targets, n_classes, rng, **extra)
        return by_class(*check_prototypes(answer, samples.codes.shape[1:], n_classes))

    def start(
        self, prototypes: Prototypes, labels: Array, samples: Samples, n_classes: int, *,
        n_samples: float | None = None, is_bounded: bool = True,
    ) -> State:  # fmt: skip
        """Return what :meth:`init` does, but for given prototypes with labels (K,); the state has them sorted by label.

        ``n_samples`` is the number of samples that will train, if ``samples`` are only a part of them. If
        ``is_bounded``, steps become shorter where sigma2 is above the median squared distance of these samples; the
        first samples of a stream do not tell how far later ones are. ValueError is raised as by :meth:`init`, also if
        ``sigma2`` is a step rule.
        """
        if hasattr(self.sigma2, "observe"):
            raise ValueError(f"sigma2={self.sigma2!r} adapts a step size; give sigma2 a number or another schedule")
        prototypes, labels = by_class(prototypes, labels)
        evidence = cache(partial(initial_evidence, self.manifold, self.cost, prototypes, labels, samples))
        sigma2 = resolve_sigma2(self.sigma2, evidence)
        n_total = n_samples or samples.total_weight
        batch = max(min(self.batch_size or n_total, n_total), 1.0)

        def of_share(share: Schedule) -> ShareStep:
            steps = step_of_share(share, sigma2, self.cost, self.max_epochs, evidence)
            median = 0.0
            if is_bounded and self.max_epochs > 0:
                median = median_sqdist(self.manifold, prototypes, samples, FEW_SAMPLES)
            median = median or np.inf  # it is also 0 if most samples are at their prototypes
            return attrs.evolve(steps, batch=batch, limit=min(len(labels) / batch, 1.0), median=median)

        paper = partial(paper_start, self.manifold, len(labels), n_classes, samples)
        step_size = resolve_step_size(self.step_schedule, self.max_epochs, n_total / len(labels), of_share, paper)
        memory = step_size.init(prototypes) if hasattr(step_size, "init") else None  # of a step rule
        return State(prototypes, labels, sigma2, step_size, memory=memory).at_epoch(0, self.max_epochs)

    def step(self, state: State, samples: Samples) -> Step:
        """Return the result of one step on a batch: moved prototypes, distances (B, K) and losses (B,) before the step.

        The ``state`` is at its epoch (see :meth:`rplvq.training.State.at_epoch`), and ``samples`` are the whole batch.
        """
        with single_blas_thread(matrix_size(samples.codes)):
            return next(self._stepper(state).steps(state, samples, len(samples)))

    def _stepper(self, state: State) -> Stepper:
        caps = self.max_weight(state), self.max_length
        return Stepper(self.manifold, self.cost, *caps, self.n_jobs, max(self.max_epochs, 1))

    @property
    def step_schedule(self) -> object:
        """What the user gave as step size: a step rule, or the ``schedule`` of a :class:`rplvq.schedules.StepSize`."""
        return self.step_size.schedule if provides(self.step_size, WithSchedule) else self.step_size

    def max_weight(self, state: State) -> float | None:
        """Return the cap on weights in a state, None for no cap: the share itself, or the cap of a step size."""
        if provides(state.step_schedule, StepOfShare):
            return float(state.step_schedule.largest_weight(state.step_size, state.sigma2))
        if not provides(self.step_size, Capped):
            return 1.0
        return None if self.step_size.max_weight is None else float(self.step_size.max_weight)

    @property
    def leaves_step(self) -> bool:
        """Whether the step size is left to the library."""
        return is_auto(self.step_schedule)

    @property
    def max_length(self) -> float:
        """The field ``max_step_length`` of the manifold; infinite if it has none."""
        return longest_step(self.manifold)

    def sweep(self, state: State, samples: Samples, rng: np.random.Generator) -> tuple[State, Score, int]:
        """Visit all samples in the random order of ``rng``; if the step size is 0, only measure cost and error.

        The ``state`` is at its epoch. Of the ``samples``, one of weight w is visited ceil(w) times, see
        :func:`rplvq.arrays.visits`. FloatingPointError is raised if the cost is no longer finite, because the step size
        is too large for sigma2 and the data.

        Returns
        -------
        state : State
            The state with the moved prototypes.
        score : Score
            Cost and training error as they were met during the sweep, before each step.
        n_capped : int
            Number of weights cut and steps shortened.
        """
        with single_blas_thread(matrix_size(samples.codes)):
            if state.rests:
                score = measure(self.manifold, self.cost, state, samples).score()
                require_finite(state, score.cost)
                return state, score, 0
            meter = Meter(state.labels)
            n_capped = 0
            stepper = self._stepper(state)
            rows, weights = visits(len(samples), samples.weights)
            try:
                for block, block_weight, size in blocks(rows, weights, self.batch_size, rng):
                    # A large batch is read in parts.
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
        """Train for ``max_epochs`` sweeps over samples, in the order of ``rng``, from a ``state`` of :meth:`init`.

        The samples ``validation`` are scored after each epoch. FloatingPointError is raised if training diverges.

        Returns
        -------
        Result
            The final state, and the history with the columns epoch, cost, training_error, sigma2, step_size, n_capped,
            seconds and n_prototypes, and for validation data validation_cost and validation_error.
        """
        with single_blas_thread(matrix_size(samples.codes)):
            progress = self.begin(state, rng, validation)
            for latest in self.epochs(progress, samples, rng, validation):
                progress = latest
        return progress.result()

    def begin(self, state: State, rng: np.random.Generator, validation: Samples | None = None) -> Progress:
        """Return the progress before the first epoch of a run, whose arguments are described at :meth:`run`."""
        best_cost = np.inf
        if self.early_stopping is not None and validation is not None:
            best_cost = measure(self.manifold, self.cost, state, validation).cost
        return Progress(state, state, best_cost, (), rng.bit_generator.state)

    def epochs(
        self, progress: Progress, samples: Samples, rng: np.random.Generator, validation: Samples | None = None,
        origin: Origin | None = None,
    ) -> Iterator[Progress]:  # fmt: skip
        """Continue a run epoch by epoch; if an epoch is interrupted, the caller still has the progress before it.

        The ``progress`` is that of :meth:`begin` or of a checkpoint, and ``rng`` is set to its random state. ``origin``
        is passed to the callbacks. All else is as for :meth:`run`.

        Yields
        ------
        Progress
            The progress after each complete epoch.

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
        decision = Decision(samples.n_visits * self.max_epochs, self.verbose)

        def epoch(state: State) -> tuple[State, dict[str, float]]:
            with single_blas_thread(matrix_size(samples.codes)), one_decision(decision):
                if state.epoch > 0:  # the first prototypes have not been tried yet
                    state = self.resize(state, samples, state.epoch)
                return self.sweep_and_record(state.at_epoch(state.epoch + 1, self.max_epochs), samples, rng, validation)

        def score(state: State) -> Score:
            return measure(self.manifold, self.cost, state, samples).score()

        hooks = hooks_of(self, score, validation, origin)
        return run_epochs(epoch, progress, rng, self.max_epochs, hooks, self.verbose)

    def resize(self, state: State, samples: Samples, sweep: int) -> State:
        """Return the state after the rules of growth have added and removed prototypes; they look at ``samples``.

        ``sweep`` is the number of epochs so far; a call of ``partial_fit`` counts as one. TypeError is raised if a rule
        does not return a window.
        """
        if not self.growth:
            return state
        in_memory = Samples(np.asarray(samples.codes), samples.targets, samples.weights)  # rules index in any way
        window = Window(self.manifold, self.cost, state, in_memory, sweep)
        for index, rule in enumerate(self.growth):
            window = rule(window)
            if not isinstance(window, Window):
                raise TypeError(f"growth[{index}]={rule!r} must return a Window, got {window!r}")
        return window.state

    def sweep_and_record(
        self, state: State, samples: Samples, rng: np.random.Generator, validation: Samples | None = None
    ) -> tuple[State, dict[str, float]]:
        """Return the new state and the row of the history after one :meth:`sweep`; arguments as for :meth:`run`."""
        began = time.perf_counter()
        state, score, n_capped = self.sweep(state, samples, rng)
        row = history_row(state, score, n_capped, time.perf_counter() - began)
        if validation is not None:
            row |= validation_row(measure(self.manifold, self.cost, state, validation).score())
        return state, row


def by_class(prototypes: Prototypes, labels: Array) -> tuple[Prototypes, Array]:
    """Return prototypes and their labels (K,), sorted by label; the prototypes of one class keep their order."""
    order = np.argsort(labels, kind="stable")
    if (np.diff(order) > 0).all():  # the object stays as it is
        return prototypes, labels
    return new_codes(prototypes, np.asarray(prototypes)[order]), labels[order]
