"""``metric`` is another name of ``manifold``, everywhere an estimator is used."""

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
from rplvq.training.solvers import SOLVERS, SolverName
from tests.problems import spd_classes, sphere_classes

X, Y = spd_classes(n_classes=3, per_class=12)
QUICK = {"sigma2": 1.0, "max_epochs": 3, "random_state": 0}


@pytest.mark.parametrize("metric", [*MANIFOLDS, LogEuclidean(), AffineInvariant(max_step_length=2.0)], ids=str)
def test_metric_trains_as_manifold_does(metric):
    points = np.log(np.einsum("nii->ni", X)) if metric == "euclidean_vectors" else X
    alias, usual = RiemannianLVQ(metric=metric, **QUICK), RiemannianLVQ(metric, **QUICK)
    assert_array_equal(alias.fit(points, Y).prototypes_, usual.fit(points, Y).prototypes_)
    assert alias.trainer_.manifold == usual.trainer_.manifold
    assert get_tags(alias).input_tags == get_tags(usual).input_tags
    assert_array_equal(alias.partial_fit(points, Y).prototypes_, usual.partial_fit(points, Y).prototypes_)


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


def test_two_values_are_refused_if_they_differ():
    for model in (RiemannianLVQ("log_euclidean", metric="riemann"), RiemannianLVQ(LogEuclidean(), metric="euclid")):
        with pytest.raises(ValueError, match=r"manifold=.*and metric=.*two names of one parameter.*give only one"):
            model.fit(X, Y)
        with pytest.raises(ValueError, match="two names of one parameter"):
            model.partial_fit(X, Y)
        assert not hasattr(model, "state_")
    same = RiemannianLVQ("logeuclid", metric="log_euclidean", **QUICK).fit(X, Y)
    assert same.trainer_.manifold == LogEuclidean()


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


def test_distributed_training_knows_it():
    da = pytest.importorskip("dask.array", reason="needs dask: pip install 'rplvq[dask]'")
    from rplvq.distributed import DistributedLVQ

    lazy = da.from_array(X, chunks=(10, 3, 3))
    alias, usual = (
        DistributedLVQ(RiemannianLVQ(batch_size=None, **QUICK, **{name: "log_euclidean"})).fit(lazy, Y)
        for name in ("metric", "manifold")
    )
    assert_array_equal(alias.prototypes_, usual.prototypes_)
    with pytest.raises(ValueError, match="two names of one parameter"):
        DistributedLVQ(RiemannianLVQ("euclid", metric="riemann", batch_size=None)).fit(lazy, Y)


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (MetricName, MANIFOLDS),
        (CostName, COSTS),
        (InitName, INITIALIZERS),
        (SolverName, SOLVERS),
        (BaselineName, BASELINES),
        (CriterionName, CRITERIA),
        (TestName, TESTS),
    ],
    ids=["metric", "cost", "init", "solver", "baseline", "criterion", "test"],
)
def test_the_types_of_names_list_all_names(names, table):
    assert set(get_args(names)) == set(table)
