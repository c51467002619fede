"""Rules that choose sigma2 before training, from the distances to the initial prototypes.

No rule trains or computes further distances. Each is a function of squared distances (N, K), targets and labels, so
that it works for every manifold and in all units.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from rplvq.arrays import Samples, by_block, distances, evenly_spaced_rows, materialise
from rplvq.capabilities import OfSigma2, Scaled, provides
from rplvq.costs import PLVQ, priors_of, smoothed
from rplvq.manifolds import n_coordinates
from rplvq.protocols import AnyManifold, Array, Cost, Prototypes, Schedule
from rplvq.schedules._schedules import Constant, resolve, wants_default

SMALLEST = 2.0**-60
"""Share of the half-median below which the search for the likeliest value ends."""
PAIRS = 1 << 18
"""Number of distances between samples and prototypes from which sigma2 is chosen at most."""
SAME_POINT = 1e-28
"""Squared distance, in units of the data, that rounding errors can put between equal points."""


class InitialEvidence(NamedTuple):
    """The input of the rules for sigma2: the distances to the initial prototypes, with targets and labels.

    ``sqdist`` (N, K) are the squared distances of the samples to the prototypes. ``targets`` are class indices (N,) or
    class probabilities (N, C), and ``labels`` (K,) are the class indices of the prototypes, which have ``n_free`` free
    parameters: K times :func:`free_numbers`. Without ``sample_weight`` (N,) each sample has the weight 1, and without
    the ``priors`` of the cost the classes have equal ones. ``rounding`` is the squared distance that rounding errors
    can put between equal points.
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
        """Half the median squared distance, from :func:`half_median`."""
        return half_median(self.sqdist, self.sample_weight, self.rounding)


def initial_evidence(
    manifold: AnyManifold, cost: Cost, prototypes: Prototypes, labels: Array, samples: Samples
) -> InitialEvidence:
    """Return the input of the rules for sigma2, by one pass of distances to the K prototypes of the initializer.

    If there are more than :data:`PAIRS` distances, evenly spaced samples stand for all of them.
    """
    samples = evenly_spaced(samples, len(labels))
    sqdist = distances(manifold, prototypes, samples.codes)
    n_free = len(labels) * free_numbers(samples.codes)
    rounding = SAME_POINT * unit_of(manifold, samples)
    return InitialEvidence(sqdist, samples.targets, labels, n_free, samples.weights, priors_of(cost), rounding)


