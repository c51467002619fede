"""RiemannianLVQ on matrices: shapes, labels, probabilities, decisions, distances, invariances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import distances, spd_classes, vector_classes
from scipy.linalg import expm

from rplvq import AffineInvariant, EuclideanVectors, LogEuclidean, ProjectedEuclidean, RiemannianLVQ
from rplvq.datasets import make_syn2


@pytest.fixture(scope="module")
def problem():
    return spd_classes(n_classes=3, per_class=12, n=4)


@pytest.fixture(scope="module")
def model(problem):
    return RiemannianLVQ(prototypes_per_class=2, max_epochs=4, random_state=0).fit(*problem)


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
@pytest.mark.parametrize("monitor", ["sweep", "epoch"])
def test_n_epochs_counts_epochs_trained(problem, epochs, monitor):
    assert RiemannianLVQ(max_epochs=epochs, monitor=monitor).fit(*problem).n_epochs_ == epochs


def test_fitting_anew_forgets_the_old_fit(problem):
    X, y = problem
    model = RiemannianLVQ(max_epochs=1, random_state=0).fit(X[:, :2, :2], y > 0)
    again = model.fit(X, y)
    fresh = RiemannianLVQ(max_epochs=1, random_state=0).fit(X, y)
    assert_array_equal(again.prototypes_, fresh.prototypes_)
    assert again.n_features_in_ == 4


def test_input_is_never_written_to(problem):
    X, y = problem[0].copy(), problem[1].copy()
    weights = np.ones(len(X))
    for array in (X, y, weights):
        array.setflags(write=False)
    for manifold in ("affine_invariant", "log_euclidean", "euclidean"):
        RiemannianLVQ(manifold, max_epochs=1).fit(X, y, sample_weight=weights).predict(X)
    assert_array_equal(X, problem[0])


def test_lists_and_float32_are_taken(problem):
    X, y = problem
    wanted = RiemannianLVQ(max_epochs=2, random_state=0).fit(X, y)
    lists = RiemannianLVQ(max_epochs=2, random_state=0).fit(X.tolist(), y.tolist())
    assert_array_equal(lists.prototypes_, wanted.prototypes_)
    coarse = RiemannianLVQ(max_epochs=2, random_state=0).fit(X.astype(np.float32), y)
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
    model = RiemannianLVQ(max_epochs=2, prototypes_per_class=2, random_state=0).fit(X, own)
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
        model = RiemannianLVQ(max_epochs=1, random_state=0).fit(X, series)
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
    assert model.history_ == {}


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
    settings = {"max_epochs": 2, "random_state": 0}
    named, given = RiemannianLVQ(name, **settings).fit(*problem), RiemannianLVQ(part, **settings).fit(*problem)
    assert_array_equal(named.prototypes_, given.prototypes_)


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("scale", [1e-28, 1e12])
def test_predictions_do_not_depend_on_the_unit(manifold, scale):
    # Classes that overlap: a model of another seed predicts other labels for several test samples.
    X, y = make_syn2(n_per_class=25, random_state=0)
    X_test, _ = make_syn2(n_per_class=150, random_state=1)
    settings = {"max_epochs": 10, "random_state": 0}
    here, there = RiemannianLVQ(manifold, **settings).fit(X, y), RiemannianLVQ(manifold, **settings).fit(scale * X, y)
    assert_array_equal(there.predict(scale * X_test), here.predict(X_test))
    if manifold == "affine_invariant":
        assert there.sigma2_ == pytest.approx(here.sigma2_, rel=1e-9)


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("scale", [1e-28, 1e12])
def test_training_does_not_depend_on_the_unit(manifold, scale):
    # Not only the predictions: the same samples are visited in the same order.
    X, y = make_syn2(n_per_class=15, random_state=0)
    settings = {"max_epochs": 3, "random_state": 0}
    here, there = RiemannianLVQ(manifold, **settings).fit(X, y), RiemannianLVQ(manifold, **settings).fit(scale * X, y)
    assert_allclose(there.prototypes_ / scale, here.prototypes_, rtol=1e-6, atol=1e-9)


def test_vectors_train_and_predict():
    X, y = vector_classes(n_classes=3)
    model = RiemannianLVQ(EuclideanVectors(), max_epochs=5, random_state=0).fit(X, y)
    assert model.prototypes_.shape == (3, 3)
    assert_allclose(model.transform(X), np.linalg.norm(X[:, None] - model.prototypes_, axis=2))
