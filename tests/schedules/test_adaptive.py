"""The step size that sets itself: the formula by hand, indifference to its start, every geometry, persistence."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from rplvq import AdaptiveStep, EuclideanVectors, GeometricDecay, RiemannianLVQ, Trainer, load_model
from rplvq.arrays import Samples
from rplvq.schedules import DoGState
from rplvq.training import EpochScore
from tests.cases import EVERY
from tests.problems import distances, spd_classes, vector_classes


def trained(X, y, step_size="adaptive", **settings):
    settings = {"sigma2": 1.0, "max_epochs": 5, "random_state": 0} | settings
    return RiemannianLVQ(step_size=step_size, **settings).fit(X, y)


def test_steps_follow_the_formula_by_hand():
    """Two prototypes on a line, one sample a step; slopes by the two-component posterior."""
    samples, targets = np.array([[0.5], [2.0], [-1.0]]), np.array([0, 1, 0])
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=AdaptiveStep(0.01), max_epochs=3)
    first = Samples(np.array([[0.0], [1.0]]), np.array([0, 1]))
    state = trainer.init(first, 2, np.random.default_rng(0)).at_epoch(1, 3)
    w, total, max_grad, max_dist = np.array([0.0, 1.0]), 0.0, 0.0, 0.0
    for x, target in zip(samples, targets, strict=True):
        step = trainer.step(state, Samples(x[None], np.array([target])))
        share = np.exp(-((x - w) ** 2) / 2)
        slope = (np.eye(2)[target] - share / share.sum()) / 2
        gradient = -2 * slope * (x - w)
        total, max_grad = total + gradient @ gradient, max(max_grad, np.linalg.norm(gradient))
        size = max(max_dist, 0.01 * max_grad) / np.sqrt(total) * (1 - 1 / 3) ** 2
        w = w - size * gradient
        max_dist = max(max_dist, np.linalg.norm(w - [0.0, 1.0]))
        assert step.step_size == pytest.approx(size, rel=1e-12)
        np.testing.assert_allclose(np.asarray(step.prototypes)[:, 0], w, rtol=1e-12)
        state = state._replace(prototypes=step.prototypes, memory=step.memory)
    assert state.memory.max_dist == pytest.approx(max_dist, rel=1e-12)
    assert state.memory.max_grad == pytest.approx(max_grad, rel=1e-12)
    assert state.memory.total == pytest.approx(total, rel=1e-12)
    assert state.memory.n_steps == 3


def test_the_first_step_is_start_and_a_gradient_of_zero_is_no_step():
    rule = AdaptiveStep(0.2)
    memory = rule.init(np.zeros((2, 3)))
    assert rule.update(memory, 0.0, 0, 10)[1] == 0.2
    assert rule.update(memory, 7.0, 0, 10)[1] == 0.2
    assert rule.update(memory, 7.0, 5, 10)[1] == pytest.approx(0.2 * 0.5**2)
    assert rule.update(memory, 7.0, 10, 10)[1] == pytest.approx(0.2 * 0.01)


def test_the_distance_is_measured_four_times_while_the_number_of_steps_doubles():
    seen = []

    class Watched(EuclideanVectors):
        def sqdist(self, prototypes, samples):
            seen.append(count)
            return super().sqdist(prototypes, samples)

    for count in range(1, 70):
        AdaptiveStep(0.1).observe(DoGState(np.zeros((1, 2)), 0.0, 0.0, 0.0, count), Watched(), np.ones((1, 2)))
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64]


def test_the_largest_distance_is_that_on_the_product_manifold():
    memory = DoGState(np.zeros((2, 1)), 1.0, 0.0, 0.0, 1)
    assert AdaptiveStep().observe(memory, EuclideanVectors(), np.array([[3.0], [4.0]])).max_dist == 5.0
    assert AdaptiveStep().observe(memory, EuclideanVectors(), np.array([[0.3], [0.4]])).max_dist == 1.0


def test_added_prototypes_start_where_they_were_added():
    memory = DoGState(np.array([[0.0], [1.0]]), 2.0, 3.0, 4.0, 5)
    resized = AdaptiveStep().resize(memory, lambda codes: np.concatenate([codes[1:], [[7.0]]]))
    assert resized.init.tolist() == [[1.0], [7.0]]
    assert resized[1:] == memory[1:]
    assert memory.init.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_cost_hardly_depends_on_the_start_over_a_hundredfold(n_classes):
    X, y = spd_classes(per_class=25, n_classes=n_classes, spread=0.6, shift=0.4)

    def costs(rule):
        return [trained(X, y, rule(s), max_epochs=50).history_["cost"][-1] for s in (0.003, 0.03, 0.3)]

    adaptive, decay = costs(AdaptiveStep), costs(GeometricDecay)
    assert max(adaptive) < 1.15 * min(adaptive)
    assert max(decay) > 1.3 * min(decay)
    assert max(adaptive) < max(decay)


def test_one_epoch_ends_gently_where_a_small_sigma2_makes_each_sample_pull_hard():
    X, y = spd_classes(per_class=15, spread=0.8, shift=0.5)
    test, labels = spd_classes(per_class=200, spread=0.8, shift=0.5)
    means = RiemannianLVQ(max_epochs=0).fit(X, y)
    sigma2 = 0.05 * float(np.median(means.transform(X) ** 2))
    model = trained(X, y, AdaptiveStep(), max_epochs=1, sigma2=sigma2)
    assert model.score(test, labels) > means.score(test, labels) - 0.03


@EVERY
@pytest.mark.parametrize("batch_size", [1, 4])
def test_every_geometry_descends(case, batch_size):
    points = case.points(np.random.default_rng(0), 24, 3)
    manifold = case.manifold(3)
    y = (manifold.sqdist(manifold.encode(points)[:1], manifold.encode(points))[:, 0] > 0.8).astype(int)
    y[:2] = 0, 1
    model = trained(
        points, y, max_epochs=8, sigma2=0.5, metric=manifold, batch_size=batch_size, callbacks=[EpochScore()]
    )
    means = RiemannianLVQ(manifold, sigma2=0.5, max_epochs=0).fit(points, y)
    began = -means.predict_log_proba(points)[np.arange(len(y)), y].sum()
    assert model.history_["cost"][-1] < began
    assert np.isfinite(model.prototypes_).all()


def test_the_history_has_the_last_step_of_each_epoch_and_sizes_carry_over():
    X, y = spd_classes(per_class=10)
    model = trained(X, y, max_epochs=4)
    memory = model.state_.memory
    assert memory.n_steps == 4 * len(X)
    wanted = memory.max_dist / np.sqrt(memory.total) * 0.01
    assert model.history_["step_size"][-1] == pytest.approx(wanted, rel=0.5)
    assert model.history_["step_size"].shape == (4,)


def test_scaling_the_data_scales_nothing_else():
    """In other units of flat data the steps are the same steps."""
    X, y = vector_classes()
    models = [
        trained(f * X, y, AdaptiveStep(), metric="euclidean_vectors", sigma2=float(f * f)) for f in (1, 1e-6, 1e6)
    ]
    for model, factor in zip(models, (1, 1e-6, 1e6), strict=True):
        np.testing.assert_allclose(model.prototypes_, factor * models[0].prototypes_, rtol=1e-6)


def test_sample_weights_are_repetitions():
    X, y = spd_classes(per_class=6)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    model = RiemannianLVQ(step_size="adaptive", sigma2=1.0, max_epochs=3, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=1e-9)


def test_a_saved_model_goes_on_as_it_would_have(tmp_path):
    X, y = spd_classes(per_class=6)
    model = RiemannianLVQ(step_size=AdaptiveStep(max_weight=0.5), sigma2=1.0, max_epochs=10, random_state=0)
    for _ in range(3):
        model.partial_fit(X, y)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.step_size == model.step_size
    model.partial_fit(X, y)
    again.partial_fit(X, y)
    assert np.array_equal(model.prototypes_, again.prototypes_)
    assert again.state_.memory.n_steps == 4 * len(X)


def test_fit_and_partial_fit_take_the_same_steps():
    X, y = spd_classes(per_class=6)
    model = RiemannianLVQ(step_size="adaptive", sigma2=1.0, max_epochs=3, random_state=0)
    whole, parts = clone(model).fit(X, y), clone(model)
    for _ in range(3):
        parts.partial_fit(X, y)
    np.testing.assert_allclose(distances(whole.prototypes_, parts.prototypes_).diagonal(), 0, atol=1e-12)


def test_fields_are_parameters():
    model = RiemannianLVQ(step_size=AdaptiveStep(0.1))
    assert model.set_params(step_size__start=0.5).step_size == AdaptiveStep(0.5)


@pytest.mark.parametrize(("field", "value"), [("start", 0), ("start", -1.0), ("max_weight", 0), ("max_weight", np.nan)])
def test_bad_fields_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} must be"):
        AdaptiveStep(**{field: value})


def test_misuse_is_named():
    X, y = spd_classes()
    with pytest.raises(ValueError, match="adapts a step size; give sigma2 a number"):
        RiemannianLVQ(sigma2=AdaptiveStep(0.1)).fit(X, y)
    with pytest.raises(ValueError, match="start=None, which is filled in at fit"):
        AdaptiveStep()(1, 10)
