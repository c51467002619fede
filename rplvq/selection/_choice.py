"""The choice for a fit: whether to train, from where, how long, and with which sigma2."""

from __future__ import annotations

import copy
from typing import NamedTuple, cast

import attrs
import numpy as np

from rplvq.arrays import Samples, materialise
from rplvq.initializers import Discriminant, discriminant_beside, places_means
from rplvq.parts import library_part
from rplvq.protocols import Array, Prototypes, Schedule
from rplvq.schedules import Constant, InitialEvidence, likeliest_sigma2
from rplvq.selection._candidates import FOLDS, HeldOut, More, candidates_of, deal_folds, make_folds
from rplvq.selection._race import Race, difference, race
from rplvq.training import Trainer

TRIAL_EPOCHS = 5
"""Number of epochs of a trial, which has the same amount of training as the fit. With a step size of the user, it has
half of the epochs.

With 3 epochs, 500 digits train too rarely, and their log-loss is 0.72 instead of 0.65; with 10 it is 0.65, too. In fits
that train, 20 epochs are better than 10 of the same amount: by 0.002 to 0.016 on seven data sets."""
MOST_VISITS = 100_000
"""Number of visits of samples after which a fit needs no further epochs, as long as it has :data:`FEWEST_EPOCHS`.

The trials of all folds together have as many visits at most."""
FEWEST_EPOCHS = 5
"""Smallest number of epochs to which a fit of many samples is shortened."""


@library_part
class Tried(NamedTuple):
    """One candidate of a :class:`Choice`."""

    name: str
    """As in :class:`rplvq.HeldOut`: "untrained", "discriminant", or the sigma2 with which it trains."""
    sigma2: float
    """The value with which a fit of this candidate begins."""
    amount: float
    """Amount of training, see :class:`rplvq.Share`: 0 without training, and NaN for a step size of the user."""
    n_folds: int
    """Number of folds before it fell out of the race."""
    loss: float
    """Mean held-out loss."""
    loss_of_chosen: float
    """That of the chosen candidate on the same folds."""
    standard_error: float
    """Standard error of the difference of the two losses."""
    error: float
    """Share of held-out samples whose nearest prototype has another class."""


@library_part
class Choice(NamedTuple):
    """What a fit chose, from what, and by which losses; print it to see a table."""

    chosen: str
    """Name of the chosen candidate."""
    trains: bool = True
    """Whether the fit trains."""
    tried: tuple[Tried, ...] = ()
    """The candidates in their order; empty if there was nothing to compare."""
    winner: int = -1
    """Index of the chosen candidate among them; -1 if there are none."""
    calibration: float = 1.0
    """Factor by which the sigma2 of probabilities differs from that of training."""

    @property
    def compared_initial(self) -> bool:
        """Whether the initial prototypes were among the candidates that were tried."""
        return any(one.name == "untrained" for one in self.tried)

    def __str__(self) -> str:
        """Return one line per candidate, with losses on the same folds."""
        if not self.tried:
            return f"{self.chosen}: nothing was compared"
        lines = [f"chose {self.chosen} by held-out loss; in brackets: its own on the same folds"]
        for index, one in enumerate(self.tried):
            what = f"{one.name}, amount {one.amount:.3g}" if one.amount > 0 else one.name
            beside = "" if index == self.winner else f" ({one.loss_of_chosen:.4f} +- {one.standard_error:.4f})"
            mark = "->" if index == self.winner else "  "
            lines.append(f"{mark} {what}: {one.loss:.4f}{beside}, error {one.error:.3f}, {one.n_folds} folds")
        return "\n".join(lines)


class Plan(NamedTuple):
    """The trainer and the first prototypes of a fit, and the choice that led to them."""

    trainer: Trainer
    prototypes: Prototypes  # (K, ...)
    labels: Array  # (K,), classes of the prototypes
    choice: Choice


