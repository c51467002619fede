"""Bad parameters are refused at fit by name and value, and a call that fails late changes nothing either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import changed, refuse, spd_classes

from rplvq import RSLVQ, AffineInvariant, Annealed, ClassMeans, Constant, RiemannianLVQ

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
    ("max_weight", 0.0, "max_weight must be .*positive.*0.0"),
    ("max_step_length", -1.0, "max_step_length must be .*positive.*-1.0"),
    ("monitor", "x", "monitor"),
    ("compiled", "yes", "compiled must be 'auto', True or False, got 'yes'"),
    ("average", 0.5, "average must be True, False or an Averaging, got 0.5"),
    ("solver", "newton", "solver='newton' is not known; choose from .*cg.*sgd"),
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


def test_a_bad_decision_is_refused_at_predict_too():
    refuse(fitted().set_params(decision="x"), "predict", X, match="decision must be 'nearest' or 'posterior', got 'x'")


# --- nothing is changed


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_call_draws_no_random_numbers(method):
    refuse(RiemannianLVQ(random_state=np.random.RandomState(0)), method, changed(X, (6, 1, 1), np.nan), Y, match="NaN")


def test_a_fit_that_diverges_changes_nothing():
    model = fitted()
    model.set_params(manifold="euclidean", sigma2=1e-3, step_size=1e200, max_weight=None, max_epochs=3)
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
