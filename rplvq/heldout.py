"""sigma2 chosen inside fit: short training runs on a part of the samples, judged by the samples held out.

Each candidate trains prototypes on the kept part. They are judged by the mean log posterior of the true class of the
held-out samples at the sigma2 that makes it largest for these prototypes: what prototypes can tell, whatever sigma2 they were
trained with. The likelihood at the sigma2 of training instead would prefer small values, whose probabilities look sharp
although their prototypes are worse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np
from scipy.optimize import minimize_scalar

from rplvq.checks import count_from
from rplvq.costs.mixture import as_soft, log_proba_of
from rplvq.initializers import hard_targets
from rplvq.protocols import Array, Cost, Prototypes, Schedule
from rplvq.schedules import Annealed, Constant, number, positive
from rplvq.sigma2 import Start, auto_sigma2
from rplvq.sweeps import visits

if TYPE_CHECKING:
    from rplvq.trainer import Trainer

__all__ = ["Choice", "HeldOut", "Still", "Trial", "calibrated_loss", "choose_sigma2", "named_sigma2", "split_classes"]

FITS = 2
"""Visits of samples that all trials may take together, in fits."""
FEWEST = 10
"""Held-out samples below which nothing is chosen by them."""
SPAN = np.log(1e4)


def _share(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Attrs validator: a number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ValueError(f"{attribute.name} must be a number between 0 and 1, got {value!r}")


def _share_or_none(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None:
        _share(_, attribute, value)


@attrs.frozen
class HeldOut:
    """Choose sigma2 and its schedule by held-out log posterior, for at most the price of two more fits.

    1. Of each class, ``fraction`` of its samples are held out, at least one, and never so many that fewer than one
       more than its prototypes are left: of smaller classes none.
    2. Each of ``candidates`` values, from half of "auto" to twice the half-median in equal ratios, trains new initial
       prototypes on the kept samples for a few epochs, with the step size's schedule shortened to these.
    3. The best two, and the best one annealed, train again for about twice as many epochs.
    4. The best of these is compared with the initial prototypes of the kept samples: if those are better, the fit does not train.
    5. The fit then trains on all samples with the schedule chosen.

    Steps 2 and 3 take half each of twice the fit's ``max_epochs`` times its visits of samples, so that the whole costs
    less than three fits. With few epochs fewer candidates are tried, those of an epoch each at least.
    Where fewer than 10 samples or only those of one class can be held out, or ``max_epochs`` is 0, sigma2 is that of "auto".

    Parameters
    ----------
    fraction : float, default=0.25
        Share of the samples of a class that are held out, in (0, 1).
    candidates : int, default=7
        Values of the grid.
    annealing : float or None, default=0.25
        Share of its start to which the annealed schedule falls; None tries constants alone.
    untrained : bool, default=True
        Whether the initial prototypes may win; the model is then theirs, with the sigma2 of their best held-out
        posterior, and ``n_epochs_`` is 0. ``partial_fit``, which is there to train, never lets them.

    Notes
    -----
    The criterion is ``-mean_i sum_c t_ic log p(c | X_i)`` with the cost's own posterior, minimised over the sigma2 of the
    posterior (temperature scaling), for labels as for soft labels t, weighted by sample weights. Trials draw
    from a generator of their own, seeded once from the fit's: all see the same split and order.

    Examples
    --------
    >>> from rplvq import HeldOut, RiemannianLVQ
    >>> from rplvq.datasets import make_syn2
    >>> X, y = make_syn2(n_per_class=40, random_state=0)
    >>> model = RiemannianLVQ(sigma2=HeldOut(candidates=4), max_epochs=10, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    fraction: float = attrs.field(default=0.25, converter=number, validator=_share)
    candidates: int = attrs.field(default=7, converter=number, validator=count_from(1))
    annealing: float | None = attrs.field(default=0.25, converter=number, validator=_share_or_none)
    untrained: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))

    def grid(self, low: float, middle: float, count: int) -> list[Schedule]:
        """Return ``count`` constants from ``low / 2`` to ``2 middle`` in equal ratios; of one or two, ``low`` and ``middle``.

        Parameters
        ----------
        low, middle : float
            sigma2 by "auto" and by the half-median.
        count : int
            At least 1.

        Returns
        -------
        list of Constant

        Examples
        --------
        >>> [round(schedule.value, 6) for schedule in HeldOut().grid(2.0, 4.0, 4)]
        [1.0, 2.0, 4.0, 8.0]
        """
        if count < 3:
            return [Constant(value) for value in (low, middle)[:count]]
        return [Constant(float(value)) for value in np.geomspace(low / 2, 2 * middle, count)]

    def annealed(self, start: float) -> Schedule:
        """Return the paper's annealing from ``start`` to the share ``annealing`` of it.

        Examples
        --------
        >>> HeldOut().annealed(2.0)(100, 100) < 0.5
        True
        """
        share = self.annealing or 1.0
        return Annealed(start, drop=(1 - share) * start, floor=0.01 * start)


