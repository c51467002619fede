"""RiemannianLVQ on matrices: shapes, labels, probabilities, decisions, distances, invariances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm

from rplvq import (
    PLVQ,
    RSLVQ,
    AffineInvariant,
    EarlyStopping,
    EuclideanVectors,
    HeldOut,
    LogEuclidean,
    ProjectedEuclidean,
    RiemannianLVQ,
    StepSize,
    Trainer,
)
from rplvq.arrays import Samples
from rplvq.datasets import make_syn2
from rplvq.training import EpochScore, State
from tests.problems import distances, spd_classes, vector_classes

RULE = HeldOut(["auto"])
"""Trains in any case."""


@pytest.fixture(scope="module")
def problem():
    return spd_classes(n_classes=3, per_class=12, n=4)


@pytest.fixture(scope="module")
def model(problem):
    return RiemannianLVQ(sigma2=RULE, prototypes_per_class=2, max_epochs=4, random_state=0).fit(*problem)


def test_shapes_and_fitted_attributes(model, problem):
    X, y = problem
    assert model.prototypes_.shape == (6, 4, 4)
    assert model.prototype_labels_.tolist() == [0, 0, 1, 1, 2, 2]
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 4
    assert model.n_epochs_ == 4
    assert len(model.history_["cost"]) == 4
    assert model.predict(X).shape == (36,)
    assert model.predict_proba(X).shape == model.decision_function(X).shape == (36, 3)
    assert model.transform(X).shape == (36, 6)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("epochs", [0, 3])
@pytest.mark.parametrize("callbacks", [(), (EpochScore(),)], ids=["no callback", "score of each epoch"])
def test_n_epochs_counts_epochs_trained(problem, epochs, callbacks):
    assert RiemannianLVQ(sigma2=RULE, max_epochs=epochs, callbacks=callbacks).fit(*problem).n_epochs_ == epochs


def test_the_trainer_and_the_state_are_public(model, problem):
    X, y = problem
    assert isinstance(model.trainer_, Trainer)
    assert isinstance(model.state_, State)
    assert_array_equal(model.trainer_.manifold.decode(model.state_.prototypes), model.prototypes_)
    assert_array_equal(model.classes_[model.state_.labels], model.prototype_labels_)
    assert (model.state_.epoch, model.state_.sigma2) == (model.n_epochs_, model.sigma2_)
    assert model.state_.step_size == model.history_["step_size"][-1]
    # They suffice to train on without the estimator.
    samples = Samples(model.trainer_.manifold.encode(X), y)
    again = model.trainer_.sweep(model.state_, samples, np.random.default_rng(0))[0]
    assert np.isfinite(model.trainer_.manifold.decode(again.prototypes)).all()


def test_the_trainer_holds_the_resolved_parts(problem):
    X, y = problem
    stopping, step_size = EarlyStopping(fraction=0.3), StepSize(0.1, max_weight=0.5)
    parts = {"sigma2": 2.0, "step_size": step_size, "early_stopping": stopping, "batch_size": 4, "max_epochs": 2}
    trainer = RiemannianLVQ("log_euclidean", "plvq", **parts).fit(X, y).trainer_
    assert (trainer.manifold, trainer.cost, trainer.step_size) == (LogEuclidean(), PLVQ(), step_size)
    assert (trainer.early_stopping, trainer.sigma2, trainer.batch_size, trainer.max_epochs) == (stopping, 2.0, 4, 2)
    plain = RiemannianLVQ(sigma2=RULE, max_epochs=1).fit(X, y).trainer_
    assert (plain.manifold, plain.cost, plain.early_stopping) == (AffineInvariant(), RSLVQ(), None)
    assert plain.step_size == StepSize()
    assert (
        RiemannianLVQ(sigma2=RULE, max_epochs=1, early_stopping=True).fit(X, y).trainer_.early_stopping
        == EarlyStopping()
    )


def test_early_stopping_true_is_its_default_object(problem):
    X, y = np.concatenate([problem[0]] * 2), np.concatenate([problem[1]] * 2)
    models = [
        RiemannianLVQ(sigma2=RULE, early_stopping=stopping, max_epochs=15, random_state=0).fit(X, y)
        for stopping in (True, np.True_, EarlyStopping(), EarlyStopping(fraction=0.1, patience=10, tol=1e-4))
    ]
    assert "validation_cost" in models[0].history_
    for model in models[1:]:
        assert_array_equal(model.prototypes_, models[0].prototypes_)
        assert_array_equal(model.history_["validation_cost"], models[0].history_["validation_cost"])
    without = [
        RiemannianLVQ(sigma2=RULE, early_stopping=off, max_epochs=2, random_state=0).fit(X, y)
        for off in (False, np.False_, None)
    ]
    for model in without:
        assert "validation_cost" not in model.history_
        assert_array_equal(model.prototypes_, without[0].prototypes_)


def test_a_cap_on_weights_limits_the_steps(problem):
    X, y = problem
    capped, free = (
        RiemannianLVQ(sigma2=0.5, step_size=StepSize(0.4, max_weight=cap), max_epochs=1, random_state=0).fit(X, y)
        for cap in (0.05, None)
    )
    assert capped.history_["n_capped"][0] > free.history_["n_capped"][0] == 0
    begin = RiemannianLVQ(max_epochs=0).fit(X, y).prototypes_
    moved = [np.diag(distances(begin, model.prototypes_)).max() for model in (capped, free)]
    assert moved[0] < moved[1]


def test_a_mapping_from_a_callback_adds_columns_to_the_history(problem):
    X, y = problem

    def trace(report):
        return {"trace": float(report.state.epoch**2), "cost": -1.0}

    def rarely(report):
        return {"rare": 1.0} if report.state.epoch == 2 else None

    model = RiemannianLVQ(sigma2=RULE, max_epochs=3, random_state=0, callbacks=[trace, rarely]).fit(X, y)
    plain = RiemannianLVQ(sigma2=RULE, max_epochs=3, random_state=0).fit(X, y)
    assert_array_equal(model.prototypes_, plain.prototypes_)
    assert [*model.history_] == [*plain.history_, "trace", "rare"]
    assert_array_equal(model.history_["trace"], [1, 4, 9])
    assert_array_equal(model.history_["rare"], [np.nan, 1, np.nan])
    assert_array_equal(model.history_["cost"], [-1, -1, -1])  # a column of the library's can be replaced
    assert_array_equal(model.history_["training_error"], plain.history_["training_error"])
    model.partial_fit(X, y)  # callbacks are not called, and the columns go on
    assert_array_equal(model.history_["trace"], [1, 4, 9, np.nan])
    assert_array_equal(model.history_["rare"], [np.nan, 1, np.nan, np.nan])


def test_later_callbacks_see_the_columns_of_earlier_ones(problem):
    seen = []
    callbacks = [lambda report: {"extra": 10.0 * report.state.epoch}, lambda report: seen.append(report.row["extra"])]
    RiemannianLVQ(sigma2=RULE, max_epochs=3, callbacks=callbacks).fit(*problem)
    assert seen == [10.0, 20.0, 30.0]


def test_true_from_a_callback_stops_and_an_empty_mapping_does_not(problem):
    stopping = RiemannianLVQ(sigma2=RULE, max_epochs=5, callbacks=[lambda report: report.state.epoch == 2]).fit(
        *problem
    )
    going_on = RiemannianLVQ(sigma2=RULE, max_epochs=5, callbacks=[lambda report: {}]).fit(*problem)
    assert (stopping.n_epochs_, going_on.n_epochs_) == (2, 5)


def test_fitting_anew_forgets_the_old_fit(problem):
    X, y = problem
    model = RiemannianLVQ(sigma2=RULE, max_epochs=1, random_state=0).fit(X[:, :2, :2], y > 0)
    again = model.fit(X, y)
    fresh = RiemannianLVQ(sigma2=RULE, max_epochs=1, random_state=0).fit(X, y)
    assert_array_equal(again.prototypes_, fresh.prototypes_)
    assert again.n_features_in_ == 4


def test_input_is_never_written_to(problem):
    X, y = problem[0].copy(), problem[1].copy()
    weights = np.ones(len(X))
    for array in (X, y, weights):
        array.setflags(write=False)
    for manifold in ("affine_invariant", "log_euclidean", "euclidean"):
        RiemannianLVQ(manifold, sigma2=RULE, max_epochs=1).fit(X, y, sample_weight=weights).predict(X)
    assert_array_equal(X, problem[0])


def test_lists_and_float32_are_taken(problem):
    X, y = problem
    wanted = RiemannianLVQ(sigma2=RULE, max_epochs=2, random_state=0).fit(X, y)
    lists = RiemannianLVQ(sigma2=RULE, max_epochs=2, random_state=0).fit(X.tolist(), y.tolist())
    assert_array_equal(lists.prototypes_, wanted.prototypes_)
    coarse = RiemannianLVQ(sigma2=RULE, max_epochs=2, random_state=0).fit(X.astype(np.float32), y)
    assert coarse.prototypes_.dtype == np.float64
    assert coarse.score(X, y) == wanted.score(X, y)


# --- labels


@pytest.mark.parametrize(
    "labels",
    [
        ["left", "right", "tongue"],
        [-5, 3, 700],
        [-1.0, 0.0, 2.0],
        [False, True],
        np.array(["2021-01-01", "2022-01-01", "2023-01-01"], dtype="datetime64[D]"),
        np.array(["a", "bb", "ccc"], dtype=object),
        np.array([7, 8, 9], dtype=object),
        np.array([True, False], dtype=object),
        np.array([1, 2, 3], dtype=np.uint8),
    ],
    ids=["str", "negative", "float", "bool", "dates", "object str", "object int", "object bool", "uint8"],
)
def test_labels_of_any_type(problem, labels):
    X, y = problem
    labels = np.sort(np.asarray(labels))
    own = labels[np.minimum(y, len(labels) - 1)]
    model = RiemannianLVQ(sigma2=RULE, max_epochs=2, prototypes_per_class=2, random_state=0).fit(X, own)
    assert_array_equal(model.classes_, labels)
    assert model.prototype_labels_.dtype == model.classes_.dtype
    assert set(model.predict(X).tolist()) == set(labels.tolist())
    assert (model.predict(X) == own).mean() > 0.9
    counts = RiemannianLVQ(max_epochs=0, prototypes_per_class=dict.fromkeys(labels.tolist(), 2)).fit(X, own)
    assert_array_equal(counts.prototype_labels_, np.repeat(labels, 2))


def test_labels_come_from_pandas_too(problem):
    pd = pytest.importorskip("pandas")
    X, y = problem
    names = np.array(["a", "b", "c"])[y]
    for series in (pd.Series(names), pd.Series(pd.Categorical(names)), pd.Series(names, index=range(36, 0, -1))):
        model = RiemannianLVQ(sigma2=RULE, max_epochs=1, random_state=0).fit(X, series)
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert model.score(X, names) > 0.9


# --- no training, names, scales


def test_no_epoch_is_minimum_distance_to_mean(problem):
    # The independent mean: the fixed point of the whitened average logarithm.
    X, y = problem
    means = []
    for label in range(3):
        mean = X[y == label].mean(axis=0)
        for _ in range(60):
            root = np.linalg.cholesky(mean)
            inverse = np.linalg.inv(root)
            eigenvalues, vectors = np.linalg.eigh(inverse @ X[y == label] @ inverse.T)
            step = (vectors * np.log(eigenvalues)[:, None]) @ vectors.swapaxes(1, 2)
            mean = root @ expm(step.mean(axis=0)) @ root.T
        means.append(mean)
    model = RiemannianLVQ(max_epochs=0).fit(X, y)
    assert_allclose(model.prototypes_, means, rtol=1e-7, atol=1e-9)
    assert_array_equal(model.predict(X), distances(X, means).argmin(axis=1))
    history = {name: column.tolist() for name, column in model.history_.items()}
    wrong = (distances(X, means).argmin(axis=1) != y).mean()
    assert (history["epoch"], history["n_capped"], history["n_prototypes"]) == ([0], [0], [3])
    assert history["training_error"] == pytest.approx([wrong])
    own = model.predict_log_proba(X)[np.arange(len(y)), y]
    assert history["cost"] == pytest.approx([-own.sum()])
    assert (history["sigma2"], history["step_size"]) == ([model.sigma2_], [model.step_size_])


def test_without_training_soft_labels_need_no_cost_that_takes_them(problem):
    X, y = problem
    soft = 0.8 * np.eye(3)[y] + 0.2 / 3
    model = RiemannianLVQ(max_epochs=0).fit(X, soft)
    assert_array_equal(
        model.predict(X), RiemannianLVQ("affine_invariant", "plvq", max_epochs=0).fit(X, soft).predict(X)
    )
    assert np.isnan(model.history_["cost"]).all()
    assert model.history_["training_error"] == pytest.approx([1 - model.score(X, y)])
    with pytest.raises(ValueError, match="use cost='plvq'"):
        RiemannianLVQ(max_epochs=5).fit(X[:9], soft[:9])  # too few samples to compare


def test_the_history_without_training_has_the_columns_of_training_and_no_validation(problem):
    X, y = problem
    model = RiemannianLVQ(max_epochs=0, early_stopping=EarlyStopping(0.25), random_state=0).fit(X, y)
    trained = RiemannianLVQ(sigma2=1.0, max_epochs=1, early_stopping=EarlyStopping(0.25), random_state=0).fit(X, y)
    assert list(trained.history_) == [*model.history_, "validation_cost", "validation_error"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("affine_invariant", AffineInvariant()),
        ("riemann", AffineInvariant()),
        ("log_euclidean", LogEuclidean()),
        ("logeuclid", LogEuclidean()),
        ("euclidean", ProjectedEuclidean(relative=True)),
        ("euclid", ProjectedEuclidean(relative=True)),
    ],
)
def test_names_stand_for_parts(problem, name, part):
    settings = {"sigma2": RULE, "max_epochs": 2, "random_state": 0}
    named, given = RiemannianLVQ(name, **settings).fit(*problem), RiemannianLVQ(part, **settings).fit(*problem)
    assert_array_equal(named.prototypes_, given.prototypes_)


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("scale", [1e-28, 1e12])
def test_predictions_do_not_depend_on_the_unit(manifold, scale):
    # Classes that overlap: a model of another seed predicts other labels for several test samples.
    X, y = make_syn2(n_per_class=25, random_state=0)
    X_test, _ = make_syn2(n_per_class=150, random_state=1)
    settings = {"sigma2": RULE, "max_epochs": 10, "random_state": 0}
    here, there = RiemannianLVQ(manifold, **settings).fit(X, y), RiemannianLVQ(manifold, **settings).fit(scale * X, y)
    assert_array_equal(there.predict(scale * X_test), here.predict(X_test))
    if manifold == "affine_invariant":
        assert there.sigma2_ == pytest.approx(here.sigma2_, rel=1e-9)


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("scale", [1e-28, 1e12])
def test_training_does_not_depend_on_the_unit(manifold, scale):
    # Not only the predictions: the same samples are visited in the same order.
    X, y = make_syn2(n_per_class=15, random_state=0)
    settings = {"sigma2": RULE, "max_epochs": 3, "random_state": 0}
    here, there = RiemannianLVQ(manifold, **settings).fit(X, y), RiemannianLVQ(manifold, **settings).fit(scale * X, y)
    assert_allclose(there.prototypes_ / scale, here.prototypes_, rtol=1e-6, atol=1e-9)


def test_vectors_train_and_predict():
    X, y = vector_classes(n_classes=3)
    model = RiemannianLVQ(EuclideanVectors(), sigma2=RULE, max_epochs=5, random_state=0).fit(X, y)
    assert model.prototypes_.shape == (3, 3)
    assert_allclose(model.transform(X), np.linalg.norm(X[:, None] - model.prototypes_, axis=2))


def test_euclidean_class_means_are_arithmetic_where_one_direction_dominates():
    y, rng = np.arange(40) % 2, np.random.default_rng(0)
    X = np.array([np.diag([1e6, 1 + 0.2 * rng.random() + 0.5 * k, 1 + 0.2 * rng.random()]) for k in y])
    model = RiemannianLVQ("euclid", max_epochs=0).fit(X, y)
    for k in (0, 1):
        np.testing.assert_allclose(model.prototypes_[k], X[y == k].mean(axis=0), rtol=1e-9, atol=1e-9)
    assert model.score(X, y) == 1.0
