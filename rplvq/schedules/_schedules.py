"""Numbers that change from epoch to epoch: frozen attrs classes, so that they compare, clone and pickle.

Epochs count from 1 to n_epochs; epoch 0 is the value before training.
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from rplvq.arrays import Samples, materialise
from rplvq.parts import count_from, library_part, positive_or_none
from rplvq.protocols import Manifold, Schedule

__all__ = [
    "Annealed",
    "Constant",
    "GeometricDecay",
    "StepDecay",
    "StepSize",
    "as_step_rule",
    "default_starts",
    "is_auto",
    "resolve",
    "shared_step",
    "unit_of",
    "wants_default",
]


def positive(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Attrs validator: a positive finite number, or None where a default start may stand."""
    if value is None and attribute.name == "start":
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{attribute.name} must be a positive finite number, got {value!r}")


def number(value: Any) -> Any:
    """Attrs converter: NumPy scalars become Python floats, everything else is left to the validator."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


@library_part
@attrs.frozen
class Constant:
    """The same value in every epoch.

    Parameters
    ----------
    value : float
        Positive.

    Examples
    --------
    >>> from rplvq import Constant
    >>> Constant(0.5)(epoch=3, n_epochs=10)
    0.5
    """

    value: float = attrs.field(converter=number, validator=positive)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the value, the same in every epoch."""
        return self.value


@library_part
@attrs.frozen
class GeometricDecay:
    """``start * ratio^(t / T)`` in epoch t of T: the paper's step size with ratio 0.01.

    There ``start = n xi / 100`` for n x n matrices and xi prototypes a class (Tang et al., the section on
    learning rates); with ``start=None`` the estimator fills that in.

    Parameters
    ----------
    start : float, optional
        Value before training; None for the default of the place where the schedule is used.
    ratio : float, default=0.01
        Final value over start.

    Examples
    --------
    >>> from rplvq import GeometricDecay
    >>> [round(GeometricDecay(0.1)(t, 10), 6) for t in (0, 5, 10)]
    [0.1, 0.01, 0.001]
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive)
    ratio: float = attrs.field(default=0.01, converter=number, validator=positive)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 0..n_epochs."""
        return float(_started(self) * self.ratio ** (epoch / max(n_epochs, 1)))