@attrs.frozen
class Still:
    """A constant sigma2 for prototypes that stay where they are: a fit with it does not train.

    Parameters
    ----------
    value : float
        Positive; for probabilities.

    Examples
    --------
    >>> Still(0.5)(epoch=0, n_epochs=10)
    0.5
    """

    value: float = attrs.field(converter=number, validator=positive)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the value, the same in every epoch."""
        return self.value


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
    """

    schedule: Schedule
    n_epochs: int
    n_visits: int
    loss: float


class Choice(NamedTuple):
    """The schedule chosen, and all trials in their order; none where nothing could be tried."""

    schedule: Schedule
    trials: tuple[Trial, ...]


def named_sigma2(value: Any) -> Any:
    """Return HeldOut() for "heldout", anything else as it is.

    Examples
    --------
    >>> named_sigma2("heldout").fraction
    0.25
    """
    return HeldOut() if isinstance(value, str) and value == "heldout" else value


def split_classes(
    targets: Array, labels: Array, fraction: float, rng: np.random.Generator, sample_weight: Array | None = None
) -> tuple[Array, Array]:
    """Draw the samples to hold out, class by class.

    Parameters
    ----------
    targets : ndarray of shape (N,) or (N, C)
        Class indices or probabilities, which count for their likeliest class.
    labels : ndarray of int of shape (K,)
        Class index of each prototype.
    fraction : float
        Share of a class.
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
    >>> kept, held = split_classes(np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1]), 0.5, np.random.default_rng(0))
    >>> len(kept), len(held)  # two of the first class, none of the second
    (4, 2)
    """
    hard, held = hard_targets(targets), []
    usable = np.ones(len(hard), dtype=bool) if sample_weight is None else sample_weight > 0
    for label, count in enumerate(np.bincount(labels)):
        rows = np.flatnonzero((hard == label) & usable)
        n_held = min(max(1, round(fraction * len(rows))), len(rows) - count - 1)
        held.append(rng.permutation(rows)[: max(n_held, 0)])
    chosen = np.sort(np.concatenate(held))
    usable[chosen] = False
    return np.flatnonzero(usable), chosen


def calibrated_loss(
    cost: Cost, sqdist: Array, targets: Array, labels: Array, sigma2: float, sample_weight: Array | None = None
) -> tuple[float, float]:
    """Mean negative log posterior of the true class at the sigma2 that makes it least, and that sigma2.

    Parameters
    ----------
    cost : Cost
        Its posterior counts, or that of the plain mixture.
    sqdist : ndarray of shape (M, K)
        Squared distances.
    targets : ndarray of shape (M,) or (M, C)
        Class indices or probabilities.
    labels : ndarray of int of shape (K,)
        Class index of each prototype.
    sigma2 : float
        Where to look, within a factor of 1e4.
    sample_weight : ndarray of shape (M,), optional
        Weights.

    Returns
    -------
    loss, sigma2 : float

    Examples
    --------
    >>> from rplvq import RSLVQ
    >>> sqdist = np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 1.0], [1.0, 2.0], [2.0, 1.5]])
    >>> loss, sigma2 = calibrated_loss(RSLVQ(), sqdist, np.array([0, 0, 1, 1, 1]), np.array([0, 1]), 1.0)
    >>> round(loss, 3), round(sigma2, 2)
    (0.477, 0.81)
    """
    soft = as_soft(targets, int(labels.max()) + 1)

    def loss(log_sigma2: float) -> float:
        logs = log_proba_of(cost, sqdist, labels, float(np.exp(log_sigma2)))
        # A class of probability 0 is no loss, even where its logarithm is infinite.
        return -float(np.average(np.where(soft > 0, soft * logs, 0.0).sum(axis=1), weights=sample_weight))

    center = np.log(sigma2)
    best = minimize_scalar(loss, bounds=(center - SPAN, center + SPAN), method="bounded", options={"xatol": 1e-6})
    return float(best.fun), float(np.exp(best.x))


