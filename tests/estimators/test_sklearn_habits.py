"""What scikit-learn does with classifiers, done with matrices (N, n, n): searches, ensembles, routing, outputs."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from rplvq import (
    GLVQ,
    RSLVQ,
    AffineInvariant,
    Annealed,
    LogEuclidean,
    Recenter,
    Representability,
    RiemannianLVQ,
    SPDProjection,
)
from rplvq.datasets import make_syn1


@pytest.fixture(scope="module")
def data():
    X, y = make_syn1(n_per_class=18, n=4, random_state=0)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], np.array(["a", "b", "c", "d"])[y[order]]


def model(**settings):
    return RiemannianLVQ(**({"sigma2": 1.0, "max_epochs": 2, "random_state": 0} | settings))


# --- searches


def test_grids_reach_parts_by_name_and_by_object(data):
    grid = {
        "metric": ["affine_invariant", LogEuclidean()],
        "cost": ["rslvq", GLVQ(), RSLVQ() + 0.1 * Representability()],
        "sigma2": ["auto", 0.5],
    }
    search = GridSearchCV(model(), grid, cv=3).fit(*data)
    assert len(search.cv_results_["params"]) == 12
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(*data) == search.best_estimator_.score(*data)


def test_grids_reach_into_parts(data):
    grid = {"riemannianlvq__sigma2__start": [0.5, 2.0], "riemannianlvq__metric__max_step_length": [5.0]}
    pipeline = make_pipeline(Recenter(), model(metric=AffineInvariant(), sigma2=Annealed()))
    search = GridSearchCV(pipeline, grid, cv=3).fit(*data)
    best = search.best_estimator_[-1]
    assert best.sigma2.start == search.best_params_["riemannianlvq__sigma2__start"]
    assert best.metric == AffineInvariant(max_step_length=5.0)


def test_other_searches(data):
    X, y = data
    random = RandomizedSearchCV(model(), {"sigma2": [0.2, 0.5, 1.0, 2.0]}, n_iter=2, cv=2, random_state=0).fit(X, y)
    halving = HalvingGridSearchCV(
        model(), {"sigma2": [0.2, 0.5, 1.0]}, cv=2, resource="max_epochs", min_resources=1, max_resources=4
    )
    halving.fit(X, y)
    assert random.best_params_["sigma2"] in {0.2, 0.5, 1.0, 2.0}
    assert halving.best_estimator_.max_epochs <= 4


# --- ensembles and wrappers


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_votes(data, voting):
    X, y = data
    members = [("ai", model()), ("le", model(metric="logeuclid"))]
    vote = VotingClassifier(members, voting=voting).fit(X, y)
    assert vote.score(X, y) > 0.8
    if voting == "soft":
        both = [clone(member).fit(X, y).predict_proba(X) for _, member in members]
        assert_allclose(vote.predict_proba(X), np.mean(both, axis=0))


def test_stacks(data):
    X, y = data
    members = [("ai", model()), ("eu", model(metric="euclid"))]
    assert StackingClassifier(members, LogisticRegression(max_iter=500), cv=3).fit(X, y).score(X, y) > 0.8


def test_calibration(data):
    X, y = data
    for calibrated in (
        CalibratedClassifierCV(model(), cv=3),
        CalibratedClassifierCV(FrozenEstimator(model().fit(X, y)), method="isotonic"),
    ):
        assert_allclose(calibrated.fit(X, y).predict_proba(X).sum(axis=1), 1.0)


def test_distances_as_features_for_another_classifier(data):
    X, y = data
    pipeline = make_pipeline(model(), StandardScaler(), LogisticRegression(max_iter=500))
    assert pipeline.fit(X, y).score(X, y) > 0.8
    flat = make_pipeline(FunctionTransformer(np.log), LogisticRegression(max_iter=500))
    assert make_pipeline(model(), *[step for _, step in flat.steps]).fit(X, y).score(X, y) > 0.8


def test_projection_then_classification(data):
    X, y = data
    assert make_pipeline(SPDProjection(2), model()).fit(X, y).predict(X).shape == y.shape


def test_vectors_in_meta_estimators_that_take_tables_only():
    X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0.0], [2.0], [4.0]], 20, axis=0)
    y = np.repeat([0, 1, 2], 20)
    vectors = model(metric="euclidean_vectors")
    assert OneVsRestClassifier(vectors).fit(X, y).score(X, y) > 0.7
    assert BaggingClassifier(vectors, 3, random_state=0).fit(X, y).score(X, y) > 0.7


# --- validation tools


def test_scores_predictions_and_curves(data):
    X, y = data
    scores = cross_val_score(model(), X, y, cv=3, scoring="balanced_accuracy")
    assert scores.shape == (3,)
    proba = cross_val_predict(model(), X, y, cv=3, method="predict_proba")
    assert proba.shape == (len(X), 4)
    sizes, train, test = learning_curve(model(), X, y, train_sizes=[0.5, 1.0], cv=3)
    assert train.shape == test.shape == (2, 3)
    assert sizes[0] < sizes[1]
    score, chance, p_value = permutation_test_score(model(), X, y, cv=2, n_permutations=5, random_state=0)
    assert score > chance.mean()
    assert p_value == pytest.approx(1 / 6)


def test_sample_weights_and_groups_are_routed(data):
    X, y = data
    weights, groups = np.random.default_rng(0).integers(1, 3, len(X)), np.arange(len(X)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        recenter = Recenter().set_fit_request(groups=True).set_transform_request(groups=True)
        pipeline = make_pipeline(
            recenter, model().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        found = cross_validate(
            pipeline, X, y, cv=GroupKFold(3), params={"sample_weight": weights, "groups": groups}, return_estimator=True
        )
    assert np.isfinite(found["test_score"]).all()
    for fold, fitted in enumerate(found["estimator"]):
        held = set(groups.tolist()) - set(fitted[0].groups_.tolist())
        assert len(held) == 1, fold
    train = groups != next(iter(held))
    centered = Recenter().fit_transform(X[train], groups=groups[train])
    wanted = model().fit(centered, y[train], sample_weight=weights[train])
    assert_array_equal(found["estimator"][-1][-1].prototypes_, wanted.prototypes_)


# --- outputs and representations


def test_transform_can_give_a_table_with_names(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    fitted = model().set_output(transform="pandas").fit(X, y)
    table = fitted.transform(X)
    assert isinstance(table, pandas.DataFrame)
    names = [f"riemannianlvq_{label}_0" for label in "abcd"]
    assert table.columns.tolist() == fitted.get_feature_names_out().tolist() == names


PARTS = [
    model(),
    model(metric="logeuclid"),
    model(metric=AffineInvariant(max_step_length=3.0)),
    model(cost=GLVQ(steepness=2.0)),
    model(cost=RSLVQ() + 0.1 * Representability()),
    model(cost=RSLVQ() + 0.2 * Representability()),
    model(sigma2=Annealed(2.0)),
    model(sigma2=Annealed(2.0, beta=0.98)),
    model(prototypes_per_class={"a": 1, "b": 2}),
    model(decision="posterior"),
]


def test_estimators_that_differ_in_one_part_differ_in_their_representations():
    assert len({repr(part) for part in PARTS}) == len(PARTS)
    assert len({repr(make_pipeline(part)) for part in PARTS}) == len(PARTS)


def test_the_picture_of_an_estimator_names_its_parts():
    html = make_pipeline(Recenter(), model(cost=GLVQ(steepness=2.5)))._repr_html_()
    for part in ("Recenter", "RiemannianLVQ", "GLVQ(steepness=2.5)"):
        assert part in html


@pytest.mark.parametrize("part", PARTS, ids=range(len(PARTS)))
def test_clones_are_equal_and_independent(part):
    again = clone(part)
    assert again.get_params() == part.get_params()
    again.set_params(max_epochs=7, sigma2=Annealed(9.0))
    assert part.max_epochs == 2
    assert part.sigma2 != Annealed(9.0)


def test_what_was_learned_ends_with_an_underscore(data):
    fitted = model().fit(*data)
    learned = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    assert learned == {
        "classes_",
        "prototypes_",
        "prototype_labels_",
        "sigma2_",
        "step_size_",
        "choice_",
        "n_epochs_",
        "history_",
        "missing_channels_",
        "n_features_in_",
        "state_",
        "trainer_",
    }
