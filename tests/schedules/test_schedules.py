"""Schedules: the paper's values, limits, and what a user may pass for a schedule."""

from __future__ import annotations

import itertools
import math

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rplvq import AdaptiveStep, Annealed, Constant, GeometricDecay, RiemannianLVQ, StepDecay
from rplvq.protocols import Schedule
from rplvq.schedules import resolve
from rplvq.testing import check_schedule

SCHEDULES = [
    Constant(0.5),
    Constant(np.float32(9.5)),
    GeometricDecay(),
    GeometricDecay(0.1, ratio=0.5),
    StepDecay(),
    StepDecay(2.0, factor=0.1, every=3),
    Annealed(),
    Annealed(0.45),
    Annealed(8.0, power=1),
    Annealed(0.005),
    Annealed.around(0.5),
    AdaptiveStep(),
    AdaptiveStep(0.3, max_weight=0.5),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_the_contract_holds(schedule):
    assert isinstance(schedule, Schedule)
    check_schedule(schedule)


# --- annealing


def test_annealing_at_0_45_ends_at_0_0487_in_epoch_32():
    values = [Annealed(0.45)(t, 100) for t in range(101)]
    assert values[31] > 0.05
    assert values[32:] == [pytest.approx(0.0487, abs=5e-5)] * 69


def test_annealing_at_8_ends_at_7_6_in_epoch_4():
    values = [Annealed(8.0)(t, 100) for t in range(101)]
    assert values[3] > 7.6 > values[4]
    assert values[4] == pytest.approx(7.6, abs=5e-3)
    assert set(values[4:]) == {values[4]}


def test_annealing_multiplies_by_powers_of_beta():
    """sigma2(t) = start beta^(power + ... + power^t), while above start - drop."""
    schedule = Annealed(3.0, beta=0.98, power=1.2, drop=2.0)
    for t in range(8):
        wanted = 3.0 * 0.98 ** sum(1.2**i for i in range(1, t + 1))
        assert schedule(t, 8) == pytest.approx(wanted, rel=1e-12)


def test_annealing_stays_at_the_first_value_below_start_minus_drop():
    values = [Annealed(1.0, drop=0.3)(t, 200) for t in range(201)]
    below = [value for value in values if value < 0.7]
    assert len(set(below)) == 1
    assert below[0] > 0.6


def test_a_power_of_1_keeps_beta_fixed():
    schedule = Annealed(5.0, power=1)
    for t in (0, 1, 5):
        assert schedule(t, 100) == pytest.approx(5.0 * 0.99**t, rel=1e-12)
    assert schedule(100, 100) == pytest.approx(5.0 * 0.99**9, rel=1e-12)  # the first below 4.6


@pytest.mark.parametrize("start", [0.4, 0.3, 0.05])
def test_a_start_at_or_below_drop_ends_at_the_floor(start):
    values = [Annealed(start)(t, 1000) for t in range(0, 1001, 10)]
    assert values[0] == start
    assert values[-1] == 0.01
    assert min(values) == 0.01


def test_the_floor_can_be_chosen():
    assert Annealed(0.3, floor=0.1)(1000, 1000) == 0.1


def test_a_start_below_the_floor_stays():
    assert [Annealed(0.004)(t, 50) for t in (0, 1, 50)] == [0.004] * 3


@pytest.mark.parametrize(("center", "start", "end"), [(0.5, 0.7, 0.3), (4.75, 4.95, 4.55), (0.1, 0.3, 0.01)])
def test_around_goes_from_0_2_above_to_0_2_below(center, start, end):
    schedule = Annealed.around(center)
    assert schedule(0, 100) == pytest.approx(start)
    values = [schedule(t, 200) for t in range(201)]
    last = next(t for t in range(201) if values[t] <= end)
    assert values[last - 1] > end
    assert set(values[last:]) == {values[last]}
    assert values[last] == (0.01 if end == 0.01 else pytest.approx(end, rel=0.1))


def test_around_with_a_width_of_ones_own():
    assert Annealed.around(2.0, half_width=0.5) == Annealed(2.5, drop=1.0)


@given(
    start=st.floats(1e-3, 1e3),
    beta=st.floats(0.5, 0.999),
    power=st.floats(1, 2),
    drop=st.floats(1e-3, 1e3),
    n_epochs=st.integers(0, 60),
)
def test_annealing_falls_and_stays_positive(start, beta, power, drop, n_epochs):
    schedule = Annealed(start, beta=beta, power=power, drop=drop)
    values = [schedule(t, n_epochs) for t in range(n_epochs + 1)]
    assert values[0] == start
    assert all(later <= earlier for earlier, later in itertools.pairwise(values))
    assert min(values) >= min(start, 0.01)


# --- decays


@pytest.mark.parametrize(("n", "xi", "total"), [(10, 1, 20), (22, 3, 100), (5, 6, 7)])
def test_the_papers_step_size(n, xi, total):
    schedule = GeometricDecay(n * xi / 100)
    for t in range(total + 1):
        assert schedule(t, total) == pytest.approx(n * xi / 100 * 0.01 ** (t / total), rel=1e-12)


def test_geometric_decay_without_epochs_is_its_start():
    assert GeometricDecay(0.3)(0, 0) == 0.3


def test_step_decay_drops_every_few_epochs():
    values = [StepDecay(1.0, factor=0.1, every=3)(t, 8) for t in range(8)]
    assert values == pytest.approx([1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01])


@pytest.mark.parametrize("kind", [GeometricDecay, StepDecay, Annealed, AdaptiveStep])
def test_a_schedule_without_start_says_so(kind):
    with pytest.raises(ValueError, match="start=None, which is filled in at fit"):
        kind()(1, 10)


# --- parameters


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Constant, "value"),
        (GeometricDecay, "start"),
        (GeometricDecay, "ratio"),
        (StepDecay, "start"),
        (StepDecay, "factor"),
        (Annealed, "start"),
        (Annealed, "beta"),
        (Annealed, "power"),
        (Annealed, "drop"),
        (Annealed, "floor"),
        (AdaptiveStep, "start"),
    ],
)
def test_parameters_must_be_positive_finite_numbers(kind, name):
    for value in [0, -1.0, math.nan, math.inf, "1", True, [1.0], np.ones(2)]:
        with pytest.raises(ValueError, match=f"{name} must be a .*number.*, got"):
            kind(**{name: value})


