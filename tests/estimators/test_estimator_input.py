"""Bad data: each call is refused with the argument, the index and the value, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning, NotFittedError

from rplvq import ProjectedEuclidean, RiemannianLVQ
from tests.problems import changed, refuse, snapshot, spd_classes

X, Y = spd_classes(n_classes=3, per_class=6)
N = len(X)
NAMES = np.array(["a", "b", "c"])[Y]
PREDICTING = ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform"]


def fitted(**params):
    return RiemannianLVQ(sigma2=1.0, max_epochs=1, random_state=0, **params).fit(X, Y)


def test_the_snapshot_sees_changes():
    model = fitted()
    before = snapshot(model)
    assert snapshot(model) == before
    assert snapshot(model.partial_fit(X, Y)) != before
    assert snapshot(RiemannianLVQ(max_epochs=2)) != snapshot(RiemannianLVQ())


# --- samples

BAD_X = {
    "not square": (np.ones((N, 2, 3)), r"X must hold square matrices, got shape \(18, 2, 3\)"),
    "not symmetric": (changed(X, (4, 0, 1), 9.0), r"X\[4\] is not symmetric.*allowed 1e-10"),
    "indefinite": (
        changed(X, 5, np.diag([1.0, 2.0, -0.5])),
        r"X\[5\] is not positive definite: its smallest eigenvalue is -0.5, -0.25 of its largest 2 .*shrinkage=",
    ),
    "singular": (changed(X, 2, np.ones((3, 3))), r"X\[2\] is singular to rounding: .*largest 3 \(needed: .*shrinkage="),
    "zero": (changed(X, 3, 0.0), r"X\[3\] is (not positive definite|singular)"),
    "NaN": (changed(X, (6, 1, 1), np.nan), r"X\[6\] contains NaN or infinity: its entry \[1, 1\] is nan"),
    "infinite": (changed(X, (7, 0, 0), np.inf), r"X\[7\] contains NaN or infinity: its entry \[0, 0\] is inf"),
    "single matrix": (X[0], r"3 axes.* got shape \(3, 3\): Reshape your data; a single sample is passed as X\[None\]"),
    "empty": (X[:0], r"0 sample\(s\) \(shape=\(0, 3, 3\)\) while a minimum of 1"),
    "no channel": (np.ones((N, 0, 0)), "0 feature"),
    "strings": (np.full((N, 3, 3), "x"), "X must hold numbers, got dtype <U1"),
    "ragged": ([[[1.0]], [[1.0, 0.0], [0.0, 1.0]]] * 9, "X must be a rectangular array of numbers"),
    "None": (None, "X must"),
}
EVERY_BAD_X = pytest.mark.parametrize(("bad", "match"), BAD_X.values(), ids=BAD_X.keys())


@EVERY_BAD_X
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("start", [RiemannianLVQ, fitted])
def test_bad_samples_are_not_trained_on(bad, match, method, start):
    refuse(start(), method, bad, Y, match=match)


@EVERY_BAD_X
@pytest.mark.parametrize("method", PREDICTING)
def test_bad_samples_are_not_predicted(bad, match, method):
    refuse(fitted(), method, bad, match=match)


@EVERY_BAD_X
@pytest.mark.parametrize("manifold", ["log_euclidean", "euclidean"])
def test_bad_samples_are_refused_by_every_geometry(bad, match, manifold):
    refuse(RiemannianLVQ(manifold), "fit", bad, Y, match=match)


@pytest.mark.parametrize("method", PREDICTING)
def test_another_number_of_channels_is_refused(method):
    refuse(fitted(), method, X[:, :2, :2], match="X has 2 features, but RiemannianLVQ is expecting 3 features")


def test_a_floor_above_the_data_is_refused():
    model = RiemannianLVQ(ProjectedEuclidean(tau=1e-4))
    refuse(model, "fit", 1e-12 * X, Y, match=r"X\[0\] has mean eigenvalue .*e-12, not above tau=0.0001")


@pytest.mark.parametrize("method", [*PREDICTING, "score", "get_feature_names_out"])
def test_unfitted_models_cannot_answer(method):
    arguments = {"score": (X, Y), "get_feature_names_out": ()}.get(method, (X,))
    refuse(RiemannianLVQ(), method, *arguments, error=NotFittedError, match="not fitted yet")


# --- labels

BAD_Y = {
    "one class": (np.full(N, 7.0), r"y holds only one class, \[7.0\]: at least two"),
    "too short": (Y[:-1], "y has 17 labels for 18 samples"),
    "too long": ([*Y, 0], "y has 19 labels for 18 samples"),
    "scalar": (3, "y has 1 labels for 18 samples"),
    "None": (None, "requires y to be passed, but the target y is None"),
    "NaN": (changed(Y.astype(float), 3, np.nan), "y contains NaN"),
    "continuous": (Y + 0.5, "Unknown label type: continuous"),
    "mixed objects": (changed(Y.astype(object), 1, "x"), "mixed types"),
    "mixed list": ([*Y[:-1].tolist(), "x"], "mixed types"),
    "missing string": (changed(NAMES.astype(object), 4, None), "y.*(missing|None|mixed)"),
    "3-D": (np.zeros((N, 2, 2)), "dim"),
    "not a date": (np.array(["2020-01-01", "2021-01-01", "NaT"], "datetime64[D]")[Y], r"y.*(NaT|missing|NaN)"),
}
BAD_SOFT = {
    "sum": (changed(np.eye(3)[Y], (2, 0), 0.25), r"soft labels must sum to one: y\[2\] sums to"),
    "all zero": (changed(np.eye(3)[Y], 5, 0.0), r"y\[5\] sums to 0"),
    "negative": (changed(np.eye(3)[Y], 4, [1.5, -0.5, 0]), r"must be probabilities: y\[4, 1\] is -0.5"),
    "NaN": (changed(np.eye(3)[Y], (6, 2), np.nan), r"y\[6, 2\] is nan"),
    "strings": (np.full((N, 3), "x"), r"soft labels y of shape \(18, 3\) must be numbers, got dtype <U1"),
    "class without a sample": (
        np.eye(4)[Y],
        r"class 3 is the likeliest class of 0 sample\(s\).*fewer than its 1 proto",
    ),
}


@pytest.mark.parametrize(("bad", "match"), BAD_Y.values(), ids=BAD_Y.keys())
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("start", [RiemannianLVQ, fitted])
def test_bad_labels(bad, match, method, start):
    if start is fitted and method == "partial_fit":
        match += "|not among the classes"  # also true of labels that nobody could learn from
    refuse(start(), method, X, bad, match=match)


def test_one_class_is_enough_for_a_later_batch():
    assert fitted().partial_fit(X, np.zeros(N, int)).classes_.tolist() == [0, 1, 2]


def test_missing_strings_of_pandas_are_refused():
    pd = pytest.importorskip("pandas")
    refuse(RiemannianLVQ(), "fit", X, pd.Series(changed(NAMES.astype(object), 4, None), dtype="string"), match="y")


@pytest.mark.parametrize(("bad", "match"), BAD_SOFT.values(), ids=BAD_SOFT.keys())
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_soft_labels(bad, match, method):
    refuse(RiemannianLVQ(cost="plvq"), method, X, bad, match=match)
    refuse(fitted(cost="plvq"), "fit", X, bad, match=match)


def test_soft_labels_of_another_number_of_classes():
    refuse(fitted(cost="plvq"), "partial_fit", X, np.eye(4)[Y], match="4 columns for 3 classes")


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_the_likelihood_ratio_sends_soft_labels_to_plvq(method):
    refuse(RiemannianLVQ(), method, X, np.eye(3)[Y], match=r"soft labels use cost='plvq', or pass y.argmax\(axis=1\)")


def test_a_column_of_labels_warns():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = RiemannianLVQ(max_epochs=1).fit(X, Y[:, None])
    assert model.classes_.tolist() == [0, 1, 2]


# --- weights

BAD_WEIGHTS = {
    "negative": (changed(np.ones(N), 3, -2.0), r"sample_weight\[3\] is -2.0: .* not negative"),
    "NaN": (changed(np.ones(N), 5, np.nan), r"sample_weight\[5\] is nan"),
    "infinite": (changed(np.ones(N), 6, np.inf), r"sample_weight\[6\] is inf"),
    "length": (np.ones(4), r"sample_weight must be 18 numbers, one per sample, got .* shape \(4,\)"),
    "2-D": (np.ones((N, 1)), r"sample_weight must be 18 numbers.* shape \(18, 1\)"),
    "zero": (np.zeros(N), "sample_weight is zero for every sample"),
    "strings": (["1"] * N, "sample_weight must be 18 numbers.*<U1"),
    "name": ("balanced", "sample_weight must be 18 numbers"),
}


@pytest.mark.parametrize(("bad", "match"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS.keys())
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_weights(bad, match, method):
    refuse(RiemannianLVQ(), method, X, Y, sample_weight=bad, match=match)
    refuse(fitted(), "fit", X, Y, sample_weight=bad, match=match)


def test_a_class_without_weight_is_refused_by_fit_and_waits_in_a_stream():
    weights, match = (Y != 1).astype(float), r"class 1 has 0 sample\(s\) of positive weight, fewer than its 1"
    for model in (RiemannianLVQ(), fitted()):
        refuse(model, "fit", X, Y, sample_weight=weights, match=match)
    model = RiemannianLVQ().partial_fit(X, Y, sample_weight=weights)
    assert (model.classes_.tolist(), model.prototype_labels_.tolist()) == ([0, 1, 2], [0, 2])
    assert model.partial_fit(X, Y).prototype_labels_.tolist() == [0, 1, 2]
