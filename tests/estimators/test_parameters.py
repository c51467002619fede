"""Parameters as scikit-learn sees them: nested names, clone, repr, pickle, searches and pipelines."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from pymanopt.manifolds import Sphere
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

from rplvq import (
    PLVQ,
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    Annealed,
    ClassKMeans,
    ClassMeans,
    Constant,
    EarlyStopping,
    EuclideanVectors,
    GeometricDecay,
    Grow,
    HeldOut,
    LogEuclidean,
    ProjectedEuclidean,
    Prune,
    RiemannianLVQ,
    Share,
    StepDecay,
    StepSize,
)
from rplvq.features import TrialCovariances
from tests.problems import spd_classes, sphere_classes

OTHER = {
    "metric": [
        *(
            "riemann",
            "log_euclidean",
            AffineInvariant(),
            AffineInvariant(max_step_length=5),
            AffineInvariant(compiled=False),
        ),
        *(AffineInvariant(compiled=True), ProjectedEuclidean(tau=1e-3)),
    ],
    "cost": ["plvq", RSLVQ(), PLVQ(), RSLVQ(priors=(0.4, 0.6))],
    "sigma2": [
        *(2.0, Constant(2.0), Annealed(), Annealed(0.5), Annealed(0.5, power=1), None),
        *("half_median", HeldOut(), HeldOut(["auto", 2.0, Annealed(0.5)])),
    ],
    "step_size": [
        *(0.1, GeometricDecay(), GeometricDecay(0.1), StepDecay(0.1, every=5), None, "paper", "adaptive"),
        AdaptiveStep(0.1),
        *(StepSize(), StepSize("paper"), StepSize(0.1, max_weight=None), StepSize(max_weight=0.5), Share(0.2)),
        AdaptiveStep(0.1, max_weight=None),
    ],
    "prototypes_per_class": [2, {0: 1, 1: 2}],
    "class_weight": ["balanced", {0: 2.0, 1: 0.5}],
    "init": ["kmeans", ClassMeans(), ClassMeans(perturbation=0.1), ClassKMeans(max_iter=5)],
    "max_epochs": [7],
    "batch_size": [None, 5],
    "decision": ["posterior"],
    "early_stopping": [
        True,
        *(EarlyStopping(**field) for field in ({}, {"fraction": 0.3}, {"patience": 3}, {"tol": 0})),
    ],
    "growth": [[Grow()], (Prune(rise=0.1), Grow(2))],
    "n_jobs": [2],
    "verbose": [1],
    "random_state": [0],
}
CHANGES = [(name, value) for name, values in OTHER.items() for value in values]
EVERY_CHANGE = pytest.mark.parametrize(("name", "value"), CHANGES, ids=[f"{n}={v}" for n, v in CHANGES])


NAMES = [
    *("metric", "cost", "sigma2", "step_size", "prototypes_per_class", "class_weight", "init"),
    *(
        "max_epochs",
        "batch_size",
        "decision",
        "early_stopping",
        "growth",
        "callbacks",
        "n_jobs",
        "verbose",
        "random_state",
    ),
]
DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(RiemannianLVQ).parameters.items()}
ELSEWHERE = [
    *("max_weight", "max_step_length", "compiled", "monitor", "validation_fraction", "n_iter_no_change"),
    *("tol", "average", "solver"),
]


def test_there_are_sixteen_parameters():
    assert len(NAMES) == 16
    assert list(DEFAULTS) == NAMES
    assert sorted(RiemannianLVQ().get_params()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_parameter_is_documented_with_its_default(name):
    documented = inspect.getdoc(RiemannianLVQ).split("\nAttributes\n")[0]
    (line,) = re.findall(rf"^{name} : (.+)$", documented, re.MULTILINE)
    assert line.endswith(
        "default=" + (f'"{DEFAULTS[name]}"' if isinstance(DEFAULTS[name], str) else f"{DEFAULTS[name]}")
    )


def test_nothing_else_is_documented_as_a_parameter():
    documented = inspect.getdoc(RiemannianLVQ).split("\nParameters\n")[1].split("\nAttributes\n")[0]
    assert re.findall(r"^(\w+) : ", documented, re.MULTILINE) == NAMES


@pytest.mark.parametrize("name", ELSEWHERE)
def test_settings_of_parts_are_no_parameters_of_the_classifier(name):
    with pytest.raises(TypeError, match=name):
        RiemannianLVQ(**{name: 1})
    with pytest.raises(ValueError, match=name):
        RiemannianLVQ().set_params(**{name: 1})


def test_the_table_covers_every_parameter():
    assert set(OTHER) | {"callbacks"} == set(RiemannianLVQ().get_params(deep=False))


@EVERY_CHANGE
def test_a_parameter_is_stored_cloned_and_shown(name, value):
    model = RiemannianLVQ(**{name: value})
    assert getattr(model, name) is value
    assert model.get_params(deep=False)[name] is value
    assert clone(model).get_params() == model.get_params()
    assert repr(clone(model)) == repr(model) == repr(pickle.loads(pickle.dumps(model)))


def test_models_that_differ_in_one_component_show_it():
    shown = [repr(RiemannianLVQ(**{name: value})) for name, value in CHANGES] + [repr(RiemannianLVQ())]
    assert len(set(shown)) == len(shown)


def test_deep_parameters_reach_into_parts():
    params = RiemannianLVQ(ProjectedEuclidean(tau=1e-3), RSLVQ(), sigma2=Annealed(0.5)).get_params()
    assert params["metric__tau"] == 1e-3
    assert params["metric__relative"] is False
    assert params["cost__priors"] is None
    assert params["sigma2__start"] == 0.5
    assert params["sigma2__power"] == 1.1
    assert not any("__" in name for name in RiemannianLVQ().get_params())
    assert not any("__" in name for name in RiemannianLVQ(sigma2=Annealed()).get_params(deep=False))


def test_setting_a_field_replaces_the_part():
    part = Annealed(0.5, drop=0.3)
    model = RiemannianLVQ(sigma2=part)
    assert model.set_params(sigma2__start=2.0, sigma2__power=1, max_epochs=3) is model
    assert model.sigma2 == Annealed(2.0, drop=0.3, power=1)
    assert part == Annealed(0.5, drop=0.3)
    assert model.max_epochs == 3


def test_a_part_and_its_field_can_be_set_together():
    for names in [("sigma2", "sigma2__start"), ("sigma2__start", "sigma2")]:
        values = {"sigma2": Annealed(power=1), "sigma2__start": 3.0}
        model = RiemannianLVQ().set_params(**{name: values[name] for name in names})
        assert model.sigma2 == Annealed(3.0, power=1)


def test_the_fields_of_steps_and_of_early_stopping_are_parameters():
    model = RiemannianLVQ(step_size=StepSize(0.1, max_weight=0.5), early_stopping=EarlyStopping(patience=3))
    nested = {name: value for name, value in model.get_params().items() if "__" in name}
    assert nested == {
        "step_size__schedule": 0.1,
        "step_size__max_weight": 0.5,
        "early_stopping__fraction": 0.1,
        "early_stopping__patience": 3,
        "early_stopping__tol": 1e-4,
    }
    assert clone(model).get_params() == model.get_params()
    copied = clone(model).set_params(step_size__max_weight=None, early_stopping__fraction=0.25)
    assert copied.step_size == StepSize(0.1, max_weight=None)
    assert copied.early_stopping == EarlyStopping(fraction=0.25, patience=3)
    assert model.step_size == StepSize(0.1, max_weight=0.5)
    assert model.early_stopping == EarlyStopping(patience=3)
    assert RiemannianLVQ(step_size=AdaptiveStep()).set_params(step_size__max_weight=2.0).step_size.max_weight == 2.0


def test_parts_in_parts_have_parameters_too():
    model = RiemannianLVQ(step_size=StepSize(GeometricDecay(0.1), max_weight=None))
    params = model.get_params()
    assert params["step_size__schedule"] == GeometricDecay(0.1)
    assert (params["step_size__schedule__start"], params["step_size__schedule__ratio"]) == (0.1, 0.01)
    assert clone(model).get_params() == params
    model.set_params(step_size__schedule__start=0.3, step_size__max_weight=0.5)
    assert model.step_size == StepSize(GeometricDecay(0.3), max_weight=0.5)
    # A part and its field in one call: the new part gets the field, in whatever order they come.
    changes = {"step_size__schedule__every": 7, "step_size__schedule": StepDecay(0.2)}
    model.set_params(**changes)
    assert model.step_size == StepSize(StepDecay(0.2, every=7), max_weight=0.5)
    model.set_params(cost=2.0 * PLVQ(), cost__cost__priors=(0.5, 0.5))
    assert model.cost == 2.0 * PLVQ(priors=(0.5, 0.5))


@pytest.mark.parametrize(
    "bad",
    [
        {"typo": 1},
        {"step_size": StepSize(GeometricDecay(0.1)), "step_size__schedule__typo": 1},
        {"step_size": StepSize(GeometricDecay(0.1)), "step_size__schedule__start": -1.0},
        {"step_size": StepSize(0.1), "step_size__schedule__start": 1.0},  # a number has no fields
        {"step_size": StepSize(0.1), "step_size__max_weight": 0},
        {"step_size": StepSize(0.1), "step_size__max_weight__": 5},
        {"early_stopping": EarlyStopping(), "early_stopping__typo": 1},
        {"early_stopping": True, "early_stopping__patience": 3},  # True has no fields
        {"sigma2__typo": 1},
        {"sigma2__start": -1.0},
        {"sigma2__start__deeper": 1},
        {"metric__tau": 1e-3},  # the manifold is a name here
        {"max_epochs__value": 1},
        {"step_size__start": 0.1},  # None has no fields
        {"sigma2__": 1},
        {"sigma2": 3.0, "sigma2__start": 1.0},  # a number has no fields
    ],
    ids=str,
)
def test_nothing_is_set_if_one_parameter_is_bad(bad):
    model = RiemannianLVQ(sigma2=Annealed(0.5))
    before = dict(vars(model))
    with pytest.raises(ValueError, match=list(bad)[-1].split("__")[-1] or list(bad)[-1]):
        model.set_params(max_epochs=3, **bad)
    assert vars(model) == before


def test_clones_are_unfitted_and_independent():
    X, y = spd_classes()
    model = RiemannianLVQ(init=(X[:4], y[:4]), sigma2=Annealed(1.0), max_epochs=1).fit(X, y)
    copied = clone(model)
    assert not hasattr(copied, "prototypes_")
    copied.init[0][:] = 0
    assert (model.init[0] != 0).any()


@pytest.mark.parametrize(
    "manifold", ["affine_invariant", LogEuclidean(), ProjectedEuclidean(), "euclidean", Sphere(3)], ids=str
)
@pytest.mark.parametrize(
    "copier", [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy], ids=["pickled", "copied"]
)
def test_fitted_models_pickle_and_copy(manifold, copier):
    X, y = sphere_classes() if isinstance(manifold, Sphere) else spd_classes()
    model = RiemannianLVQ(manifold, sigma2=Annealed(), step_size=0.1, max_epochs=2, random_state=0).fit(X, y)
    again = copier(model)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.transform(X), model.transform(X))
    # Training goes on from where it was, with the same random numbers.
    assert_array_equal(again.partial_fit(X, y).prototypes_, model.partial_fit(X, y).prototypes_)


# --- searches and pipelines


@pytest.fixture(scope="module")
def problem():
    return spd_classes(per_class=9, spread=0.5)


@pytest.mark.parametrize(
    "grid",
    [
        {"metric": ["affine_invariant", LogEuclidean(), "euclidean"], "cost": ["rslvq", PLVQ()]},
        {"sigma2__start": [0.5, 5.0], "sigma2__power": [1, 1.1], "prototypes_per_class": [1, {0: 1, 1: 2}]},
        [{"metric": [ProjectedEuclidean()], "metric__tau": [1e-5, 1e-2]}, {"metric": [AffineInvariant()]}],
        {"sigma2": [1.0, "auto", Annealed()], "init": ["mean", ClassKMeans()], "step_size": [None, StepDecay(0.1)]},
    ],
    ids=["manifold, cost", "schedule, prototypes", "floor", "parts"],
)
def test_grid_search_chooses_among_parts(problem, grid):
    search_and_check(RiemannianLVQ(sigma2=Annealed(1.0), max_epochs=2, random_state=0), grid, problem)


@pytest.mark.parametrize(
    "grid",
    [
        {"step_size__max_weight": [None, 0.5], "step_size__schedule__start": [0.02, 0.2]},
        [{"early_stopping__patience": [1, 2], "early_stopping__tol": [0.0, 0.1]}, {"early_stopping": [False]}],
        {"early_stopping": np.array([False, True])},
    ],
    ids=["steps", "early stopping", "early stopping or not"],
)
def test_grid_search_reaches_into_steps_and_early_stopping(problem, grid):
    parts = {"step_size": StepSize(GeometricDecay(0.1)), "early_stopping": EarlyStopping(0.3)}
    search_and_check(RiemannianLVQ(sigma2=1.0, max_epochs=3, random_state=0, **parts), grid, problem)


def search_and_check(model, grid, problem):
    """Search, and check that the best model has the best parameters and predicts."""
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(*problem)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.6
    for name, value in search.best_params_.items():
        assert search.best_estimator_.get_params()[name] == value
    assert search.predict(problem[0]).shape == (18,)


def test_jobs_of_a_search_give_the_same(problem):
    model, grid = RiemannianLVQ(max_epochs=2, random_state=0), {"metric": ["riemann", LogEuclidean()]}
    with parallel_config(backend="threading"):  # starting processes takes seconds
        alone, together = (GridSearchCV(model, grid, cv=3, n_jobs=jobs).fit(*problem) for jobs in (1, 2))
    assert_array_equal(alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"])


def test_cross_validation(problem):
    model = RiemannianLVQ(max_epochs=2, random_state=0)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(model, *problem, cv=folds)
    X, y = problem
    by_hand = [clone(model).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X, y)]
    assert_allclose(scores, by_hand)
    assert_allclose(cross_val_predict(model, *problem, cv=folds, method="predict_proba").sum(axis=1), 1)


def test_a_pipeline_from_signals_to_labels():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    trials = rng.normal(size=(30, 4, 100)) * np.where(y[:, None, None] == np.arange(4)[:, None] % 2, 1e-5, 2e-5)
    pipeline = make_pipeline(TrialCovariances(), RiemannianLVQ(max_epochs=2, random_state=0))
    assert cross_val_score(pipeline, trials, y, cv=3).mean() > 0.95
    search = GridSearchCV(
        pipeline.set_params(riemannianlvq__sigma2=Annealed()),
        {"trialcovariances__shrinkage": [0.0, "ledoit_wolf"], "riemannianlvq__sigma2__start": [0.5, 2.0]},
        cv=3,
        error_score="raise",
    ).fit(trials, y)
    assert search.best_score_ > 0.95


def test_distances_to_prototypes_are_features_for_others(problem):
    from sklearn.linear_model import LogisticRegression

    X, y = problem
    model = make_pipeline(RiemannianLVQ(prototypes_per_class=2, max_epochs=2, random_state=0), LogisticRegression())
    assert model.fit(X, y).score(X, y) > 0.8


def test_tags_say_which_input_is_taken():
    assert RiemannianLVQ().__sklearn_tags__().input_tags.three_d_array
    assert not RiemannianLVQ().__sklearn_tags__().input_tags.two_d_array
    for manifold in ("euclidean_vectors", EuclideanVectors()):
        assert RiemannianLVQ(manifold).__sklearn_tags__().input_tags.two_d_array
