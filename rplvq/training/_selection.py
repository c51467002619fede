"""Trials that choose sigma2, the default step size, and whether to train.

A trial is a short training run without one fold of the samples, and is judged by that fold.
"""

import contextlib
import copy
import time
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import attrs
import numpy as np

from rplvq.arrays import Samples, distances
from rplvq.costs import calibrated_loss, sample_losses, smoothed
from rplvq.protocols import Array, Prototypes, Schedule
from rplvq.schedules import (
    Constant,
    HeldOut,
    InitialEvidence,
    default_shares,
    is_auto,
    is_untrained,
    likeliest_sigma2,
    resolve_sigma2,
)
from rplvq.training._folds import FOLDS, deal_folds
from rplvq.training._trainer import Trainer

TRIAL_BUDGET = 0.35
"""How many samples the trials of one sigma2 value may visit together, relative to training in the fit."""
MAX_HELD_OUT = 1000
"""Number of held-out samples that decide well enough: folds beyond it are not used."""
MIN_TRIAL_EPOCHS = 4
"""Smallest number of epochs of a trial; where there would be fewer, fewer folds are used."""
N_STANDARD_ERRORS = 2.0
"""Number of standard errors by which a candidate must beat one that stands before it."""
MIN_HELD_OUT = 10
"""Smallest number of held-out samples by which anything is chosen."""


class Plan(NamedTuple):
    """A candidate: its schedule of sigma2, and the share of its default step.

    ``schedule`` is None for the initial prototypes, and ``share`` is None if the user gave a step size. ``is_named``
    says that sigma2 comes from a rule, so that it may be recalibrated.
    """

    schedule: Schedule | None
    share: float | None = None
    is_named: bool = True


class Trial(NamedTuple):
    """The result of one candidate.

    Parameters
    ----------
    sigma2, step_size : float
        The values with which a fit with this candidate would begin, not those of the trial. The step size is 0 for the
        initial prototypes.
    n_epochs, n_folds : int
        Number of epochs of each trial, 0 for the initial prototypes, and number of folds.
    n_visits : int
        Number of visits of samples in all trials of this candidate.
    calibration : float
        The recalibrated sigma2 of the held-out samples and one more of unknown class, divided by that of the trial; 1
        for a sigma2 of the user.
    loss : float
        Mean held-out loss after recalibration; infinite if a trial diverged.
    margin : float
        Standard error of the mean difference between this loss and that of the preferred candidate that trains: the
        first one whose loss is at most two standard errors above the smallest.
    error : float
        Share of the held-out samples whose nearest prototype has another class.
    seconds : float
        Time that the trials took.
    """

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


class Choice(NamedTuple):
    """The choice for a fit, and the trials that led to it.

    Parameters
    ----------
    schedule : Schedule
        Schedule of sigma2 for the fit.
    share : float, optional
        Share of the default step; None if the user gave a step size.
    trains : bool, default=True
        Whether the fit trains; False if the initial prototypes won.
    trials : tuple of Trial
        All trials in the order of the candidates; empty if there was nothing to compare.
    winner : int, default=-1
        Index of the trial that won; -1 if there are no trials.
    """

    schedule: Schedule
    share: float | None = None
    trains: bool = True
    trials: tuple[Trial, ...] = ()
    winner: int = -1

    def columns(self) -> dict[str, Array]:
        """Return the trials with one array per column, and which one was chosen."""
        found = {name: np.array([getattr(trial, name) for trial in self.trials]) for name in Trial._fields}
        return found | {"chosen": np.arange(len(self.trials)) == self.winner}

    def line(self) -> str:
        """Return one sentence that says what was chosen, and by which losses."""
        if not self.trials:
            return f"{'trains' if self.trains else 'keeps the initial prototypes'}: there was nothing to compare"
        won, losses = self.trials[self.winner], ", ".join(f"{trial.loss:.4g}" for trial in self.trials)
        what = f"sigma2 {won.sigma2:.3g}, step size {won.step_size:.3g}" if self.trains else "the initial prototypes"
        return f"chose {what}: held-out loss {won.loss:.4g} of {losses}"