@attrs.frozen(eq=False)
class _Trials:
    """Runs trials on one split, all from the same prototypes with the same random numbers."""

    trainer: Trainer
    kept: tuple[Array, Array, Array | None]
    held: tuple[Array, Array, Array | None]
    begin: tuple[Prototypes, Array]
    n_classes: int
    seed: int

    @property
    def n_visits(self) -> int:
        """Visits of kept samples in an epoch."""
        return len(visits(len(self.kept[0]), self.kept[2])[0])

    def loss(self, prototypes: Prototypes, sigma2: float) -> tuple[float, float]:
        """Held-out loss of prototypes, and its sigma2."""
        codes, targets, weights = self.held
        sqdist = self.trainer.manifold.sqdist(prototypes, codes)
        return calibrated_loss(self.trainer.cost, sqdist, targets, self.begin[1], sigma2, weights)

    def run(self, schedule: Schedule, n_epochs: int) -> Trial:
        """Train for ``n_epochs`` and judge."""
        codes, targets, weights = self.kept
        own = {"callbacks": (), "patience": None, "verbose": 0, "monitor": "sweep"}
        pilot = attrs.evolve(self.trainer, sigma2=schedule, max_epochs=n_epochs, **own)
        state = pilot.ready(*self.begin, codes, targets, self.n_classes, weights)
        try:
            state, _ = pilot.run(state, codes, targets, np.random.default_rng(self.seed), weights)
            loss = self.loss(state.prototypes, state.sigma2)[0]
        except FloatingPointError:
            loss = np.inf
        return Trial(schedule, n_epochs, n_epochs * self.n_visits, loss if np.isfinite(loss) else np.inf)


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
    """Do what :class:`HeldOut` says.

    Parameters
    ----------
    rule : HeldOut
        What is tried.
    trainer : Trainer
        Whose fit it is for; its sigma2 is not looked at.
    start : Start
        The situation before training on all samples.
    codes, targets, n_classes, rng, sample_weight
        As for :meth:`rplvq.Trainer.init`; ``rng`` gives two numbers.

    Returns
    -------
    Choice
        A Constant, an Annealed or a Still, and the trials.

    Raises
    ------
    ValueError
        As :func:`rplvq.sigma2.half_median`.

    Examples
    --------
    >>> from rplvq import AffineInvariant, Trainer
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=40, random_state=0)
    >>> trainer = Trainer(AffineInvariant(), max_epochs=10)
    >>> start = trainer.look(*trainer.initializer(trainer.manifold, X, y, 4, np.random.default_rng(0)), X, y)
    >>> choice = choose_sigma2(HeldOut(), trainer, start, X, y, 4, np.random.default_rng(0))
    >>> [(trial.n_epochs, round(trial.schedule(0, 10), 2)) for trial in choice.trials if trial.n_epochs]
    [(1, 0.15), (1, 0.31), (1, 0.62), (1, 1.26), (1, 2.56), (1, 5.2), (1, 10.57), (6, 2.56), (6, 1.26), (6, 2.56)]
    """
    auto, half_median = auto_sigma2(start), start.half_median
    kept, held = split_classes(targets, start.labels, rule.fraction, _child(rng), sample_weight)
    seed = int(rng.integers(2**31))
    if len(held) < FEWEST or len(np.unique(hard_targets(targets)[held])) < 2 or trainer.max_epochs < 1:
        return Choice(Constant(auto), ())
    parts = [
        (codes[rows], targets[rows], None if sample_weight is None else sample_weight[rows]) for rows in (kept, held)
    ]
    extra = {} if sample_weight is None else {"sample_weight": parts[0][2]}
    begin = trainer.initializer(trainer.manifold, *parts[0][:2], n_classes, np.random.default_rng(seed), **extra)
    trials = _Trials(trainer, parts[0], parts[1], begin, n_classes, seed)
    n_visits = len(visits(len(codes), sample_weight)[0])
    budget = FITS * trainer.max_epochs * n_visits // trials.n_visits

    def nearness(trial: Trial) -> tuple[float, float]:
        return trial.loss, abs(np.log(trial.schedule(0, 1) / auto))

    values = rule.grid(auto, half_median, max(1, min(rule.candidates, budget // 2)))
    done = [trials.run(value, max(1, budget // 2 // len(values))) for value in values]
    best = [trial.schedule for trial in sorted(done, key=nearness)[:2]]
    if rule.annealing is not None:
        best.append(rule.annealed(best[0](0, 1)))
    n_epochs = min((budget - sum(trial.n_epochs for trial in done)) // len(best), trainer.max_epochs)
    last = [trials.run(schedule, n_epochs) for schedule in best] if n_epochs > done[0].n_epochs else []
    winner = min(last or done, key=nearness)
    if rule.untrained:
        loss, sigma2 = trials.loss(begin[0], auto)
        done.append(Trial(Still(sigma2), 0, 0, loss))
        winner = done[-1] if loss < winner.loss else winner
    schedule = winner.schedule if winner.loss < np.inf else Constant(auto)
    return Choice(schedule, (*done, *last))


def _child(rng: np.random.Generator) -> np.random.Generator:
    return np.random.default_rng(int(rng.integers(2**31)))
