"""Compares candidates for a fit by short training runs, without one fold of the samples after the other.

A trial is a short training run without one fold of the samples, and is judged by that fold.
"""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import attrs
import numpy as np

from rplvq.arrays import Samples, distances
from rplvq.costs import calibrated_loss, sample_losses, smoothed
from rplvq.initializers import Discriminant
from rplvq.protocols import Array, Prototypes, Schedule
from rplvq.training._trainer import Trainer

N_STANDARD_ERRORS = 2.0
"""Number of standard errors by which a candidate must beat one that stands before it."""
MIN_HELD_OUT = 10
"""Smallest number of held-out samples by which anything is chosen."""
MIN_RACED = 50
"""Smallest number of held-out samples by which a candidate is given up before all folds are tried."""
MIN_DECIDED = 100
"""Smallest number of held-out samples, of two folds or more, by which the choice is made before that."""
NEAR = 10.0
"""With one more fold, the best sigma2 is searched within this factor of the best one without it."""
N_HOPE = 2.0
"""A candidate is given up if it can only win by a chance gain of more than so many standard deviations elsewhere."""
N_EITHER = 1.0
"""Number of standard errors on all folds that decide early between training and a discriminant.

It is small, because it matters little which is taken if they are about as good."""
N_CLEAR = 3.0
"""Number of standard errors by which a loss must be larger for its candidate to be given up before that."""


class Plan(NamedTuple):
    """A candidate: its name, its schedule of sigma2, and the share of its default step.

    ``schedule`` is None without training, and ``share`` is None if the user gave a step size. ``is_named`` says that
    sigma2 comes from a rule, so that it may be recalibrated. ``start`` gives prototypes in place of the initial ones.
    """

    candidate: str
    schedule: Schedule | None
    share: float | None = None
    is_named: bool = True
    start: Discriminant | None = None


class Trial(NamedTuple):
    """The result of one candidate.

    Parameters
    ----------
    candidate : str
        The name of the candidate of :class:`rplvq.HeldOut`: "auto", "half_median", "discriminant" or "untrained", or
        the number or schedule as text.
    sigma2, step_size : float
        The values with which a fit with this candidate would begin, not those of the trial. The step size is 0 without
        training.
    n_epochs, n_folds : int
        Number of epochs of each trial, 0 without training, and number of folds, which is smaller for a
        candidate that was given up early.
    n_visits : int
        Number of visits of samples in all trials of this candidate.
    calibration : float
        For the candidate that won, the recalibrated sigma2 of the held-out samples and one more of unknown class,
        divided by that of the trial. It is 1, without a meaning, for all others and for a sigma2 of the user.
    loss : float
        Mean held-out loss after recalibration; infinite if a trial diverged.
    margin : float
        Standard error of the mean difference between this loss and that of the preferred candidate beside the initial
        prototypes, see :class:`rplvq.HeldOut`. If only the initial prototypes are left, that of their loss counts.
    error : float
        Share of the held-out samples whose nearest prototype has another class.
    seconds : float
        Time that the trials took.
    """

    candidate: str
    sigma2: float
    step_size: float
    n_epochs: int
    n_folds: int
    n_visits: int
    calibration: float
    loss: float
    margin: float
    error: float
    seconds: float


class Outcome(NamedTuple):
    """The index of the candidate that won, and the trials of all candidates in their order."""

    winner: int
    trials: tuple[Trial, ...]


@attrs.frozen(eq=False, slots=False)
class Fold:
    """The samples that train and those that are held out, with the initial prototypes of the former.

    ``rows`` are the places of those that train among the samples of the fit.
    """

    trainer: Trainer  # its sigma2 is not used
    kept: Samples
    held: Samples
    n_classes: int
    seed: int
    rows: Array

    @cached_property
    def first(self) -> tuple[Prototypes, Array]:
        """The initial prototypes, with their labels (K,)."""
        return self.trainer.first_prototypes(self.kept, self.n_classes, np.random.default_rng(self.seed))

    def sqdist(self, plan: Plan, n_epochs: int) -> Array:
        """Return squared distances (M, K) of the held-out samples to the prototypes of a trial.

        They are infinite if training diverges.
        """
        trainer, (prototypes, labels) = self.trainer, self.first
        if plan.start is not None:
            try:
                prototypes = plan.start.prototypes(self.rows)
            except ValueError:  # the samples of this fold do not suffice
                return np.full((len(self.held), len(labels)), np.inf)
        if plan.schedule is not None:
            quiet = attrs.evolve(trainer, callbacks=(), growth=(), early_stopping=None, verbose=0)
            pilot = attrs.evolve(quiet, sigma2=plan.schedule, max_epochs=n_epochs)
            state = pilot.start(prototypes, labels, self.kept, self.n_classes, share=plan.share)
            try:
                with np.errstate(all="ignore"):  # a trial that diverges is no reason for a warning from the fit
                    state, _ = pilot.run(state, self.kept, np.random.default_rng(self.seed))
            except FloatingPointError:  # this sigma2 is too small for the step size
                return np.full((len(self.held), len(labels)), np.inf)
            prototypes = state.prototypes
        return distances(trainer.manifold, prototypes, self.held.codes)


