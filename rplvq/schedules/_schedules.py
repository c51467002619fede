"""Schedules, and how a user's value for one is resolved.

Schedules are frozen attrs classes, so that they compare, clone and pickle. Epochs count from 1 to n_epochs; epoch 0 is
before training.
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from rplvq.parts import count_from, library_part, number_in
from rplvq.protocols import Schedule

positive = number_in(finite=True)
positive_or_none = number_in(finite=True, or_none=True)


def number(value: object) -> Any:
    """Attrs converter: turn NumPy scalars into Python numbers; anything else is left to the validator."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


@library_part
@attrs.frozen
class Constant:
    """The same value in every epoch.

    Parameters
    ----------
    value : float, optional
        A positive number; None uses the default of the parameter that takes the schedule.

    Examples
    --------
    >>> from rplvq import Constant
    >>> Constant(0.5)(epoch=3, n_epochs=10)
    0.5
    """

    value: float | None = attrs.field(default=None, converter=number, validator=positive_or_none)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the value, which is the same in every epoch."""
        return started(self)


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
        value = start
        beta = self.beta
        for _ in range(epoch):
            if value < low or value <= self.floor:
                break
            beta **= self.power
            value *= beta
        return max(value, min(self.floor, start))


@library_part
@attrs.frozen
class InverseTime:
    """``start / t`` in epoch t, and ``start`` in epoch 0: sigma2 of GLRSQ, whose steepness is the number of the epoch.

    Parameters
    ----------
    start : float, optional
        Value in the first epoch; None uses the default of the parameter that takes the schedule.

    Examples
    --------
    >>> from rplvq.schedules import InverseTime
    >>> [InverseTime(1.0)(t, 10) for t in (0, 1, 2, 10)]
    [1.0, 1.0, 0.5, 0.1]
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive_or_none)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 0..n_epochs."""
        return started(self) / max(epoch, 1)


def _start_field(schedule: Any) -> str | None:
    """Return the name of the field with which a schedule of an attrs class starts, or None if it has no such field."""
    if not attrs.has(type(schedule)):
        return None
    names = {field.name for field in attrs.fields(type(schedule))}
    return next((name for name in ("start", "value") if name in names), None)


def with_start(schedule: Any, start: float) -> Schedule:
    """Return a copy of a schedule that starts at ``start``."""
    copy: Schedule = attrs.evolve(schedule, **{str(_start_field(schedule)): start})
    return copy


def started(schedule: object) -> float:
    """Return the start of a schedule; raise ValueError if it is None."""
    name = str(_start_field(schedule))
    if (start := getattr(schedule, name)) is None:
        raise ValueError(f"{schedule} has {name}=None, which is filled in at fit; to call it, give it a {name}")
    return float(start)


def is_auto(value: object) -> bool:
    """Whether a value leaves the choice to the library: None or "auto"."""
    return value is None or (isinstance(value, str) and value == "auto")


def wants_default(value: object) -> bool:
    """Whether :func:`resolve` needs the default: for None, "auto" and a schedule without a start."""
    name = _start_field(value)
    return is_auto(value) or (name is not None and getattr(value, name) is None)


def resolve(value: object, default: Schedule, name: str) -> Schedule:
    """Turn a user's value for a schedule into a schedule; raise ValueError with the argument's ``name`` otherwise.

    None and "auto" give the default, and a number gives a constant. A schedule of an attrs class without a start
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
        return with_start(value, default(0, 1))
    value_at(value, 0, 1, name)
    return value


def value_at(schedule: Schedule, epoch: int, n_epochs: int, name: str) -> float:
    """Return the value of a schedule; raise ValueError with the argument's ``name`` if it gives none."""
    try:
        return float(schedule(epoch, n_epochs))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(
            f"{name}={schedule!r} has no value in epoch {epoch} of {n_epochs} ({type(error).__name__}: {error}): a "
            "schedule takes (epoch, n_epochs) and returns a number, also in epoch 0, which is before training"
        ) from error
