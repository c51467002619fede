"""Features in combination: every pair of settings occurs together in one fit, which must predict, repeat and resume."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    AffineInvariant,
    Annealed,
    Checkpoint,
    EarlyStopping,
    Grow,
    HeldOut,
    LogEuclidean,
    Product,
    Prune,
    RiemannianLVQ,
    StepSize,
    TangentSpace,
    load_model,
)
from tests.covering import covering, pairs_of
from tests.problems import spd_classes

N_CLASSES = 3
PER_CLASS = 14


def sorted_by_class(dtype):
    """Matrices (N, 3, 3) of three classes, one class after the other."""
    X, y = spd_classes(n_classes=N_CLASSES, per_class=PER_CLASS, shift=1.0, spread=0.25, dtype=dtype)
    return X[np.argsort(y, kind="stable")]


REAL, HERMITIAN = sorted_by_class(float), sorted_by_class(complex)
Y = np.repeat(np.arange(N_CLASSES), PER_CLASS)
SOFT = 0.85 * np.eye(N_CLASSES)[Y] + 0.05
WEIGHTS = np.random.default_rng(5).uniform(0.3, 2.5, len(Y))
WEIGHTS[::9] = 0
GROUPS = np.array([f"session {k}" for k in range(7)])[np.arange(len(Y)) % 7]


def as_objects(X):
    """The samples as a one-dimensional array of matrices, as a column of a table holds them."""
    found = np.empty(len(X), dtype=object)
    found[:] = list(X)
    return found


FACTORS = {
    "matrices": {
        "affine-invariant": ({"metric": "affine_invariant"}, REAL),
        "affine-invariant, complex": ({"metric": "affine_invariant"}, HERMITIAN),
        "Log-Euclidean, complex": ({"metric": "log_euclidean"}, HERMITIAN),
        "log-Cholesky": ({"metric": "log_cholesky"}, REAL),
        "tangent": ({"metric": "tangent"}, REAL),
        "tangent, whitened, complex": ({"metric": TangentSpace(whiten=True)}, HERMITIAN),
        "Bures-Wasserstein, complex": ({"metric": "bures_wasserstein"}, HERMITIAN),
        "learned, complex": ({"metric": "learned_log_euclidean"}, HERMITIAN),
        "product": ({"metric": Product([AffineInvariant(), LogEuclidean()])}, np.stack([REAL, REAL], axis=1)),
        "product, learned, complex": (
            {"metric": Product([AffineInvariant(), LogEuclidean()], relevances="learned")},
            np.stack([HERMITIAN, HERMITIAN[::-1]], axis=1),
        ),
    },
    "labels": {
        "rslvq": ({"cost": "rslvq"}, Y),
        "glvq": ({"cost": "glvq"}, Y),
        "plvq, strings": ({"cost": "plvq"}, np.array(["left", "right", "feet"])[Y]),
        "plvq, soft": ({"cost": "plvq"}, SOFT),
    },
    "weights": {"no weights": ({}, None), "weights": ({}, WEIGHTS)},
    "groups": {"no groups": ({}, None), "groups": ({}, GROUPS)},
    "container": {"array": ({}, np.asarray), "objects": ({}, as_objects)},
    "counts": {"int": ({"max_epochs": 5}, None), "uint8": ({"max_epochs": np.uint8(5)}, None)},
    "stopping": {"all epochs": ({}, None), "early stopping": ({"early_stopping": EarlyStopping(0.3, 2)}, None)},
    "growth": {"fixed size": ({}, None), "growth": ({"growth": [Grow(every=1, at_most=3), Prune(every=2)]}, None)},
    "steps": {
        "default steps": ({}, None),
        "adaptive steps": ({"step_size": "adaptive"}, None),
        "capped steps": ({"step_size": StepSize(0.2, max_weight=0.3)}, None),
    },
    "batches": {"single": ({}, None), "batches": ({"batch_size": 5}, None), "full": ({"batch_size": None}, None)},
    "sigma2": {
        "rule": ({"sigma2": HeldOut(["auto"])}, None),
        "annealed": ({"sigma2": Annealed()}, None),
        "held out": ({"sigma2": HeldOut(["auto", 1.0])}, None),
    },
    "prototypes": {
        "means": ({"init": "mean"}, None),
        "k-means": ({"init": "kmeans", "prototypes_per_class": 2, "decision": "posterior"}, None),
    },
}


CASES = covering(*FACTORS.values())
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=[", ".join(case) for case in CASES])


def problem(case):
    """Parameters, matrices, labels, and what else fit takes of a case."""
    chosen = {factor: settings[name] for (factor, settings), name in zip(FACTORS.items(), case, strict=True)}
    parameters = {"random_state": 3}
    for own, _ in chosen.values():
        parameters |= own
    X = chosen["container"][1](chosen["matrices"][1])
    given = {"sample_weight": chosen["weights"][1], "groups": chosen["groups"][1]}
    return parameters, X, chosen["labels"][1], {name: values for name, values in given.items() if values is not None}


def assert_same_fit(one, other):
    assert_array_equal(one.prototypes_, other.prototypes_)
    assert_array_equal(one.prototype_labels_, other.prototype_labels_)
    assert (one.sigma2_, one.n_epochs_) == (other.sigma2_, other.n_epochs_)
    assert list(one.history_) == list(other.history_)
    for name in set(one.history_) - {"seconds"}:
        assert_array_equal(one.history_[name], other.history_[name], err_msg=name)


def test_every_pair_of_settings_occurs():
    wanted = sum(len(a) * len(b) for a, b in combinations(FACTORS.values(), 2))
    assert len(set().union(*map(pairs_of, CASES))) == wanted
    assert len(CASES) < 45  # all combinations are thousands


@EVERY_CASE
def test_a_combination_predicts_and_repeats(case):
    parameters, X, y, given = problem(case)
    model = RiemannianLVQ(**parameters).fit(X, y, **given)
    classes = np.arange(N_CLASSES) if np.ndim(y) == 2 else np.unique(y)
    labels = Y if np.ndim(y) == 2 else y
    assert_array_equal(model.classes_, classes)
    assert_array_equal(np.unique(model.prototype_labels_), classes)
    assert model.score(X, labels) > 0.9
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))
    assert model.prototypes_.dtype == np.asarray(list(X)).dtype
    assert (np.linalg.eigvalsh(model.prototypes_) > 0).all()
    assert all(np.isfinite(column).all() for column in model.history_.values())
    assert ("validation_cost" in model.history_) == ("early_stopping" in parameters)
    # The fit depends on the seed and on the samples as a set, not on their order, and on no number of threads.
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = {name: values[order] for name, values in given.items()}
    again = RiemannianLVQ(**parameters, n_jobs=2).fit(X[order], y[order], **shuffled)
    assert_same_fit(again, model)


@EVERY_CASE
def test_a_combination_goes_on_from_a_file_and_from_a_checkpoint(case, tmp_path):
    parameters, X, y, given = problem(case)
    model = RiemannianLVQ(**parameters, callbacks=[Checkpoint(tmp_path / "fit.npz", every=2)])
    model.fit(X, y, **given)
    resumed = RiemannianLVQ(**parameters).fit(X, y, **given, resume=tmp_path / "fit.npz")
    assert_same_fit(resumed, model)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for rows in (slice(0, None, 2), slice(1, None, 2)):
        part = given["sample_weight"][rows] if "sample_weight" in given else None
        for one in (model, resumed, again):
            one.partial_fit(X[rows], y[rows], sample_weight=part)
        assert_same_fit(again, model)
        assert_same_fit(resumed, model)
    assert_array_equal(again.predict(X), model.predict(X))
