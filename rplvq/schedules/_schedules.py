"""Schedules, the step size, and how a user's value for either is resolved.

Schedules are frozen attrs classes, so that they compare, clone and pickle. Epochs count from 1 to n_epochs; epoch 0 is
before training.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs

from rplvq.arrays import Samples, materialise
from rplvq.parts import count_from, library_part, number_in
from rplvq.protocols import Manifold, Schedule

positive = number_in(finite=True)
positive_or_none = number_in(finite=True, or_none=True)


def number(value: Any) -> Any:
    """Attrs converter: turn NumPy scalars into Python numbers; anything else is left to the validator."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


@library_part
@attrs.frozen
class Constant:
    """The same value in every epoch.

    Parameters
    ----------
    value : float
        A positive number.

    Examples
    --------
    >>> from rplvq import Constant
    >>> Constant(0.5)(epoch=3, n_epochs=10)
    0.5
    """

    value: float = attrs.field(converter=number, validator=positive)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the value, which is the same in every epoch."""
        return self.value


@library_part
@attrs.frozen
class GeometricDecay:
    """``start * ratio^(t / T)`` in epoch t of T; with ratio 0.01 this is the step size of the paper.

    The paper has ``start = n xi / 100`` for n x n matrices and xi prototypes per class (Tang et al., section on
    learning rates).

    Parameters
    ----------
    start : float, optional
        Value before training; None uses the default of the parameter that takes the schedule.
    ratio : float, default=0.01
        Final value divided by ``start``.

    Examples
    --------
    >>> from rplvq import GeometricDecay
    >>> [round(GeometricDecay(0.1)(t, 10), 6) for t in (0, 5, 10)]
    [0.1, 0.01, 0.001]
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive_or_none)
    ratio: float = attrs.field(default=0.01, converter=number, validator=positive)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 0..n_epochs."""
        return float(started(self) * self.ratio ** (epoch / max(n_epochs, 1)))


@library_part
@attrs.frozen
class StepDecay:
    """``start * factor^floor(t / every)`` in epoch t: a drop after every few epochs.

    Parameters
    ----------
    start : float, optional
        Value before training; None uses the default of the parameter that takes the schedule.
    factor : float, default=0.5
        Factor of each drop.
    every : int, default=10
        Number of epochs between drops.

    Examples
    --------
    >>> from rplvq import StepDecay
    >>> [StepDecay(1.0, every=2)(t, 6) for t in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive_or_none)
    factor: float = attrs.field(default=0.5, converter=number, validator=positive)
    every: int = attrs.field(default=10, converter=number, validator=count_from(1))

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 0..n_epochs."""
        return float(started(self) * self.factor ** (epoch // self.every))


@library_part
@attrs.frozen
class Annealed:
    """The annealing of sigma2 of the paper: slow at first, then faster, until sigma2 has fallen by ``drop``.

    Every epoch sets ``beta <- beta^power`` and then ``sigma2 <- sigma2 * beta``, so that
    ``sigma2(t) = start * beta^(power + power^2 + ... + power^t)``. Once sigma2 is below ``start - drop``, it stays
    (Tang et al., text on the annealed version PLRSQ-AN). It never falls below ``floor``, because otherwise a start of
    at most ``drop`` would anneal towards 0.

    Parameters
    ----------
    start : float, optional
        Value before training; None uses the default of the parameter that takes the schedule.
    beta : float, default=0.99
        First factor, in (0, 1).
    power : float, default=1.1
        Exponent of at least 1; 1 keeps beta fixed, which is the slow annealing.
    drop : float, default=0.4
        The annealing ends when the value has fallen by this much.
    floor : float, default=0.01
        Smallest value; a start below it is kept.

    Examples
    --------
    >>> from rplvq import Annealed
    >>> [round(Annealed(8.0)(t, 100), 2) for t in (0, 2, 4, 100)]
    [8.0, 7.82, 7.6, 7.6]
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive_or_none)
    beta: float = attrs.field(default=0.99, converter=number, validator=number_in(high=1))
    power: float = attrs.field(default=1.1, converter=number, validator=number_in(1, closed=True, finite=True))
    drop: float = attrs.field(default=0.4, converter=number, validator=positive)
    floor: float = attrs.field(default=0.01, converter=number, validator=positive)

    @classmethod
    def around(cls, center: float, half_width: float = 0.2) -> Annealed:
        """Return the annealing from ``center + half_width`` to ``center - half_width``, as in the authors' program.

        Examples
        --------
        >>> Annealed.around(0.5).start
        0.7
        """
        return cls(start=center + half_width, drop=2 * half_width)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 0..n_epochs."""
        start = started(self)
        low = max(start - self.drop, min(self.floor, start))
        value, beta = start, self.beta
        for _ in range(epoch):
            if value < low or value <= self.floor:
                break
            beta **= self.power
            value *= beta
        return max(value, min(self.floor, start))


def started(schedule: Any) -> float:
    """Return the start of a schedule; raise ValueError if it is None."""
    if schedule.start is None:
        raise ValueError(f"{schedule} has start=None, which is filled in at fit; to call it, give it a start")
    return float(schedule.start)


def is_auto(value: Any) -> bool:
    """Whether a value leaves the choice to the library: None or "auto"."""
    return value is None or (isinstance(value, str) and value == "auto")


def _is_paper(value: Any) -> bool:
    return isinstance(value, str) and value == "paper"


def wants_default(value: Any) -> bool:
    """Whether :func:`resolve` needs the default: for None, "auto" and a schedule without a start."""
    return is_auto(value) or (attrs.has(type(value)) and getattr(value, "start", 0) is None)


def resolve(value: Any, default: Schedule, name: str) -> Schedule:
    """Turn a user's value for a schedule into a schedule; raise ValueError with the argument's ``name`` otherwise.

    None and "auto" give the default, and a number gives a constant. A schedule of an attrs class with ``start=None``
    starts where the default starts.
    """
    if is_auto(value):
        return default
    value = number(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value!r}")
        return Constant(float(value))
    if isinstance(value, (str, type)) or not callable(value):
        why = ": it is a class, pass an instance" if isinstance(value, type) else ""
        why += "; an estimator also takes 'adaptive' and 'paper'" if name == "step_size" else ""
        raise ValueError(f"{name} must be a positive number, a Schedule, None or 'auto', got {value!r}{why}")
    if wants_default(value):
        return attrs.evolve(value, start=default(0, 1))  # type: ignore[no-any-return]
    return value  # type: ignore[no-any-return]


@library_part
@attrs.frozen
class StepSize:
    """The step size of training, for users who want to change more than its schedule.

    A step moves prototype k along the Riemannian logarithm of sample b, multiplied by the weight ``2 step_size slope_bk
    / B``, where the slope is the derivative of the loss with respect to the squared distance. A weight of 1 moves the
    prototype to the sample, and more is never useful. The paper's step exceeds this if its start is larger
    than sigma2, and the prototypes then diverge. Weights are therefore capped at ``max_weight``, and in batches of B
    samples at ``max_weight min(B, K) / B`` for K prototypes, so that the samples of a prototype move it at most to
    their mean. The presets of the paper set ``max_weight=None``. The default schedule stays below the cap.

    Parameters
    ----------
    schedule : float, Schedule, "auto" or "paper", default="auto"
        As for the parameter ``step_size`` of :class:`rplvq.RiemannianLVQ`.
    max_weight : float or None, default=1.0
        Largest absolute weight of a (sample, prototype) pair; None does not cap weights.
    horizon : int, default=1000
        Number of recent samples that a stream should represent. Once epochs and calls together reach ``max_epochs``,
        ``partial_fit`` with the schedule "auto" or "paper" takes steps of at least ``K sigma2 / horizon``, so that
        learning never ends. A smaller number follows changes faster.

    Examples
    --------
    >>> from rplvq import GeometricDecay, RiemannianLVQ
    >>> from rplvq.schedules import StepSize
    >>> model = RiemannianLVQ(step_size=StepSize(GeometricDecay(0.1), max_weight=None))
    >>> model.get_params()["step_size__max_weight"] is None
    True
    """

    schedule: Any = "auto"
    max_weight: float | None = attrs.field(default=1.0, validator=number_in(or_none=True))
    horizon: int = attrs.field(default=1000, validator=count_from(1))

    def in_stream(self, step_size: float, sigma2: float, n_prototypes: int) -> float:
        """Return the step size of a call of ``partial_fit`` after the last epoch, given that of the last epoch."""
        if not (is_auto(self.schedule) or _is_paper(self.schedule)):
            return step_size
        return max(step_size, sigma2 * min(n_prototypes / self.horizon, 0.5))


LARGER_SHARE = 0.1
"""Fraction of the way to a sample that the larger default step may move a prototype."""
REFERENCE_EPOCHS = 100
"""Number of epochs for which the default steps are stated."""


def default_shares(n_prototypes: int, n_samples: float, batch_size: int | None = 1) -> list[float]:
    """Return the fractions of the way to a sample that the two default steps may move a prototype.

    They are ``K / N``, the weight of a sample in the mean of N / K samples, and :data:`LARGER_SHARE`, at most ``K / B``
    for batches of B samples. The second is omitted if it is not larger, and for full batches.

    Examples
    --------
    >>> default_shares(4, 200), default_shares(4, 20), default_shares(4, 200, batch_size=None)
    ([0.02, 0.1], [0.2], [0.02])
    """
    careful = n_prototypes / n_samples
    bold = careful if batch_size is None else min(LARGER_SHARE, n_prototypes / batch_size)
    return [careful, bold] if careful < bold else [careful]


def default_step(
    sigma2: float,
    share: float,
    n_prototypes: int,
    n_samples: float,
    batch_size: int | None = 1,
    n_epochs: int = REFERENCE_EPOCHS,
) -> float:
    """Return the first step size at which a sample moves a prototype by at most ``share`` of the way in 100 epochs.

    The slope of RSLVQ is at most ``1 / (2 sigma2)``, so that ``sigma2 share`` bounds the weight ``2 step_size slope``.
    With other numbers of epochs the share is multiplied by ``100 / n_epochs``, so that prototypes can go about as far
    in all epochs together. A step on a batch of B samples follows their mean, and is B times as large;
    ``batch_size=None`` takes all N samples.

    The share never exceeds a half, nor the weight of a sample in the mean of the B / K samples that each prototype has
    in a batch. Fewer epochs enlarge it to at most 1 / B, because the last batch of an epoch may hold a single sample.

    Examples
    --------
    >>> default_step(2.0, 0.02, n_prototypes=4, n_samples=200), default_step(2.0, 0.02, 4, 200, n_epochs=50)
    (0.04, 0.08)
    >>> default_step(2.0, 0.02, 4, 200, batch_size=10), default_step(2.0, 0.02, 4, 200, batch_size=None, n_epochs=50)
    (0.4, 8.0)
    """
    per_batch = max(n_samples if batch_size is None else min(batch_size, n_samples), 1.0)
    paced = min(share * REFERENCE_EPOCHS / n_epochs, max(share, 1 / per_batch))
    return sigma2 * per_batch * min(paced, 0.5, n_prototypes / per_batch)


def as_step_rule(value: Any) -> Any:
    """Return a step rule as it is, and any other value as a :class:`StepSize` with this schedule.

    A step rule is recognised by its methods, so that a user's own step rule works, too.
    """
    is_rule = not isinstance(value, type) and any(hasattr(value, name) for name in ("update", "in_stream"))
    return value if is_rule else StepSize(value)


def paper_start(manifold: Manifold[Any], n_prototypes: int, n_classes: int, samples: Samples) -> float:
    """Return the first step size of the paper, ``n xi / 100`` for n x n matrices and xi prototypes per class.

    It is in squared units of the data if the distances of the manifold carry units.
    """
    return float(samples.codes.shape[-1] * n_prototypes / n_classes / 100 * unit_of(manifold, samples))


def resolve_step_size(value: Any, auto: Callable[[], float], paper: Callable[[], float]) -> Schedule:
    """Turn a user's value into a schedule; ``auto`` and ``paper`` give first step sizes and are called if needed."""
    if _is_paper(value):
        return GeometricDecay(paper())
    return resolve(value, GeometricDecay(auto() if wants_default(value) else 1.0), "step_size")


def unit_of(manifold: Manifold[Any], samples: Samples) -> float:
    """Return the squared length scale of the data, 1 if distances carry no unit or all samples are equal."""
    unit = getattr(manifold, "unit", None)
    return 1.0 if unit is None else float(unit(materialise(unit, samples.codes), samples.weights)) or 1.0
