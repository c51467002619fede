"""Chooses sigma2 by trials: short training runs on a part of the samples, judged by the samples held out.

The prototypes of a trial are judged by the mean log-posterior of the true class of the held-out samples, after sigma2
has been recalibrated for these prototypes. Without recalibration small values of sigma2 would win after short training,
because their probabilities are better although their prototypes are worse.
"""

import copy
from functools import cached_property
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.arrays import Samples, distances, repeats
from rplvq.costs import calibrated_loss
from rplvq.protocols import Array, Prototypes, Schedule
from rplvq.schedules import Annealed, Constant, HeldOut, InitialEvidence, blended_sigma2, default_starts, resolve
from rplvq.training._trainer import Trainer

FRACTION = 0.25
"""Share of the samples of each class that is held out."""
GRID = 7
"""Number of values that the candidate "grid" stands for."""
ANNEALING = 0.25
"""Share of its start to which the candidate "annealed" falls."""
ONE_ROUND = 3
"""Number of candidates up to which one round of trials decides."""
FEWEST = 10
"""Smallest number of held-out samples by which anything is chosen."""


def constants(rule: HeldOut) -> list[Any]:
    """Return the candidates that the first round trains, without "gentle"."""
    return [value for value in rule.candidates if value not in ("gentle", "annealed", "untrained")]


def is_one_round(rule: HeldOut) -> bool:
    """Whether the first round of trials decides."""
    return len(constants(rule)) <= ONE_ROUND and "grid" not in rule.candidates and "annealed" not in rule.candidates


def price(rule: HeldOut) -> float:
    """Return how many visits of samples all trials may take together, relative to those of the fit."""
    return 0.4 if is_one_round(rule) else 2.0


def first_values(rule: HeldOut, blended: float, half_median: float, at_most: int) -> list[Schedule]:
    """Return the schedules of sigma2 that the first round trains, at most ``at_most`` of them.

    Examples
    --------
    >>> [schedule.value for schedule in first_values(HeldOut(["blended", 5.0]), 2.0, 4.0, 2)]
    [2.0, 5.0]
    >>> [round(schedule.value, 6) for schedule in first_values(HeldOut(), 2.0, 4.0, 4)]
    [1.0, 2.0, 4.0, 8.0]
    """
    named: dict[str, Any] = {"blended": [blended], "half_median": [half_median]}
    named["grid"] = grid(blended, half_median, min(at_most, GRID))
    found = [value for item in constants(rule) for value in (named[item] if isinstance(item, str) else [item])]
    return [resolve(value, Constant(blended), "sigma2") for value in found[:at_most]]


def grid(low: float, middle: float, count: int) -> list[float]:
    """Return ``count`` values from ``low / 2`` to ``2 middle`` in equal ratios; one or two are low and middle."""
    return [low, middle][:count] if count < 3 else np.geomspace(low / 2, 2 * middle, count).tolist()


def annealed(start: float) -> Schedule:
    """Return the annealing of the paper from ``start`` to a quarter of it."""
    return Annealed(start, drop=(1 - ANNEALING) * start, floor=0.01 * start)


class Trial(NamedTuple):
    """The result of one candidate.

    Parameters
    ----------
    schedule : Schedule
        Schedule of sigma2.
    n_epochs : int
        Number of epochs trained; 0 for the candidate "untrained".
    n_visits : int
        Number of visits of samples.
    loss : float
        Mean held-out loss after recalibration; infinite if training diverged.
    step_size : object, default=None
        Step size, in a form that the trainer accepts.
    """

    schedule: Schedule
    n_epochs: int
    n_visits: int
    loss: float
    step_size: Any = None


Plan = tuple[Schedule, Any]
"""sigma2 and step size of a trial, in a form that the trainer accepts."""


class Choice(NamedTuple):
    """The choice for a fit, and the trials that led to it.

    Parameters
    ----------
    schedule : Schedule
        Schedule of sigma2 for the fit.
    trials : tuple of Trial
        All trials in their order; empty if no trial was possible.
    step_size : object
        Step size of the fit, in a form that the trainer accepts.
    trains : bool, default=True
        Whether the fit trains; False if the initial prototypes won.
    """

    schedule: Schedule
    trials: tuple[Trial, ...]
    step_size: Any
    trains: bool = True


def split_classes(
    samples: Samples, labels: Array, rng: np.random.Generator, fraction: float = FRACTION
) -> tuple[Array, Array]:
    """Draw samples to hold out from each class; return the sorted indices of the kept and of the held-out samples.

    Equal samples stay together, and samples of weight 0 are in neither part. A class keeps at least one sample more
    than it has prototypes, whose ``labels`` have shape (K,).
    """
    hard, numbers, held = samples.classes, repeats(samples.codes, samples.targets), []
    usable = samples.filled_weights > 0
    for label, count in enumerate(np.bincount(labels)):
        different = np.unique(numbers[(hard == label) & usable])
        n_held = min(max(1, round(fraction * len(different))), len(different) - count - 1)
        held.append(rng.permutation(different)[: max(n_held, 0)])
    chosen = np.flatnonzero(np.isin(numbers, np.concatenate(held)) & usable)
    usable[chosen] = False
    return np.flatnonzero(usable), chosen