def choose(
    rule: HeldOut, trainer: Trainer, prototypes: Prototypes, evidence: InitialEvidence, samples: Samples,
    rng: np.random.Generator, *, more: More | None = None, must_train: bool = False,
) -> Plan:  # fmt: skip
    """Choose by held-out samples what a fit does, as :class:`rplvq.HeldOut` describes.

    ``prototypes`` (K, ...) are the initial prototypes of the fit, and ``evidence`` has the distances of all samples to
    them. The sigma2 of the ``trainer`` is not used. ``rng`` is not changed, because numbers are drawn from a copy.
    ``more`` is a start with more prototypes, which is then tried, too. With ``must_train`` the candidates without
    training are ignored.
    """
    rows, seed = _tried_rows(samples, rng)
    is_part = rows is not None
    part = samples if rows is None else samples.subset(rows)
    is_asked = "discriminant" in rule.candidates and trainer.max_epochs > 0 and not must_train
    start, discriminant = _discriminant(trainer, prototypes, part, evidence) if is_asked else (None, prototypes)
    candidates = candidates_of(rule, trainer, evidence, start, more, must_train=must_train, is_part=is_part)
    sigma2 = cast(Schedule, candidates[0].sigma2)  # of a fit that does not train, too
    result = None
    if len(candidates) > 1 and trainer.max_epochs > 0:
        dealt = deal_folds(part, evidence.labels, np.random.default_rng(seed))
        folds = make_folds(trainer, part, prototypes, evidence.labels, dealt, seed)
        begun = [(one.sigma2 or sigma2)(0, trainer.max_epochs) for one in candidates]
        result = race(trainer.cost, folds, candidates, begun, len(dealt), _trial_epochs(trainer), is_part=is_part)
    first = (prototypes, evidence.labels)
    if result is not None:
        won = result.scores[result.winner].candidate
        fit = won.trainer(trainer) if won.trains else attrs.evolve(trainer, sigma2=sigma2)
        if won.start is not None:
            first = (discriminant, evidence.labels)
        elif won.more is not None:
            first = (won.more.prototypes, won.more.evidence.labels)
        return Plan(fit, *first, _record(result, trainer, sigma2))
    choice = Choice(candidates[0].name)
    if any(one.is_initial for one in candidates):
        choice = Choice("untrained", trains=False)
        if candidates[0].is_rule:  # the value that makes the labels likeliest also gives the best probabilities
            sigma2 = Constant(likeliest_sigma2(evidence))
    return Plan(attrs.evolve(trainer, sigma2=sigma2), *first, choice)


def _tried_rows(samples: Samples, rng: np.random.Generator) -> tuple[Array | None, int]:
    """Return sorted indices of the samples that the trials use, None for all, and the seed of the trials."""
    drawn = copy.deepcopy(rng)
    seed = int(drawn.integers(2**31))
    most = MOST_VISITS // (TRIAL_EPOCHS * (FOLDS - 1))
    if len(samples) <= most:
        return None, seed
    return np.sort(drawn.choice(len(samples), most, replace=False)), seed


def _discriminant(
    trainer: Trainer, means: Prototypes, samples: Samples, evidence: InitialEvidence
) -> tuple[Discriminant | None, Prototypes]:
    """Return the discriminant of the samples with its prototypes (C, ...).

    It is None, beside the ``means``, if the samples do not suffice, or if the initial prototypes are not one mean of
    each class.
    """
    is_one_each = len(evidence.labels) == evidence.labels.max() + 1
    if not (is_one_each and places_means(trainer.initializer)):
        return None, means
    codes = materialise(discriminant_beside, samples.codes)
    discriminant = discriminant_beside(trainer.manifold, codes, samples.targets, samples.weights, np.asarray(means))
    if discriminant is None:
        return None, means
    try:
        return discriminant, discriminant.prototypes()
    except ValueError:  # its prototypes are no points of the manifold
        return None, means


def _trial_epochs(trainer: Trainer) -> int:
    """Return the number of epochs of a trial."""
    return min(trainer.max_epochs, TRIAL_EPOCHS) if trainer.leaves_step else max(trainer.max_epochs // 2, 1)


def _record(outcome: Race, trainer: Trainer, default: Schedule) -> Choice:
    """Return the printable record of a race."""
    won, n_epochs = outcome.scores[outcome.winner], _trial_epochs(trainer)
    tried = []
    for one in outcome.scores:
        sigma2 = one.sigma2 if one.candidate.sigma2 is None else one.candidate.sigma2(0, trainer.max_epochs)
        beside = outcome.mean(won.losses[: min(len(one.losses), len(won.losses))])
        _, error = difference(one.losses, won.losses, outcome.held)
        losses = one.n_folds, outcome.mean(one.losses), beside, error, outcome.mean(one.wrong)
        tried.append(Tried(one.candidate.name, sigma2, one.candidate.amount, *losses))
    reached = (won.candidate.sigma2 or default)(n_epochs, n_epochs)
    calibration = outcome.calibration(trainer.cost, reached)
    return Choice(won.candidate.name, won.candidate.trains, tuple(tried), outcome.winner, calibration)


def enough_epochs(max_epochs: int, n_visits: float) -> int:
    """Return how many of ``max_epochs`` epochs are useful, for so many visits of samples per epoch.

    The amount of training, epochs times the first share, decides how far prototypes get. On 20,000 samples of SynII 5,
    10, 20 and 100 epochs end at accuracies of 0.989, 0.989, 0.989 and 0.988.

    Examples
    --------
    >>> enough_epochs(20, 300), enough_epochs(20, 20_000), enough_epochs(100, 20_000)
    (20, 5, 5)
    """
    return min(max_epochs, max(FEWEST_EPOCHS, round(MOST_VISITS / max(n_visits, 1))))
