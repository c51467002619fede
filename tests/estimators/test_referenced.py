"""Manifolds with a reference that is learned from the samples of a fit: when it is learned, and from which samples."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from rplvq import (
    Checkpoint,
    EarlyStopping,
    EuclideanVectors,
    Grow,
    HeldOut,
    Prune,
    Recenter,
    RejectOption,
    RiemannianLVQ,
    SPDProjection,
    TangentSpace,
    compare,
    load_model,
)
from rplvq.arrays import Samples, expm
from rplvq.manifolds import flat_connect, flat_move, flat_sqdist
from rplvq.protocols import Manifold
from rplvq.testing import check_manifold
from tests.cases import real_coordinates
from tests.covering import covering
from tests.problems import spd_classes, vector_classes

BOTH = pytest.mark.parametrize("whiten", [False, True], ids=["plain", "whitened"])
CALLS: list[tuple[Any, Any, Any]] = []


@attrs.frozen
class Centred:
    """Vectors minus the mean of the samples of a fit; every call of `referenced` is noted."""

    mean: Any = attrs.field(default=None, eq=False)

    ambient = EuclideanVectors()
    sqdist, connect, move = map(staticmethod, (flat_sqdist, flat_connect, flat_move))

    def referenced(self, points, groups=None, weights=None):
        CALLS.append((np.array(points), groups, weights))
        found = self if self.mean is not None else Centred(np.average(np.asarray(points), axis=0, weights=weights))
        return found, found.encode(np.asarray(points))

    def encode(self, points):
        if self.mean is None:
            raise ValueError("no mean yet")
        return EuclideanVectors().encode(points) - self.mean

    def decode(self, codes):
        return np.asarray(codes) + self.mean


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


# --- the contract between the estimator and any such manifold


def test_the_toy_is_a_manifold():
    assert isinstance(Centred(), Manifold)
    check_manifold(Centred(), vector_classes()[0])


def test_a_fit_learns_the_reference_once_from_the_distinct_samples_in_canonical_order():
    X, y = vector_classes(per_class=10)
    X[3], y[3] = X[0], y[0]
    weights = np.r_[0.0, np.full(len(y) - 1, 2.0)]
    words = np.array(["no", "yes"])[y]
    model = RiemannianLVQ(Centred(), max_epochs=4, random_state=0).fit(X, words, weights)
    ((points, groups, counts),) = CALLS
    wanted = Samples(X, y, weights).canonical()
    assert_array_equal(points, wanted.codes[:])
    assert_array_equal(groups, wanted.targets)
    assert_array_equal(counts, np.full(len(y) - 1, 2.0))
    assert_allclose(model.trainer_.manifold.mean, X[1:].mean(axis=0))
    assert model.metric.mean is None
    assert_allclose(model.transform(X), np.linalg.norm(X[:, None] - model.prototypes_, axis=2), atol=1e-12)
    order = np.random.default_rng(0).permutation(len(y))
    again = clone(model).fit(X[order], words[order], weights[order])
    assert_array_equal(again.prototypes_, model.prototypes_)


def test_predictions_and_later_calls_keep_the_reference():
    X, y = vector_classes(per_class=10)
    model = RiemannianLVQ(Centred(), sigma2=1.0, random_state=0).fit(X, y)
    reference = model.trainer_.manifold
    model.predict(X[:3] + 9)
    model.partial_fit(X + 5, y)
    assert model.trainer_.manifold is reference
    assert len(CALLS) == 1
    plain = RiemannianLVQ("euclidean_vectors", sigma2=1.0, random_state=0).fit(X, y).partial_fit(X + 5, y)
    assert_allclose(model.prototypes_, plain.prototypes_, atol=1e-9)
    model.fit(X + 5, y)
    assert len(CALLS) == 2


def test_samples_held_out_for_early_stopping_take_no_part():
    X, y = vector_classes(per_class=20)
    RiemannianLVQ(Centred(), early_stopping=EarlyStopping(0.25), max_epochs=2, random_state=0).fit(X, y)
    ((points, _, _),) = CALLS
    assert len(points) == 30


def test_held_out_samples_are_encoded_with_a_reference_that_is_given():
    X, y = vector_classes(per_class=20)
    settings = {"early_stopping": EarlyStopping(0.25), "sigma2": 1.0, "step_size": 0.1, "max_epochs": 3}
    models = [
        RiemannianLVQ(m, random_state=0, **settings).fit(X, y) for m in (Centred(np.full(3, 9.0)), EuclideanVectors())
    ]
    assert_allclose(*(model.history_["validation_cost"] for model in models), rtol=1e-9)


def test_soft_labels_group_samples_by_their_likeliest_class():
    X, y = vector_classes(per_class=10)
    RiemannianLVQ(Centred(), cost="plvq", sigma2=1.0, max_epochs=1).fit(X, 0.8 * np.eye(2)[y] + 0.1)
    ((points, groups, _),) = CALLS
    assert_array_equal(groups, [y[np.flatnonzero((point == X).all(axis=1))[0]] for point in points])


def test_a_stream_of_one_class_learns_the_reference_again_when_a_second_class_comes():
    """As if all gathered samples had come in this call."""
    X, y = vector_classes(per_class=10)
    first = y == 0
    settings = {"sigma2": 1.0, "random_state": 0}
    model = RiemannianLVQ(Centred(), **settings).partial_fit(X[first], y[first], classes=[0, 1])
    model.partial_fit(X[~first], y[~first])
    assert [len(points) for points, _, _ in CALLS] == [10, 20]
    whole = RiemannianLVQ(Centred(), **settings).partial_fit(X, y, classes=[0, 1])
    assert_allclose(model.prototypes_, whole.prototypes_, atol=1e-12)


# --- the metric at the mean


def points(dtype=float, **settings):
    return spd_classes(**{"per_class": 20, "n": 3, "n_classes": 3, "spread": 0.4, "dtype": dtype} | settings)


@pytest.mark.parametrize("dtype", [float, complex])
def test_without_training_it_is_the_nearest_class_mean_in_the_tangent_space(dtype):
    X, y = points(dtype)
    model = RiemannianLVQ("tangent", max_epochs=0).fit(X, y)
    codes = model.trainer_.manifold.encode(X).reshape(len(X), -1)
    means = np.array([codes[y == label].mean(axis=0) for label in range(3)])
    d = np.linalg.norm(codes[:, None] - means, axis=2)
    assert_allclose(model.transform(X), d, atol=1e-9)
    assert_array_equal(model.predict(X), d.argmin(axis=1))


class Known(BaseEstimator):
    """A covariance estimator that returns what it is given."""

    def __init__(self, covariance):
        self.covariance = covariance

    def fit(self, X, y=None):
        self.covariance_ = self.covariance
        return self


@pytest.mark.parametrize("dtype", [float, complex])
def test_without_training_whitened_it_is_the_discriminant_analysis_of_scikit_learn(dtype):
    X, y = points(dtype, spread=0.8)
    X_test, _ = points(dtype, spread=1.2, seed=1)
    model = RiemannianLVQ(TangentSpace(whiten=True), max_epochs=0, sigma2=1.0).fit(X, y)
    manifold = model.trainer_.manifold
    plain = TangentSpace(manifold.reference)
    vectors, tests = (
        np.array([real_coordinates(code, dtype is complex) for code in plain.encode(P)]) for P in (X, X_test)
    )
    lda = LinearDiscriminantAnalysis("lsqr", priors=np.full(3, 1 / 3), covariance_estimator=Known(manifold.covariance))
    lda.fit(vectors, y)
    assert_array_equal(model.predict(X_test), lda.predict(tests))
    assert_allclose(model.predict_proba(X_test), lda.predict_proba(tests), atol=1e-8)


@BOTH
def test_a_whole_fit_follows_congruence_to_rounding(whiten):
    X, y = points()
    X_test, _ = points(seed=1)
    transform = np.array([[2.0, 1.0, 0.0], [0.5, -30.0, 3.0], [0.0, 0.2, 1e-2]])
    answers = []
    for change in (np.eye(3), transform):
        moved = change @ X @ change.T, change @ X_test @ change.T
        # Whole batches, because the order of the samples depends on their values. It decides the folds of trials, too.
        model = RiemannianLVQ(
            TangentSpace(whiten=whiten), sigma2=HeldOut(["auto"]), max_epochs=5, batch_size=None, random_state=0
        ).fit(moved[0], y)
        answers.append((model.predict(moved[1]), model.predict_proba(moved[1]), model.transform(moved[1])))
    assert_array_equal(answers[0][0], answers[1][0])
    for one, other in zip(answers[0][1:], answers[1][1:], strict=True):
        assert_allclose(other, one, atol=1e-6)


@BOTH
def test_the_order_of_the_samples_does_not_show_in_the_bits(whiten):
    X, y = points()
    order = np.random.default_rng(0).permutation(len(y))
    one, other = (
        RiemannianLVQ(TangentSpace(whiten=whiten), max_epochs=6, random_state=0).fit(X[rows], y[rows])
        for rows in (slice(None), order)
    )
    assert_array_equal(one.prototypes_, other.prototypes_)
    assert one.sigma2_ == other.sigma2_


@BOTH
def test_volts_and_microvolts_predict_alike(whiten):
    X, y = points()
    one, other = (
        RiemannianLVQ(TangentSpace(whiten=whiten), max_epochs=4, random_state=0).fit(unit * X, y) for unit in (1, 1e-12)
    )
    assert_array_equal(one.predict(X), other.predict(1e-12 * X))
    assert_allclose(other.prototypes_, 1e-12 * one.prototypes_, rtol=1e-3, atol=1e-15)


@pytest.mark.parametrize(
    ("whiten", "weighted", "stopping", "dtype", "grows"),
    covering([False, True], [False, True], [False, True], [float, complex], [False, True]),
)
def test_everything_together(tmp_path, whiten, weighted, stopping, dtype, grows):
    growth = (Grow(every=1, at_most=2), Prune(every=2)) if grows else ()
    X, y = points(dtype)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if weighted else None
    settings = {"max_epochs": 4, "early_stopping": stopping, "growth": growth, "random_state": 0}
    path = tmp_path / "fit.npz"
    model = RiemannianLVQ(TangentSpace(whiten=whiten), callbacks=[Checkpoint(path, every=2)], **settings)
    model.fit(X, y, weights)
    assert model.score(X, y) > 0.8
    if path.exists():
        again = clone(model).fit(X, y, weights, resume=path)
        assert_array_equal(again.prototypes_, model.prototypes_)
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.trainer_.manifold == model.trainer_.manifold
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    model.partial_fit(X, y, sample_weight=weights)
    assert loaded.trainer_.manifold == model.trainer_.manifold
    assert_array_equal(loaded.partial_fit(X, y, sample_weight=weights).prototypes_, model.prototypes_)


def loss_on_fresh_samples(seed):
    """Log-loss of three classes, of which twenty directions vary most; 78 coordinates and 60 training samples."""
    rng = np.random.default_rng(seed)
    centers, directions = rng.normal(size=(3, 12, 12)), rng.normal(size=(20, 12, 12))

    def draw(y):
        noise = rng.normal(size=(len(y), 12, 12)) + 3 * np.tensordot(rng.normal(size=(len(y), 20)), directions, 1)
        noise += 0.3 * centers[y]
        return expm(0.06 * (noise + noise.swapaxes(1, 2)))

    y, fresh = np.arange(60) % 3, np.arange(300) % 3
    model = RiemannianLVQ(TangentSpace(whiten=True), max_epochs=20, random_state=0).fit(draw(y), y)
    return log_loss(fresh, model.predict_proba(draw(fresh)))


def test_trials_learn_the_covariance_without_their_held_out_samples(monkeypatch):
    """If these took part, they would look nearer to their class means than new samples are."""
    losses = np.array([loss_on_fresh_samples(seed) for seed in range(3)])
    monkeypatch.delattr(TangentSpace, "relearned")
    without = np.array([loss_on_fresh_samples(seed) for seed in range(3)])
    assert losses.mean() < 0.7 * without.mean()


def test_a_first_call_without_two_samples_of_a_class_is_refused():
    X, y = points()
    rows = [np.flatnonzero(y == label)[0] for label in range(3)]
    with pytest.raises(ValueError, match="whiten=True needs a class with at least two different samples"):
        RiemannianLVQ(TangentSpace(whiten=True), sigma2=1.0).partial_fit(X[rows], y[rows])
    RiemannianLVQ("tangent", sigma2=1.0).partial_fit(X[rows], y[rows])


def test_a_given_reference_is_kept():
    X, y = points()
    model = RiemannianLVQ(TangentSpace(X[0]), max_epochs=0).fit(X[1:], y[1:])
    assert model.trainer_.manifold == TangentSpace(X[0])
    assert RiemannianLVQ(TangentSpace(np.eye(3)), max_epochs=0).fit(X, y).score(X, y) == pytest.approx(
        RiemannianLVQ("log_euclidean", max_epochs=0).fit(X, y).score(X, y)
    )
    with pytest.raises(ValueError, match="matrices of size 3, but the reference has size 2"):
        RiemannianLVQ(TangentSpace(np.eye(2)), max_epochs=0).fit(X, y)


@BOTH
def test_it_works_with_the_tools_of_scikit_learn_and_of_the_library(whiten):
    X, y = points()
    manifold = TangentSpace(whiten=whiten)
    model = RiemannianLVQ(manifold, max_epochs=2, random_state=0)
    assert clone(model).get_params()["metric__whiten"] is whiten
    assert cross_val_score(model, X, y, cv=3).mean() > 0.6
    found = compare(X, y, ["tangent", manifold], cv=3, random_state=0)
    assert {"tangent rslvq", "TangentSpace rslvq", "TangentSpace MDM"} <= {row["estimator"] for row in found.rows}
    assert compare(X, y, [manifold], cv=3, random_state=0).rows
    assert RejectOption(model, threshold=0.5).fit(X, y).predict(X).shape == y.shape
    for step in (Recenter(), SPDProjection(2)):
        assert make_pipeline(step, clone(model)).fit(X, y).score(X, y) > 0.6


@BOTH
@pytest.mark.parametrize("batch_size", [None, 7])
def test_a_distributed_fit_has_the_reference_and_the_prototypes_of_a_local_one(whiten, batch_size):
    da = pytest.importorskip("dask.array")
    from rplvq.distributed import DistributedLVQ

    X, y = points()
    settings = {"sigma2": 1.0, "step_size": 0.1, "max_epochs": 3, "batch_size": batch_size, "random_state": 0}
    model = RiemannianLVQ(TangentSpace(whiten=whiten), **settings)
    found = DistributedLVQ(model).fit(da.from_array(X, chunks=(17, 3, 3)), y)
    wanted = clone(model).set_params(batch_size=None).fit(X, y) if batch_size is None else clone(model).fit(X, y)
    assert found.estimator_.trainer_.manifold == wanted.trainer_.manifold
    if batch_size is None:  # else the order of the samples differs
        assert_allclose(found.prototypes_, wanted.prototypes_, rtol=1e-6)
    assert_array_equal(np.asarray(found.predict(X)), found.estimator_.predict(X))
    broken = X.copy()
    broken[11] = 0
    with pytest.raises(ValueError, match=r"X\[11\] is not positive definite"):
        DistributedLVQ(model).fit(da.from_array(broken, chunks=(17, 3, 3)), y)


@BOTH
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_prediction_needs_no_training_data_and_does_not_depend_on_its_parts(n_jobs, whiten):
    X, y = points()
    model = RiemannianLVQ(TangentSpace(whiten=whiten), max_epochs=0, n_jobs=n_jobs).fit(X, y)
    assert_array_equal(model.transform(X), np.concatenate([model.transform(x[None]) for x in X]))