def evenly_spaced(samples: Samples, n_prototypes: int) -> Samples:
    """Return all samples, or so many that their distances to K prototypes are about :data:`PAIRS`, but at least 100."""
    if len(samples) * n_prototypes <= PAIRS:
        return samples
    return samples.subset(evenly_spaced_rows(len(samples), max(PAIRS // n_prototypes, 100)))


def half_median(sqdist: Array, sample_weight: Array | None = None, rounding: float = 0.0) -> float:
    """Return half the weighted median of all squared distances, as the program of the paper's authors does.

    The arguments are those of :class:`InitialEvidence`. ValueError is raised if the median is not finite, or if it is
    at most ``rounding`` because most samples coincide with the prototypes.

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
        # The median of the samples, each repeated by its weight: the mean of the two middle values.
        middle = total[-1] / 2 * (1 + np.array([-1e-12, 1e-12]))
        median = float(sqdist.ravel()[order[np.searchsorted(total, middle)]].mean())
    if not rounding < median < np.inf:
        raise ValueError(
            f"sigma2='auto' looks at half the median squared distance to the initial prototypes, which is {median:g}: "
            "most samples coincide with their prototypes. Give sigma2 a number"
        )
    return median / 2


def likeliest_sigma2(start: InitialEvidence) -> float:
    """Return the sigma2 for which the labels of ``start`` are likeliest, at most the half-median.

    It minimises the mean of ``-log p(y | X)`` over the samples and one additional sample of unknown class, whose label
    is spread evenly over the classes. Without this sample, sigma2 would be 0 if the initial prototypes make no mistake.
    The derivative with respect to log sigma2 is ``-sum_k slope_k d_k``; its largest zero is taken. Errors are those of
    :func:`half_median`.

    Examples
    --------
    >>> sqdist = np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 1.0], [2.0, 3.0], [4.0, 0.5]])
    >>> round(likeliest_sigma2(InitialEvidence(sqdist, np.array([0, 0, 1, 1, 1]), np.array([0, 1]), 2)), 3)
    0.793
    """
    high = start.half_median
    weights = start.weights
    cost = PLVQ(start.priors)
    total = float(weights.sum())
    n_classes = int(start.labels.max()) + 1

    def rise(log_sigma2: float) -> float:
        """Return the derivative of the summed loss with respect to log sigma2, up to a positive factor."""

        def of(sqdist: Array, targets: Array) -> Array:
            # In this memory layout, sums over few prototypes are several times faster.
            sqdist = np.asfortranarray(sqdist)
            slope = cost(sqdist, smoothed(targets, n_classes, total), start.labels, float(np.exp(log_sigma2))).slope
            return np.asarray(np.einsum("nk,nk->n", slope, sqdist))

        return -float(weights @ by_block(of, start.sqdist, start.targets))

    upper = float(np.log(high))
    if not rise(upper) > 0:
        return high
    lower = upper
    while rise(lower) > 0:
        upper = lower
        lower = lower - np.log(4.0)
        if lower < np.log(high * SMALLEST):
            return high
    return float(np.exp(brentq(rise, lower, upper, xtol=1e-13, rtol=1e-13)))


def blended_sigma2(start: InitialEvidence) -> float:
    """Return a sigma2 between half the likeliest value and the half-median, the larger the more training can overfit.

    For the evidence ``start``, the value is ``(likeliest / 2)^(1 - w) half_median^w`` with ``w = p / (p + N)``, where p
    is the number of free parameters of all prototypes and N the number of samples (the sum of their weights). This rule
    is this library's own. Errors are those of :func:`half_median`.

    The likeliest value (:func:`likeliest_sigma2`) calibrates the probabilities of the initial prototypes. Half of it
    suits training better, because trained prototypes make fewer errors. The cost then depends on the samples that the
    classifier confuses. But half the likeliest value is about as small as the distances of samples near a border. If
    prototypes have nearly as many free parameters as there are samples, training then soon makes no mistake on the
    training data, and learns nothing more. Such data need the broad mixture of half the median distance
    (:func:`half_median`). With many samples per free parameter, however, samples far from any border move the
    prototypes of a broad mixture, and the result can be worse than the class means.

    Examples
    --------
    >>> sqdist = np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 1.0], [2.0, 3.0], [4.0, 0.5]])
    >>> targets, labels = np.array([0, 0, 1, 1, 1]), np.array([0, 1])
    >>> few, many = (InitialEvidence(sqdist, targets, labels, n_free) for n_free in (1, 1000))
    >>> round(blended_sigma2(few), 3), round(blended_sigma2(many), 3), half_median(sqdist)
    (0.48, 1.243, 1.25)
    """
    low = likeliest_sigma2(start) / 2
    high = start.half_median
    share = start.n_free / (start.n_free + float(start.weights.sum()))
    return float(low * (high / low) ** share)


def free_numbers(codes: Array) -> int:
    """Return the number of free parameters of one point, from the shape and dtype of codes (N, ...).

    It is n (n + 1) / 2 for each real n x n matrix of a code, n^2 for a complex one, and else the number of entries.

    Examples
    --------
    >>> [free_numbers(np.zeros(shape)) for shape in ((1, 3, 3), (1, 2, 3, 3), (1, 5))]
    [6, 12, 5]
    """
    shape = codes.shape[1:]
    if len(shape) > 1 and shape[-2] == shape[-1]:
        return int(np.prod(shape[:-2])) * n_coordinates(int(shape[-1]), np.iscomplexobj(codes))
    return int(np.prod(shape)) * (2 if np.iscomplexobj(codes) else 1)


RULES: dict[str, Callable[[InitialEvidence], float]] = {
    "auto": blended_sigma2,
    "half_median": lambda start: start.half_median,
}
"""Rules for sigma2 by name. Estimators also let held-out samples decide, if the name is "auto", whether to train."""


def resolve_sigma2(value: object, evidence: Callable[[], InitialEvidence]) -> Schedule:
    """Turn a user's value for sigma2 into a schedule, and raise ValueError if this is not possible.

    The value is a number, a schedule, or a name of :data:`RULES`; None means "auto". A schedule with ``start=None``
    starts at "auto". ``evidence`` returns the input of the rules, and is only called if a rule is needed.
    """
    if isinstance(value, str):
        if value not in RULES:
            raise ValueError(f"sigma2 must be a positive number, a Schedule or one of {sorted(RULES)}, got {value!r}")
        return Constant(RULES[value](evidence()))
    if provides(value, OfSigma2):
        raise ValueError(f"sigma2 must be a positive number or a Schedule of it, got {value!r}, which is a step_size")
    default = Constant(blended_sigma2(evidence()) if wants_default(value) else 1.0)
    return resolve(value, default, "sigma2")


def median_sqdist(manifold: AnyManifold, prototypes: Prototypes, samples: Samples, at_most: int) -> float:
    """Return the median squared distance of at most so many evenly spaced samples to all prototypes."""
    few = samples.codes[evenly_spaced_rows(len(samples), at_most)]
    return float(np.median(distances(manifold, prototypes, few)))


def unit_of(manifold: AnyManifold, samples: Samples) -> float:
    """Return the unit of the manifold for these samples, 1 if it has none or if all samples are equal."""
    if not provides(manifold, Scaled):
        return 1.0
    return float(manifold.unit(materialise(manifold.unit, samples.codes), samples.weights)) or 1.0
