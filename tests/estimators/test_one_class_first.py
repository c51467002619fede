"""A stream that begins with samples of one class: it waits for a second one, and then begins with all samples."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import GLVQ, RSLVQ, AdaptiveStep, Grow, HeldOut, Prune, Representability, RiemannianLVQ, StepSize, load_model
from rplvq.costs import FlatGaussian, SpreadRSLVQ
from rplvq.manifolds import riemannian_mean
from tests.problems import spd_classes, sphere_classes

X, INDEX = spd_classes(n_classes=3, per_class=12)
Y = np.array(["b", "c", "a"])[INDEX]
NAMES = ["a", "b", "c"]
A, B, C = (np.flatnonzero(name == Y) for name in NAMES)


def begun(rows=B, **params):
    return RiemannianLVQ(**({"random_state": 0} | params)).partial_fit(X[rows], Y[rows], classes=NAMES)


def test_one_class_is_predicted_with_certainty_and_the_others_wait():
    model = begun()
    assert model.classes_.tolist() == NAMES
    assert model.prototype_labels_.tolist() == ["b"]
    assert_allclose(model.prototypes_[0], riemannian_mean(model.trainer_.manifold, X[B]).code, rtol=1e-6)
    assert (model.predict(X) == "b").all()
    assert_array_equal(model.predict_proba(X), np.tile([0.0, 1.0, 0.0], (len(X), 1)))
    assert_array_equal(model.decision_function(X)[:, [0, 2]], -np.inf)
    assert model.transform(X).shape == (len(X), 1)
    assert model.get_feature_names_out().tolist() == ["riemannianlvq_b_0"]
    assert model.score(X, Y) == pytest.approx(1 / 3)
    # Samples of one class say nothing about sigma2, so that the likeliest value is half the median.
    half_median, n_free = np.median(model.transform(X[B]) ** 2) / 2, X.shape[1] * (X.shape[1] + 1) // 2
    assert model.sigma2_ == pytest.approx(half_median / 2 ** (len(B) / (n_free + len(B))))
    assert (model.n_epochs_, model.state_.epoch) == (1, 0)
    assert model.history_["cost"].tolist() == [0.0]


PARTS = {
    "default": {},
    "gentle": {"step_size": "auto"},
    "glvq": {"cost": GLVQ()},
    "priors": {"cost": RSLVQ(priors=[0.2, 0.3, 0.5])},
    "spread": {"cost": SpreadRSLVQ([1.0, 1.1, 1.2], FlatGaussian(6))},
    "sum": {"cost": RSLVQ() + 0.1 * Representability()},
    "adaptive": {"step_size": AdaptiveStep()},
    "heldout": {"sigma2": HeldOut([0.5, 1.0, 2.0])},
    "half_median": {"sigma2": "half_median", "metric": "log_euclidean"},
    "two": {"prototypes_per_class": 2, "init": "kmeans"},
    "growth": {"growth": [Grow(every=1, min_samples=3, gain=None), Prune(every=2)]},
    "classweight": {"class_weight": {"a": 2.0, "b": 0.5}},
    "learned": {"metric": "learned_log_euclidean"},
}


# GLVQ has larger slopes later than where its step was measured; the default then cuts them to the share, and says so.
@pytest.mark.filterwarnings("ignore:.* steps of epoch .* were cut:rplvq.exceptions.DivergenceWarning")
@pytest.mark.parametrize("name", PARTS)
def test_the_call_that_brings_a_second_class_begins_with_all_samples(name):
    """Two calls of one class and one of another are the same as one call with all of them."""
    params = PARTS[name]
    model = begun(B[:5], **params)
    model.partial_fit(X[B[5:]], Y[B[5:]])
    assert model.prototype_labels_[0] == "b"
    model.partial_fit(X[C], Y[C])
    together = begun(np.concatenate([B, C]), **params)
    assert_array_equal(model.prototypes_, together.prototypes_)
    assert model.sigma2_ == together.sigma2_
    assert model.state_.epoch == together.state_.epoch == 1
    assert model._stream.alone is None
    for fitted in (model, together):
        fitted.partial_fit(X, Y)
    assert_array_equal(model.prototypes_, together.prototypes_)
    assert set(model.prototype_labels_) == set(NAMES)
    assert model.score(X, Y) > 0.8


def test_samples_may_come_one_by_one():
    order = np.concatenate([B[:6], C[:1], B[6:], C[1:], A])
    model = RiemannianLVQ(random_state=0)
    for count, row in enumerate(order, start=1):
        model.partial_fit(X[[row]], Y[[row]], classes=NAMES)
        assert np.isfinite(model.predict_proba(X)).all()
        assert set(model.predict(X)) <= set(Y[order[:count]])
    assert model.n_epochs_ == len(order)
    assert model.score(X, Y) > 0.8


def test_the_first_sample_alone_has_no_scale_so_that_sigma2_is_1_for_now():
    model = begun(B[:1])
    assert model.sigma2_ == 1.0
    assert_allclose(model.prototypes_[0], X[B[0]], rtol=1e-12)
    assert begun(B[:1], sigma2=0.3).sigma2_ == 0.3
    with pytest.raises(ValueError, match="sigma2 must be positive"):
        begun(B[:1], sigma2=-1.0)


def test_a_class_with_fewer_samples_than_prototypes_gets_the_others_later():
    model = begun(B, prototypes_per_class=3, sigma2=1.0)
    model.partial_fit(X[C[:1]], Y[C[:1]])
    assert model.prototype_labels_.tolist() == ["b", "b", "b", "c"]
    model.partial_fit(X[C[1:]], Y[C[1:]]).partial_fit(X[B], Y[B])
    assert model.prototype_labels_.tolist() == ["b", "b", "b", "c", "c", "c"]
    single = begun(B[:1], prototypes_per_class=2)
    assert len(single.prototypes_) == 1
    assert len(single.partial_fit(X[B[1:]], Y[B[1:]]).prototypes_) == 2


def test_complex_matrices_weights_and_rounding():
    Z, index = spd_classes(n_classes=2, per_class=10, dtype=complex)
    first, second = (np.flatnonzero(index == label) for label in (0, 1))
    weights = np.linspace(0.5, 2.0, len(Z))
    model = RiemannianLVQ(random_state=0).partial_fit(Z[first], index[first], [0, 1], weights[first])
    model.partial_fit(Z[second], index[second], sample_weight=weights[second])
    together = RiemannianLVQ(random_state=0).partial_fit(Z, index, [0, 1], weights)
    assert_array_equal(model.prototypes_, together.prototypes_)
    assert model.score(Z, index) > 0.8


def test_the_stream_survives_pickle_copies_and_files(tmp_path):
    model = begun(B[:4])
    model.save(tmp_path / "model.npz")
    others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), load_model(tmp_path / "model.npz")]
    model.partial_fit(X[C], Y[C])
    for other in others:
        assert_array_equal(other.partial_fit(X[C], Y[C]).prototypes_, model.prototypes_)


def test_only_so_many_samples_are_kept(monkeypatch):
    monkeypatch.setattr("rplvq.estimators._online.GATHERED", 7)
    model = begun(B)
    assert len(model._stream.alone) == 7
    assert len(model.partial_fit(X[B], Y[B])._stream.alone) == 7
    assert model.partial_fit(X[C], Y[C]).score(X[np.r_[B, C]], Y[np.r_[B, C]]) > 0.8


def test_a_schedule_begins_with_the_second_class():
    model = begun(step_size=StepSize("auto"), sigma2=1.0)
    for _ in range(5):
        model.partial_fit(X[B], Y[B])
    assert model.history_["epoch"].tolist() == [0] * 6
    model.partial_fit(X[C], Y[C])
    assert model.state_.epoch == 1


def test_points_of_other_manifolds():
    points, kinds = sphere_classes()
    from pymanopt.manifolds import Sphere

    model = RiemannianLVQ(metric=Sphere(3), random_state=0)
    for label in range(3):
        model.partial_fit(points[kinds == label], kinds[kinds == label], classes=[0, 1, 2])
    assert model.score(points, kinds) > 0.8


def test_what_is_refused_changes_nothing():
    model = begun()
    before = pickle.dumps(vars(model))
    with pytest.raises(ValueError, match="soft labels need prototypes of every class, and class 'a' has none yet"):
        model.partial_fit(X, np.full((len(X), 3), 1 / 3))
    with pytest.raises(ValueError, match=r"'z'.*not among the classes"):
        model.partial_fit(X[:1], ["z"])
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3"):
        model.partial_fit(np.eye(2)[None], ["c"])
    assert pickle.dumps(vars(model)) == before
    with pytest.raises(ValueError, match="y holds only one class"):
        RiemannianLVQ().partial_fit(X[B], Y[B])