class Judged(NamedTuple):
    """How well one candidate does on the samples that were held out so far."""

    plan: Plan
    sigma2: float  # with which a fit with this candidate would begin
    sqdist: Array  # (M, K), of the held-out samples to the prototypes of the trials
    best: float  # the recalibrated sigma2
    losses: Array  # (M,)
    loss: float
    error: float
    seconds: float

    @property
    def trains(self) -> bool:
        """Whether this candidate trains."""
        return self.plan.schedule is not None

    @property
    def is_initial(self) -> bool:
        """Whether this is the candidate of the initial prototypes."""
        return self.plan.schedule is None and self.plan.start is None


@attrs.frozen(eq=False, slots=False)
class Judge:
    """Compares candidates on the same folds, with the same random numbers."""

    trainer: Trainer
    folds: Sequence[Fold]
    n_epochs: int
    samples: Samples  # of the fit, or a part of them
    n_samples: float  # sum of the weights of all samples of the fit
    n_folds: int  # number of folds if all are tried

    @cached_property
    def held(self) -> Samples:
        """The held-out samples of all folds (M,), without their codes."""
        targets = np.concatenate([fold.held.targets for fold in self.folds])
        weights = np.concatenate([fold.held.filled_weights for fold in self.folds])
        groups = None if self.samples.groups is None else np.concatenate([fold.held.groups for fold in self.folds])
        return Samples(np.empty(len(targets)), targets, weights, groups)

    @property
    def decides(self) -> bool:
        """Whether enough samples are held out for a choice."""
        return len(self.folds) > 1 and len(self.held) >= MIN_DECIDED

    def mean(self, values: Array) -> float:
        """Return the weighted mean of values (M,) of the held-out samples, or of the first ones of them."""
        return float(np.average(values, weights=self.held.filled_weights[: len(values)]))

    def epochs_of(self, plan: Plan) -> int:
        """Return the number of epochs of each trial of a candidate."""
        return 0 if plan.schedule is None else self.n_epochs

    def judge(self, plan: Plan, sigma2: float, before: Judged | None = None) -> Judged:
        """Try one candidate on the last fold; ``before`` is what was found on the folds before it."""
        began, held, labels = time.perf_counter(), self.held, self.folds[0].first[1]
        sqdist = self.folds[-1].sqdist(plan, self.epochs_of(plan))
        if before is not None:
            sqdist, began = np.concatenate([before.sqdist, sqdist]), began - before.seconds
        losses, wrong, best = np.full(len(sqdist), np.inf), np.ones(len(sqdist)), sigma2
        if np.isfinite(sqdist).all():
            search = {"sigma2": sigma2}
            if before is not None and np.isfinite(before.loss):
                search = {"sigma2": before.best, "factor": NEAR}
            _, best = calibrated_loss(
                self.trainer.cost, sqdist, held.targets, labels, sample_weight=held.weights, **search
            )
            losses = sample_losses(self.trainer.cost, sqdist, held.targets, labels, best)
            wrong = np.where(labels[sqdist.argmin(axis=1)] == held.classes, 0.0, 1.0)
        loss = self.mean(losses)
        means = loss if np.isfinite(loss) else np.inf, self.mean(wrong)
        return Judged(plan, sigma2, sqdist, best, losses, *means, time.perf_counter() - began)

    def trial(self, judged: Judged, preferred: Judged, won: bool) -> Trial:
        """Return the trial of one candidate; ``preferred`` is the preferred one beside the initial prototypes.

        ``won`` says whether this candidate was chosen.
        """
        plan, sigma2, n_held = judged.plan, judged.sigma2, len(judged.losses)
        n_epochs, calibration, labels = self.epochs_of(plan), 1.0, self.folds[0].first[1]
        folds = [fold for fold, last in zip(self.folds, self._ends(), strict=True) if last <= n_held]
        if won and plan.is_named and np.isfinite(judged.loss):
            targets, weights = self.held.targets[:n_held], self.held.filled_weights[:n_held]
            unsure = smoothed(targets, int(labels.max()) + 1, float(weights.sum()))
            _, likely = calibrated_loss(self.trainer.cost, judged.sqdist, unsure, labels, judged.best, weights)
            calibration = likely / (sigma2 if plan.schedule is None else plan.schedule(n_epochs, n_epochs))
        size = n_epochs, len(folds), n_epochs * sum(fold.kept.n_visits for fold in folds)
        found = calibration, judged.loss, self.margin(judged, preferred), judged.error, judged.seconds
        return Trial(plan.candidate, sigma2, self.first_step(plan), *size, *found)

    def _ends(self) -> Array:
        """Return how many samples are held out by all folds up to each of them."""
        return np.cumsum([len(fold.held) for fold in self.folds])

    def first_step(self, plan: Plan) -> float:
        """Return the first step size of a fit with this candidate."""
        if plan.schedule is None:
            return 0.0
        fold, fit = self.folds[0], attrs.evolve(self.trainer, sigma2=plan.schedule)
        start = partial(fit.start, *fold.first, self.samples, fold.n_classes)
        return start(share=plan.share, n_samples=self.n_samples).step_size

    def standard_error(self, values: Array, others: Array, *, by_group: bool = False) -> float:
        """Return the standard error of the mean difference between two values of the same held-out samples.

        With ``by_group``, the samples of a group count as correlated, if there are groups.
        """
        if not (np.isfinite(values).all() and np.isfinite(others).all()):
            return 0.0
        weights = self.held.filled_weights[: len(values)]
        rest = values - others
        rest = rest - self.mean(rest)
        error = float(np.sqrt(self.mean(rest**2) / weights.sum()))
        if not by_group or self.held.groups is None:
            return error
        groups, numbers = np.unique(self.held.groups[: len(values)], return_inverse=True)
        if len(groups) < 2:
            return error
        spread = np.linalg.norm(np.bincount(numbers, weights * rest)) * np.sqrt(len(groups) / (len(groups) - 1))
        return max(error, float(spread / weights.sum()))

    def margin(self, one: Judged, other: Judged) -> float:
        """Return the standard error of the difference of two losses, on the samples that both were judged by.

        Whether to leave the initial prototypes is decided by the standard error between groups, if there are groups.
        """
        n_held, by_group = min(len(one.losses), len(other.losses)), one.is_initial != other.is_initial
        return self.standard_error(one.losses[:n_held], other.losses[:n_held], by_group=by_group)

    def is_close(self, one: Judged, other: Judged, times: float) -> bool:
        """Whether the first loss is at most so many standard errors above the second one."""
        return bool(one.loss <= other.loss + times * self.margin(one, other))

    def pick(self, judged: Sequence[Judged]) -> tuple[int, int]:
        """Return the indices of the winner, and of the preferred candidate beside the initial prototypes, if any."""
        rivals = [i for i, one in enumerate(judged) if not one.is_initial]
        if not rivals:
            return 0, 0
        first = min(rivals, key=lambda i: judged[i].loss)
        if judged[first].trains:
            first = next(
                i for i in rivals if judged[i].trains and self.is_close(judged[i], judged[first], N_STANDARD_ERRORS)
            )
        # A rival has to lower the loss, and the number of errors as well: on some data training only lowers the loss.
        initial = [i for i in range(len(judged)) if i not in rivals]
        winner = next((i for i in initial if self.keeps(judged[i], judged[first])), first)
        return winner, first

    def keeps(self, initial: Judged, rival: Judged) -> bool:
        """Whether a rival does not lower the loss by more than a standard error, or the number of errors at all."""
        return self.is_close(initial, rival, 1.0) or initial.error <= rival.error

    def open(self, judged: Sequence[Judged]) -> list[int]:
        """Return the candidates that may still win on more folds; if there is only one, it has won."""
        rivals = [i for i, one in enumerate(judged) if not one.is_initial]
        initial = [i for i in range(len(judged)) if i not in rivals]
        left = [i for i in rivals if not any(self._beats(judged[k], judged[i], k < i) for k in rivals if k != i)]
        if self.decides and initial:
            left = [i for i in left if not self._cannot_help(judged[i], judged[initial[0]])]
        if not left:
            return initial[:1]
        if self.decides and len(left) == 1 and all(self._helps(judged[left[0]], judged[i]) for i in initial):
            return left
        return [*left, *initial]

    def _beats(self, one: Judged, other: Judged, earlier: bool) -> bool:
        """Whether one candidate leaves another no chance, neither of which is that of the initial prototypes.

        Of two that train, the ``earlier`` one is preferred.
        """
        # Two step sizes of the same sigma2, and training and a discriminant, are decided by half of the folds: if the
        # difference stays as it is, its number of standard errors grows as the root of the number of folds.
        is_mixed = not (one.trains and other.trains)
        is_decided = self.decides and (is_mixed or one.plan.schedule is other.plan.schedule)
        enough = (N_EITHER if is_mixed else N_STANDARD_ERRORS) * math.sqrt(len(self.folds) / self.n_folds)
        if earlier and not is_mixed:
            return self.is_close(one, other, enough if is_decided else 0.0)
        return not self.is_close(other, one, enough if is_decided else N_CLEAR)

    def _cannot_help(self, rival: Judged, initial: Judged) -> bool:
        """Whether a rival will hardly lower the loss by one standard error over all folds.

        Let z be the loss of the initial prototypes minus that of the rival, in standard errors, on a share q of the
        folds. If the rival has no effect on the other folds, z over all folds is normal with mean ``sqrt(q) z`` and
        variance ``1 - q``.
        """
        share = len(self.folds) / self.n_folds
        needed = (1 - N_HOPE * math.sqrt(1 - share)) / math.sqrt(share)
        return not self.is_close(rival, initial, -needed)

    def _helps(self, rival: Judged, initial: Judged) -> bool:
        """Whether a rival clearly lowered the loss, and the number of errors as well."""
        return not self.is_close(initial, rival, N_CLEAR) and rival.error < initial.error


