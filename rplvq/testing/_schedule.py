"""The check of a schedule."""

import copy
import math
import numbers
from collections.abc import Sequence
from types import FunctionType
from typing import Any, cast

import attrs

from rplvq.protocols import Schedule
from rplvq.testing._agreement import pickled, require

ADVICE = "a frozen attrs class does that"


def check_schedule(
    schedule: Schedule, n_epochs: Sequence[int] = (1, 2, 10, 100), *, positive: bool = False, pickling: bool = True
) -> None:
    """Check that a schedule keeps the promises of :class:`rplvq.protocols.Schedule`; raise AssertionError if not.

    Parameters
    ----------
    schedule : Schedule
        The part to check; if its ``start`` is None, it starts at 1.
    n_epochs : sequence of int, default=(1, 2, 10, 100)
        Lengths of training, for each of which the epochs 0..n_epochs are checked.
    positive : bool, default=False
        Whether no value may be 0, as a schedule of sigma2 promises. A step size may be 0.
    pickling : bool, default=True
        Whether the part must be picklable; a class defined in a function or doctest is not. Of a plain function, such
        as a lambda, it is not asked: a fit takes it, but its model cannot be saved.

    Examples
    --------
    >>> from rplvq import Annealed
    >>> check_schedule(Annealed(8.0))
    >>> check_schedule(lambda epoch, n_epochs: 1.0 - epoch / n_epochs)
    >>> check_schedule(lambda epoch, n_epochs: 1.0 - epoch / n_epochs, positive=True)
    Traceback (most recent call last):
    AssertionError: a schedule of sigma2 must be positive and finite, but in epoch 1 of 1 it is 0.0
    """
    require(callable(schedule) and not isinstance(schedule, type), f"a schedule must be callable, got {schedule!r}")
    waits = attrs.has(type(schedule)) and getattr(schedule, "start", 0) is None
    ready: Schedule = attrs.evolve(cast(Any, schedule), start=1.0) if waits else schedule
    for total in n_epochs:
        values = [value_at(ready, epoch, total, positive=positive) for epoch in range(total + 1)]
        same(ready, values, "a schedule must be pure, the same value whenever it is asked")
        same(copy.deepcopy(ready), values, "a schedule must give the same values after deepcopy")
    equal_by_value(schedule, copy.deepcopy(schedule), "copy.deepcopy")
    if pickling and not isinstance(schedule, FunctionType):
        equal_by_value(schedule, pickled(schedule, "a schedule"), "pickling")


def value_at(schedule: Schedule, epoch: int, n_epochs: int, *, positive: bool) -> float:
    """Return the value of a schedule, which must be a finite real number: at least 0, or above 0 if ``positive``."""
    try:
        value = schedule(epoch, n_epochs)
    except (TypeError, ArithmeticError) as error:
        raise AssertionError(f"a schedule must give a value in epoch {epoch} of {n_epochs}, but {error}") from error
    where = f"in epoch {epoch} of {n_epochs} it is {value!r}"
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    require(real, f"a schedule must return a float, but {where}")
    require(0 <= value < math.inf, f"a schedule must be finite and not negative, but {where}")
    require(value > 0 or not positive, f"a schedule of sigma2 must be positive and finite, but {where}")
    return float(value)


def same(schedule: Schedule, values: list[float], rule: str) -> None:
    """Require the same values if the epochs are asked in reverse order."""
    total = len(values) - 1
    for epoch in reversed(range(total + 1)):
        again = schedule(epoch, total)
        where = f"in epoch {epoch} of {total} it was {values[epoch]!r} and then {again!r}"
        require(again == values[epoch], f"{rule}, but {where}")


def equal_by_value(schedule: Schedule, twin: object, maker: str) -> None:
    """Require that a schedule equals its copy and, if it is an attrs class, that the hashes are equal."""
    require(schedule == twin, f"a schedule must equal its copy by {maker}: {ADVICE}")
    if attrs.has(type(schedule)):
        require(type(schedule).__hash__ is not None, f"a schedule must be hashable by value: {ADVICE}")
        require(hash(schedule) == hash(twin), f"a schedule must have the hash of its copy by {maker}: {ADVICE}")