def trial_size(max_epochs: int, n_samples: int, n_plans: int = 1) -> tuple[int, int]:
    """Return on how many folds and for how many epochs each of ``n_plans`` candidates is tried.

    Examples
    --------
    >>> trial_size(100, 200), trial_size(100, 5000), trial_size(10, 200), trial_size(1, 200)
    ((4, 11), (1, 46), (1, 4), (1, 1))
    """
    n_epochs = TRIAL_BUDGET * max_epochs / (1 - 1 / FOLDS) / n_plans
    n_folds = max(min(FOLDS, -(-MAX_HELD_OUT * FOLDS // max(n_samples, 1)), int(n_epochs / MIN_TRIAL_EPOCHS)), 1)
    return n_folds, max(int(n_epochs / n_folds), 1)


@attrs.frozen(eq=False, slots=False)
class Fold:
    """The samples that train and those that are held out, with the initial prototypes of the former."""

    trainer: Trainer  # its sigma2 is not used
    kept: Samples
    held: Samples
    n_classes: int
    seed: int

    @cached_property
    def first(self) -> tuple[Prototypes, Array]:
        """The initial prototypes, with their labels (K,)."""
        return self.trainer.first_prototypes(self.kept, self.n_classes, np.random.default_rng(self.seed))

    def sqdist(self, plan: Plan, n_epochs: int) -> Array:
        """Return squared distances (M, K) of the held-out samples to the prototypes of a trial.

        They are infinite if training diverges.
        """
        trainer, (prototypes, labels) = self.trainer, self.first
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


@attrs.frozen(eq=False, slots=False)
class Judge:
    """Compares candidates on the same folds, with the same random numbers."""

    trainer: Trainer
    folds: Sequence[Fold]
    n_epochs: int
    samples: Samples  # of the fit, or a part of them
    n_samples: float  # sum of the weights of all samples of the fit

    @cached_property
    def held(self) -> Samples:
        """The held-out samples of all folds (M,), without their codes."""
        targets = np.concatenate([fold.held.targets for fold in self.folds])
        weights = np.concatenate([fold.held.filled_weights for fold in self.folds])
        groups = None if self.samples.groups is None else np.concatenate([fold.held.groups for fold in self.folds])
        return Samples(np.empty(len(targets)), targets, weights, groups)

    def mean(self, values: Array) -> float:
        """Return the weighted mean of values (M,) of the held-out samples."""
        return float(np.average(values, weights=self.held.weights))

    def trial(self, plan: Plan, sigma2: float) -> tuple[Trial, Array]:
        """Try one candidate on all folds; return its result and the loss of each held-out sample (M,)."""
        began, held, labels = time.perf_counter(), self.held, self.folds[0].first[1]
        n_epochs = 0 if plan.schedule is None else self.n_epochs
        sqdist = np.concatenate([fold.sqdist(plan, n_epochs) for fold in self.folds])
        losses, error, calibration = np.full(len(sqdist), np.inf), 1.0, 1.0
        if np.isfinite(sqdist).all():
            _, best = calibrated_loss(self.trainer.cost, sqdist, held.targets, labels, sigma2, held.weights)
            if plan.is_named:
                unsure = smoothed(held.targets, int(labels.max()) + 1, held.total_weight)
                _, likely = calibrated_loss(self.trainer.cost, sqdist, unsure, labels, best, held.weights)
                calibration = likely / (sigma2 if plan.schedule is None else plan.schedule(n_epochs, n_epochs))
            losses = sample_losses(self.trainer.cost, sqdist, held.targets, labels, best)
            error = self.mean(labels[sqdist.argmin(axis=1)] != held.classes)
        loss = self.mean(losses)
        size = n_epochs, len(self.folds), n_epochs * sum(fold.kept.n_visits for fold in self.folds)
        seconds = time.perf_counter() - began
        found = Trial(sigma2, self.first_step(plan), *size, calibration, loss, 0.0, error, seconds)
        return found._replace(loss=loss if np.isfinite(loss) else np.inf), losses

    def first_step(self, plan: Plan) -> float:
        """Return the first step size of a fit with this candidate."""
        if plan.schedule is None:
            return 0.0
        fold, fit = self.folds[0], attrs.evolve(self.trainer, sigma2=plan.schedule)
        start = partial(fit.start, *fold.first, self.samples, fold.n_classes)
        return start(share=plan.share, n_samples=self.n_samples).step_size

    def margin(self, losses: Array, best: Array, groups: Array | None = None) -> float:
        """Return the standard error of the mean difference between two losses (M,) of the same samples.

        If ``groups`` (M,) are given, the samples of a group count as correlated.
        """
        if not (np.isfinite(losses).all() and np.isfinite(best).all()):
            return 0.0
        difference = losses - best
        variance = self.mean((difference - self.mean(difference)) ** 2)
        error = float(np.sqrt(variance / self.held.total_weight))
        if groups is None or len(numbers := np.unique(groups)) < 2:
            return error
        sums = np.bincount(groups, self.held.filled_weights * (difference - self.mean(difference)))
        spread = np.linalg.norm(sums) * np.sqrt(len(numbers) / (len(numbers) - 1))
        return max(error, float(spread) / self.held.total_weight)

    def choose(self, plans: Sequence[Plan], sigma2: Sequence[float]) -> tuple[int, tuple[Trial, ...]]:
        """Try all plans, whose first values of sigma2 are given; return the index of the winner, and the trials."""
        found, losses = zip(*(self.trial(plan, value) for plan, value in zip(plans, sigma2, strict=True)), strict=True)
        training = [i for i, plan in enumerate(plans) if plan.schedule is not None]
        best = min(training, key=lambda i: found[i].loss)

        def is_close(i: int, other: int, times: float, groups: Array | None = None) -> bool:
            return bool(found[i].loss <= found[other].loss + times * self.margin(losses[i], losses[other], groups))

        first = next(i for i in training if is_close(i, best, N_STANDARD_ERRORS))
        # Training has to lower the loss, and the number of errors as well: on some data it only lowers the loss.
        untrained, groups = [i for i in range(len(plans)) if i not in training], self.held.groups
        keeps = (i for i in untrained if is_close(i, first, 1.0, groups) or found[i].error <= found[first].error)
        winner = next(keeps, first)
        margins = [self.margin(loss, losses[first]) for loss in losses]
        return winner, tuple(trial._replace(margin=margin) for trial, margin in zip(found, margins, strict=True))


def choose_sigma2(
    rule: HeldOut,
    trainer: Trainer,
    evidence: InitialEvidence,
    samples: Samples,
    n_classes: int,
    rng: np.random.Generator,
    *,
    must_train: bool = False,
    n_samples: float | None = None,
) -> Choice:
    """Choose sigma2, the step size and whether to train by held-out samples, as :class:`rplvq.HeldOut` describes.

    Parameters
    ----------
    rule : HeldOut
        The candidates.
    trainer : Trainer
        The trainer of the fit; its sigma2 is not used.
    evidence : InitialEvidence
        Distances of all samples to the initial prototypes of the fit.
    samples, n_classes, rng
        As for :meth:`rplvq.Trainer.init`. The generator is not changed, because the numbers are drawn from a copy.
    must_train : bool, default=False
        Whether the candidate "untrained" is ignored.
    n_samples : float, optional
        Number of samples of the fit, if ``samples`` are only a part of them.

    Returns
    -------
    Choice
        Schedule of sigma2, share of the default step, whether to train, and the trials.

    Raises
    ------
    ValueError
        As for :func:`rplvq.schedules.half_median`.

    Examples
    --------
    >>> from rplvq import AffineInvariant, HeldOut, Trainer
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.schedules import initial_evidence
    >>> X, y = make_syn1(n_per_class=40, random_state=0)
    >>> samples, trainer = Samples(X, y), Trainer(AffineInvariant(), max_epochs=10)
    >>> first = trainer.first_prototypes(samples, 4, np.random.default_rng(0))
    >>> evidence = initial_evidence(trainer.manifold, trainer.cost, *first, samples)
    >>> choice = choose_sigma2(HeldOut(), trainer, evidence, samples, 4, np.random.default_rng(0))
    >>> [trial.n_epochs for trial in choice.trials]
    [2, 2, 0]
    """
    n = n_samples or samples.total_weight
    plans = plans_of(rule, trainer, evidence, n, must_train)
    training = [plan for plan in plans if plan.schedule is not None]
    untried = Choice(cast(Schedule, training[0].schedule), training[0].share)
    if len(rule.candidates) < 2:
        return untried
    # Without training, the value that makes the labels likeliest also gives the best probabilities.
    schedule = Constant(likeliest_sigma2(evidence)) if training[0].is_named else untried.schedule
    means = untried._replace(schedule=schedule, trains=False)
    if trainer.max_epochs < 1:
        return means
    n_values = sum(not is_untrained(value) for value in rule.candidates)
    dealing, seed = (int(number) for number in copy.deepcopy(rng).integers(2**31, size=2))
    # The trials of one sigma2 value split its budget of epochs.
    n_folds, n_epochs = trial_size(trainer.max_epochs, len(samples), len(training) // n_values)
    rows = deal_folds(samples, evidence.labels, np.random.default_rng(dealing))[:n_folds]
    folds = (make_fold(trainer, samples.subset(kept), samples.subset(held), n_classes, seed) for kept, held in rows)
    judge = Judge(trainer, comparable(folds), n_epochs, samples, n)
    if not judge.folds or len(judge.held) < MIN_HELD_OUT or len(np.unique(judge.held.classes)) < 2:
        return untried if len(training) == len(plans) else means
    firsts = [(plan.schedule or untried.schedule)(0, trainer.max_epochs) for plan in plans]
    winner, trials = judge.choose(plans, firsts)
    won = plans[winner]
    return Choice(won.schedule or untried.schedule, won.share, won.schedule is not None, trials, winner)


def make_fold(trainer: Trainer, kept: Samples, held: Samples, n_classes: int, seed: int) -> Fold | None:
    """Return a fold; a manifold that was learned with the classes of all samples is learned again without ``held``.

    On BCI 2a this makes the log-loss of new samples under a whitened metric .85 instead of 1.5. The result is None if
    the samples of the fold do not suffice.
    """
    manifold: Any = trainer.manifold
    if hasattr(manifold, "relearned"):
        try:
            manifold, inner, outer = manifold.relearned(kept.codes, held.codes, kept.classes, kept.weights)
        except ValueError:
            return None
        trainer = attrs.evolve(trainer, manifold=manifold)
        kept, held = attrs.evolve(kept, codes=inner), attrs.evolve(held, codes=outer)
    return Fold(trainer, kept, held, n_classes, seed)


def comparable(folds: Iterable[Fold | None]) -> list[Fold]:
    """Return the folds whose initial prototypes have the same labels as those of the first such fold.

    An initializer of the user's own may give other labels, or raise ValueError, because a fold has fewer samples.
    """
    found: list[Fold] = []
    for fold in filter(None, folds):
        with contextlib.suppress(ValueError):
            labels = fold.first[1]
            if not found or np.array_equal(labels, found[0].first[1]):
                found.append(fold)
    return found


def plans_of(
    rule: HeldOut, trainer: Trainer, evidence: InitialEvidence, n_samples: float, must_train: bool
) -> list[Plan]:
    """Return what the candidates stand for: if the step size is the default, each is tried with both default steps."""
    step, shares = trainer.step_size, cast("list[float | None]", [None])
    if is_auto(getattr(step, "schedule", step)):
        shares = [*default_shares(len(evidence.labels), n_samples, trainer.batch_size)]
    plans = []
    for value in rule.candidates:
        if not is_untrained(value):
            schedule = resolve_sigma2(value, lambda: evidence)
            plans += [Plan(schedule, share, isinstance(value, str)) for share in shares]
        elif not must_train:
            plans.append(Plan(None))
    return plans
