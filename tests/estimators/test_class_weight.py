"""Class weights are sample weights: a fit with them equals the fit with the sample weights that they mean."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from rplvq import Grow, HeldOut, RiemannianLVQ, load_model
from rplvq.arrays import weigh_classes
from tests.problems import spd_classes

X, INDEX = spd_classes(n_classes=3, per_class=14)
RARE = np.flatnonzero(INDEX != 0)
ROWS = np.concatenate([np.flatnonzero(INDEX == 0)[:5], RARE])  # five samples of class "b", 14 of the others
X, Y = X[ROWS], np.array(["b", "a", "c"])[INDEX[ROWS]]
WEIGHTS = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
DICT = {"a": 2.0, "b": 0.5}


def model(**params):
    return RiemannianLVQ(**({"sigma2": 1.0, "step_size": 0.05, "max_epochs": 4, "random_state": 0} | params))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"batch_size": 5, "prototypes_per_class": 2, "init": "kmeans"},
        {"early_stopping": True, "max_epochs": 10},
        {"sigma2": HeldOut(["auto", 1.0]), "step_size": "auto", "max_epochs": 12},
        {"growth": [Grow(every=1, min_samples=3)]},
        {"metric": "log_euclidean", "cost": "glvq", "decision": "posterior"},
    ],
    ids=["default", "batches", "early stopping", "held out", "growth", "glvq"],
)
@pytest.mark.parametrize("class_weight", ["balanced", DICT], ids=["balanced", "dict"])
def test_a_fit_with_class_weights_equals_one_with_sample_weights(class_weight, params):
    weighed = model(class_weight=class_weight, **params).fit(X, Y)
    plain = model(**params)
    same = clone(plain).fit(X, Y, sample_weight=compute_sample_weight(class_weight, Y))
    assert_array_equal(weighed.prototypes_, same.prototypes_)
    assert_array_equal(weighed.history_["cost"], same.history_["cost"])
    assert weighed.sigma2_ == same.sigma2_
    assert not np.allclose(weighed.prototypes_, plain.fit(X, Y).prototypes_[: len(weighed.prototypes_)], rtol=1e-6)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_sample_weights_are_multiplied_and_count_as_samples(early_stopping):
    """A sample of weight 2 is the same as two samples, also for what "balanced" means."""
    common = {"early_stopping": early_stopping, "max_epochs": 6}
    both = model(class_weight=DICT, **common).fit(X, Y, sample_weight=WEIGHTS)
    product = model(**common).fit(X, Y, sample_weight=WEIGHTS * compute_sample_weight(DICT, Y))
    assert_array_equal(both.prototypes_, product.prototypes_)
    copies = np.repeat(np.arange(len(X)), WEIGHTS.astype(int))
    weighted = model(class_weight="balanced", **common).fit(X, Y, sample_weight=WEIGHTS)
    repeated = model(class_weight="balanced", **common).fit(X[copies], Y[copies])
    assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=1e-9)
    nothing = np.append(WEIGHTS, 0.0)
    more = model(class_weight="balanced", **common).fit(np.append(X, X[:1], 0), np.append(Y, "c"), nothing)
    assert_array_equal(more.prototypes_, weighted.prototypes_)


def test_balanced_weights_are_those_of_scikit_learn():
    classes, targets = np.unique(Y, return_inverse=True)
    for value in ("balanced", DICT):
        found = weigh_classes(value, classes, targets, None, in_stream=False)
        assert_allclose(found, compute_sample_weight(value, Y), rtol=1e-15)


def test_weights_matter_where_classes_overlap():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    x[y == 1] += 1.0
    common = {"metric": "euclidean_vectors", "max_epochs": 30}
    shares = [
        np.mean(model(class_weight={0: weight, 1: 1.0}, **common).fit(x, y).predict(x) == 0) for weight in (0.2, 1.0, 5)
    ]
    assert shares[0] < shares[1] - 0.05
    assert shares[1] < shares[2] - 0.05


def test_complex_matrices_a_search_and_a_file(tmp_path):
    Z, y = spd_classes(n_classes=2, per_class=9, dtype=complex)
    rows = np.flatnonzero((y == 1) | (np.cumsum(y == 0) < 5))
    Z, y = Z[rows], y[rows]
    weighed = model(class_weight="balanced").fit(Z, y)
    same = model().fit(Z, y, sample_weight=compute_sample_weight("balanced", y))
    assert_array_equal(weighed.prototypes_, same.prototypes_)
    weighed.save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").class_weight == "balanced"
    search = GridSearchCV(model(), {"class_weight": [None, "balanced", {0: 2, 1: 1}]}, cv=2).fit(Z, y)
    assert "class_weight" in search.best_params_


def test_a_stream_takes_a_dict():
    by_class = dict(zip(np.unique(Y), compute_class_weight("balanced", classes=np.unique(Y), y=Y), strict=True))
    streamed, same = model(class_weight=by_class), model()
    weights = compute_sample_weight("balanced", Y)
    for rows in (slice(0, None, 2), slice(1, None, 2)):
        streamed.partial_fit(X[rows], Y[rows], classes=["a", "b", "c"])
        same.partial_fit(X[rows], Y[rows], classes=["a", "b", "c"], sample_weight=weights[rows])
    assert_array_equal(streamed.prototypes_, same.prototypes_)


def test_an_open_stream_takes_keys_of_classes_that_come_later():
    two = Y != "c"
    streamed, same = model(class_weight={"c": 3.0}), model()
    streamed.partial_fit(X[two], Y[two]).partial_fit(X, Y)
    same.partial_fit(X[two], Y[two]).partial_fit(X, Y, sample_weight=np.where(Y == "c", 3.0, 1.0))
    assert_array_equal(streamed.prototypes_, same.prototypes_)
    with pytest.raises(ValueError, match="class_weight has the key 'c', which is not among the classes"):
        model(class_weight={"c": 3.0}).partial_fit(X[two], Y[two], classes=["a", "b"])


def test_balanced_streams_and_soft_labels_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"'balanced' is not supported by partial_fit.*pass a dict"):
        model(class_weight="balanced").partial_fit(X, Y)
    soft = np.eye(3)[np.unique(Y, return_inverse=True)[1]]
    for fit in (model(cost="plvq", class_weight=DICT).fit, model(cost="plvq", class_weight=DICT).partial_fit):
        with pytest.raises(ValueError, match="needs one class per sample, and y holds soft labels: pass sample_weight"):
            fit(X, soft)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("even", "class_weight must be None, 'balanced' or a dict of label to number, got 'even'"),
        ([1, 2, 3], r"class_weight must be None, 'balanced' or a dict .* got \[1, 2, 3\]"),
        ({"a": -1.0}, r"class_weight\['a'\] must be a finite number of at least 0, got -1.0"),
        ({"b": np.nan}, r"class_weight\['b'\] must be a finite number of at least 0, got nan"),
        ({"b": "2"}, r"class_weight\['b'\] must be a finite number of at least 0, got '2'"),
        ({"z": 2.0}, r"has the key 'z', which is not among the classes \['a', 'b', 'c'\], but none for 'a'"),
        ({"a": 0.0}, "class 'a' has 0 sample"),
    ],
)
def test_invalid_values_are_named(value, message):
    refused = model(class_weight=value)
    with pytest.raises(ValueError, match=message):
        refused.fit(X, Y)
    assert not hasattr(refused, "state_")


def test_a_key_without_samples_is_no_error_if_every_class_has_one():
    """As in scikit-learn: a fold may lack a rare class."""
    model(class_weight={"a": 1, "b": 2, "c": 3, "d": 4}).fit(X, Y)
