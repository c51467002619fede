"""What a fitted model answers: probabilities, decisions and distances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import logm
from scipy.special import log_softmax, logsumexp, softmax

from rplvq import LogEuclidean, RiemannianLVQ
from tests.problems import distances, spd, spd_classes


@pytest.fixture(scope="module")
def problem():
    return spd_classes(n_classes=3, per_class=12, n=4)


@pytest.fixture(scope="module")
def model(problem):
    return RiemannianLVQ(prototypes_per_class=2, max_epochs=4, random_state=0).fit(*problem)


# --- probabilities and decisions


def test_probabilities_are_those_of_the_mixture(model, problem):
    X, _ = problem
    logits = -(distances(X, model.prototypes_) ** 2) / (2 * model.sigma2_)
    by_class = softmax(logits, axis=1).reshape(-1, 3, 2).sum(axis=2)
    assert_allclose(model.predict_proba(X), by_class, rtol=1e-9)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


@pytest.mark.parametrize("decision", ["nearest", "posterior"])
def test_far_samples_have_finite_log_probabilities(problem, decision):
    X, y = problem
    model = RiemannianLVQ(max_epochs=1, sigma2=1e-3, decision=decision, random_state=0).fit(X, y)
    far = np.array([1e12 * np.eye(4), np.diag([1e-5, 1, 1, 1e4])])
    log_proba = model.predict_log_proba(far)
    sqdist = distances(far, model.prototypes_) ** 2
    exact = -sqdist / (2 * model.sigma2_)
    assert np.isfinite(log_proba).all()
    assert log_proba.min() < -800  # a probability would underflow
    assert_allclose(log_proba, exact - logsumexp(exact, axis=1, keepdims=True), rtol=1e-6)
    assert np.isfinite(model.decision_function(far)).all()
    assert_array_equal(model.predict(far), sqdist.argmin(axis=1))


@pytest.mark.parametrize("decision", ["nearest", "posterior"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_decision_function_agrees_with_predict(decision, n_classes):
    X, y = spd_classes(n_classes=n_classes, spread=0.9, shift=0.2)
    names = np.array(["a", "b", "c"])[y]
    model = RiemannianLVQ(prototypes_per_class=2, decision=decision, max_epochs=2, random_state=0).fit(X, names)
    scores = model.decision_function(X)
    if n_classes == 2:
        assert scores.shape == (len(X),)
        assert_array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])
    else:
        assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    if decision == "posterior":
        assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert 0.5 < model.score(X, names) < 1


def test_nearest_and_posterior_can_differ():
    # One prototype of "a" at 0; two of "b" at 1.1 on either side. The sample at 0 is nearest to "a", but
    # exp(-1.1^2 / 8) = .86 for each "b" outweighs 1.
    points = np.array([[0.0], [-1.1], [1.1]])
    model = RiemannianLVQ("euclidean_vectors", sigma2=4.0, max_epochs=0, init=(points, ["a", "b", "b"]))
    model.fit(points, ["a", "b", "b"])
    assert model.predict([[0.0]]).tolist() == ["a"]
    assert_allclose(model.predict_proba([[0.0]]), [[1, 2 * np.exp(-1.21 / 8)]] / (1 + 2 * np.exp(-1.21 / 8)))
    assert model.decision_function([[0.0]]) < 0
    assert model.set_params(decision="posterior").predict([[0.0]]).tolist() == ["b"]
    assert model.decision_function([[0.0]]) > 0


# --- distances


def test_transform_is_the_distance_to_each_prototype(model, problem):
    X, _ = problem
    assert_allclose(model.transform(X), distances(X, model.prototypes_), rtol=1e-8)
    flat = RiemannianLVQ("log_euclidean", max_epochs=1, random_state=0).fit(*problem)
    logs = [[np.linalg.norm(logm(x) - logm(w)) for w in flat.prototypes_] for x in X]
    assert_allclose(flat.transform(X), logs, rtol=1e-8)


def test_more_jobs_give_the_same(model, problem):
    X, _ = problem
    wanted = model.transform(X)
    for n_jobs, count in [(2, 36), (2, 1), (3, 2)]:
        model.set_params(n_jobs=n_jobs)
        assert_array_equal(model.transform(X[:count]), wanted[:count])
    model.set_params(n_jobs=None)


def test_transform_names_its_columns_and_fills_frames(model, problem):
    pd = pytest.importorskip("pandas")
    X, _ = problem
    names = [f"riemannianlvq_{label}_{k}" for label in range(3) for k in range(2)]
    assert model.get_feature_names_out().tolist() == names
    frame = RiemannianLVQ(max_epochs=1).set_output(transform="pandas").fit(*problem).transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == names[::2]
    fitted = RiemannianLVQ(max_epochs=1, random_state=0)
    assert_allclose(fitted.fit_transform(*problem), fitted.transform(X))


def test_class_means_of_many_classes_need_no_distances_of_all_pairs():
    count = []

    class Counting(LogEuclidean):
        @staticmethod
        def sqdist(prototypes, samples):
            count.append(len(prototypes) * len(samples))
            return LogEuclidean.sqdist(prototypes, samples)

    n_classes = 600
    y = np.arange(2 * n_classes) % n_classes
    X = spd(np.random.default_rng(0), len(y), 2)
    model = RiemannianLVQ(Counting(), max_epochs=0).fit(X, y)
    assert sum(count) < 0.9 * len(y) * n_classes
    # Evenly spaced samples stand for all of them in the one row of the history.
    sqdist, sigma2 = model.transform(X), model.sigma2_
    exact = -log_softmax(-sqdist / (2 * sigma2), axis=1)[np.arange(len(y)), y].sum()
    assert_allclose(model.history_["cost"], exact, rtol=0.1)
    assert_allclose(model.history_["training_error"], np.mean(sqdist.argmin(axis=1) != y), atol=0.1)
