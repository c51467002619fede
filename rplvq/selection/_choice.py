"""The choice for a fit: whether to train, from where, how long, and with which sigma2."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, cast

import attrs
import numpy as np

from rplvq.arrays import Samples, materialise
from rplvq.initializers import Discriminant, discriminant_beside
from rplvq.parts import library_part
from rplvq.protocols import Prototypes, Schedule
from rplvq.schedules import Constant, InitialEvidence, likeliest_sigma2
from rplvq.selection._candidates import Candidate, candidates_of, make_fold
from rplvq.selection._folds import deal_folds
from rplvq.selection._held_out import HeldOut
from rplvq.selection._race import Race, difference, race
from rplvq.training import Trainer

MOST_TRIED = 2000
"""Largest number of samples that the trials use. More hardly change the choice, and the fit takes them all."""
MOST_VISITS = 100_000
"""Number of visits of samples after which a fit needs no further epochs, as long as it has :data:`FEWEST_EPOCHS`."""
FEWEST_EPOCHS = 5
"""Smallest number of epochs to which a fit of many samples is shortened."""


@library_part
class Tried(NamedTuple):
    """One candidate of a :class:`Choice`.

    Parameters
    ----------
    name : str
        "untrained", "discriminant", or the sigma2 with which it trains, as in :class:`rplvq.HeldOut`.
    sigma2 : float
        The value with which a fit of this candidate begins.
    amount : float
        Amount of training, see :class:`rplvq.schedules.Share`: 0 without training, and NaN for a step size of the user.
    n_epochs, n_folds : int
        Number of epochs of its trials, and number of folds before it fell out of the race.
    loss : float
        Mean held-out loss, after recalibration; infinite if the candidate was not possible.
    loss_of_chosen : float
        The loss of the chosen candidate on the same folds.
    standard_error : float
        Standard error of the difference of these losses.
    error : float
        Share of held-out samples whose nearest prototype has another class.
    seconds : float
        Time of its trials.
    """

    name: str
    sigma2: float
    amount: float
    n_epochs: int
    n_folds: int
    loss: float
    loss_of_chosen: float
    standard_error: float
    error: float
    seconds: float


@library_part
class Choice(NamedTuple):
    """What a fit chose, from what, and by which losses; print it to see a table.

    Parameters
    ----------
    chosen : str
        Name of the chosen candidate.
    trains : bool
        Whether the fit trains.
    tried : tuple of Tried
        The candidates in their order; empty if there was nothing to compare.
    winner : int
        Index of the chosen candidate among them; -1 if there are none.
    calibration : float
        Factor by which the recalibrated sigma2 of probabilities differs from that of training.
    """

    chosen: str
    trains: bool = True
    tried: tuple[Tried, ...] = ()
    winner: int = -1
    calibration: float = 1.0

    @property
    def compared_initial(self) -> bool:
        """Whether the initial prototypes were among the candidates that were tried."""
        return any(one.name == "untrained" for one in self.tried)

    def __str__(self) -> str:
        """Return one line per candidate, with losses on the same folds."""
        if not self.tried:
            return f"{self.chosen}: nothing was compared"
        lines = [f"chose {self.chosen} by held-out loss (in brackets: the loss of the choice on the same folds)"]
        for index, one in enumerate(self.tried):
            what = f"{one.name}, amount {one.amount:.3g}" if one.amount > 0 else one.name
            beside = "" if index == self.winner else f" ({one.loss_of_chosen:.4f} +- {one.standard_error:.4f})"
            mark = "->" if index == self.winner else "  "
            lines.append(f"{mark} {what}: {one.loss:.4f}{beside}, error {one.error:.3f}, {one.n_folds} folds")
        return "\n".join(lines)


class Plan(NamedTuple):
    """The trainer and the first prototypes (K, ...) of a fit, and the choice that led to them."""

    trainer: Trainer
    prototypes: Prototypes
    choice: Choice


def choose(
    rule: HeldOut,
    trainer: Trainer,
    prototypes: Prototypes,
    evidence: InitialEvidence,
    samples: Samples,
    n_classes: int,
    rng: np.random.Generator,
    *,
    must_train: bool = False,
    n_epochs: int | None = None,
) -> Plan:
    """Choose by held-out samples what a fit does, as :class:`rplvq.HeldOut` describes.

    Parameters
    ----------
    rule : HeldOut
        The candidates.
    trainer : Trainer
        The trainer of the fit; its sigma2 is not used.
    prototypes : Prototypes
        The K initial prototypes of the fit.
    evidence : InitialEvidence
        Distances of all samples to them, and their labels.
    samples, n_classes, rng
        As for :meth:`rplvq.Trainer.init`. The generator is not changed, because the numbers are drawn from a copy.
    must_train : bool, default=False
        Whether the candidates without training are ignored.
    n_epochs : int, optional
        Number of epochs of a trial; by default half of those of the fit.

    Returns
    -------
    Plan
        The trainer of the fit, its first prototypes, and the record of the choice.

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
    >>> samples, trainer = Samples(X, y), Trainer(AffineInvariant())
    >>> first, labels = trainer.first_prototypes(samples, 4, np.random.default_rng(0))
    >>> evidence = initial_evidence(trainer.manifold, trainer.cost, first, labels, samples)
    >>> plan = choose(HeldOut(), trainer, first, evidence, samples, 4, np.random.default_rng(0))
    >>> plan.choice.chosen in ("auto", "discriminant", "untrained")
    True
    """
    rows, seed = _tried_rows(samples, rng)
    part = samples if rows is None else samples.subset(rows)
    start = None
    if "discriminant" in rule.candidates and trainer.max_epochs and not must_train:
        start = _discriminant(trainer, prototypes, part, len(evidence.labels) == n_classes)
    candidates = candidates_of(rule, trainer, evidence, start, must_train=must_train)
    found: Race | None = None
    n_epochs = n_epochs or max(trainer.max_epochs // 2, 1)
    if len(candidates) > 1 and trainer.max_epochs and len(rule.candidates) > 1:
        dealt = deal_folds(part, evidence.labels, np.random.default_rng(seed))
        near = getattr(trainer.initializer, "near", None)
        pilot = trainer if near is None else attrs.evolve(trainer, initializer=near(prototypes, evidence.labels))
        folds = (make_fold(pilot, part, *fold, n_classes, seed) for fold in dealt)
        default = cast(Schedule, candidates[0].sigma2)
        first = [(one.sigma2 or default)(0, trainer.max_epochs) for one in candidates]
        found = race(trainer.cost, filter(None, folds), candidates, first, len(dealt), n_epochs)
    if found is None:
        return _unraced(trainer, prototypes, candidates, evidence, keeps=len(rule.candidates) > 1)
    won = candidates[found.winner]
    fit = won.trainer(trainer) if won.trains else attrs.evolve(trainer, sigma2=candidates[0].sigma2)
    reached = (won.sigma2 or cast(Schedule, candidates[0].sigma2))(n_epochs, n_epochs)
    choice = Choice(
        won.name,
        won.trains,
        tuple(_tried(found, i, trainer, n_epochs) for i in range(len(candidates))),
        found.winner,
        found.calibration(trainer.cost, reached),
    )
    return Plan(fit, prototypes if won.start is None else won.start.prototypes(), choice)


def _tried_rows(samples: Samples, rng: np.random.Generator) -> tuple[Any, int]:
    """Return sorted indices of the samples that the trials use, None for all, and the seed of the trials."""
    drawn = copy.deepcopy(rng)
    seed = int(drawn.integers(2**31))
    if len(samples) <= MOST_TRIED:
        return None, seed
    return np.sort(drawn.choice(len(samples), MOST_TRIED, replace=False)), seed


def _discriminant(trainer: Trainer, means: Prototypes, samples: Samples, is_one_each: bool) -> Discriminant | None:
    """Return the discriminant of the samples, if the initial prototypes are one mean of each class."""
    if not (is_one_each and getattr(trainer.initializer, "takes_means", False)):
        return None
    codes = materialise(discriminant_beside, samples.codes)
    return discriminant_beside(trainer.manifold, codes, samples.targets, samples.weights, np.asarray(means))


def _unraced(
    trainer: Trainer, prototypes: Prototypes, candidates: list[Candidate], evidence: InitialEvidence, *, keeps: bool
) -> Plan:
    """Return the plan without trials: the initial prototypes if they are a candidate, else the first candidate."""
    initial = [one for one in candidates if one.is_initial]
    if not (keeps and initial):
        return Plan(attrs.evolve(trainer, sigma2=candidates[0].sigma2), prototypes, Choice(candidates[0].name))
    # Without training, the value that makes the labels likeliest also gives the best probabilities.
    sigma2 = Constant(likeliest_sigma2(evidence)) if candidates[0].is_rule else candidates[0].sigma2
    return Plan(attrs.evolve(trainer, sigma2=sigma2), prototypes, Choice("untrained", False))


def enough_epochs(max_epochs: int, n_visits: float) -> int:
    """Return how many of ``max_epochs`` epochs are useful, for so many visits of samples per epoch.

    The amount of training, epochs times the first share, decides how far prototypes get. On 20,000 samples of SynII 5,
    10, 20 and 100 epochs end at accuracies of 0.989, 0.989, 0.989 and 0.988.

    Examples
    --------
    >>> enough_epochs(20, 300), enough_epochs(20, 10_000), enough_epochs(20, 100_000)
    (20, 10, 5)
    """
    return min(max_epochs, max(FEWEST_EPOCHS, round(MOST_VISITS / max(n_visits, 1))))


def _tried(found: Race, index: int, trainer: Trainer, n_epochs: int) -> Tried:
    """Return the record of one candidate of a race."""
    one, won = found.scores[index], found.scores[found.winner]
    count = min(len(one.losses), len(won.losses))
    sigma2 = one.sigma2 if one.candidate.sigma2 is None else one.candidate.sigma2(0, max(trainer.max_epochs, 1))
    _, error = difference(one.losses, won.losses, found.held)
    size = n_epochs if one.candidate.trains else 0, one.n_folds
    losses = found.mean(one.losses), found.mean(won.losses[:count]), error
    return Tried(one.candidate.name, sigma2, one.candidate.amount, *size, *losses, found.mean(one.wrong), one.seconds)
