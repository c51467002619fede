"""One step: weights, caps, the moved prototypes, the parts of a batch, and the steps of a sweep."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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
    StepSize,
    Trainer,
)
from rplvq.arrays import Samples
from rplvq.exceptions import DivergenceWarning
from rplvq.manifolds import is_additive
from rplvq.training import State, contribution, follow, pair_weights
from tests.cases import CASES, made
from tests.problems import distances, spd_classes

ONE = Constant(1.0)
ADDED = {name: case for name, case in CASES.items() if is_additive(case.manifold(3))}
ADDITIVE = pytest.mark.parametrize("case", ADDED.values(), ids=ADDED.keys())
MATRIX_MANIFOLDS = pytest.mark.parametrize(
    "manifold", [AffineInvariant(), LogEuclidean(), ProjectedEuclidean(tau=1e-9)], ids=lambda m: type(m).__name__
)


def started(manifold, X, y, **settings):
    """A trainer, its initial state and the codes of X."""
    trainer = Trainer(manifold, **settings)
    codes = manifold.encode(X)
    return trainer, trainer.init(Samples(codes, y), y.max() + 1, np.random.default_rng(0)), codes


# --- a single step


@MATRIX_MANIFOLDS
@pytest.mark.parametrize("cost", [RSLVQ(), PLVQ()], ids=repr)
def test_one_sample_scales_every_distance_by_its_weight(manifold, cost):
    # After W <- Exp_W(s Log_W X) the distance is |1 - s| of what it was, with s = 2 alpha slope.
    X, y = spd_classes(n_classes=3)
    trainer, state, codes = started(manifold, X, y, cost=cost, sigma2=2.0, step_size=StepSize(0.9, max_weight=None))
    sample, target = codes[5:6], y[5:6]
    before = manifold.sqdist(state.prototypes, sample)
    s = 2 * 0.9 * cost(before, target, state.labels, 2.0).slope
    after = manifold.sqdist(trainer.step(state, Samples(sample, target)).prototypes, sample)
    assert np.abs(s).min() > 1e-3
    assert_allclose(np.sqrt(after), np.abs(1 - s) * np.sqrt(before), rtol=1e-9)


def test_a_step_by_hand():
    # Distances 1 and 4 with sigma2 = 1/2: p = (1, e^-3) / (1 + e^-3), slope = (1 - p_0, -p_1).
    trainer = Trainer(EuclideanVectors(), sigma2=0.5, step_size=StepSize(0.25, max_weight=None))
    state = trainer.init(Samples(np.array([[0.0], [3.0]]), np.array([0, 1])), 2, np.random.default_rng(0))
    share = np.exp(-3) / (1 + np.exp(-3))
    step = trainer.step(state, Samples(np.array([[1.0]]), np.array([0])))
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
    together = manifold.decode(trainer.step(state, Samples(batch, targets)).prototypes)
    for k in range(3):
        alone = np.zeros((4, 3))
        alone[:, k] = (2 * 0.5 * slope / 4)[:, k]
        assert_allclose(together[k], manifold.decode(manifold.move(geodesics, alone))[k], rtol=1e-10)


def test_a_step_leaves_its_state_as_it_was():
    X, y = spd_classes()
    trainer, state, codes = started(AffineInvariant(), X, y)
    before = np.array(state.prototypes)
    trainer.step(state, Samples(codes[:1], y[:1]))
    assert_array_equal(np.array(state.prototypes), before)


def test_sample_weights_scale_the_step():
    X, y = spd_classes()
    manifold = AffineInvariant()
    trainer, state, codes = started(manifold, X, y, sigma2=1.0, step_size=0.1)
    double = Trainer(manifold, sigma2=1.0, step_size=0.2)
    state2 = double.init(Samples(codes, y), 2, np.random.default_rng(0))
    weighted = trainer.step(state, Samples(codes[:3], y[:3], np.full(3, 2.0)))
    plain = double.step(state2, Samples(codes[:3], y[:3]))
    assert_allclose(weighted.prototypes, plain.prototypes, rtol=1e-12)
    assert_allclose(weighted.loss, plain.loss)  # without the weight


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
        ([[3.0, 0.0, 0.0], [0.5, 2.0, -4.0]], 0.5, [[1.0, 0.0, 0.0], [0.25, 1.0, -1.0]], 2),  # at 1 for B = 2 below K
        ([[9.0], [0.5], [-4.0], [1.0]], 0.5, [[0.25], [0.125], [-0.25], [0.25]], 2),  # at K / B
        ([[9.0, 0.0], [1.0, -4.0], [0.0, 2.0]], 0.5, [[2 / 3, 0.0], [1 / 3, -2 / 3], [0.0, 2 / 3]], 2),
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
    manifold = AffineInvariant(max_step_length=0.3)
    trainer, state, codes = started(manifold, X, y, sigma2=1e-3, step_size=StepSize(1.0, max_weight=None))
    rows = np.flatnonzero(y == 0)[:batch]
    # The last sample is labelled wrongly, so that there are slopes to be capped.
    step = trainer.step(state, Samples(codes[rows], 1 - y[rows]))
    moved = distances(np.array(step.prototypes), np.array(state.prototypes)).diagonal()
    assert step.n_capped >= 2
    assert moved.max() <= 0.3 * (1 + 1e-9)
    if batch == 1:
        assert_allclose(moved, 0.3, rtol=1e-9)


def test_a_manifold_without_a_cap_takes_whole_steps():
    assert Trainer(EuclideanVectors()).max_length == np.inf
    assert Trainer(AffineInvariant(max_step_length=0.3)).max_length == 0.3
    samples = Samples(np.array([[0.0], [1e6]]), np.array([0, 1]))
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=10.0)
    step = trainer.step(trainer.init(samples, 2, np.random.default_rng(0)), samples.at([1, 0]))
    assert step.n_capped == 0
    wrong = Samples(np.array([[1e6]]), np.array([0]))
    step = trainer.step(trainer.init(samples, 2, np.random.default_rng(0)), wrong)
    assert_allclose(step.prototypes, [[1e6], [1e6]])


@pytest.mark.parametrize("batch_size", [1, 4])
def test_nothing_leaves_the_cone_however_large_the_weights(batch_size):
    X, y = spd_classes(per_class=15, n=4, n_classes=3, spread=0.8, shift=0.4)
    step_size = StepSize(0.5, max_weight=None)
    settings = {"sigma2": 0.01, "step_size": step_size, "batch_size": batch_size, "max_epochs": 5}
    with pytest.warns(DivergenceWarning, match=r"of 135 steps of epoch \d were cut"):
        model = RiemannianLVQ(random_state=0, **settings).fit(X, y)
    eigenvalues = np.linalg.eigvalsh(model.prototypes_)
    assert np.isfinite(model.prototypes_).all()
    assert (eigenvalues > 0).all()
    assert model.history_["n_capped"].sum() > 0
    assert np.isfinite(model.predict_log_proba(X)).all()


# --- parts of a batch


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_length", [np.inf, 0.05])
@pytest.mark.parametrize("max_weight", [None, 0.2])
@ADDITIVE
def test_the_contributions_of_all_parts_add_up_to_one_step(case, max_weight, max_length, weighted):
    cost = PLVQ() if weighted else RSLVQ()
    manifold, codes = made(case, count=16)
    batch = Samples(codes[3:], np.arange(13) % 2, np.linspace(0.5, 2, 13) if weighted else None)
    state = State(codes[:3], np.array([0, 0, 1]), ONE, ONE, 1, 0.5, 0.9)
    parts = [
        contribution(manifold, cost, state, batch.at(rows), max_weight, len(batch))
        for rows in (slice(0, 4), slice(4, 5), slice(5, 13))
    ]
    tangents, lengths = sum(part.tangents for part in parts), sum(part.lengths for part in parts)
    moved, n_shortened = follow(manifold, state.prototypes, tangents, lengths, max_length)
    n_capped = sum(part.n_capped for part in parts)

    geodesics = manifold.connect(state.prototypes, batch.codes)
    loss, slope = cost(geodesics.sqdist, batch.targets, state.labels, 0.5)
    slope = slope * batch.filled_weights[:, None]
    weights, wanted_capped = pair_weights(slope, geodesics.sqdist, 0.9, max_weight, max_length)
    wanted = manifold.move(geodesics, weights)
    assert_allclose(np.concatenate([part.sqdist for part in parts]), geodesics.sqdist, rtol=1e-9, atol=1e-12)
    assert_allclose(np.concatenate([part.loss for part in parts]), loss, rtol=1e-9)
    assert_allclose(np.asarray(moved), np.asarray(wanted), rtol=1e-9, atol=1e-11)
    assert n_capped + n_shortened == wanted_capped
    assert (wanted_capped > 0) == (max_weight is not None or np.isfinite(max_length))


def test_a_contribution_may_be_connected_by_a_faster_way():
    manifold, codes = made(CASES["affine-invariant"], count=5)
    state = State(codes[:2], np.array([0, 1]), ONE, ONE, 1, 0.5, 0.9)
    part, calls = Samples(codes[2:], np.array([0, 1, 1])), []

    def connect(prototypes, samples):
        calls.append(len(samples))
        return manifold.connect(prototypes, samples)

    plain = contribution(manifold, RSLVQ(), state, part, 1.0, 6)
    faster = contribution(manifold, RSLVQ(), state, part, 1.0, 6, connect)
    assert calls == [3]
    assert_array_equal(faster.tangents, plain.tangents)
    whole = contribution(manifold, RSLVQ(), state, part, 1.0, 3)
    assert_allclose(plain.tangents, whole.tangents / 2)  # the mean is over the batch of 6
    assert_allclose(plain.lengths, whole.lengths / 2)


def test_only_prototypes_whose_step_is_too_long_are_shortened():
    moved, n_shortened = follow(
        EuclideanVectors(), np.zeros((3, 2)), np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), np.array([5, 0.5, 0]), 1.0
    )
    assert n_shortened == 1
    assert_allclose(moved, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]])


# --- a sweep


@pytest.mark.parametrize("size", [1, 5, 16, 100, None])
def test_an_epoch_is_one_step_per_batch_over_one_permutation(size):
    # The last batch is smaller, and its weights are divided by its own size.
    X, y = spd_classes(n_classes=2)
    manifold = AffineInvariant()
    trainer = Trainer(manifold, sigma2=1.0, step_size=0.2, batch_size=size, max_epochs=1)
    samples, rng = Samples(manifold.encode(X), y), np.random.default_rng(0)
    state = expected = trainer.init(samples, 2, rng).at_epoch(1, 1)
    order, cost, wrong = np.random.default_rng(5).permutation(len(X)), 0.0, 0
    for start in range(0, len(X), size or len(X)):
        batch = samples.at(order[start : start + (size or len(X))])
        step = trainer.step(expected, batch)
        expected = expected._replace(prototypes=step.prototypes)
        cost += step.loss.sum()
        wrong += np.count_nonzero(state.labels[step.sqdist.argmin(axis=1)] != batch.targets)
    swept, score, n_capped = trainer.sweep(state, samples, np.random.default_rng(5))
    assert_allclose(np.array(swept.prototypes), np.array(expected.prototypes), rtol=1e-12)
    assert score.cost == pytest.approx(cost, rel=1e-9)
    assert score.error == wrong / len(X)
    assert n_capped == 0


# --- the start


def test_distances_give_no_sigma2_where_a_schedule_has_a_start():
    # Three of four prototypes coincide with nearly all samples, so that the median is 0.
    X = np.repeat([np.eye(2), 2 * np.eye(2)], [9, 1], axis=0)
    y = np.repeat([0, 1], [9, 1])
    means = ClassMeans(per_class=(3, 1))
    for sigma2 in (0.5, Constant(0.5), np.float32(0.5)):
        trainer = Trainer(LogEuclidean(), initializer=means, sigma2=sigma2)
        state = trainer.init(Samples(LogEuclidean().encode(X), y), 2, np.random.default_rng(0))
        assert state.sigma2 == 0.5
    trainer = Trainer(LogEuclidean(), initializer=means)
    with pytest.raises(ValueError, match="most samples coincide with their prototypes"):
        trainer.init(Samples(LogEuclidean().encode(X), y), 2, np.random.default_rng(0))


def test_the_unit_of_the_data_is_not_needed_where_a_step_size_is_given():
    # All points equal: no length scale, but nobody asks for one.
    samples = Samples(np.ones((4, 2)), np.array([0, 0, 1, 1]))
    state = Trainer(EuclideanVectors(), sigma2=1.0, step_size=0.1).init(samples, 2, np.random.default_rng(0))
    assert state.step_size == 0.1