def race(judge: Judge, folds: Iterable[Fold], plans: Sequence[Plan], sigma2: Sequence[float]) -> Outcome | None:
    """Hold out one fold after the other, until one candidate has won; return None if too few samples are held out.

    The folds are added to those of ``judge``, and ``sigma2`` has the first value of each plan. Candidates that can
    hardly win any more are given up. If the initial prototypes win, they are judged by all folds, which takes little
    time and calibrates their probabilities better.
    """
    judged: dict[int, Judged] = {}
    running = list(range(len(plans)))
    for fold in folds:
        judge = attrs.evolve(judge, folds=[*judge.folds, fold])
        judged |= {i: judge.judge(plans[i], sigma2[i], judged.get(i)) for i in running}
        if len(judge.held) >= MIN_RACED and len(np.unique(judge.held.classes)) > 1:
            running = [running[i] for i in judge.open([judged[i] for i in running])]
            if len(running) == 1 and plans[running[0]].schedule is not None:
                break
    if not judge.folds or len(judge.held) < MIN_HELD_OUT or len(np.unique(judge.held.classes)) < 2:
        return None
    winner, first = (running[i] for i in judge.pick([judged[i] for i in running]))
    return Outcome(winner, tuple(judge.trial(judged[i], judged[first], i == winner) for i in range(len(plans))))


