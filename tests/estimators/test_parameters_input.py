"""Bad parameters are refused at fit by name and value, and a call that fails late changes nothing either."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from rplvq import (
    GLVQ,
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    Annealed,
    BuresWasserstein,
    ClassKMeans,
    ClassMeans,
    Constant,
    EarlyStopping,
    Grow,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    RiemannianLVQ,
    StepSize,
    TangentSpace,
    Trainer,
)
from tests.problems import changed, refuse, spd_classes

X, Y = spd_classes(n_classes=3, per_class=6)


def fitted(**params):
    return RiemannianLVQ(**{"sigma2": 1.0, "max_epochs": 1, "random_state": 0} | params).fit(X, Y)


BAD_PARAMETERS: list[tuple[str, Any, str]] = [
    *[("sigma2", value, "sigma2 must be .*positive") for value in (0, -1.0, np.nan, np.inf, "large", True, Constant)],
    *[("step_size", value, "step_size must be .*positive") for value in (0.0, -0.1, np.nan, "fast", [0.1], Annealed)],
    ("prototypes_per_class", 7, r"class 0 has 6 sample\(s\) of positive weight, fewer than its 7 prototype"),
    ("prototypes_per_class", {0: 1, 1: 7, 2: 1}, "class 1 has 6 sample.*fewer than its 7"),
    ("prototypes_per_class", {0: 1, 1: 1}, "prototypes_per_class has no entry for class 2"),
    ("prototypes_per_class", {0: 1, 1: 1, 9: 1}, "prototypes_per_class.*9, which is not among the classes"),
    *[("prototypes_per_class", value, "prototypes_per_class must be an integer") for value in (0, 1.5, True, "2", [1])],
    ("metric", "hyperbolic", "metric='hyperbolic' is not known; choose from .*affine_invariant.*or pass an object"),
    ("metric", AffineInvariant, "metric=.*AffineInvariant.* is a class, pass an instance"),
    ("metric", 3, "metric=3 is not a Manifold: it lacks encode"),
    ("metric", RSLVQ(), "metric=RSLVQ.* is not a Manifold: it lacks encode"),
    ("cost", "hinge", "cost='hinge' is not known; choose from .*plvq.*rslvq"),
    ("cost", RSLVQ, "cost=.*RSLVQ.* is a class, pass an instance"),
    ("cost", None, "cost=None is not a Cost"),
    ("cost", RSLVQ(priors=(0.5, 0.5)), "priors has 2 entries, but there are 3 classes"),
    ("init", "random", "init='random' is not known; choose from .*kmeans.*mean"),
    ("init", ClassMeans, "init=.*ClassMeans.* is a class, pass an instance"),
    ("init", 3, "init=3 is not an? Initializer"),
    ("init", (changed(X[:3], 1, np.ones((3, 3))), [0, 1, 2]), r"init prototypes\[1\] is singular"),
    ("init", (changed(X[:3], (2, 0, 0), np.nan), [0, 1, 2]), r"init prototypes\[2\] contains NaN"),
    ("init", (X[:3, :2, :2], [0, 1, 2]), r"init prototypes have shape \(2, 2\), the samples \(3, 3\)"),
    ("init", (X[0], [0]), r"init.*single|init.*axes"),
    ("init", (X[:3, :2], [0, 1, 2]), "init.*square"),
    ("init", ([], []), "init"),
    ("init", (X[:3], [0, 1, 9]), r"init labels\[2\] is 9, which is not among the classes \[0, 1, 2\]"),
    ("init", (X[:3], [0, 1, 1]), "init has no prototype for class .*2"),
    ("init", (X[:3], [0, 1]), "init has 3 prototypes and 2 labels"),
    ("init", (X[:3], [[0], [1], [2]]), "init labels"),
    ("init", (X[:3], None), "init labels"),
    ("init", (X[:3],), r"init must be \(prototypes, labels\), got 1 items"),
    ("decision", "x", "decision must be 'nearest' or 'posterior', got 'x'"),
    ("max_epochs", -1, "max_epochs must be an integer.*-1"),
    ("batch_size", 0, "batch_size must be an integer.*0"),
    *[
        ("early_stopping", value, "early_stopping must be True, False or an EarlyStopping, got .*" + shown)
        for value, shown in ((0.1, "0.1"), ("yes", "'yes'"), (1, "1"), (0, "0"), (EarlyStopping, "EarlyStopping"))
    ],
    *[
        (name, value, rf"{name} must be a list or a tuple of callables, got {re.escape(repr(value))}")
        for name in ("callbacks", "growth")
        for value in (3, True, "abc", Grow())
    ],
    *[(name, [len, 3], rf"{name}\[1\] is 3, which cannot be called") for name in ("callbacks", "growth")],
    *[
        ("n_jobs", value, rf"n_jobs must be an integer other than 0, or None, got {re.escape(repr(value))}")
        for value in (0, 2.5, "2", True, [1], np.array([1, 2]))
    ],
    ("random_state", "x", "seed"),
]


@pytest.mark.parametrize(
    ("name", "value", "match"), BAD_PARAMETERS, ids=[f"{name}: {match}"[:60] for name, _, match in BAD_PARAMETERS]
)
def test_bad_parameters(name, value, match):
    for method in ("fit", "partial_fit"):
        refuse(RiemannianLVQ(**{name: value}), method, X, Y, match=match)
    refuse(fitted().set_params(**{name: value}), "fit", X, Y, match=match)


NO_NUMBERS: list[Any] = [None, "x", [1.0], {}, 1j, True, np.nan, np.ones(2), 10**400]
BAD_FIELDS: list[tuple[str, type, str, Any, str]] = [
    *[
        ("step_size", part, "max_weight", value, "max_weight must be a positive number or None, got " + shown)
        for part in (StepSize, AdaptiveStep)
        for value, shown in ((0.0, "0.0"), (-1, "-1"), (np.nan, "nan"), ("1", "'1'"), (True, "True"))
    ],
    *[
        ("early_stopping", EarlyStopping, "fraction", value, "fraction must be a number between 0 and 1, got ")
        for value in (0, 1.0, -0.1, np.nan, True, "0.1", None)
    ],
    *[
        ("early_stopping", EarlyStopping, "patience", value, "patience must be an integer of at least 1, got ")
        for value in (0, 2.5, True, None)
    ],
    *[
        ("early_stopping", EarlyStopping, "tol", value, "tol must be a number of at least 0, got ")
        for value in (-1e-4, np.nan, True, "0", None)
    ],
    *[
        ("metric", part, field, value, f"{field} must be {wanted}, got {re.escape(repr(value))}")
        for part, field, wanted in (
            (AffineInvariant, "max_step_length", "a positive number"),
            (LogEuclidean, "max_step_length", "a positive number"),
            (LogCholesky, "max_step_length", "a positive number"),
            (TangentSpace, "max_step_length", "a positive number"),
            (LearnedLogEuclidean, "max_step_length", "a positive number"),
            (LearnedLogEuclidean, "rate", "a number of at least 0"),
            (ProjectedEuclidean, "tau", "a positive finite number"),
            (BuresWasserstein, "min_stretch", "a number between 0 and 1"),
        )
        for value in (-1.0, *NO_NUMBERS)
    ],
    *[
        (name, part, field, value, f"{field} must be {wanted}, got {re.escape(repr(value))}")
        for name, part, field, wanted in (
            ("cost", GLVQ, "steepness", "a positive finite number or None"),
            ("init", ClassMeans, "perturbation", "a finite number of at least 0"),
            ("init", ClassKMeans, "max_iter", "an integer of at least 1"),
            ("sigma2", Annealed, "start", "a positive finite number or None"),
            ("sigma2", Annealed, "beta", "a number between 0 and 1"),
            ("sigma2", Annealed, "power", "a finite number of at least 1"),
            ("step_size", StepSize, "max_weight", "a positive number or None"),
            ("step_size", AdaptiveStep, "max_weight", "a positive number or None"),
            ("early_stopping", EarlyStopping, "fraction", "a number between 0 and 1"),
            ("early_stopping", EarlyStopping, "patience", "an integer of at least 1"),
            ("early_stopping", EarlyStopping, "tol", "a number of at least 0"),
        )
        for value in NO_NUMBERS
        if not (value is None and wanted.endswith("None")) and not (type(value) is int and "integer" in wanted)
    ],
    ("growth", Grow, "at", "middle", "at must be 'mean' or 'sample', got 'middle'"),
    ("metric", AffineInvariant, "compiled", "yes", "compiled must be 'auto', True or False, got 'yes'"),
]


@pytest.mark.parametrize(
    ("name", "part", "field", "value", "match"),
    BAD_FIELDS,
    ids=[f"{part.__name__}({field}={value!r:.30})" for _, part, field, value, _ in BAD_FIELDS],
)
def test_bad_fields_of_parts(name, part, field, value, match):
    """They are refused when the part is made, and when its field is set; the model is what it was."""
    with pytest.raises(ValueError, match=match):
        part(**{field: value})
    if name != "growth":  # a list of parts has no parameters of its own
        refuse(RiemannianLVQ(**{name: part()}), "set_params", max_epochs=1, **{f"{name}__{field}": value}, match=match)


@pytest.mark.parametrize("part", [StepSize, AdaptiveStep])
@pytest.mark.parametrize("compiled", [False, "auto"])
def test_a_large_max_weight_is_no_bound(part, compiled):
    """An integer that no machine integer holds is a number like any other."""
    models = [
        RiemannianLVQ(
            AffineInvariant(compiled=compiled), sigma2=1.0, step_size=part(0.1, max_weight=limit), max_epochs=2
        )
        for limit in (10**30, None)
    ]
    found = [model.set_params(random_state=0, batch_size=batch).fit(X, Y) for batch in (1, 5) for model in models]
    for large, none in (found[:2], found[2:]):
        np.testing.assert_array_equal(large.prototypes_, none.prototypes_)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("manifold", "affine_invariant", "manifold='affine_invariant' is not a Manifold: it lacks decode"),
        ("manifold", AffineInvariant, "is not a Manifold: it is a class, pass an instance"),
        ("cost", "rslvq", "cost='rslvq' is not a Cost: it lacks __call__"),
        ("initializer", ClassMeans, "is not an Initializer: it is a class, pass an instance"),
        ("early_stopping", True, "early_stopping=True is not an EarlyStopping: it lacks __call__"),
        ("early_stopping", EarlyStopping, "is not an EarlyStopping: it is a class, pass an instance"),
        ("growth", Grow(), "growth must be a list or a tuple of callables"),
        ("callbacks", 3, "callbacks must be a list or a tuple of callables"),
        ("n_jobs", 0, "n_jobs must be an integer other than 0"),
    ],
)
def test_a_trainer_checks_its_fields_when_it_is_made(name, value, why):
    with pytest.raises(ValueError, match=why):
        Trainer(**{"manifold": AffineInvariant(), name: value})


@pytest.mark.parametrize("value", [0, "2", 2.5, True])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "decision_function"])
def test_n_jobs_that_was_set_after_fit_is_refused_by_name(method, value):
    refuse(
        fitted().set_params(n_jobs=value),
        method,
        X,
        match=f"n_jobs must be an integer other than 0, or None, got {value!r}",
    )


@pytest.mark.parametrize("fraction", [0.01, 0.95])
def test_every_class_is_on_both_sides_whatever_the_fraction_or_is_named(fraction):
    for model in (RiemannianLVQ(sigma2=1.0, max_epochs=2), fitted()):
        model.set_params(early_stopping=EarlyStopping(fraction=fraction))
        assert np.isfinite(RiemannianLVQ(**model.get_params(deep=False)).fit(X, Y).history_["validation_cost"]).all()
        few = np.append(np.flatnonzero(Y != 1), np.flatnonzero(Y == 1)[:2])
        match = r"early_stopping: class 1 has 2 distinct sample\(s\) and needs 3, so that one can be held out"
        refuse(model, "fit", X[few], Y[few], match=match)


def test_a_bad_decision_is_refused_at_predict_too():
    refuse(fitted().set_params(decision="x"), "predict", X, match="decision must be 'nearest' or 'posterior', got 'x'")


# --- nothing is changed


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_call_draws_no_random_numbers(method):
    refuse(RiemannianLVQ(random_state=np.random.RandomState(0)), method, changed(X, (6, 1, 1), np.nan), Y, match="NaN")


def test_a_fit_that_diverges_changes_nothing():
    model = fitted()
    step_size = StepSize(1e200, max_weight=None)
    model.set_params(metric="euclidean", sigma2=1e-3, step_size=step_size, max_epochs=3)
    with np.errstate(all="ignore"):
        refuse(model, "fit", X, Y, error=FloatingPointError, match="training diverged in epoch 1")


class Undecodable(AffineInvariant):
    """A geometry whose prototypes cannot be changed back to points."""

    def decode(self, codes):
        raise ValueError("no way back")


@pytest.mark.parametrize("start", [RiemannianLVQ, fitted])
def test_a_geometry_that_fails_at_the_end_changes_nothing(start):
    refuse(start().set_params(metric=Undecodable()), "fit", X, Y, match="no way back")


def test_a_first_batch_whose_geometry_fails_at_the_end_leaves_the_model_unfitted():
    refuse(RiemannianLVQ(Undecodable()), "partial_fit", X, Y, match="no way back")