@attrs.frozen(eq=False, slots=False)
class Trials:
    """Runs trials on one split, all from the same initial prototypes and with the same random numbers."""

    trainer: Trainer  # its sigma2 is not used
    kept: Samples  # the samples that train
    held: Samples  # the samples that judge
    n_classes: int
    seed: int

    @cached_property
    def first(self) -> tuple[Prototypes, Array]:
        """The initial prototypes, with their labels (K,)."""
        return self.trainer.first_prototypes(self.kept, self.n_classes, np.random.default_rng(self.seed))

    def loss(self, prototypes: Prototypes, sigma2: float) -> tuple[float, float]:
        """Return the held-out loss of prototypes after recalibration, and the recalibrated sigma2."""
        labels, held = self.first[1], self.held
        sqdist = distances(self.trainer.manifold, prototypes, held.codes)
        return calibrated_loss(self.trainer.cost, sqdist, held.targets, labels, sigma2, held.weights)

    def run(self, schedule: Schedule, step_size: Any, n_epochs: int) -> Trial:
        """Train for ``n_epochs`` epochs, and judge the prototypes."""
        quiet = attrs.evolve(self.trainer, callbacks=(), growth=(), early_stopping=None, verbose=0)
        pilot = attrs.evolve(quiet, sigma2=schedule, step_size=step_size, max_epochs=n_epochs)
        state = pilot.start(*self.first, self.kept, self.n_classes)
        try:
            with np.errstate(all="ignore"):  # a trial that diverges is no reason for a warning from the fit
                state, _ = pilot.run(state, self.kept, np.random.default_rng(self.seed))
            loss = self.loss(state.prototypes, state.sigma2)[0]
        except FloatingPointError:  # this sigma2 is too small for the step size
            loss = np.inf
        loss = loss if np.isfinite(loss) else np.inf
        return Trial(schedule, n_epochs, n_epochs * self.kept.n_visits, loss, step_size)

    def plans(self, rule: HeldOut, evidence: InitialEvidence, blended: float, budget: int) -> list[Plan]:
        """Return the plans of the first round; none if ``budget`` epochs are too few to compare them."""
        step, n_prototypes = self.trainer.step_size, len(evidence.labels)
        values = first_values(rule, blended, evidence.half_median, max(1, budget // 2))
        plans: list[Plan] = [(value, step) for value in values]
        if "gentle" in rule.candidates and getattr(step, "schedule", step) is None:
            paper, gentle = default_starts(self.trainer.manifold, blended, n_prototypes, self.n_classes, self.kept)
            plans += [(Constant(blended), attrs.evolve(step, schedule="auto"))] if gentle < paper else []
        if "untrained" in rule.candidates or not is_one_round(rule):  # even a single plan has a rival
            return plans
        return plans if len(plans) > 1 and budget >= 2 * len(plans) else []

    def search(self, rule: HeldOut, plans: list[Plan], blended: float, budget: int) -> Choice:
        """Try all plans, then the best of them for longer; all trials together take at most ``budget`` epochs."""

        def rank(trial: Trial) -> tuple[float, float]:
            return trial.loss, abs(np.log(trial.schedule(0, 1) / blended))

        step = self.trainer.step_size
        n_epochs = max(1, budget // (1 if is_one_round(rule) else 2) // len(plans))
        first = [self.run(*plan, min(n_epochs, self.trainer.max_epochs)) for plan in plans]
        best = [(trial.schedule, trial.step_size) for trial in sorted(first, key=rank)[:2]]
        new = [(annealed(best[0][0](0, 1)), best[0][1])] if "annealed" in rule.candidates else []
        left, at_first = budget - sum(trial.n_epochs for trial in first), first[0].n_epochs
        n_epochs = min(left // len(best + new), self.trainer.max_epochs)
        longer = n_epochs > at_first  # if not, the second round can only add the annealed candidate
        plans = best + new if longer else new if left >= at_first else []
        last = [self.run(*plan, n_epochs if longer else at_first) for plan in plans]
        winner, trials = min(last if longer else (*first, *last), key=rank), (*first, *last)
        if "untrained" in rule.candidates:
            loss, sigma2 = self.loss(self.first[0], blended)
            untrained = Trial(Constant(sigma2), 0, 0, loss, step)
            trials = (*trials, untrained)
            if loss < winner.loss:
                return Choice(untrained.schedule, trials, step, trains=False)
        if not winner.loss < np.inf:
            return Choice(Constant(blended), trials, step)
        return Choice(winner.schedule, trials, winner.step_size)


def choose_sigma2(
    rule: HeldOut,
    trainer: Trainer,
    evidence: InitialEvidence,
    samples: Samples,
    n_classes: int,
    rng: np.random.Generator,
    *,
    must_train: bool = False,
) -> Choice:
    """Choose sigma2 by held-out samples, as :class:`rplvq.HeldOut` describes.

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

    Returns
    -------
    Choice
        Schedule of sigma2, step size and trials.

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
    >>> [(trial.n_epochs, round(trial.schedule(0, 10), 1)) for trial in choice.trials if trial.n_epochs > 1]
    [(6, 0.6), (6, 0.9), (6, 0.6)]
    """
    if must_train and "untrained" in rule.candidates:
        rule = HeldOut(tuple(value for value in rule.candidates if value != "untrained"))
    blended = blended_sigma2(evidence)
    only = constants(rule) if len(rule.candidates) == 1 and "grid" not in rule.candidates else []
    sigma2 = first_values(rule, blended, evidence.half_median, 1)[0] if only else Constant(blended)
    untried = Choice(sigma2, (), trainer.step_size)
    if trainer.max_epochs < 1:
        return untried
    splitting, seed = (int(number) for number in copy.deepcopy(rng).integers(2**31, size=2))
    kept, held = map(samples.subset, split_classes(samples, evidence.labels, np.random.default_rng(splitting)))
    if len(held) < FEWEST or len(np.unique(held.classes)) < 2:
        return untried
    budget = int(price(rule) * trainer.max_epochs * samples.n_visits / kept.n_visits)
    trials = Trials(trainer, kept, held, n_classes, seed)
    plans = trials.plans(rule, evidence, blended, budget) if budget else []
    return trials.search(rule, plans, blended, budget) if plans else untried
