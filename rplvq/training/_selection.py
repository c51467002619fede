"""The choice of sigma2, the default step size, and whether to train, by held-out samples."""

import copy
from typing import NamedTuple, cast

import numpy as np

from rplvq.arrays import Samples, materialise
from rplvq.initializers import Discriminant, discriminant_beside
from rplvq.protocols import Array, Schedule
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
from rplvq.training._judge import MIN_HELD_OUT, Judge, Plan, Trial, comparable, make_fold, race
from rplvq.training._trainer import Trainer

TRIAL_BUDGET = 0.35
"""How many samples the trials of one sigma2 value may visit together, relative to training in the fit."""
MAX_HELD_OUT = 1000
"""Number of held-out samples that decide well enough: folds beyond it are not used."""
FEW = 2000
"""Largest number of samples for which "discriminant" is tried, so that it takes little memory and time."""
MANY = 3.0
"""Number of samples per free parameter of the prototypes above which it is not tried, because training is better."""
MIN_TRIAL_EPOCHS = 4
"""Smallest number of epochs of a trial; where there would be fewer, fewer folds are used."""
FEW_VISITS = 3000
"""How many samples the trials of one sigma2 value may visit even in a short fit, because this takes little time."""
LONG = 100
"""Number of epochs above which a fit is not short."""


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
    start : Discriminant, optional
        The discriminant whose prototypes the fit takes in place of the initial ones, without training.
    """

    schedule: Schedule
    share: float | None = None
    trains: bool = True
    trials: tuple[Trial, ...] = ()
    winner: int = -1
    start: Discriminant | None = None

    def columns(self) -> dict[str, Array]:
        """Return the trials with one array per column, and which one was chosen."""
        found = {name: np.array([getattr(trial, name) for trial in self.trials]) for name in Trial._fields}
        found["candidate"] = found["candidate"].astype(str)  # without trials, too
        return found | {"chosen": np.arange(len(self.trials)) == self.winner}

    def line(self) -> str:
        """Return one sentence that says what was chosen, and by which losses."""
        if not self.trials:
            return f"{'trains' if self.trains else 'keeps the initial prototypes'}: there was nothing to compare"
        won, losses = self.trials[self.winner], ", ".join(f"{trial.loss:.4g}" for trial in self.trials)
        what = "the discriminant" if self.start is not None else "the initial prototypes"
        if self.trains:
            what = f"sigma2 {won.sigma2:.3g}, step size {won.step_size:.3g}"
        return f"chose {what}: held-out loss {won.loss:.4g} of {losses}"


def trial_size(max_epochs: int, n_samples: int, n_plans: int = 1, n_visits: int | None = None) -> tuple[int, int]:
    """Return on how many folds and for how many epochs each of ``n_plans`` candidates is tried.

    ``n_visits`` is the number of visits of an epoch, if it is not that of the samples.

    Examples
    --------
    >>> trial_size(100, 200), trial_size(100, 5000), trial_size(10, 200), trial_size(1, 200)
    ((4, 11), (1, 46), (4, 5), (4, 1))
    """
    n_epochs = max(TRIAL_BUDGET * max_epochs, min(FEW_VISITS / max(n_visits or n_samples, 1), TRIAL_BUDGET * LONG))
    n_epochs /= (1 - 1 / FOLDS) * n_plans
    n_folds = max(min(FOLDS, -(-MAX_HELD_OUT * FOLDS // max(n_samples, 1)), int(n_epochs / MIN_TRIAL_EPOCHS)), 1)
    return n_folds, max(min(int(n_epochs / n_folds), max_epochs), 1)


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
    max_epochs: int | None = None,
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
        Whether the candidates without training are ignored.
    n_samples : float, optional
        Number of samples of the fit, if ``samples`` are only a part of them.
    max_epochs : int, optional
        Number of epochs that determines the size of the trials; by default that of the trainer.

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
    [4, 4, 0]
    """
    n = n_samples or samples.total_weight
    start, is_tried = None, "discriminant" in rule.candidates and trainer.max_epochs > 0
    if is_tried and not must_train and n <= min(MANY * evidence.n_free, FEW):
        start = discriminant_of(trainer, samples)
    plans = plans_of(rule, trainer, evidence, n, must_train, start)
    training = [plan for plan in plans if plan.schedule is not None]
    untried = Choice(cast(Schedule, training[0].schedule), training[0].share)
    if len(rule.candidates) < 2:
        return untried

    def keep_means() -> Choice:
        # Without training, the value that makes the labels likeliest also gives the best probabilities.
        schedule = Constant(likeliest_sigma2(evidence)) if training[0].is_named else untried.schedule
        return untried._replace(schedule=schedule, trains=False)

    if trainer.max_epochs < 1:
        return keep_means()
    n_values = sum(not is_untrained(value) for value in rule.candidates)
    dealing, seed = (int(number) for number in copy.deepcopy(rng).integers(2**31, size=2))
    # The trials of one sigma2 value split its budget of epochs.
    n_plans, n_visits = len(training) // n_values, samples.n_visits
    n_folds, n_epochs = trial_size(max_epochs or trainer.max_epochs, len(samples), n_plans, n_visits)
    rows = deal_folds(samples, evidence.labels, np.random.default_rng(dealing))[:n_folds]
    folds = (make_fold(trainer, samples, *fold, n_classes, seed) for fold in rows)
    judge = Judge(trainer, (), n_epochs, samples, n, len(rows))
    firsts = [(plan.schedule or untried.schedule)(0, trainer.max_epochs) for plan in plans]
    found = None
    if sum(len(held) for _, held in rows) >= MIN_HELD_OUT:
        found = race(judge, comparable(folds), plans, firsts)
    if found is None:
        return untried if len(training) == len(plans) else keep_means()
    won = plans[found.winner]
    trains = won.schedule is not None
    return Choice(won.schedule or untried.schedule, won.share, trains, found.trials, found.winner, won.start)


def discriminant_of(trainer: Trainer, samples: Samples) -> Discriminant | None:
    """Return the discriminant of the samples; None if the initial prototypes are not one mean of each class.

    It is also None if the metric does not suit, see :func:`rplvq.initializers.discriminant_beside`.
    """
    means = getattr(trainer.initializer, "class_means", None)
    if means is None:
        return None
    codes = materialise(discriminant_beside, samples.codes)
    return discriminant_beside(trainer.manifold, codes, samples.targets, samples.weights, means)


def plans_of(
    rule: HeldOut,
    trainer: Trainer,
    evidence: InitialEvidence,
    n_samples: float,
    must_train: bool,
    start: Discriminant | None = None,
) -> list[Plan]:
    """Return what the candidates stand for: if the step size is the default, each is tried with both default steps.

    ``start`` is that of "discriminant", which is left out without it.
    """
    step, shares = trainer.step_size, cast("list[float | None]", [None])
    if is_auto(getattr(step, "schedule", step)):
        shares = [*default_shares(len(evidence.labels), n_samples, trainer.batch_size)]
    plans = []
    for value in rule.candidates:
        if not is_untrained(value):
            schedule = resolve_sigma2(value, lambda: evidence)
            plans += [Plan(str(value), schedule, share, isinstance(value, str)) for share in shares]
        elif value == "discriminant" and start is not None:
            plans.append(Plan(value, None, start=start))
        elif value == "untrained" and not must_train:
            plans.append(Plan(value, None))
    return plans
