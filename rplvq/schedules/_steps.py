"""The step size: a share of sigma2 by default, or a number or schedule in squared distances.

Whatever a user passes is resolved once, before training, into a schedule of step sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import numpy as np

from rplvq.arrays import Samples, by_block
from rplvq.capabilities import OfSigma2, provides
from rplvq.costs import evaluate, largest_slope
from rplvq.parts import library_part, number_in
from rplvq.protocols import AnyManifold, Array, Cost, Schedule, StepRule
from rplvq.schedules._schedules import (
    GeometricDecay,
    is_auto,
    number,
    positive,
    resolve,
    value_at,
    wants_default,
    with_start,
)
from rplvq.schedules._sigma2 import InitialEvidence, unit_of

LAST_WEIGHT = 0.5
"""Largest sum of the last shares over the samples of a prototype, for a schedule that the library starts.

Where shares do not fall, a prototype follows its latest samples in place of their mean. With this sum, the first sample
of an epoch still weighs exp(-0.5) = 0.6 of the last."""


def _share(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if provides(value, StepRule) and not isinstance(value, type):
        raise ValueError(
            f"{attribute.name} of Share must be in (0, 1], a Schedule or None, got the step rule {value!r}"
        )
    if value is None:
        return
    if callable(value) and not isinstance(value, type):
        if wants_default(value):
            raise ValueError(f"{attribute.name} of Share: give {value!r} a first share, such as 0.3")
        return
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 1:
        raise ValueError(f"{attribute.name} of Share must be in (0, 1], a Schedule or None, got {value!r}")


@library_part
@attrs.frozen
class Share:
    """The step as a share of sigma2: how far, at most, one sample moves a prototype.

    A step with the share s moves a prototype at most the fraction s of the way to the sample. In epoch t of T the share
    is ``start * ratio^(t / T)``, and for the mixture costs the step size is ``share(t) * sigma2(t)``, because their
    slope is at most ``1 / (2 sigma2)``. It uses the sigma2 of the same epoch, so that no schedule of sigma2 can make
    steps too long. If sigma2 is above the median squared distance to the initial prototypes, the cost itself pushes
    prototypes apart, so that ``median^2 / sigma2`` takes its place. For other costs the largest slope takes the place
    of ``1 / (2 sigma2)``: a cost states it by a method ``largest_slope(sigma2)``, or it is measured at the initial
    prototypes.

    Parameters
    ----------
    start : float, Schedule or None, default=None
        Share in epoch 0, in (0, 1]. None is ``min(amount / T, 1)``. A schedule gives the share of each epoch itself.
    ratio : float, default=0.01
        Final share divided by ``start``; 1 keeps the share constant.
    amount : float, default=1.0
        Amount of training, T times the first share. It is used if ``start`` is None. From about 20 epochs on, fits with
        the same amount end at about the same prototypes; fewer end nearer to their start (five epochs go three quarters
        of the way). An amount far above 1 may learn noise, which no
        warning sees, because the training error falls; a sigma2 that held-out samples choose ("auto") prevents it.

    Examples
    --------
    >>> from rplvq.schedules import Share
    >>> share = Share(0.1)
    >>> [round(share(epoch, 10), 4) for epoch in (0, 5, 10)]
    [0.1, 0.01, 0.001]
    >>> Share()(0, 20), Share(amount=6.0)(0, 20)
    (0.05, 0.3)
    """

    of_sigma2: ClassVar[bool] = True
    """Whether the numbers are shares of sigma2, and not step sizes."""

    start: float | Schedule | None = attrs.field(default=None, converter=number, validator=_share)
    ratio: float = attrs.field(default=0.01, converter=number, validator=positive)
    amount: float = attrs.field(default=1.0, converter=number, validator=positive)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Share in ``epoch`` 0..n_epochs; raise ValueError if a schedule gives a number outside [0, 1]."""
        if callable(self.start):
            value = value_at(self.start, epoch, n_epochs, "step_size")
            if not 0 <= value <= 1:
                raise ValueError(f"step_size: the share must be in [0, 1], got {value} in epoch {epoch} from {self!r}")
            return value
        return float(self.first(n_epochs) * self.ratio ** (epoch / max(n_epochs, 1)))

    def first(self, n_epochs: int) -> float:
        """Return the share in epoch 0 of a fit of ``n_epochs`` epochs."""
        if callable(self.start):
            return self(0, n_epochs)
        return min(self.amount / max(n_epochs, 1), 1.0) if self.start is None else float(self.start)


