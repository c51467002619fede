"""Short training runs on a part of the samples, judged by the samples held out: how sigma2 is chosen inside fit.

Each candidate trains prototypes on the kept part. They are judged by the mean log posterior of the true class of the
held-out samples, at the sigma2 that makes it largest for these prototypes: what prototypes can tell, whatever sigma2
they were trained with. The posterior at the sigma2 of training instead prefers small values after short training, whose
probabilities are better and whose prototypes are worse.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from rplvq.beginning import default_starts, ready
from rplvq.calibration import calibrated_loss
from rplvq.heldout import HeldOut, Still
from rplvq.initializers import hard_targets
from rplvq.protocols import Array, Prototypes, Schedule
from rplvq.samples import as_asked, distances, subset
from rplvq.schedules import Constant
from rplvq.sigma2 import Start, blended_sigma2
from rplvq.sweeps import repeats, visits

if TYPE_CHECKING:
    from rplvq.trainer import Trainer

__all__ = ["Choice", "Trial", "choose_sigma2", "split_classes"]

FEWEST = 10
"""Held-out samples below which nothing is chosen by them."""


class Trial(NamedTuple):
    """One training run on the kept samples, or none.

    Parameters
    ----------
    schedule : Schedule
        Of sigma2.
    n_epochs : int
        Epochs trained.
    n_visits : int
        Samples visited.
    loss : float
        Mean held-out loss at the best sigma2; infinite where training diverged.
    step_size : float, Schedule, str or None, default=None
        As the trainer takes it.
    """

    schedule: Schedule
    n_epochs: int
    n_visits: int
    loss: float
    step_size: Any = None


Plan = tuple[Schedule, Any]
"""sigma2, and the step size as the trainer takes it."""


class Choice(NamedTuple):
    """The schedule and the step size chosen, and all trials in their order; none where nothing could be tried."""

    schedule: Schedule
    trials: tuple[Trial, ...]
    step_size: Any = None


def split_classes(
    codes: Array,
    targets: Array,
    labels: Array,
    fraction: float,
    rng: np.random.Generator,
    sample_weight: Array | None = None,
) -> tuple[Array, Array]:
    """Draw the samples to hold out, class by class; equal ones stay together, as if one weighed for all.

    Parameters
    ----------
    codes : ndarray of shape (N, ...)
        Encoded samples.
    targets : ndarray of shape (N,) or (N, C)
        Class indices or probabilities, which count for their likeliest class.
    labels : ndarray of int of shape (K,)
        Class index of each prototype.
    fraction : float
        Share of the different samples of a class.
    rng : numpy.random.Generator
        Source of the draw.
    sample_weight : ndarray of shape (N,), optional
        Samples of weight 0 are left out of both.

    Returns
    -------
    kept, held : ndarray of int
        Rows, sorted.

    Examples
    --------
    >>> codes, targets = np.arange(6.0)[:, None], np.array([0, 0, 0, 0, 1, 1])
    >>> kept, held = split_classes(codes, targets, np.array([0, 1]), 0.5, np.random.default_rng(0))
    >>> len(kept), len(held)  # two of the first class, none of the second
    (4, 2)
    """
    hard, numbers, held = hard_targets(targets), repeats(codes, targets), []
    usable = np.ones(len(hard), dtype=bool) if sample_weight is None else sample_weight > 0
    for label, count in enumerate(np.bincount(labels)):
        different = np.unique(numbers[(hard == label) & usable])
        n_held = min(max(1, round(fraction * len(different))), len(different) - count - 1)
        held.append(rng.permutation(different)[: max(n_held, 0)])
    chosen = np.flatnonzero(np.isin(numbers, np.concatenate(held)) & usable)
    usable[chosen] = False
    return np.flatnonzero(usable), chosen


class Part(NamedTuple):
    """Codes (M, ...), targets and weights of some samples."""

    codes: Array
    targets: Array
    weights: Array | None

    @property
    def n_visits(self) -> int:
        """Visits of samples in an epoch."""
        return len(visits(len(self.codes), self.weights)[0])

    def at(self, rows: Array) -> Part:
        """Part of these rows (L,)."""
        return Part(subset(self.codes, rows), self.targets[rows], None if self.weights is None else self.weights[rows])


@attrs.frozen(eq=False)
class Trials:
    """Trials on one split, all from the same prototypes with the same random numbers.

    Parameters
    ----------
    trainer : Trainer
        Its sigma2 is not looked at.
    kept, held : Part
        The samples that train, and those that judge.
    n_classes, seed : int
        Number of classes; seed of the initial prototypes and of every trial.

    Attributes
    ----------
    begin : tuple of Prototypes and ndarray of int of shape (K,)
        Initial prototypes of the kept samples, with their labels.
    """

    trainer: Trainer
    kept: Part
    held: Part
    n_classes: int
    seed: int
    begin: tuple[Prototypes, Array] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Choose the initial prototypes."""
        codes, targets, weights = self.kept
        initializer, rng = self.trainer.initializer, np.random.default_rng(self.seed)
        given = (self.trainer.manifold, as_asked(initializer, codes), targets, self.n_classes, rng)
        begin = initializer(*given) if weights is None else initializer(*given, sample_weight=weights)
        object.__setattr__(self, "begin", begin)

    def loss(self, prototypes: Prototypes, sigma2: float) -> tuple[float, float]:
        """Held-out loss of prototypes, and the sigma2 at which it is least."""
        codes, targets, weights = self.held
        labels = self.begin[1]
        sqdist = distances(self.trainer.manifold, prototypes, codes, len(labels))
        return calibrated_loss(self.trainer.cost, sqdist, targets, labels, sigma2, weights)

    def run(self, schedule: Schedule, step_size: Any, n_epochs: int) -> Trial:
        """Train for ``n_epochs`` and judge."""
        codes, targets, weights = self.kept
        quiet = attrs.evolve(self.trainer, callbacks=(), growth=(), patience=None, verbose=0, monitor="sweep")
        pilot = attrs.evolve(quiet, sigma2=schedule, step_size=step_size, max_epochs=n_epochs)
        state = ready(pilot, *self.begin, codes, targets, self.n_classes, weights)
        try:
            with np.errstate(all="ignore"):  # what diverges here is no concern of the fit
                state, _ = pilot.run(state, codes, targets, np.random.default_rng(self.seed), weights)
            loss = self.loss(state.prototypes, state.sigma2)[0]
        except FloatingPointError:  # this sigma2 is too small for the step size
            loss = np.inf
        loss = loss if np.isfinite(loss) else np.inf
        return Trial(schedule, n_epochs, n_epochs * self.kept.n_visits, loss, step_size)

    def search(self, rule: HeldOut, plans: list[Plan], blended: float, budget: int) -> Choice:
        """Try plans and then the best of them, in ``budget`` epochs of the kept samples together."""

        def nearest(trial: Trial) -> tuple[float, float]:
            return trial.loss, abs(np.log(trial.schedule(0, 1) / blended))

        step = self.trainer.step_size
        n_epochs = max(1, budget // (1 if rule.one_round else 2) // len(plans))
        first = [self.run(*plan, min(n_epochs, self.trainer.max_epochs)) for plan in plans]
        best = [(trial.schedule, trial.step_size) for trial in sorted(first, key=nearest)[:2]]
        if rule.annealing is not None:
            best.append((rule.annealed(best[0][0](0, 1)), best[0][1]))
        left = (budget - sum(trial.n_epochs for trial in first)) // len(best)
        n_epochs = min(left, self.trainer.max_epochs)
        last = [self.run(*plan, n_epochs) for plan in best] if n_epochs > first[0].n_epochs else []
        winner = min(last or first, key=nearest)
        still = []
        if rule.untrained:
            loss, sigma2 = self.loss(self.begin[0], blended)
            still.append(Trial(Still(sigma2), 0, 0, loss, step))
            winner = still[0] if loss < winner.loss else winner
        if not winner.loss < np.inf:
            return Choice(Constant(blended), (*first, *last, *still), step)
        return Choice(winner.schedule, (*first, *last, *still), winner.step_size)


def _plans(
    rule: HeldOut, trainer: Trainer, start: Start, blended: float, kept: Part, n_classes: int, budget: int
) -> list[Plan]:
    """sigma2 and step size of the first trials; none if their epochs are too few to tell one from another."""
    step, count = trainer.step_size, max(1, min(rule.candidates, budget // 2))
    plans: list[Plan] = [(value, step) for value in rule.grid(blended, start.half_median, count)]
    if rule.gentle and step is None:
        paper, gentle = default_starts(trainer, blended, len(start.labels), kept.codes, n_classes, kept.weights)
        plans += [(Constant(blended), "auto")] if gentle < paper else []
    if rule.untrained or not rule.one_round:  # something else to compare them with
        return plans
    return plans if len(plans) > 1 and budget >= 2 * len(plans) else []


def choose_sigma2(
    rule: HeldOut,
    trainer: Trainer,
    start: Start,
    codes: Array,
    targets: Array,
    n_classes: int,
    rng: np.random.Generator,
    sample_weight: Array | None = None,
) -> Choice:
    """Do what :class:`rplvq.HeldOut` says.

    Parameters
    ----------
    rule : HeldOut
        What is tried.
    trainer : Trainer
        Whose fit it is for; its sigma2 is not looked at.
    start : Start
        The situation before training on all samples.
    codes : ndarray of shape (N, ...)
        Encoded samples.
    targets : ndarray of shape (N,) or (N, C)
        Their class indices or probabilities.
    n_classes : int
        Number of classes C.
    rng : numpy.random.Generator
        Not drawn from: a copy gives two numbers.
    sample_weight : ndarray of shape (N,), optional
        As for :meth:`rplvq.Trainer.init`.

    Returns
    -------
    Choice
        A Constant, an Annealed or a Still, the step size, and the trials.

    Raises
    ------
    ValueError
        As :func:`rplvq.sigma2.half_median`.

    Examples
    --------
    >>> from rplvq import AffineInvariant, Trainer
    >>> from rplvq.beginning import look
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=40, random_state=0)
    >>> trainer = Trainer(AffineInvariant(), max_epochs=10)
    >>> start = look(trainer, *trainer.initializer(trainer.manifold, X, y, 4, np.random.default_rng(0)), X, y)
    >>> choice = choose_sigma2(HeldOut(), trainer, start, X, y, 4, np.random.default_rng(0))
    >>> [(trial.n_epochs, round(trial.schedule(0, 10), 1)) for trial in choice.trials if trial.n_epochs > 1]
    [(6, 0.6), (6, 0.9), (6, 0.6)]
    """
    blended = blended_sigma2(start)
    untried = Choice(Constant(blended), (), trainer.step_size)
    if trainer.max_epochs < 1:
        return untried
    splitting, seed = (int(number) for number in copy.deepcopy(rng).integers(2**31, size=2))
    rows = split_classes(codes, targets, start.labels, rule.fraction, np.random.default_rng(splitting), sample_weight)
    samples = Part(codes, targets, sample_weight)
    kept, held = (samples.at(part) for part in rows)
    if len(held.codes) < FEWEST or len(np.unique(hard_targets(held.targets))) < 2:
        return untried
    budget = int(rule.price * trainer.max_epochs * samples.n_visits / kept.n_visits)
    plans = _plans(rule, trainer, start, blended, kept, n_classes, budget) if budget else []
    return Trials(trainer, kept, held, n_classes, seed).search(rule, plans, blended, budget) if plans else untried
