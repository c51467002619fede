"""Arrays of objects and series that hold one point per entry are samples at every door, and faults name their index."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rplvq import ClassMeans, Recenter, RejectOption, RiemannianLVQ, SPDProjection, TransferClassifier
from rplvq.datasets import make_syn1

X, y = make_syn1(n_per_class=15, random_state=0)


def objects(points):
    found = np.empty(len(points), dtype=object)
    found[:] = list(points)
    return found


KINDS = {"objects": objects, "series": lambda points: pd.Series(list(points))}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


def fast(metric="affine_invariant"):
    return RiemannianLVQ(metric, sigma2=1.0, max_epochs=2, random_state=0)


@each_kind
@pytest.mark.parametrize("metric", ["affine_invariant", "log_euclidean", "tangent", "euclidean_vectors"])
def test_a_classifier_answers_as_for_one_array(kind, metric):
    points = X if metric != "euclidean_vectors" else np.diagonal(X, axis1=1, axis2=2)
    model, plain = fast(metric).fit(kind(points), y), fast(metric).fit(points, y)
    assert model.n_features_in_ == 10
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(model, method)(kind(points)), getattr(plain, method)(points))
    assert model.score(kind(points), y) == plain.score(points, y)
    model.partial_fit(kind(points), y)
    np.testing.assert_array_equal(model.prototypes_, plain.partial_fit(points, y).prototypes_)
    model.fit(kind(points[:, :4, :4] if points.ndim == 3 else points[:, :4]), y)
    assert model.n_features_in_ == 4


@each_kind
def test_transformers_and_classifiers_around_it_answer_as_for_one_array(kind):
    groups = np.arange(len(y)) % 3
    for transformer in (Recenter(), Recenter(online=True), SPDProjection(2, max_iter=2)):
        plain = transformer.fit(X, y).transform(X)
        np.testing.assert_array_equal(transformer.fit(kind(X), y).transform(kind(X)), plain)
        assert transformer.n_features_in_ == 10
    for model in (RejectOption(fast(), threshold=0.5), TransferClassifier(fast(), target=0)):
        given = {"groups": groups} if isinstance(model, TransferClassifier) else {}
        np.testing.assert_array_equal(
            model.fit(kind(X), y, **given).predict(kind(X)), model.fit(X, y, **given).predict(X)
        )


def test_lazy_answers_of_dask_are_those_of_one_array():
    da = pytest.importorskip("dask.array")
    from rplvq.distributed import DistributedLVQ

    model = DistributedLVQ(fast()).fit(da.from_array(objects(X), chunks=20), y)
    assert model.estimator_.n_features_in_ == 10
    lazy = model.predict(da.from_array(objects(X), chunks=20))
    np.testing.assert_array_equal(lazy.compute(), model.estimator_.predict(X))


BAD = {
    "another shape": ([*X[:3], X[3, :4, :4]], r"X\[3\] has shape \(4, 4\), X\[0\] \(10, 10\)"),
    "ragged": ([*X[:2].tolist(), [[1.0], [1.0, 2.0]]], r"rectangular array of numbers: X\[2\]"),
    "None": ([*X[:2].tolist(), None], r"X\[2\]"),
    "a None inside": ([*X[:2].tolist(), np.where(X[2] > 1, None, X[2]).tolist()], r"X must hold numbers.* in X\[2\]"),
}


@pytest.mark.parametrize("name", BAD)
def test_entries_that_are_no_points_are_named_by_their_index(name):
    points, match = BAD[name]
    model = RiemannianLVQ(init=ClassMeans(), max_epochs=0).fit(X, y)
    for given in (points, objects(points)):
        for call in (lambda: model.predict(given), lambda: model.fit(given, y[: len(given)])):  # noqa: B023
            with pytest.raises(ValueError, match=match):
                call()
        with pytest.raises(ValueError, match=match):
            Recenter().fit(given)