def make_fold(
    trainer: Trainer, samples: Samples, rows: Array, held_out: Array, n_classes: int, seed: int
) -> Fold | None:
    """Return the fold in which these rows of the samples train, and the others are held out.

    A manifold that was learned with the classes of all samples is learned again without those that are held out. This
    improves the probabilities: under a whitened metric, the log-loss of new samples is .77 instead of .83 on BCI 2a,
    and 1.30 instead of 3.13 on eegmmi. (Its shrinkage, a single number, stays that of all samples.) The result is None
    if the samples of the fold do not suffice.
    """
    kept, held, manifold = samples.subset(rows), samples.subset(held_out), cast(Any, trainer.manifold)
    if hasattr(manifold, "relearned"):
        try:
            manifold, inner, outer = manifold.relearned(kept.codes, held.codes, kept.classes, kept.weights)
        except ValueError:
            return None
        trainer = attrs.evolve(trainer, manifold=manifold)
        kept, held = attrs.evolve(kept, codes=inner), attrs.evolve(held, codes=outer)
    return Fold(trainer, kept, held, n_classes, seed, rows)


def comparable(folds: Iterable[Fold | None]) -> Iterator[Fold]:
    """Yield the folds whose initial prototypes have the same labels as those of the first such fold.

    An initializer of the user's own may give other labels, or raise ValueError, because a fold has fewer samples.
    """
    expected: Array | None = None
    for fold in filter(None, folds):
        try:
            labels = fold.first[1]
        except ValueError:
            continue
        expected = labels if expected is None else expected
        if np.array_equal(labels, expected):
            yield fold
