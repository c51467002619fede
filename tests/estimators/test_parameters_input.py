"""Bad parameters are refused at fit by name and value, and a call that fails late changes nothing either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rplvq import (
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    Annealed,
    ClassMeans,
    Constant,
    EarlyStopping,
    RiemannianLVQ,
    StepSize,
)
from tests.problems import changed, refuse, spd_classes

X, Y = spd_classes(n_classes=3, per_class=6)


def fitted(**params):
    return RiemannianLVQ(max_epochs=1, random_state=0, **params).fit(X, Y)


BAD_PARAMETERS: list[tuple[str, Any, str]] = [
    *[("sigma2", value, "sigma2 must be .*positive") for value in (0, -1.0, np.nan, np.inf, "large", True, Constant)],
    *[("step_size", value, "step_size must be .*positive") for value in (0.0, -0.1, np.nan, "fast", [0.1], Annealed)],
    ("prototypes_per_class", 7, r"class 0 has 6 sample\(s\) of positive weight, fewer than its 7 prototype"),
    ("prototypes_per_class", {0: 1, 1: 7, 2: 1}, "class 1 has 6 sample.*fewer than its 7"),
    ("prototypes_per_class", {0: 1, 1: 1}, "prototypes_per_class has no entry for class 2"),
    ("prototypes_per_class", {0: 1, 1: 1, 2: 1, 9: 1}, "prototypes_per_class.*9, which is not among the classes"),
    *[("prototypes_per_class", value, "prototypes_per_class must be an integer") for value in (0, 1.5, True, "2", [1])],
    ("manifold", "hyperbolic", "manifold='hyperbolic' is not known; choose from .*affine_invariant.*or pass an object"),
    ("manifold", AffineInvariant, "manifold=.*AffineInvariant.* is a class, pass an instance"),
    ("manifold", 3, "manifold=3 is not a Manifold: it lacks encode"),
    ("manifold", RSLVQ(), "manifold=RSLVQ.* is not a Manifold: it lacks encode"),
    ("cost", "hinge", "cost='hinge' is not known; choose from .*plvq.*rslvq"),
    ("cost", RSLVQ, "cost=.*RSLVQ.* is a class, pass an instance"),
    ("cost", None, "cost=None is not a Cost"),
    ("cost", RSLVQ(priors=(0.5, 0.5)), "priors has 2 entries for 3 classes"),
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
    ("callbacks", [3], r"callbacks\[0\] is 3"),
    ("random_state", "x", "seed"),
]


@pytest.mark.parametrize(
    ("name", "value", "match"), BAD_PARAMETERS, ids=[f"{name}: {match}"[:60] for name, _, match in BAD_PARAMETERS]
)
def test_bad_parameters(name, value, match):
    for method in ("fit", "partial_fit"):
        refuse(RiemannianLVQ(**{name: value}), method, X, Y, match=match)
    refuse(fitted().set_params(**{name: value}), "fit", X, Y, match=match)


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
        ("manifold", AffineInvariant, "max_step_length", value, "max_step_length'? must be .*" + shown)
        for value, shown in ((-1.0, "-1.0"), (0, "0"), (np.nan, "nan"))
    ],
    ("manifold", AffineInvariant, "compiled", "yes", "compiled must be 'auto', True or False, got 'yes'"),
]


@pytest.mark.parametrize(
    ("name", "part", "field", "value", "match"),
    BAD_FIELDS,
    ids=[f"{part.__name__}({field}={value!r})" for _, part, field, value, _ in BAD_FIELDS],
)
def test_bad_fields_of_parts(name, part, field, value, match):
    """They are refused when the part is made, and when its field is set; the model is what it was."""
    with pytest.raises(ValueError, match=match):
        part(**{field: value})
    refuse(RiemannianLVQ(**{name: part()}), "set_params", max_epochs=1, **{f"{name}__{field}": value}, match=match)


@pytest.mark.parametrize("fraction", [0.01, 0.95])
def test_a_fraction_that_leaves_a_side_without_a_class_is_refused(fraction):
    message = f"early_stopping: fraction={fraction} of 18 samples cannot be held out with every class on both sides"
    for model in (RiemannianLVQ(), fitted()):
        model.set_params(early_stopping=EarlyStopping(fraction=fraction))
        refuse(model, "fit", X, Y, match=message)


def test_a_bad_decision_is_refused_at_predict_too():
    refuse(fitted().set_params(decision="x"), "predict", X, match="decision must be 'nearest' or 'posterior', got 'x'")


# --- nothing is changed


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_call_draws_no_random_numbers(method):
    refuse(RiemannianLVQ(random_state=np.random.RandomState(0)), method, changed(X, (6, 1, 1), np.nan), Y, match="NaN")


def test_a_fit_that_diverges_changes_nothing():
    model = fitted()
    step_size = StepSize(1e200, max_weight=None)
    model.set_params(manifold="euclidean", sigma2=1e-3, step_size=step_size, max_epochs=3)
    with np.errstate(all="ignore"):
        refuse(model, "fit", X, Y, error=FloatingPointError, match="training diverged in epoch 1")


class Undecodable(AffineInvariant):
    """A geometry whose prototypes cannot be changed back to points."""

    def decode(self, codes):
        raise ValueError("no way back")


@pytest.mark.parametrize("start", [RiemannianLVQ, fitted])
def test_a_geometry_that_fails_at_the_end_changes_nothing(start):
    refuse(start().set_params(manifold=Undecodable()), "fit", X, Y, match="no way back")


def test_a_first_batch_whose_geometry_fails_at_the_end_leaves_the_model_unfitted():
    refuse(RiemannianLVQ(Undecodable()), "partial_fit", X, Y, match="no way back")
