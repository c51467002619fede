"""sigma2 that follows its gradient: finite differences, the path by hand, limits, persistence, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import refuse, spd_classes, vector_classes

from rplvq import GLVQ, PLVQ, RSLVQ, EuclideanVectors, Learned, Representability, RiemannianLVQ, Trainer, load_model
from rplvq.costs import FlatGaussian, SpreadRSLVQ
from rplvq.schedules import log_sigma2_gradient, require_homogeneous

X, Y = vector_classes(per_class=20, n_classes=3, shift=0.8)
RNG = np.random.default_rng(0)
SQDIST, LABELS = RNG.uniform(0.1, 5, (30, 4)), np.array([0, 0, 1, 2])
HARD, SOFT, WEIGHTS = RNG.integers(0, 3, 30), RNG.dirichlet(np.ones(3), 30), RNG.uniform(0, 2, 30)


@pytest.mark.parametrize(
    ("cost", "targets"),
    [
        (RSLVQ(), HARD),
        (RSLVQ(priors=(0.5, 0.3, 0.2)), HARD),
        (RSLVQ() + 0.1 * Representability(), HARD),
        (GLVQ(), HARD),
        (PLVQ(), HARD),
        (PLVQ(), SOFT),
    ],
    ids=["RSLVQ", "priors", "sum", "GLVQ", "PLVQ", "soft labels"],
)
@pytest.mark.parametrize("sigma2", [0.2, 3.0])
def test_the_gradient_is_the_change_of_the_cost(cost, targets, sigma2):
    for weights in (None, WEIGHTS):
        low, high = (
            np.average(cost(SQDIST, targets, LABELS, sigma2 * np.exp(step)).loss, weights=weights)
            for step in (-1e-5, 1e-5)
        )
        found = log_sigma2_gradient(cost, SQDIST, targets, LABELS, sigma2, weights)
        assert_allclose(found, (high - low) / 2e-5, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("factor", [1.0, 1e-12, 1e9])
def test_costs_that_see_more_than_distances_over_sigma2_are_refused(factor):
    sqdist = factor * SQDIST
    for cost in (RSLVQ(), PLVQ(), GLVQ()):
        require_homogeneous(cost, sqdist, HARD, LABELS, factor)
    spread = SpreadRSLVQ([0.5 * factor, factor, 4 * factor], FlatGaussian(3))
    with pytest.raises(ValueError, match=r"needs a cost of distances over sigma2 alone, .* give sigma2 a number"):
        require_homogeneous(spread, sqdist, HARD, LABELS, factor)


def test_a_step_by_hand():
    rule = Learned(2.0, rate=0.5, floor=0.25)
    assert rule(7, 10) == 2.0
    assert rule.follow(2.0, 0.4) == pytest.approx(2.0 * np.exp(-0.2))
    assert rule.follow(2.0, -0.4) == pytest.approx(2.0 * np.exp(0.2))
    assert rule.follow(0.6, 0.5) == 0.5  # the floor, a quarter of the start
    assert rule.follow(2.0, -1e9) == pytest.approx(4.0)  # no more than doubled
    with pytest.raises(ValueError, match="start=None, which is filled in at fit"):
        Learned()(1, 10)


@pytest.mark.parametrize("data", ["training", "held_out"])
def test_sigma2_follows_the_gradient_after_each_epoch(data):
    states = []
    rule = Learned(3.0, rate=2.0, floor=0.01, data=data)
    trainer = Trainer(
        EuclideanVectors(), sigma2=rule, step_size=0.05, max_epochs=5, callbacks=[lambda r: states.append(r.state)]
    )
    rng, kept = np.random.default_rng(0), np.arange(len(Y)) % 3 > 0
    state = trainer.init(X[kept], Y[kept], 3, rng)
    validation = (X[~kept], Y[~kept], None)
    last, history = trainer.run(state, X[kept], Y[kept], rng, None, validation)
    sigma2, looked = 3.0, (X[kept], Y[kept]) if data == "training" else validation[:2]
    for number, after in enumerate(states):
        sqdist = ((looked[0][:, None] - np.asarray(after.prototypes)) ** 2).sum(axis=2)
        sigma2 = rule.follow(sigma2, log_sigma2_gradient(RSLVQ(), sqdist, looked[1], np.arange(3), sigma2))
        assert history["sigma2"][number] == after.sigma2 == pytest.approx(sigma2, rel=1e-12)
    assert last.sigma2 == history["sigma2"][-1] != 3.0
    assert trainer.step(last, X[:1], Y[:1]).loss.shape == (1,)


def test_one_epoch_is_trained_with_the_start():
    kwargs = {"manifold": "euclidean_vectors", "step_size": 0.05, "max_epochs": 1, "random_state": 0}
    learned = RiemannianLVQ(sigma2=Learned(3.0, data="training"), **kwargs).fit(X, Y)
    constant = RiemannianLVQ(sigma2=3.0, **kwargs).fit(X, Y)
    assert_array_equal(learned.prototypes_, constant.prototypes_)
    assert learned.sigma2_ < constant.sigma2_


def test_fit_holds_out_as_early_stopping_does():
    settings = {"manifold": "euclidean_vectors", "validation_fraction": 0.3, "max_epochs": 3, "random_state": 0}
    model = RiemannianLVQ(sigma2=Learned(2.0), **settings).fit(X, Y)
    assert {"validation_cost", "validation_error"} <= set(model.history_)
    assert model.n_epochs_ == 3
    stopping = RiemannianLVQ(sigma2=2.0, early_stopping=True, **settings).fit(X, Y)
    assert model.history_["training_error"][0] == stopping.history_["training_error"][0]
    none = RiemannianLVQ(sigma2=Learned(2.0, data="training"), **settings).fit(X, Y)
    assert "validation_cost" not in none.history_
    assert RiemannianLVQ(sigma2=Learned(), early_stopping=True, **settings).fit(X, Y).n_epochs_ <= 3


def test_on_held_out_data_sigma2_grows_where_training_overfits():
    V, y = vector_classes(1, per_class=15, d=20, shift=0.15)
    settings = {"manifold": "euclidean_vectors", "step_size": 0.3, "max_epochs": 40, "random_state": 0}
    held, training = (
        RiemannianLVQ(sigma2=Learned(4.0, rate=1.0, data=data), validation_fraction=0.4, **settings).fit(V, y)
        for data in ("held_out", "training")
    )
    assert training.sigma2_ < 4.0 < held.sigma2_


def test_units_change_nothing_else():
    def fitted(factor):
        rule = Learned(rate=1.0, data="training")
        model = RiemannianLVQ("euclidean_vectors", sigma2=rule, max_epochs=4, random_state=0)
        return model.fit(factor * X, Y).sigma2_

    assert_allclose(fitted(1e-6), 1e-12 * fitted(1.0), rtol=1e-6)


def test_a_saved_model_goes_on_as_it_would_have(tmp_path):
    S, y = spd_classes(per_class=8)
    model = RiemannianLVQ(sigma2=Learned(data="training", rate=1.0), max_epochs=10, random_state=0)
    for _ in range(3):
        model.partial_fit(S, y)
    assert len(np.unique(model.history_["sigma2"])) == 3
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.sigma2 == model.sigma2
    model.partial_fit(S, y)
    again.partial_fit(S, y)
    assert_array_equal(model.prototypes_, again.prototypes_)
    assert model.sigma2_ == again.sigma2_


def test_fields_are_parameters():
    model = RiemannianLVQ(sigma2=Learned())
    assert model.set_params(sigma2__rate=0.3, sigma2__data="training").sigma2 == Learned(rate=0.3, data="training")


@pytest.mark.parametrize(
    ("field", "value"), [("start", 0), ("rate", -1), ("rate", None), ("floor", 0), ("floor", 1.5), ("data", "test")]
)
def test_bad_fields_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        Learned(**{field: value})


def test_where_it_cannot_be_is_said():
    S, y = spd_classes(per_class=8)
    refuse(RiemannianLVQ(sigma2=Learned()), "partial_fit", S, y, match=r"needs held-out samples.*data='training'")
    refuse(RiemannianLVQ(sigma2=Learned(), solver="cg"), "fit", S, y, match=r"sigma2=Learned.* for solver='sgd' only")
    refuse(RiemannianLVQ(step_size=Learned(0.1)), "fit", S, y, match=r"learns sigma2; give step_size a number")
    small = RiemannianLVQ(sigma2=Learned(), validation_fraction=0.01)
    refuse(small, "fit", S, y, match=r"cannot be held out .* use Learned\(data='training'\)")
    rng, trainer = np.random.default_rng(0), Trainer(EuclideanVectors(), sigma2=Learned())
    with pytest.raises(ValueError, match="needs held-out samples"):
        trainer.run(trainer.init(X, Y, 3, rng), X, Y, rng)
    spread = SpreadRSLVQ([1.0, 2.0, 3.0], FlatGaussian(3))
    learned = RiemannianLVQ("euclidean_vectors", spread, sigma2=Learned(data="training"))
    refuse(learned, "fit", X, Y, match="needs a cost of distances over sigma2 alone")
