"""StepSize: which schedule it means, where weights are capped, and the step sizes of a stream after its last epoch."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    AdaptiveStep,
    Annealed,
    Constant,
    EuclideanVectors,
    GeometricDecay,
    HeldOut,
    RiemannianLVQ,
    StepDecay,
    StepSize,
    Trainer,
)
from rplvq.arrays import Samples
from rplvq.schedules import as_step_rule, default_shares, default_step, resolve
from tests.problems import refuse, spd_classes, vector_classes

X, Y = spd_classes(per_class=10)


# --- what may stand for a step size


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, StepSize(None)),
        ("auto", StepSize()),
        ("paper", StepSize("paper")),
        (0.1, StepSize(0.1)),
        (GeometricDecay(0.1), StepSize(GeometricDecay(0.1))),
        (StepSize(0.1, max_weight=None), StepSize(0.1, max_weight=None)),
        (AdaptiveStep(0.1), AdaptiveStep(0.1)),
    ],
    ids=repr,
)
def test_anything_but_a_step_rule_is_the_schedule_of_a_step_size(value, wanted):
    assert as_step_rule(value) == wanted
    assert Trainer(EuclideanVectors(), step_size=value).step_size == wanted


@pytest.mark.parametrize(
    ("step_size", "start"),
    [
        (StepSize(), 4 * 0.5 / 80),  # K sigma2 / N
        (StepSize(None), 4 * 0.5 / 80),
        (StepSize(GeometricDecay()), 4 * 0.5 / 80),
        (StepSize(StepDecay(every=2)), 4 * 0.5 / 80),
        (AdaptiveStep(), 4 * 0.5 / 80),
        (StepSize("paper"), 0.3),
        (StepSize(GeometricDecay(0.7)), 0.7),
        (StepSize(Constant(0.2)), 0.2),
        (StepSize(0.2), 0.2),
        (StepSize(np.float32(0.25)), 0.25),
        (StepSize("auto", horizon=3), 4 * 0.5 / 80),
    ],
    ids=repr,
)
def test_the_schedule_of_a_step_size_is_resolved_for_the_data(step_size, start):
    class Plain(EuclideanVectors):
        unit = None

    samples = Samples(np.random.default_rng(0).normal(size=(80, 30)), np.arange(80) % 4)
    trainer = Trainer(Plain(), sigma2=0.5, step_size=step_size)
    state = trainer.init(samples, 4, np.random.default_rng(0))
    assert state.step_size == pytest.approx(start, rel=1e-12)


def test_the_default_decays_as_the_papers_and_a_given_schedule_as_it_does():
    settings = {"sigma2": 1.0, "max_epochs": 4, "random_state": 0}
    default = RiemannianLVQ(step_size=StepSize(), **settings).fit(X, Y).history_["step_size"]
    assert_allclose(default, 0.5 * 0.01 ** (np.arange(1, 5) / 4))  # half of sigma2: there are few epochs
    paper = RiemannianLVQ(step_size=StepSize("paper"), **settings).fit(X, Y).history_["step_size"]
    assert_allclose(paper, 0.03 * 0.01 ** (np.arange(1, 5) / 4))
    given = RiemannianLVQ(step_size=StepSize(StepDecay(0.1, every=2)), **settings).fit(X, Y).history_["step_size"]
    assert_allclose(given, [0.1, 0.05, 0.05, 0.025])


def test_the_schedule_of_a_step_size_is_resolved_with_the_default():
    default = GeometricDecay(0.4)
    for schedule, resolved in (
        (None, default),
        ("auto", default),
        (2, Constant(2.0)),
        (Annealed(power=1.0), Annealed(0.4, power=1.0)),
    ):
        assert resolve(StepSize(schedule).schedule, default, "step_size") == resolved
    with pytest.raises(ValueError, match="step_size must be a positive number, a Schedule, None or 'auto', got 'x'"):
        resolve(StepSize("x").schedule, default, "step_size")


# --- the cap on weights


@pytest.mark.parametrize("step_size", [5.0, StepSize(5.0)], ids=repr)
def test_weights_are_capped_at_one_unless_something_else_is_said(step_size):
    samples = Samples(np.array([[0.0], [1.0]]), np.array([0, 1]))
    sample = Samples(np.array([[4.0]]), np.array([0]))  # nearer to the prototype of the other class
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=step_size)
    state = trainer.init(samples, 2, np.random.default_rng(0))
    step = trainer.step(state, sample)
    assert step.n_capped == 2
    assert_allclose(step.prototypes, [[4.0], [-2.0]])  # onto the sample, and as far away from it


@pytest.mark.parametrize(("max_weight", "wanted", "n_capped"), [(0.5, [[2.0], [-0.5]], 2), (None, None, 0)])
def test_max_weight_is_that_of_the_step_size(max_weight, wanted, n_capped):
    samples = Samples(np.array([[0.0], [1.0]]), np.array([0, 1]))
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=StepSize(5.0, max_weight=max_weight))
    step = trainer.step(trainer.init(samples, 2, np.random.default_rng(0)), Samples(np.array([[4.0]]), np.array([0])))
    share = 1 / (1 + np.exp((9 - 16) / 2))  # of the prototype at 1 in the posterior of the sample at 4
    pull = 10.0 * share / 2
    assert step.n_capped == n_capped
    assert_allclose(step.prototypes, [[4 * pull], [1 - 3 * pull]] if wanted is None else wanted)


def test_an_adaptive_step_has_a_cap_of_its_own():
    samples = Samples(np.array([[0.0], [1.0]]), np.array([0, 1]))
    sample = Samples(np.array([[4.0]]), np.array([0]))
    for max_weight, n_capped in ((1.0, 2), (0.25, 2), (None, 0)):
        rule = AdaptiveStep(5.0, max_weight=max_weight)
        trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=rule)
        step = trainer.step(trainer.init(samples, 2, np.random.default_rng(0)), sample)
        assert step.n_capped == n_capped
        if max_weight is not None:
            assert_allclose(step.prototypes, [[4 * max_weight], [1 - 3 * max_weight]])


def test_the_parameters_of_a_step_size_are_parameters_of_the_estimator():
    model = RiemannianLVQ(step_size=StepSize(0.1))
    model.set_params(step_size__max_weight=None, step_size__horizon=7)
    assert model.step_size == StepSize(0.1, max_weight=None, horizon=7)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_weight", 0),
        ("max_weight", -1.0),
        ("max_weight", np.nan),
        ("max_weight", "1"),
        ("max_weight", True),
        ("horizon", 0),
        ("horizon", 2.5),
        ("horizon", None),
        ("horizon", True),
    ],
)
def test_bad_fields_are_refused_by_name_and_value(field, value):
    with pytest.raises(ValueError, match=rf"{field} must be .*{value!r}"):
        StepSize(**{field: value})


@pytest.mark.parametrize("schedule", ["slow", 0, -1.0, np.nan, True, [0.1], Constant, HeldOut(["auto"])], ids=repr)
def test_a_bad_schedule_is_refused_by_fit(schedule):
    model = RiemannianLVQ(sigma2=1.0, step_size=StepSize(schedule), max_epochs=1)
    refuse(model, "fit", X, Y, match=r"step_size must be .*positive.*got")


# --- streams


@pytest.mark.parametrize("schedule", [None, "auto"])
def test_after_the_last_epoch_steps_of_a_default_schedule_follow_the_horizon(schedule):
    rule = StepSize(schedule, horizon=200)
    assert rule.in_stream(1e-6, sigma2=2.0, n_prototypes=5) == 5 * 2.0 / 200
    assert rule.in_stream(0.3, sigma2=2.0, n_prototypes=5) == 0.3  # a longer last step stays
    assert StepSize(schedule, horizon=3).in_stream(1e-6, sigma2=2.0, n_prototypes=5) == 1.0  # half of sigma2 at most


@pytest.mark.parametrize("schedule", [0.1, Constant(0.1), GeometricDecay(), GeometricDecay(0.1)], ids=repr)
def test_a_schedule_that_is_given_stays_at_its_last_value_in_a_stream(schedule):
    assert StepSize(schedule, horizon=2).in_stream(1e-6, sigma2=2.0, n_prototypes=5) == 1e-6


def test_the_default_step_is_that_of_a_mean():
    assert default_step(2.0, 4 / 80, 4, 80) == 0.1
    assert default_step(2.0, 4 / 5, 4, 5) == 1.0  # half of sigma2 at most
    for batch_size, times in ((1, 1), (8, 8), (80, 80), (200, 80), (None, 80)):
        assert default_step(2.0, 4 / 80, 4, 80, batch_size) == pytest.approx(0.1 * times)


def test_the_default_step_goes_as_far_with_any_number_of_epochs():
    for n_epochs in (20, 50, 100, 1000):
        assert n_epochs * default_step(2.0, 0.01, 4, 400, n_epochs=n_epochs) == pytest.approx(100 * 2.0 * 0.01)
    assert default_step(2.0, 0.01, 4, 400, n_epochs=1) == 1.0  # half of sigma2 at most
    assert default_step(2.0, 0.01, 4, 400, None, 1) == 2.0 * 4  # the sum over a batch stays that of a mean


def test_the_larger_default_step_is_a_tenth_of_sigma2_where_that_is_larger_and_fits_a_batch():
    assert default_shares(4, 80) == [0.05, 0.1]
    assert default_shares(4, 40) == [0.1]
    assert default_shares(4, 30.0) == [4 / 30.0]
    assert default_shares(4, 80, 40) == [0.05, 0.1]
    assert default_shares(4, 80, 50) == [0.05, 0.08]
    assert default_shares(4, 80, 80) == default_shares(4, 80, None) == default_shares(4, 80, 100) == [0.05]


@pytest.mark.parametrize("horizon", [50, 1000])
def test_partial_fit_takes_the_steps_of_the_horizon_after_its_last_epoch(horizon):
    V, y = vector_classes(per_class=20)
    step_size = StepSize(horizon=horizon)
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=step_size, max_epochs=3, random_state=0)
    for _ in range(5):
        model.partial_fit(V, y)
    steps = model.history_["step_size"]
    start = model.state_.step_schedule.start
    assert_allclose(steps[:3], start * 0.01 ** (np.arange(1, 4) / 3))
    assert_allclose(steps[3:], max(2 * 1.0 / horizon, start * 0.01))
    given = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=StepSize(GeometricDecay(0.5), horizon=horizon))
    given.set_params(max_epochs=2)
    for _ in range(4):
        given.partial_fit(V, y)
    assert_array_equal(given.history_["step_size"][2:], given.history_["step_size"][1])