FAULTY = {
    "one argument": lambda epoch: 0.1,
    "epoch 0": lambda epoch, n_epochs: 0.1 / epoch,
    "no number": lambda epoch, n_epochs: None,
}


@pytest.mark.parametrize("name", ["sigma2", "step_size"])
@pytest.mark.parametrize("why", FAULTY)
def test_a_schedule_without_a_value_in_epoch_0_is_named(name, why):
    sentence = rf"{name}=<function .* has no value in epoch 0 of 1 \(.*\): a schedule takes \(epoch, n_epochs\)"
    with pytest.raises(ValueError, match=sentence):
        RiemannianLVQ("euclidean_vectors", **{name: FAULTY[why]}).fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])


def test_only_a_start_may_be_none():
    assert Constant(None) == Constant()  # for a constant, the value is the start
    with pytest.raises(ValueError, match="floor must be"):
        Annealed(floor=None)


@pytest.mark.parametrize(("name", "value"), [("beta", 1.0), ("beta", 2), ("power", 0.9)])
def test_beta_and_power_have_limits(name, value):
    with pytest.raises(ValueError, match=name):
        Annealed(**{name: value})


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Constant, "value", np.float32(0.5)),
        (Constant, "value", np.array(0.5)),
        (GeometricDecay, "start", np.float64(0.5)),
        (Annealed, "power", np.int64(2)),
        (StepDecay, "every", np.int64(2)),
    ],
)
def test_numpy_scalars_are_numbers(kind, name, value):
    schedule = kind(**{name: value})
    assert type(getattr(schedule, name)) in (float, int)
    assert schedule == kind(**{name: value.item()})
    assert hash(schedule) == hash(kind(**{name: value.item()}))


def test_schedules_are_frozen():
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Constant(1.0).value = 2.0


# --- what may stand for a schedule


@attrs.frozen
class WithoutStart:
    rate: float = 2.0

    def __call__(self, epoch, n_epochs):
        return self.rate


def module_level(epoch, n_epochs):
    return 1.0


DEFAULT = GeometricDecay(0.4)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, DEFAULT),
        ("auto", DEFAULT),
        (3, Constant(3.0)),
        (0.5, Constant(0.5)),
        (np.float32(0.5), Constant(0.5)),
        (np.array(0.5), Constant(0.5)),
        (np.int64(2), Constant(2.0)),
        (Constant(7.0), Constant(7.0)),
        (Annealed(), Annealed(0.4)),
        (Annealed(power=1.0, floor=0.2), Annealed(0.4, power=1.0, floor=0.2)),
        (Annealed(2.0), Annealed(2.0)),
        (AdaptiveStep(max_weight=0.5), AdaptiveStep(0.4, max_weight=0.5)),
        (StepDecay(every=3), StepDecay(0.4, every=3)),
        (GeometricDecay(ratio=0.1), GeometricDecay(0.4, ratio=0.1)),
        (WithoutStart(), WithoutStart()),
        (module_level, module_level),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_resolve(value, wanted):
    assert resolve(value, DEFAULT, "step_size") == wanted


def test_resolve_leaves_what_it_is_given():
    given_schedule = Annealed()
    resolve(given_schedule, DEFAULT, "sigma2")
    assert given_schedule.start is None


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (0, "sigma2 must be positive and finite, got 0"),
        (-1.5, "sigma2 must be positive and finite, got -1.5"),
        (math.nan, "got nan"),
        (math.inf, "got inf"),
        (np.float64(0), "sigma2 must be positive and finite, got 0.0"),
        (True, "sigma2 must be a positive number, a Schedule, None or 'auto', got True"),
        ("0.5", "sigma2 must be a positive number, a Schedule, None or 'auto', got '0.5'"),
        ("Auto", "got 'Auto'"),
        ([1.0], r"got \[1.0\]"),
        (np.ones(2), "sigma2 must be"),
        ({}, "got {}"),
    ],
)
def test_resolve_refuses_by_name(value, sentence):
    with pytest.raises(ValueError, match=sentence):
        resolve(value, DEFAULT, "sigma2")


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "2", None])
def test_the_interval_of_step_decay_is_a_positive_integer(value):
    with pytest.raises(ValueError, match="every must be an integer of at least 1, got"):
        StepDecay(1.0, every=value)
