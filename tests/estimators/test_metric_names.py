"""The parameter ``metric`` and the names of parts, everywhere an estimator is used."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pymanopt.manifolds import Sphere
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

from rplvq import AffineInvariant, Checkpoint, LogEuclidean, RejectOption, RiemannianLVQ, load_model
from rplvq.costs import COSTS, CostName
from rplvq.estimators._names import INITIALIZERS, InitName
from rplvq.evaluation import BASELINES, TESTS, BaselineName, TestName
from rplvq.inspection import CRITERIA, CriterionName, calibrate_sigma2
from rplvq.manifolds import MANIFOLDS, MetricName
from tests.problems import spd_classes, sphere_classes

X, Y = spd_classes(n_classes=3, per_class=12)
QUICK = {"sigma2": 1.0, "max_epochs": 3, "random_state": 0}


@pytest.mark.parametrize("metric", MANIFOLDS)
def test_a_name_may_have_hyphens_and_capitals(metric):
    points = np.log(np.einsum("nii->ni", X)) if metric == "euclidean_vectors" else X
    written, plain = (RiemannianLVQ(name, **QUICK) for name in (metric.replace("_", "-").upper(), metric))
    assert_array_equal(written.fit(points, Y).prototypes_, plain.fit(points, Y).prototypes_)
    assert written.trainer_.manifold == plain.trainer_.manifold
    assert get_tags(written).input_tags == get_tags(plain).input_tags


def test_airm_is_the_affine_invariant_metric():
    assert RiemannianLVQ("AIRM", **QUICK).fit(X, Y).trainer_.manifold == AffineInvariant()


@pytest.mark.parametrize(
    ("parameter", "typo", "nearest"),
    [
        ("metric", "log_euclidian", "log_euclidean"),
        ("metric", "tangent_space", "tangent"),
        ("metric", "rieman", "riemann"),
        ("cost", "rslqv", "rslvq"),
        ("init", "kmean", "kmeans"),
    ],
)
def test_a_typo_is_answered_by_the_nearest_name(parameter, typo, nearest):
    message = f"{parameter}='{typo}' is not known; did you mean '{nearest}'\\? Else choose from"
    with pytest.raises(ValueError, match=message):
        RiemannianLVQ(**{parameter: typo}, **QUICK).fit(X, Y)


def test_pymanopt_manifolds_too(tmp_path):
    points, kinds = sphere_classes()
    model = RiemannianLVQ(metric=Sphere(3), **QUICK).fit(points, kinds)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz", manifold=model.metric)
    assert_array_equal(again.predict(points), model.predict(points))


def test_it_is_a_parameter_like_any_other():
    model = RiemannianLVQ(metric=AffineInvariant())
    assert model.get_params()["metric"] == AffineInvariant()
    assert model.get_params()["metric__max_step_length"] == 10.0
    copied = clone(model).set_params(metric__max_step_length=3.0)
    assert copied.fit(X, Y).trainer_.manifold.max_step_length == 3.0
    assert "metric" in repr(model)
    search = GridSearchCV(RiemannianLVQ(**QUICK), {"metric": ["riemann", "log_euclidean"]}, cv=2).fit(X, Y)
    assert search.best_estimator_.metric in ("riemann", "log_euclidean")


def test_a_grid_over_metrics_replaces_the_first_argument():
    search = GridSearchCV(RiemannianLVQ("log_euclidean", **QUICK), {"metric": ["riemann", "euclid"]}, cv=2).fit(X, Y)
    assert search.best_estimator_.trainer_.manifold != LogEuclidean()
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("metric", "message"), [("foo", "metric='foo' is not known; choose from"), (3, "metric=3 is not a Manifold")]
)
def test_errors_name_metric(metric, message):
    with pytest.raises(ValueError, match=message):
        RiemannianLVQ(metric=metric).fit(X, Y)


def test_estimators_around_it_and_files_know_it(tmp_path):
    model = RiemannianLVQ(metric="log_euclidean", callbacks=[Checkpoint(tmp_path / "fit.npz")], **QUICK).fit(X, Y)
    model.save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").get_params()["metric"] == "log_euclidean"
    resumed = clone(model).fit(X, Y, resume=tmp_path / "fit.npz")
    assert_array_equal(resumed.prototypes_, model.prototypes_)
    with pytest.raises(ValueError, match='was written by a fit with metric="log_euclidean"'):
        clone(model).set_params(metric="euclid").fit(X, Y, resume=tmp_path / "fit.npz")
    rejecting = RejectOption(RiemannianLVQ(metric="log_euclidean", **QUICK), coverage=0.8).fit(X, Y)
    assert_array_equal(rejecting.estimator_.prototypes_, model.prototypes_)
    assert calibrate_sigma2(model, X, Y).metric == "log_euclidean"


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (MetricName, MANIFOLDS),
        (CostName, COSTS),
        (InitName, INITIALIZERS),
        (BaselineName, BASELINES),
        (CriterionName, CRITERIA),
        (TestName, TESTS),
    ],
    ids=["metric", "cost", "init", "baseline", "criterion", "test"],
)
def test_the_types_of_names_list_all_names(names, table):
    assert set(get_args(names)) == set(table)
