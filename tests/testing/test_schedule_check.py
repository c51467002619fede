"""check_schedule catches planted faults, and names them."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from rplvq import Annealed, GeometricDecay
from rplvq.testing import check_schedule


class Counting:
    """Impure: halves itself whenever it is asked."""

    def __init__(self):
        self.value = 1.0

    def __call__(self, epoch, n_epochs):
        self.value /= 2
        return self.value


class Incomparable:
    def __call__(self, epoch, n_epochs):
        return 1.0


class Aging(Incomparable):
    """Equal to everything, but a copy is another schedule."""

    age = 1.0

    def __deepcopy__(self, memo):
        young = Aging()
        young.age = 0.5
        return young

    def __call__(self, epoch, n_epochs):
        return self.age


@attrs.define
class Unhashable:
    value: float = 1.0

    def __call__(self, epoch, n_epochs):
        return self.value


@attrs.frozen(eq=True)
class HashedById(Unhashable):
    __hash__ = object.__hash__


@attrs.frozen
class Given:
    """Good: the i-th of some values."""

    values: tuple = (1.0,)

    def __call__(self, epoch, n_epochs):
        return self.values[min(epoch, len(self.values) - 1)]


def local():
    """A good schedule whose class nobody can import."""

    class Local(Given):
        pass

    return Local()


def warm_up(epoch, n_epochs):
    return epoch / n_epochs


def module_level(epoch, n_epochs):
    return 2.0 ** -(epoch / max(n_epochs, 1))


SCHEDULE_FAULTS = {
    "impure": (Counting(), "must be pure, the same value whenever"),
    "negative": (Given((-1.0,)), "must be finite and not negative, but in epoch 0 of 1 it is -1.0"),
    "NaN": (Given((1.0, 1.0, float("nan"))), "in epoch 2 of 2 it is nan"),
    "infinite": (Given((float("inf"),)), "it is inf"),
    "None": (Given((None,)), "must return a float, but in epoch 0 of 1 it is None"),
    "bool": (Given((True,)), "must return a float"),
    "array": (Given((np.ones(1),)), "must return a float"),
    "one argument": (lambda epoch: 1.0, "must give a value in epoch 0 of 1, but .* takes 1 positional argument"),
    "division by epoch 0": (lambda epoch, n_epochs: 0.1 / epoch, "in epoch 0 of 1, but float division by zero"),
    "not picklable": (local(), "a schedule must be picklable"),
    "incomparable": (Incomparable(), "must equal its copy by copy.deepcopy: a frozen attrs class"),
    "aging": (Aging(), "same values after deepcopy"),
    "unhashable": (Unhashable(), "must be hashable by value"),
    "hashed by id": (HashedById(), "must have the hash of its copy by copy.deepcopy"),
}


@pytest.mark.parametrize("name", SCHEDULE_FAULTS)
def test_a_faulty_schedule_is_named(name):
    schedule, sentence = SCHEDULE_FAULTS[name]
    with pytest.raises(AssertionError, match=sentence):
        check_schedule(schedule)


@pytest.mark.parametrize("schedule", [Given((3, 2, 1)), module_level, lambda t, n: 1.0, Annealed(), GeometricDecay()])
def test_good_schedules_pass(schedule):
    assert check_schedule(schedule) is None


def test_a_step_size_may_be_zero_and_sigma2_may_not():
    """A warm-up begins at 0 and divides by the number of epochs, which is never 0."""
    check_schedule(warm_up)
    with pytest.raises(AssertionError, match=r"of sigma2 must be positive and finite, but in epoch 0 of 1 it is 0\.0"):
        check_schedule(warm_up, positive=True)


def test_a_schedule_is_checked_for_the_lengths_given():
    late = Given((1.0,) * 5 + (-1.0,))
    check_schedule(late, n_epochs=[4])
    with pytest.raises(AssertionError, match="in epoch 5 of 5"):
        check_schedule(late, n_epochs=[5])