@library_part
@attrs.frozen
class ShareStep:
    """Step sizes that follow from a share, the schedule of sigma2 and the largest slope of the cost.

    The step size is ``batch * share / (2 slope)``, where the largest slope of the cost at sigma2 is
    ``slope * (at / sigma2)^power``. The mixture costs have the power 1, and a cost without sigma2 has the power 0.
    """

    share: Schedule
    sigma2: Schedule
    slope: float  # the largest one of the cost at the sigma2 ``at``
    at: float
    power: float = 1.0  # with which the slope rises while sigma2 falls
    batch: float = 1.0  # number of samples per step
    limit: float = 1.0  # largest share, K / batch: the samples of a batch move a prototype at most to their mean
    median: float = math.inf  # median squared distance; above it steps become shorter again

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Step size in ``epoch`` 0..n_epochs."""
        sigma2 = self.sigma2(epoch, n_epochs)
        if sigma2 > self.median:
            sigma2 = self.median**2 / sigma2
        return self.of_share(self.share(epoch, n_epochs), sigma2)

    def of_share(self, share: float, sigma2: float) -> float:
        """Return the step size of one share at one sigma2."""
        return float(self.batch * min(share, self.limit) / (2 * self._largest_slope(sigma2)))

    def largest_weight(self, step_size: float, sigma2: float) -> float:
        """Return the cap on the weights of a step, which cuts those of a cost whose slope exceeds the largest one.

        The trainer multiplies caps by ``batch * limit``, the number of samples of a batch per mean (see StepSize).
        """
        share = step_size * 2 * self._largest_slope(sigma2) / self.batch
        return float(share / self.limit * (1 + 1e-9))  # rounding is no reason to cut

    def _largest_slope(self, sigma2: float) -> float:
        return float(self.slope * (self.at / sigma2) ** self.power)


@library_part
@attrs.frozen
class StepSize:
    """The step size of training, for users who want to change the cap on weights, too.

    A step moves prototype k along the Riemannian logarithm of sample b, multiplied by the weight ``2 step_size slope_bk
    / B``, where the slope is the derivative of the loss with respect to the squared distance. A weight of 1 moves the
    prototype to the sample, and more is never useful. The paper's step exceeds this if its start is larger
    than sigma2, and the prototypes then diverge. Weights are therefore capped at ``max_weight``, and in batches of B
    samples at ``max_weight min(B, K) / B`` for K prototypes, so that the samples of a prototype move it at most to
    their mean. The presets of the paper set ``max_weight=None``. A share stays below the cap.

    Parameters
    ----------
    schedule : float, Schedule, Share, "auto" or "paper", default="auto"
        As for the parameter ``step_size`` of :class:`rplvq.RiemannianLVQ`.
    max_weight : float or None, default=1.0
        Largest absolute weight of a (sample, prototype) pair; None does not cap weights.

    Examples
    --------
    >>> from rplvq import GeometricDecay, RiemannianLVQ
    >>> from rplvq.schedules import StepSize
    >>> model = RiemannianLVQ(step_size=StepSize(GeometricDecay(0.1), max_weight=None))
    >>> model.get_params()["step_size__max_weight"] is None
    True
    """

    schedule: float | Schedule | str | None = "auto"
    max_weight: float | None = attrs.field(default=1.0, validator=number_in(or_none=True))


def as_step_rule(value: Any) -> Any:
    """Return a :class:`StepSize` or a step rule as it is, and any other value as a StepSize with this schedule.

    A step rule is recognised by its methods, so that a user's own step rule works, too.
    """
    is_rule = not isinstance(value, type) and any(hasattr(value, name) for name in ("update", "schedule"))
    return value if is_rule else StepSize(value)


def paper_start(manifold: AnyManifold, n_prototypes: int, n_classes: int, samples: Samples) -> float:
    """Return the first step size of the paper, ``n xi / 100`` for n x n matrices and xi prototypes per class.

    It is in squared units of the data if the distances of the manifold carry units.
    """
    return float(samples.codes.shape[-1] * n_prototypes / n_classes / 100 * unit_of(manifold, samples))


def resolve_step_size(
    value: object, n_epochs: int, per_prototype: float, of_share: Callable[[Schedule], ShareStep],
    paper: Callable[[], float],
) -> Schedule:  # fmt: skip
    """Turn a user's value into a schedule of step sizes.

    ``per_prototype`` is the number of samples per prototype, N / K. ``of_share`` turns shares into step sizes, and
    ``paper`` gives the first step of the paper; each is called only if it is needed. A step rule without a start begins
    with the first step of the default.

    A schedule without a start is a schedule of shares. Its start is the largest one with which they add up over all
    epochs to at most what those of the default add up to, and end at most at ``LAST_WEIGHT`` per sample of a prototype.
    """
    if is_auto(value):
        return of_share(Share())
    if provides(value, OfSigma2) and value.of_sigma2 and not isinstance(value, type):
        return of_share(value)
    if isinstance(value, str) and value == "paper":
        return GeometricDecay(paper())
    if not wants_default(value):
        return resolve(value, Share(), "step_size")
    epochs = range(1, max(n_epochs, 1) + 1)
    if provides(value, StepRule):
        return with_start(value, of_share(Share())(0, len(epochs)))
    shape = with_start(value, 1.0)
    amount, unscaled = (sum(schedule(epoch, len(epochs)) for epoch in epochs) for schedule in (Share(), shape))
    last = shape(len(epochs), len(epochs))
    starts = [1.0]
    if unscaled > 0:
        starts.append(amount / unscaled)
    if last > 0:
        starts.append(LAST_WEIGHT / per_prototype / last)
    return of_share(Share(with_start(value, min(starts))))


def stated_or_measured_slope(cost: Cost, sigma2: float, evidence: Callable[[], InitialEvidence]) -> float:
    """Return the largest absolute slope of a cost at sigma2: the one that it states, else one that is measured.

    It is measured at the squared distances of the samples to the first prototypes. A cost that states no bound, such as
    GLVQ, may have larger slopes later, so that the trainer also cuts its weights to the share.
    """
    if (stated := largest_slope(cost, sigma2)) is not None:
        return float(stated)
    start = evidence()

    def of(sqdist: Array, targets: Array) -> Array:
        slope = evaluate(cost, sqdist, targets, start.labels, sigma2).slope
        if slope.dtype.kind == "c":
            raise ValueError(f"cost {cost!r} returned complex slopes: squared distances are real, and so is a loss")
        return np.asarray(np.abs(slope).max(axis=1))

    largest = by_block(of, start.sqdist, start.targets)
    if np.isnan(largest).any():
        first = f"its slope is NaN at squared distances {start.sqdist[np.isnan(largest)][0]}"
        raise ValueError(f"cost {cost!r}: {first} and sigma2={sigma2:g}, those of a sample before training")
    return float(largest.max())


def step_of_share(
    share: Schedule, sigma2: Schedule, cost: Cost, n_epochs: int, evidence: Callable[[], InitialEvidence]
) -> ShareStep:
    """Return the step sizes of a share, with the largest slopes of the cost at the first sigma2 and at half of it."""
    at = sigma2(0, max(n_epochs, 1))
    if not 0 < at < math.inf:
        raise ValueError(f"sigma2 must be positive and finite, got {at} in epoch 0 from {sigma2!r}")
    first, later = (stated_or_measured_slope(cost, value, evidence) for value in (at, at / 2))
    if not (0 < first < math.inf and 0 < later < math.inf):  # no sample would move any prototype
        return ShareStep(share, sigma2, 0.5 / at, at)
    return ShareStep(share, sigma2, first, at, max(math.log2(later / first), 0.0))
