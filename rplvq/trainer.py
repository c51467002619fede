"""Stochastic Riemannian descent over any manifold, cost and schedules.

    init -> per epoch: one permutation sweep of batches -> connect -> cost -> move

The trainer sees codes, class indices and the two (B, K) arrays between them; it never sees a matrix.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from attrs.validators import in_

from rplvq.averaging import Averaging, averaged, require_still, resolve_average, resumed
from rplvq.beginning import look, ready
from rplvq.checks import all_callable, auto_or_bool, count_from, not_negative, positive_or_none
from rplvq.costs.mixture import class_groups
from rplvq.costs.rslvq import RSLVQ
from rplvq.epochs import Callback, epoch_by_epoch
from rplvq.growth import Growth, Window
from rplvq.heldout import HeldOut, Still, named_sigma2
from rplvq.history import Meter, Score, evaluate, line
from rplvq.initializers import ClassMeans
from rplvq.learned import Learned, is_learned_on, log_sigma2_gradient, require_training_data
from rplvq.progress import Origin, Progress
from rplvq.protocols import Array, Cost, Initializer, Manifold, Schedule
from rplvq.samples import as_asked, distances, subset
from rplvq.stepping import Stepper
from rplvq.steps import Result, State, Step
from rplvq.sweeps import BLOCK_ROWS, blocks, visits
from rplvq.trials import choose_sigma2

__all__ = ["Trainer"]


@attrs.frozen
class Trainer:
    """Generic stochastic trainer.

    Parameters
    ----------
    manifold : Manifold
        Where samples and prototypes live.
    cost : Cost, default=RSLVQ()
        What is minimised.
    initializer : Initializer, default=ClassMeans()
        Where prototypes begin.
    sigma2 : float, Schedule, HeldOut, "auto", "blended", "half_median", "heldout" or None
        Variance of the mixture's components; "blended" is :func:`rplvq.sigma2.blended_sigma2` of the initial
        prototypes, "half_median" half the median squared distance to them. "heldout" is :class:`rplvq.HeldOut`, which
        tries several in short runs when :meth:`init` is called; "auto" or None the two rules.
    step_size : float, Schedule, "auto" or None
        None is the paper's ``n xi / 100 * 0.01^(t / T)``, times ``manifold.unit(codes)`` where distances carry
        units; "auto" starts there or at K sigma2 / N, whichever is smaller: no sample then weighs more than its
        share in the mean of its prototype's samples, nor more than a half; "adaptive" is
        :class:`rplvq.AdaptiveStep`, whose history shows the last step size of each epoch.
    max_epochs : int, default=100
        Sweeps over the data.
    batch_size : int or None, default=1
        Samples a step; None takes all. A step follows the mean over its samples, so an epoch of batches of B learns as
        much as one of single samples if ``step_size`` is B times as large (seen up to 16; in batches of hundreds
        ``max_weight`` would cap nearly all weights).
    max_weight : float or None, default=1
        Cap on the weight of a (sample, prototype) pair; None leaves weights as they are.
    max_step_length : float, optional
        Cap on the length of a prototype's step; by default the manifold's own ``max_step_length``.
    monitor : {"sweep", "epoch"}, default="sweep"
        Cost and training error of an epoch: as met during the sweep, for nothing, or by one more pass of
        distances after it (and one before training, epoch 0).
    patience : int, optional
        With validation data, stop after this many epochs without a better validation cost, and return
        the best state.
    tol : float, default=0
        Relative fall of the validation cost that counts as better.
    callbacks : sequence of callable
        Each is called with an :class:`rplvq.history.EpochReport` after each epoch; returning True stops.
    verbose : int, default=0
        1 shows a progress bar on standard error.
    compiled : {"auto", True, False}, default="auto"
        Whether steps run compiled where that is possible (:mod:`rplvq.compiled`): "auto" where numba is
        installed and the parts are known to the kernel; True insists; False never.
    average : bool or Averaging, default=False
        Whether states after an epoch hold the geodesic mean of the prototypes over the epochs.
    growth : sequence of callable, default=()
        Rules that add and remove prototypes between epochs (:mod:`rplvq.growth`), in this order.
    n_jobs : int or None, default=None
        Threads for the decompositions of large mini-batches on :class:`rplvq.AffineInvariant`; -1 takes all cores. The
        result does not depend on it.

    Examples
    --------
    >>> from rplvq import EuclideanVectors, Trainer
    >>> codes, targets = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])
    >>> trainer = Trainer(EuclideanVectors(), max_epochs=5)
    >>> rng = np.random.default_rng(0)
    >>> state = trainer.init(codes, targets, 2, rng)
    >>> state, history = trainer.run(state, codes, targets, rng)
    >>> history["training_error"]
    array([0., 0., 0., 0., 0.])
    """

    manifold: Manifold[Any]
    cost: Cost = attrs.field(factory=RSLVQ)
    initializer: Initializer = attrs.field(factory=ClassMeans)
    sigma2: float | Schedule | HeldOut | str | None = "auto"
    step_size: float | Schedule | str | None = None
    max_epochs: int = attrs.field(default=100, kw_only=True, validator=count_from(0))
    batch_size: int | None = attrs.field(default=1, kw_only=True, validator=count_from(1, or_none=True))
    max_weight: float | None = attrs.field(default=1.0, kw_only=True, validator=positive_or_none)
    max_step_length: float | None = attrs.field(default=None, kw_only=True, validator=positive_or_none)
    monitor: str = attrs.field(default="sweep", kw_only=True, validator=in_(("sweep", "epoch")))
    patience: int | None = attrs.field(default=None, kw_only=True, validator=count_from(1, or_none=True))
    tol: float = attrs.field(default=0.0, kw_only=True, validator=not_negative)
    callbacks: Sequence[Callback] = attrs.field(default=(), kw_only=True, validator=all_callable)
    verbose: int = attrs.field(default=0, kw_only=True)
    compiled: bool | str = attrs.field(default="auto", kw_only=True, validator=auto_or_bool)
    average: Averaging | None = attrs.field(default=None, kw_only=True, converter=resolve_average)
    growth: Sequence[Growth] = attrs.field(default=(), kw_only=True, validator=all_callable)
    n_jobs: int | None = attrs.field(default=None, kw_only=True)

    def init(
        self,
        codes: Array,
        targets: Array,
        n_classes: int,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> State:
        """Choose prototypes, and resolve both schedules for the data.

        Parameters
        ----------
        codes : ndarray of shape (N, ...)
            Encoded samples.
        targets : ndarray of shape (N,) or (N, C)
            Their class indices or probabilities.
        n_classes : int
            Number of classes C.
        rng : numpy.random.Generator
            Handed to the initializer.
        sample_weight : ndarray of shape (N,), optional
            See :func:`rplvq.sweeps.visits`.

        Returns
        -------
        State
            Before the first epoch.

        Raises
        ------
        ValueError
            If a class gets no prototype, or ``sigma2`` or ``step_size`` is neither a positive number nor a schedule
            of such.
        """
        if self.average is not None:
            require_still(self.manifold)
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        chosen = as_asked(self.initializer, codes)
        prototypes, labels = self.initializer(self.manifold, chosen, targets, n_classes, rng, **extra)
        if len(class_groups(labels).counts) != n_classes:
            raise ValueError(f"the initializer gave no prototype for class index {n_classes - 1}")
        trainer, rule = self, named_sigma2(self.sigma2)
        if isinstance(rule, HeldOut):
            start = look(self, prototypes, labels, codes, targets, sample_weight)
            choice = choose_sigma2(rule, self, start, codes, targets, n_classes, rng, sample_weight)
            trainer = attrs.evolve(self, sigma2=choice.schedule, step_size=choice.step_size)
        return ready(trainer, prototypes, labels, codes, targets, n_classes, sample_weight)

    def step(self, state: State, samples: Array, targets: Array, sample_weight: Array | None = None) -> Step:
        """Take one step; all weights are computed before any prototype moves.

        Parameters
        ----------
        state : State
            At its epoch: see :meth:`rplvq.steps.State.at_epoch`.
        samples : ndarray of shape (B, ...)
            Encoded samples of the batch.
        targets : ndarray of shape (B,) or (B, C)
            Their class indices or probabilities.
        sample_weight : ndarray of shape (B,), optional
            Factors of the samples' slopes.

        Returns
        -------
        Step
            Moved prototypes; distances (B, K) and losses (B,) before the step; how many weights were capped.
        """
        if state.memory is not None:
            return next(self._stepper.adaptive_steps(state, samples, targets, sample_weight, len(samples)))
        return Step(*next(self._stepper.steps(state, samples, targets, sample_weight, len(samples))))

    @property
    def _stepper(self) -> Stepper:
        return Stepper(
            self.manifold,
            self.cost,
            self.max_weight,
            self.max_length,
            self.compiled,
            self.n_jobs,
            max(self.max_epochs, 1),
        )

    @property
    def max_length(self) -> float:
        """Longest step: ``max_step_length``, else what the manifold says; infinite without either."""
        if self.max_step_length is not None:
            return self.max_step_length
        return float(getattr(self.manifold, "max_step_length", np.inf))

    def sweep(
        self,
        state: State,
        codes: Array,
        targets: Array,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[State, Score, int]:
        """Visit every sample once, in random order.

        Parameters
        ----------
        state : State
            At its epoch.
        codes : ndarray of shape (N, ...)
            Encoded samples.
        targets : ndarray of shape (N,) or (N, C)
            Their class indices or probabilities.
        rng : numpy.random.Generator
            Source of the order.
        sample_weight : ndarray of shape (N,), optional
            See :func:`rplvq.sweeps.visits`.

        Returns
        -------
        state : State
            With the moved prototypes.
        score : Score
            Mean cost and training error as met on the way.
        n_capped : int
            Weights cut and steps shortened.

        Raises
        ------
        FloatingPointError
            If the cost is no longer finite: the step size is too large for sigma2 and the data.
        """
        before, state = state, resumed(state)
        meter, n_capped = Meter(state.labels), 0
        rows, weights = visits(len(codes), sample_weight)
        stepper = self._stepper
        try:
            for block, block_weight, size in blocks(rows, weights, self.batch_size, rng):
                samples = subset(codes, block) if size > BLOCK_ROWS else codes[block]
                state, capped = stepper.block(state, samples, targets[block], block_weight, size, meter)
                n_capped += capped
            self._require_finite(state, meter.cost)
        except np.linalg.LinAlgError as error:
            raise self._diverged(state) from error
        if self.average is not None:
            state = averaged(self.manifold, self.average, before, state, max(self.max_epochs, 1))
        return state, meter.score(), n_capped

    def _require_finite(self, state: State, cost: float) -> None:
        if not (np.isfinite(np.asarray(state.prototypes)).all() and np.isfinite(cost)):
            raise self._diverged(state)

    def _diverged(self, state: State) -> FloatingPointError:
        return FloatingPointError(
            f"training diverged in epoch {state.epoch} (step_size {state.step_size:.3g}, sigma2 {state.sigma2:.3g}): "
            "lower step_size, raise sigma2, or leave max_weight at 1"
        )

    def run(
        self,
        state: State,
        codes: Array,
        targets: Array,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
        validation: tuple[Array, Array, Array | None] | None = None,
    ) -> Result:
        """Train for ``max_epochs`` sweeps.

        Parameters
        ----------
        state : State
            From :meth:`init`.
        codes : ndarray of shape (N, ...)
            Encoded training samples.
        targets : ndarray of shape (N,) or (N, C)
            Their class indices or probabilities.
        rng : numpy.random.Generator
            Source of the permutations.
        sample_weight : ndarray of shape (N,), optional
            See :func:`rplvq.sweeps.visits`.
        validation : tuple of (codes, targets, sample_weight), optional
            Scored after each epoch; the weights may be None.

        Returns
        -------
        Result
            State and history with columns epoch, cost, training_error, sigma2, step_size, n_capped,
            seconds, and with validation data validation_cost and validation_error.

        Raises
        ------
        FloatingPointError
            If training diverges.
        """
        progress = self.begin(state, codes, targets, rng, sample_weight, validation)
        for latest in self.epochs(progress, codes, targets, rng, sample_weight, validation):
            progress = latest
        return progress.result()

    def begin(
        self,
        state: State,
        codes: Array,
        targets: Array,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
        validation: tuple[Array, Array, Array | None] | None = None,
    ) -> Progress:
        """Return where a run from ``state`` stands before its first epoch.

        Parameters
        ----------
        state : State
            From which training goes on.
        codes : ndarray of shape (N, ...)
            Encoded samples.
        targets : ndarray of shape (N,) or (N, C)
            Their class indices or probabilities.
        rng : numpy.random.Generator
            As for :meth:`run`.
        sample_weight : ndarray of shape (N,), optional
            As for :meth:`run`.
        validation : tuple of (codes, targets, sample_weight), optional
            As for :meth:`run`.

        Returns
        -------
        Progress
            For :meth:`epochs`.

        Raises
        ------
        ValueError
            If sigma2 is learned on held-out data, and there are none.
        """
        if validation is None:
            require_training_data(state.sigma2_schedule)
        rows: tuple[dict[str, float], ...] = ()
        if self.monitor == "epoch":
            rows = (self._row(state, None, 0, 0.0, (codes, targets, sample_weight), validation),)
        best_cost = np.inf
        if self.patience is not None and validation is not None:
            best_cost = self._evaluate(state, *validation).cost
        still = isinstance(state.sigma2_schedule, Still)
        return Progress(state, state, best_cost, rows, rng.bit_generator.state, still)

    def epochs(
        self,
        progress: Progress,
        codes: Array,
        targets: Array,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
        validation: tuple[Array, Array, Array | None] | None = None,
        origin: Origin | None = None,
    ) -> Iterator[Progress]:
        """Train from where a run stands, epoch by epoch.

        Whoever keeps the last item has a whole epoch in hand whatever interrupts the next one. Callbacks
        are called when the following item is asked for.

        Parameters
        ----------
        progress : Progress
            From :meth:`begin`, or from a checkpoint; ``rng`` is set to its random state.
        codes : ndarray of shape (N, ...)
            Encoded samples.
        targets : ndarray of shape (N,) or (N, C)
            Their class indices or probabilities.
        rng : numpy.random.Generator
            As for :meth:`run`.
        sample_weight : ndarray of shape (N,), optional
            As for :meth:`run`.
        validation : tuple of (codes, targets, sample_weight), optional
            As for :meth:`run`.
        origin : Origin, optional
            Is handed to the callbacks.

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
        >>> codes, targets = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])
        >>> trainer, rng = Trainer(EuclideanVectors(), max_epochs=3), np.random.default_rng(0)
        >>> start = trainer.begin(trainer.init(codes, targets, 2, rng), codes, targets, rng)
        >>> [progress.state.epoch for progress in trainer.epochs(start, codes, targets, rng)]
        [1, 2, 3]
        """
        data = codes, targets, rng, sample_weight, validation
        return epoch_by_epoch(
            lambda state: self.sweep_and_record(state, *data),
            progress,
            rng,
            self.max_epochs,
            callbacks=self.callbacks,
            judge=None if self.patience is None or validation is None else (self.tol, self.patience),
            verbose=self.verbose,
            between=lambda state: self.resize(state, codes, targets, sample_weight, state.epoch),
            origin=origin,
        )

    def resize(self, state: State, codes: Array, targets: Array, sample_weight: Array | None, sweep: int) -> State:
        """Let the rules of growth add and remove prototypes.

        Parameters
        ----------
        state : State
            After an epoch.
        codes : ndarray of shape (N, ...)
            Encoded samples that the rules look at.
        targets : ndarray of shape (N,) or (N, C)
            Their class indices or probabilities.
        sample_weight : ndarray of shape (N,) or None
            Their multiplicities.
        sweep : int
            Epochs, or calls of ``partial_fit``, so far.

        Returns
        -------
        State
            As it is where there are no rules, or no rule changes it.
        """
        if not self.growth:
            return state
        window = Window(self.manifold, self.cost, state, np.asarray(codes), targets, sample_weight, sweep)
        for rule in self.growth:
            window = rule(window)
        return window.state

    def sweep_and_record(
        self,
        state: State,
        codes: Array,
        targets: Array,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
        validation: tuple[Array, Array, Array | None] | None = None,
    ) -> tuple[State, dict[str, float]]:
        """Sweep once and write the epoch's line of the history.

        Parameters
        ----------
        state : State
            Before the sweep.
        codes : ndarray of shape (N, ...)
            Encoded samples.
        targets : ndarray of shape (N,) or (N, C)
            Their class indices or probabilities.
        rng : numpy.random.Generator
            As for :meth:`sweep`.
        sample_weight : ndarray of shape (N,), optional
            As for :meth:`sweep`.
        validation : tuple of (codes, targets, sample_weight), optional
            As for :meth:`run`.

        Returns
        -------
        state : State
            After the sweep.
        row : dict of str to float
            One value for each column of the history.

        Raises
        ------
        FloatingPointError
            If training diverges.
        """
        began = time.perf_counter()
        state, score, n_capped = self.sweep(state, codes, targets, rng, sample_weight)
        if is_learned_on(state.sigma2_schedule, "training"):
            state = self._learned(state, codes, targets, sample_weight)
        elif is_learned_on(state.sigma2_schedule, "held_out") and validation is not None:
            state = self._learned(state, *validation)
        seconds = time.perf_counter() - began
        return state, self._row(state, score, n_capped, seconds, (codes, targets, sample_weight), validation)

    def _learned(self, state: State, codes: Array, targets: Array, sample_weight: Array | None) -> State:
        """Move sigma2 along its gradient on these data: one pass of distances."""
        rule = state.sigma2_schedule
        assert isinstance(rule, Learned)
        sqdist = distances(self.manifold, state.prototypes, codes, len(state.labels))
        gradient = log_sigma2_gradient(self.cost, sqdist, targets, state.labels, state.sigma2, sample_weight)
        return state._replace(sigma2=rule.follow(state.sigma2, gradient))

    def _row(
        self,
        state: State,
        score: Score | None,
        n_capped: int,
        seconds: float,
        training: tuple[Array, Array, Array | None],
        validation: tuple[Array, Array, Array | None] | None,
    ) -> dict[str, float]:
        """One line of the history, after the epoch of ``state``."""
        if score is None or self.monitor == "epoch":
            score = self._evaluate(state, *training)
        row = line(state, score, n_capped, seconds)
        if validation is not None:
            row["validation_cost"], row["validation_error"] = self._evaluate(state, *validation)
        return row

    def _evaluate(self, state: State, codes: Array, targets: Array, sample_weight: Array | None) -> Score:
        """Score the prototypes of ``state`` by one pass of distances."""
        return evaluate(
            self.manifold, self.cost, state.prototypes, state.labels, state.sigma2, codes, targets, sample_weight
        )
