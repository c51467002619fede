"""Where sigma2 begins when nobody gives it: rules that read the distances to the initial prototypes.

No rule trains, and none takes a distance that was not there already: each is a function of squared distances
(N, K), targets and labels, so that it serves every manifold, and follows the units of its distances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from rplvq.arrays import Samples, by_block, distances
from rplvq.costs import PLVQ, as_soft
from rplvq.protocols import Array, Cost, Manifold, Prototypes, Schedule
from rplvq.schedules._schedules import Constant, resolve, unit_of, wants_default

__all__ = [
    "RULES",
    "InitialEvidence",
    "blended_sigma2",
    "free_numbers",
    "half_median",
    "likeliest_sigma2",
    "resolve_sigma2",
]

SMALLEST = 2.0**-60
"""Share of the half-median below which no likelier value is looked for."""
SAME_POINT = 1e-28
"""Squared distance, in units of the data, between equal points that went through different arithmetic."""


class InitialEvidence(NamedTuple):
    """What a rule for sigma2 may use: the distances to the prototypes before training, and what belongs to them.

    Parameters
    ----------
    sqdist : ndarray of shape (N, K)
        Squared distances of the samples to the initial prototypes.
    targets : ndarray of shape (N,) or (N, C)
        Class indices or class probabilities.
    labels : ndarray of int of shape (K,)
        Class index of each prototype.
    n_free : int
        Numbers that training sets: K times those of a prototype, see :func:`free_numbers`.
    sample_weight : ndarray of shape (N,), optional
        Multiplicities.
    priors : tuple of float, optional
        Class priors of the cost, equal if not given.
    rounding : float, default=0
        Squared distance that rounding alone puts between equal points.
    """

    sqdist: Array
    targets: Array
    labels: Array
    n_free: int
    sample_weight: Array | None = None
    priors: tuple[float, ...] | None = None
    rounding: float = 0.0

    @property
    def weights(self) -> Array:
        """Weight of each sample, shape (N,)."""
        return np.ones(len(self.sqdist)) if self.sample_weight is None else self.sample_weight

    @property
    def half_median(self) -> float:
        """Half the median squared distance, see :func:`half_median`."""
        return half_median(self.sqdist, self.sample_weight, self.rounding)


def initial_evidence(
    manifold: Manifold[Any], cost: Cost, prototypes: Prototypes, labels: Any, samples: Samples
) -> InitialEvidence:
    """Return what rules for sigma2 may use: one pass of distances to the K initial prototypes.

    Parameters
    ----------
    manifold, cost
        The geometry, and the loss whose priors count.
    prototypes, labels : Prototypes and ndarray of int of shape (K,)
        From the initializer.
    samples : Samples
        N samples.

    Returns
    -------
    InitialEvidence
    """
    sqdist = distances(manifold, prototypes, samples.codes)
    n_free = len(labels) * free_numbers(samples.codes)
    priors = getattr(cost, "priors", None)
    rounding = SAME_POINT * unit_of(manifold, samples)
    return InitialEvidence(sqdist, samples.targets, labels, n_free, samples.weights, priors, rounding)


def half_median(sqdist: Array, sample_weight: Array | None = None, rounding: float = 0.0) -> float:
    """Half the weighted median of all squared distances (N, K): the choice of the paper's authors' program.

    Parameters
    ----------
    sqdist : ndarray of shape (N, K)
        Squared distances.
    sample_weight : ndarray of shape (N,), optional
        Multiplicities.
    rounding : float, default=0
        Squared distance that rounding alone puts between equal points.

    Returns
    -------
    float
        In the units of the squared distances.

    Raises
    ------
    ValueError
        If the median is at most ``rounding`` or not finite: more than half of the samples coincide with the
        prototypes.

    Examples
    --------
    >>> half_median(np.array([[1.0, 2.0], [7.0, 10.0]]))
    2.25
    """
    if sample_weight is None:
        median = float(np.median(sqdist))
    else:
        order = np.argsort(sqdist, axis=None)
        total = np.cumsum(np.repeat(sample_weight, sqdist.shape[1])[order])
        # The two middle values of the samples repeated by weight; where they differ, their mean.
        middle = total[-1] / 2 * (1 + np.array([-1e-12, 1e-12]))
        median = float(sqdist.ravel()[order[np.searchsorted(total, middle)]].mean())
    if not rounding < median < np.inf:
        raise ValueError(
            f"sigma2='auto' looks at half the median squared distance to the initial prototypes, which is {median:g}: "
            "most samples coincide with their prototypes. Give sigma2 a number"
        )
    return median / 2


def likeliest_sigma2(start: InitialEvidence) -> float:
    """Sigma2 of the largest likelihood of the labels under the initial prototypes, at most the half-median.

    The mean of ``-log p(y | X)`` over the samples and one more of unknown class, whose label is spread over all,
    has a zero of its derivative ``-sum_k slope_k d_k / sigma2``; the largest zero is taken. The additional sample
    keeps sigma2 from 0 where the initial prototypes make no mistake.

    Parameters
    ----------
    start : InitialEvidence
        Distances, targets and labels.

    Returns
    -------
    float
        In the units of the squared distances.

    Raises
    ------
    ValueError
        As :func:`half_median`.

    Examples
    --------
    >>> sqdist = np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 1.0], [2.0, 3.0], [4.0, 0.5]])
    >>> round(likeliest_sigma2(InitialEvidence(sqdist, np.array([0, 0, 1, 1, 1]), np.array([0, 1]), 2)), 3)
    0.793
    """
    high = start.half_median
    weights, cost, total = start.weights, PLVQ(start.priors), float(start.weights.sum())

    def rise(log_sigma2: float) -> float:
        """Change of the summed loss with log sigma2, up to a positive factor."""

        def of(sqdist: Array, targets: Array) -> Array:
            slope = cost(sqdist, _smoothed(targets, start.labels, total), start.labels, float(np.exp(log_sigma2))).slope
            return np.asarray(np.einsum("nk,nk->n", slope, sqdist))

        return -float(weights @ by_block(of, start.sqdist, start.targets))

    upper = float(np.log(high))
    if not rise(upper) > 0:
        return high
    lower = upper
    while rise(lower) > 0:
        upper, lower = lower, lower - np.log(4.0)
        if lower < np.log(high * SMALLEST):
            return high
    return float(np.exp(brentq(rise, lower, upper, xtol=1e-13, rtol=1e-13)))


def _smoothed(targets: Array, labels: Array, total: float) -> Array:
    """Targets (M, C) mixed with even ones, as if one sample of total + 1 had an unknown class."""
    n_classes = int(labels.max()) + 1
    soft = as_soft(targets, n_classes)
    return np.asarray((total * soft + 1.0 / n_classes) / (total + 1.0))


def blended_sigma2(start: InitialEvidence) -> float:
    """Sigma2 between the likeliest value and the half-median, by how much training can overfit.

    ``likeliest^(1 - w) half_median^w`` with ``w = p / (p + N)``, for p numbers that training sets (K prototypes
    times their free numbers) and N samples (the sum of the weights).

    The likeliest sigma2 of the initial prototypes (:func:`likeliest_sigma2`) makes their probabilities
    calibrated, and where samples are many training may begin there: the cost then counts what the
    classifier confuses. But it is as small as the distances of the samples near a border, and where
    prototypes have nearly as many free numbers as there are samples, training soon makes no mistake on the
    training data and learns nothing of use: there the mixture must stay broad. Half the median of all
    distances (:func:`half_median`) is so broad that prototypes are moved by samples far from any border, and
    with many samples per free number that ends below the class means. The weight of the first is the
    share of the samples that is not spent on fitting the prototypes.

    Parameters
    ----------
    start : InitialEvidence
        The situation before training.

    Returns
    -------
    float
        In the units of the squared distances.

    Raises
    ------
    ValueError
        As :func:`half_median`.

    Notes
    -----
    It is ours, not the paper's; "half_median" is its authors'. With class means, one a class: SynII .07 (half-median
    2.5), SynI .17 (4.3), ETH-80 .27 (1.3), BCI 2a 2.3 to 6.5 (4.8 to 10.8).

    Examples
    --------
    >>> sqdist = np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 1.0], [2.0, 3.0], [4.0, 0.5]])
    >>> targets, labels = np.array([0, 0, 1, 1, 1]), np.array([0, 1])
    >>> few, many = (InitialEvidence(sqdist, targets, labels, n_free) for n_free in (1, 1000))
    >>> round(blended_sigma2(few), 3), round(blended_sigma2(many), 3), half_median(sqdist)
    (0.856, 1.247, 1.25)
    """
    low, high = likeliest_sigma2(start), start.half_median
    share = start.n_free / (start.n_free + float(start.weights.sum()))
    return float(low * (high / low) ** share)


def free_numbers(codes: Array) -> int:
    """Real numbers that set one point with codes (N, ...): those of a symmetric or Hermitian matrix, or all.

    Parameters
    ----------
    codes : ndarray of shape (N, ...)
        Only their shape and type matter.

    Returns
    -------
    int
        n (n + 1) / 2 for real n x n matrices, n^2 for complex ones, else the entries of a code.

    Examples
    --------
    >>> free_numbers(np.zeros((1, 3, 3))), free_numbers(np.zeros((1, 3, 3), complex)), free_numbers(np.zeros((1, 5)))
    (6, 9, 5)
    """
    shape = codes.shape[1:]
    if len(shape) == 2 and shape[0] == shape[1]:
        return int(shape[0] ** 2 if np.iscomplexobj(codes) else shape[0] * (shape[0] + 1) // 2)
    return int(np.prod(shape)) * (2 if np.iscomplexobj(codes) else 1)


RULES: dict[str, Callable[[InitialEvidence], float]] = {
    "auto": blended_sigma2,
    "blended": blended_sigma2,
    "half_median": lambda start: start.half_median,
}
"""Rules for sigma2 by name; the estimator turns "auto" into trials on held-out samples, where this is possible."""


def resolve_sigma2(value: Any, look: Callable[[], InitialEvidence]) -> Schedule:
    """Turn what a user passes for sigma2 into a schedule.

    Parameters
    ----------
    value : float, Schedule, str or None
        A number, a schedule, a name of :data:`RULES`, or None for "blended"; a schedule with ``start=None`` begins
        where "blended" does.
    look : callable
        Returns the situation before training; only called where a rule asks for it.

    Returns
    -------
    Schedule
        Constant for a number or a name.

    Raises
    ------
    ValueError
        If it is none of these, or the rule cannot tell.

    Examples
    --------
    >>> start = InitialEvidence(np.array([[1.0, 2.0], [7.0, 10.0]]), np.array([0, 1]), np.array([0, 1]), 2)
    >>> resolve_sigma2("half_median", lambda: start)
    Constant(value=2.25)
    """
    if isinstance(value, str):
        if value not in RULES:
            names = sorted(RULES)
            raise ValueError(f"sigma2 must be a positive number, a Schedule, None or one of {names}, got {value!r}")
        return Constant(RULES[value](look()))
    default = Constant(blended_sigma2(look()) if wants_default(value) else 1.0)
    return resolve(value, default, "sigma2")
