"""One step at a time: weights, caps, the moved prototypes, and the default of sigma2."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import distances, spd_classes

from rplvq import (
    PLVQ,
    RSLVQ,
    AffineInvariant,
    ClassMeans,
    Constant,
    EuclideanVectors,
    LogEuclidean,
    ProjectedEuclidean,
    RiemannianLVQ,
    Trainer,
)
from rplvq.exceptions import DivergenceWarning
from rplvq.training import pair_weights

MATRIX_MANIFOLDS = pytest.mark.parametrize(
    "manifold", [AffineInvariant(), LogEuclidean(), ProjectedEuclidean(tau=1e-9)], ids=lambda m: type(m).__name__
)


def started(manifold, X, y, **settings):
    """A trainer, its initial state and the codes of X."""
    trainer = Trainer(manifold, **settings)
    codes = manifold.encode(X)
    return trainer, trainer.init(codes, y, y.max() + 1, np.random.default_rng(0)), codes


# --- a single step


@MATRIX_MANIFOLDS
@pytest.mark.parametrize("cost", [RSLVQ(), PLVQ()], ids=repr)
def test_one_sample_scales_every_distance_by_its_weight(manifold, cost):
    # After W <- Exp_W(s Log_W X) the distance is |1 - s| of what it was, with s = 2 alpha slope.
    X, y = spd_classes(n_classes=3)
    trainer, state, codes = started(manifold, X, y, cost=cost, sigma2=2.0, step_size=0.9, max_weight=None)
    sample, target = codes[5:6], y[5:6]
    before = manifold.sqdist(state.prototypes, sample)
    s = 2 * 0.9 * cost(before, target, state.labels, 2.0).slope
    after = manifold.sqdist(trainer.step(state, sample, target).prototypes, sample)
    assert np.abs(s).min() > 1e-3
    assert_allclose(np.sqrt(after), np.abs(1 - s) * np.sqrt(before), rtol=1e-9)


def test_a_step_by_hand():
    # Distances 1 and 4 with sigma2 = 1/2: p = (1, e^-3) / (1 + e^-3), slope = (1 - p_0, -p_1).
    trainer = Trainer(EuclideanVectors(), sigma2=0.5, step_size=0.25, max_weight=None)
    codes = np.array([[0.0], [3.0]])
    state = trainer.init(codes, np.array([0, 1]), 2, np.random.default_rng(0))
    share = np.exp(-3) / (1 + np.exp(-3))
    step = trainer.step(state, np.array([[1.0]]), np.array([0]))
    assert_allclose(step.sqdist, [[1, 4]])
    assert_allclose(step.loss, [np.log1p(np.exp(-3))])
    # 2 alpha slope / B = 0.5 * (share, -share); the second moves away from the sample.
    assert_allclose(step.prototypes, [[0.5 * share * 1], [3 - 0.5 * share * -2]])
    assert step.n_capped == 0


@MATRIX_MANIFOLDS
def test_all_weights_are_computed_before_any_prototype_moves(manifold):
    # Each prototype ends where it would if the others stood still, by the weights of the start.
    X, y = spd_classes(n_classes=3)
    trainer, state, codes = started(manifold, X, y, sigma2=0.5, step_size=0.5)
    batch, targets = codes[:4], y[:4]
    geodesics = manifold.connect(state.prototypes, batch)
    slope = RSLVQ()(geodesics.sqdist, targets, state.labels, 0.5).slope
    together = manifold.decode(trainer.step(state, batch, targets).prototypes)
    for k in range(3):
        alone = np.zeros((4, 3))
        alone[:, k] = (2 * 0.5 * slope / 4)[:, k]
        assert_allclose(together[k], manifold.decode(manifold.move(geodesics, alone))[k], rtol=1e-10)


def test_a_step_leaves_its_state_as_it_was():
    X, y = spd_classes()
    trainer, state, codes = started(AffineInvariant(), X, y)
    before = np.array(state.prototypes)
    trainer.step(state, codes[:1], y[:1])
    assert_array_equal(np.array(state.prototypes), before)


def test_sample_weights_scale_the_step():
    X, y = spd_classes()
    manifold = AffineInvariant()
    trainer, state, codes = started(manifold, X, y, sigma2=1.0, step_size=0.1)
    double = Trainer(manifold, sigma2=1.0, step_size=0.2)
    state2 = double.init(codes, y, 2, np.random.default_rng(0))
    weighted = trainer.step(state, codes[:3], y[:3], np.full(3, 2.0))
    assert_allclose(weighted.prototypes, double.step(state2, codes[:3], y[:3]).prototypes, rtol=1e-12)


# --- weights and caps


def test_weights_are_twice_step_times_slope_over_batch():
    slope, sqdist = np.array([[0.2, -0.1], [0.0, 0.4]]), np.ones((2, 2))
    weights, n_capped = pair_weights(slope, sqdist, 0.5, 1.0, np.inf)
    assert_allclose(weights, slope / 2)
    assert n_capped == 0


@pytest.mark.parametrize(
    ("slope", "step_size", "wanted", "n_capped"),
    [
        ([[2.0, -3.0, 0.5]], 0.5, [[1.0, -1.0, 0.5]], 2),  # cut at 1, both signs
        ([[0.8, -0.9, 0.7]], 0.5, [[0.8, -0.9, 0.7]], 0),  # together beyond 1, each below: none cut
        ([[1.0, -1.0, 0.0]], 0.5, [[1.0, -1.0, 0.0]], 0),  # exactly 1 is allowed
        ([[2.0, 0.0, 0.0], [0.5, 0.5, -4.0]], 0.5, [[0.5, 0.0, 0.0], [0.25, 0.25, -0.5]], 2),  # before dividing by B
        ([[0.0, 0.0, 0.0]], 1e300, [[0.0, 0.0, 0.0]], 0),
        ([[1e300, 0.0, -1e300]], 0.5, [[1.0, 0.0, -1.0]], 2),
    ],
)
def test_no_weight_exceeds_max_weight(slope, step_size, wanted, n_capped):
    with np.errstate(over="ignore"):  # squares of such slopes overflow, and are meant to
        weights, capped = pair_weights(np.array(slope), np.ones(np.shape(slope)), step_size, 1.0, np.inf)
    assert_allclose(weights, wanted)
    assert capped == n_capped


def test_without_max_weight_weights_stay_as_they_are():
    weights, n_capped = pair_weights(np.array([[5.0, -7.0]]), np.ones((1, 2)), 0.5, None, np.inf)
    assert_allclose(weights, [[5.0, -7.0]])
    assert n_capped == 0


def test_no_step_is_longer_than_max_length():
    # Prototype 0 would go 2 * 3 + 1 * 4 = 10 at most, prototype 1 goes 0.5 * 2: only the first is shortened.
    slope, sqdist = np.array([[2.0, 0.5], [-1.0, 0.0]]) * 2, np.array([[9.0, 4.0], [16.0, 1.0]])
    weights, n_capped = pair_weights(slope, sqdist, 0.5, None, 2.5)
    assert_allclose(weights, [[0.5, 0.5], [-0.25, 0.0]])
    assert_allclose(np.sum(np.abs(weights[:, 0]) * np.sqrt(sqdist[:, 0])), 2.5)
    assert n_capped == 1


@pytest.mark.parametrize("batch", [1, 5])
def test_a_capped_step_is_as_long_as_allowed_on_the_manifold(batch):
    X, y = spd_classes(spread=1.0)
    manifold = AffineInvariant()
    settings = {"sigma2": 1e-3, "step_size": 1.0, "max_weight": None, "max_step_length": 0.3}
    trainer, state, codes = started(manifold, X, y, **settings)
    rows = np.flatnonzero(y == 0)[:batch]
    # The last sample is labelled wrongly, so that there are slopes to be capped.
    step = trainer.step(state, codes[rows], 1 - y[rows])
    moved = distances(np.array(step.prototypes), np.array(state.prototypes)).diagonal()
    assert step.n_capped >= 2
    assert moved.max() <= 0.3 * (1 + 1e-9)
    if batch == 1:
        assert_allclose(moved, 0.3, rtol=1e-9)


def test_the_manifold_s_own_cap_holds_where_none_is_given():
    X, y = spd_classes(spread=1.0)
    manifold = AffineInvariant(max_step_length=0.05)
    trainer, state, codes = started(manifold, X, y, sigma2=1e-3, step_size=1.0, max_weight=None)
    moved = trainer.step(state, codes[:1], 1 - y[:1]).prototypes
    assert distances(np.array(moved), np.array(state.prototypes)).diagonal().max() <= 0.05 * (1 + 1e-9)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_nothing_leaves_the_cone_however_large_the_weights(batch_size):
    X, y = spd_classes(per_class=15, n=4, n_classes=3, spread=0.8, shift=0.4)
    settings = {"sigma2": 0.01, "step_size": 0.5, "max_weight": None, "batch_size": batch_size, "max_epochs": 5}
    with pytest.warns(DivergenceWarning, match="steps were cut"):
        model = RiemannianLVQ(random_state=0, **settings).fit(X, y)
    eigenvalues = np.linalg.eigvalsh(model.prototypes_)
    assert np.isfinite(model.prototypes_).all()
    assert (eigenvalues > 0).all()
    assert model.history_["n_capped"].sum() > 0
    assert np.isfinite(model.predict_log_proba(X)).all()


# --- sigma2="auto"


def test_auto_sigma2_is_not_looked_at_where_a_schedule_has_a_start():
    # Three of four prototypes coincide with nearly all samples, so that the median is 0.
    X = np.repeat([np.eye(2), 2 * np.eye(2)], [9, 1], axis=0)
    y = np.repeat([0, 1], [9, 1])
    means = ClassMeans(per_class=(3, 1))
    for sigma2 in (0.5, Constant(0.5), np.float32(0.5)):
        state = Trainer(LogEuclidean(), initializer=means, sigma2=sigma2).init(
            LogEuclidean().encode(X), y, 2, np.random.default_rng(0)
        )
        assert state.sigma2 == 0.5


def test_the_unit_of_the_data_is_not_needed_where_a_step_size_is_given():
    # All points equal: no length scale, but nobody asks for one.
    codes, y = np.ones((4, 2)), np.array([0, 0, 1, 1])
    state = Trainer(EuclideanVectors(), sigma2=1.0, step_size=0.1).init(codes, y, 2, np.random.default_rng(0))
    assert state.step_size == 0.1
