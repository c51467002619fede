"""A call reads one fitted model from its beginning to its end, whatever another thread fits meanwhile."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rplvq import AffineInvariant, EuclideanVectors, RiemannianLVQ, load_model
from rplvq.inspection import calibrate_sigma2
from tests.problems import snapshot, spd_classes, vector_classes

CALLS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
DATA = {"matrices": spd_classes(per_class=8), "vectors": vector_classes(per_class=8)}


class Meanwhile:
    """A manifold that runs a function in the midst of a prediction, as another thread may."""

    def __init__(self, inner):
        self.inner, self.run = inner, lambda: None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def sqdist(self, prototypes, samples):
        run, self.run = self.run, lambda: None
        run()
        return self.inner.sqdist(prototypes, samples)

    def nearest(self, prototypes, samples, groups=None):
        return self.sqdist(prototypes, samples).argmin(axis=1)


def late_class(model, X, y):
    """A call of partial_fit after which labels, prototypes, classes and sigma2 are others."""
    model.partial_fit(np.concatenate([X, 3 * X[:2]]), np.concatenate([y, [-1, -1]]))


def other_fit(model, X, y):
    """A fit after which every prototype has another label, and sigma2 another value."""
    model.set_params(sigma2=7.0).fit(X, 10 - y)


@pytest.mark.parametrize("change", [late_class, other_fit])
@pytest.mark.parametrize("decision", ["nearest", "posterior"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("data", DATA)
def test_a_prediction_is_that_of_the_model_at_its_beginning(data, call, decision, change):
    X, y = DATA[data]
    manifold = Meanwhile(AffineInvariant() if data == "matrices" else EuclideanVectors())
    model = RiemannianLVQ(manifold, sigma2=1.0, decision=decision, max_epochs=3, random_state=0).partial_fit(X, y)
    wanted = getattr(model, call)(X)
    manifold.run = lambda: change(model, X, y)
    np.testing.assert_array_equal(getattr(model, call)(X), wanted)
    assert model.classes_.tolist() != [0, 1]  # the change did happen, in between


def test_calibration_reads_one_model():
    X, y = DATA["vectors"]
    manifold = Meanwhile(EuclideanVectors())
    model = RiemannianLVQ(manifold, sigma2=1.0, max_epochs=3, random_state=0).partial_fit(X, y)
    wanted = calibrate_sigma2(model, X, y)
    manifold.run = lambda: late_class(model, X, y)
    found = calibrate_sigma2(model, X, y)
    assert found.sigma2_ == wanted.sigma2_
    np.testing.assert_array_equal(found.classes_, [0, 1])
    assert model.classes_.tolist() == [-1, 0, 1]


def test_a_copy_with_another_sigma2_uses_it():
    X, y = DATA["vectors"]
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, random_state=0).fit(X, y)
    other = copy.copy(model)
    other.sigma2_ = 50.0
    assert other.predict_proba(X).max() < model.predict_proba(X).max()


@pytest.mark.parametrize("first", [True, False], ids=["first fit", "later fit"])
def test_a_fit_replaces_all_fitted_attributes_in_one_assignment(first):
    """Whoever holds the attributes of before keeps a whole model; none of them changes under the reader."""
    X, y = DATA["vectors"]
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=2, random_state=0)
    if not first:
        model.fit(X[:, :2], y)
    held, before = vars(model), snapshot(model)
    model.fit(X, 5 - y)
    assert vars(model) is not held
    model.__dict__, new = held, vars(model)
    assert snapshot(model) == before
    assert {"state_", "classes_", "sigma2_", "n_features_in_"} <= new.keys()


def test_a_model_that_learns_in_one_thread_is_used_in_others(tmp_path):
    """Labels swap their places again and again; a prediction from two models at once would be wrong."""
    X = np.array([[0.0], [1.0], [9.0], [10.0]])
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=0, random_state=0)
    labels = [np.array(["left", "left", "right", "right"]), np.array(["up", "up", "down", "down"])]
    model.fit(X, labels[0])
    over = threading.Event()

    def use(number):
        seen = 0
        while not over.is_set() or seen < 20:
            found = model.predict(X)
            assert any(np.array_equal(found, wanted) for wanted in labels)
            if number == 0:
                model.save(tmp_path / "model.npz")
                found = load_model(tmp_path / "model.npz").predict(X)
                assert any(np.array_equal(found, wanted) for wanted in labels)
            seen += 1

    with ThreadPoolExecutor(3) as pool:
        users = [pool.submit(use, number) for number in range(3)]
        for turn in range(100):
            model.fit(X, labels[turn % 2])
        over.set()
        for user in users:
            user.result()