@library_part
@attrs.frozen
class StepDecay:
    """``start * factor^floor(t / every)``: a drop every few epochs.

    Parameters
    ----------
    start : float, optional
        Value before training; None for the default of the place where the schedule is used.
    factor : float, default=0.5
        Multiplier of each drop.
    every : int, default=10
        Epochs between drops.

    Examples
    --------
    >>> from rplvq import StepDecay
    >>> [StepDecay(1.0, every=2)(t, 6) for t in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive)
    factor: float = attrs.field(default=0.5, converter=number, validator=positive)
    every: int = attrs.field(default=10, converter=number, validator=count_from(1))

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 0..n_epochs."""
        return float(_started(self) * self.factor ** (epoch // self.every))


@library_part
@attrs.frozen
class Annealed:
    """The paper's annealing of sigma2: slow at first, then faster, until it has dropped by ``drop``.

    In every epoch ``beta <- beta^power``, then ``sigma2 <- sigma2 * beta``, until sigma2 is below
    ``start - drop``; there it stays (Tang et al., the annealed version PLRSQ-AN, as its text says). Hence
    ``sigma2(t) = start * beta^(power + power^2 + ... + power^t)``. It never falls below ``floor``; without
    one, a start at or below drop would anneal towards 0.

    Parameters
    ----------
    start : float, optional
        Value before training; None for the default of the place where the schedule is used.
    beta : float, default=0.99
        First factor, in (0, 1).
    power : float, default=1.1
        At least 1; 1 keeps beta fixed, the slow annealing.
    drop : float, default=0.4
        Fall after which the value stays, in the units of start.
    floor : float, default=0.01
        Smallest value; a start below it stays as it is.

    Examples
    --------
    >>> from rplvq import Annealed
    >>> [round(Annealed(8.0)(t, 100), 2) for t in (0, 2, 4, 100)]
    [8.0, 7.82, 7.6, 7.6]
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive)
    beta: float = attrs.field(default=0.99, converter=number, validator=[positive, attrs.validators.lt(1)])
    power: float = attrs.field(default=1.1, converter=number, validator=[positive, attrs.validators.ge(1)])
    drop: float = attrs.field(default=0.4, converter=number, validator=positive)
    floor: float = attrs.field(default=0.01, converter=number, validator=positive)

    @classmethod
    def around(cls, center: float, half_width: float = 0.2) -> Annealed:
        """From ``center + half_width`` down to ``center - half_width``, as the authors' program does.

        Examples
        --------
        >>> Annealed.around(0.5).start
        0.7
        """
        return cls(start=center + half_width, drop=2 * half_width)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 0..n_epochs."""
        start = _started(self)
        low = max(start - self.drop, min(self.floor, start))
        value, beta = start, self.beta
        for _ in range(epoch):
            if value < low or value <= self.floor:
                break
            beta **= self.power
            value *= beta
        return max(value, min(self.floor, start))


def _started(schedule: Any) -> float:
    if schedule.start is None:
        raise ValueError(f"{schedule} has start=None, which is filled in at fit; to call it, give it a start")
    return float(schedule.start)


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to the library: None or "auto"."""
    return value is None or (isinstance(value, str) and value == "auto")


def wants_default(value: Any) -> bool:
    """Whether :func:`resolve` would look at the default: at None, "auto" and a schedule without a start."""
    if is_auto(value):
        return True
    return not isinstance(value, type) and attrs.has(type(value)) and getattr(value, "start", 0) is None


def resolve(value: Any, default: Schedule, name: str) -> Schedule:
    """Turn what a user passes for a schedule into one: the only place where that happens.

    Parameters
    ----------
    value : None, "auto", number or Schedule
        None and "auto" mean the default; a number is constant; a schedule with ``start=None``, an attrs class, starts
        where the default does.
    default : Schedule
        What the default is for the data at hand.
    name : str
        Name of the argument, for messages.

    Returns
    -------
    Schedule
        Ready to call.

    Raises
    ------
    ValueError
        If a number is not positive and finite, or the value is something else.

    Examples
    --------
    >>> resolve(Annealed(), Constant(2.0), "sigma2").start
    2.0
    """
    if is_auto(value):
        return default
    value = number(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value!r}")
        return Constant(float(value))
    if isinstance(value, (str, type)) or not callable(value):
        raise ValueError(f"{name} must be a positive number, a Schedule, None or 'auto', got {value!r}")
    if wants_default(value):
        return attrs.evolve(value, start=default(0, 1))  # type: ignore[no-any-return]
    return value  # type: ignore[no-any-return]


@library_part
@attrs.frozen
class StepSize:
    """The step size of training, for users who want to change more than its schedule.

    The weight of the logarithm that pulls prototype k towards sample b is ``2 step_size slope_bk / B``. A weight of 1
    moves the prototype to the sample, and more is never useful. The paper's step exceeds this if its start is larger
    than sigma2, and the prototypes then diverge. Weights are therefore capped at ``max_weight``; the presets of the
    paper set ``max_weight=None``.

    Parameters
    ----------
    schedule : float, Schedule, "auto" or None, default=None
        As for the parameter ``step_size`` of :class:`rplvq.RiemannianLVQ`.
    max_weight : float or None, default=1.0
        Largest absolute weight of a (sample, prototype) pair; None does not cap weights.
    horizon : int, default=1000
        Number of recent samples that a stream should represent. After ``max_epochs`` epochs and calls, ``partial_fit``
        with a default schedule (None or "auto") takes steps of at least ``K sigma2 / horizon``, so that learning never
        ends. A smaller number follows changes faster.

    Examples
    --------
    >>> from rplvq import GeometricDecay, RiemannianLVQ
    >>> from rplvq.schedules import StepSize
    >>> model = RiemannianLVQ(step_size=StepSize(GeometricDecay(0.1), max_weight=None))
    >>> model.get_params()["step_size__max_weight"] is None
    True
    """

    schedule: Any = None
    max_weight: float | None = attrs.field(default=1.0, validator=positive_or_none)
    horizon: int = attrs.field(default=1000, validator=count_from(1))

    @property
    def is_default(self) -> bool:
        """Whether the library chooses the schedule."""
        return is_auto(self.schedule)

    def resolved(self, default: Schedule) -> Schedule:
        """Return the schedule; ``default`` fills in what was not given.

        Raises
        ------
        ValueError
            If the schedule is neither a positive number, a Schedule, None nor "auto".
        """
        return resolve(self.schedule, default, "step_size")

    def in_stream(self, step_size: float, sigma2: float, n_prototypes: int) -> float:
        """Return the step size of a call of ``partial_fit`` after the last epoch, given that of the last epoch."""
        return max(step_size, shared_step(sigma2, n_prototypes, self.horizon)) if self.is_default else step_size


def shared_step(sigma2: float, n_prototypes: int, n_samples: float) -> float:
    """Return the step size at which a sample weighs as much as in the mean of N / K samples, and at most a half.

    Examples
    --------
    >>> shared_step(sigma2=2.0, n_prototypes=4, n_samples=80)
    0.1
    """
    return sigma2 * min(n_prototypes / n_samples, 0.5)


def as_step_rule(value: Any) -> Any:
    """Return a step rule as it is, and anything else as the schedule of a :class:`StepSize`.

    A step rule is recognised by its methods, so that one of a user's own is passed on.

    Examples
    --------
    >>> as_step_rule(0.1)
    StepSize(schedule=0.1, max_weight=1.0, horizon=1000)
    """
    is_rule = not isinstance(value, type) and any(hasattr(value, name) for name in ("update", "in_stream"))
    return value if is_rule else StepSize(value)


def default_starts(
    manifold: Manifold[Any], sigma2: float, n_prototypes: int, n_classes: int, samples: Samples
) -> tuple[float, float]:
    """Return the first step size of the paper, and the one at which a sample weighs as much as in a mean."""
    paper = samples.codes.shape[-1] * n_prototypes / n_classes / 100 * unit_of(manifold, samples)
    return paper, shared_step(sigma2, n_prototypes, samples.total_weight)


def unit_of(manifold: Manifold[Any], samples: Samples) -> float:
    """Return the squared length scale of the data, 1 if distances carry no unit."""
    unit = getattr(manifold, "unit", None)
    return 1.0 if unit is None else float(unit(materialise(unit, samples.codes), samples.weights))
