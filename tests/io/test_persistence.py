"""Models that are saved and loaded are the same: what they predict, what they say, how they go on."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from pymanopt.manifolds import Sphere

import rplvq
from rplvq import (
    PLVQ,
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    Annealed,
    BuresWasserstein,
    ClassKMeans,
    ClassMeans,
    Constant,
    EarlyStopping,
    EuclideanVectors,
    FromPymanopt,
    GeometricDecay,
    Grow,
    HeldOut,
    LearnedLogEuclidean,
    LogEuclidean,
    Product,
    ProjectedEuclidean,
    Prune,
    RiemannianLVQ,
    StepDecay,
    StepSize,
    TangentSpace,
)
from rplvq.datasets import make_syn1
from rplvq.exceptions import ModelFileError
from rplvq.io import load_model, save_model
from rplvq.protocols import Array
from rplvq.schedules import DoGState
from rplvq.training import EpochScore

N_CLASSES = 4
SPD, LABELS = make_syn1(n_per_class=6, random_state=0)
CLASS = np.unique(LABELS, return_inverse=True)[1]
RNG = np.random.default_rng(5)
VECTORS = RNG.standard_normal((len(CLASS), 3)) + CLASS[:, None]
SPHERE = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
PARTS = RNG.standard_normal((len(CLASS), 3, 8)) + 1j * RNG.standard_normal((len(CLASS), 3, 8))
PARTS[:, 0] *= 1 + CLASS[:, None]
HERMITIAN = PARTS @ PARTS.conj().swapaxes(1, 2) / 8
SOFT = 0.9 * np.eye(N_CLASSES)[CLASS] + 0.1 / N_CLASSES

STRINGS = np.array(["left", "right", "Füße", "zunge"])
CHOSEN = [*np.unique(CLASS, return_index=True)[1], 7, 11]
INIT = (SPD[CHOSEN], CLASS[CHOSEN])


def named(names: Any) -> Array:
    """Labels of the samples (N,) from names of the classes (C,)."""
    return np.asarray(names)[CLASS]


PAIRS = np.stack([SPD, SPD[::-1]], axis=1)
PACKED = Product([AffineInvariant(), EuclideanVectors()], shapes=[HERMITIAN.shape[1:], VECTORS.shape[1:]])

CASES: dict[str, tuple[dict[str, Any], Array, Array]] = {
    "defaults": ({}, SPD, CLASS),
    "affine-invariant": ({"metric": AffineInvariant(max_step_length=3), "batch_size": 5}, SPD, CLASS),
    "affine-invariant-untrained": ({"max_epochs": 0}, SPD, CLASS),
    "hermitian": ({"metric": "affine_invariant"}, HERMITIAN, CLASS),
    "log-euclidean": ({"metric": LogEuclidean()}, SPD, CLASS),
    "log-euclidean-hermitian": ({"metric": "logeuclid", "batch_size": None}, HERMITIAN, CLASS),
    "log-cholesky": ({"metric": "log_cholesky", "batch_size": 5}, HERMITIAN, CLASS),
    "tangent": ({"metric": "tangent"}, SPD, CLASS),
    "tangent-whitened": ({"metric": TangentSpace(whiten=True), "batch_size": 5}, HERMITIAN, CLASS),
    "tangent-given": ({"metric": TangentSpace(SPD[0])}, SPD, CLASS),
    "bures-wasserstein": ({"metric": BuresWasserstein(min_stretch=0.2)}, SPD, CLASS),
    "learned-log-euclidean": ({"metric": LearnedLogEuclidean(rate=0.5, rank=6)}, SPD, CLASS),
    "learned-log-euclidean-hermitian": ({"metric": "learned_log_euclidean", "batch_size": 3}, HERMITIAN, CLASS),
    "product": ({"metric": Product([LogEuclidean(), AffineInvariant()], relevances=[1, 2])}, PAIRS, CLASS),
    "product-local": ({"metric": Product([LogEuclidean()] * 2, relevances="local"), "sigma2": 1.0}, PAIRS, CLASS),
    "product-learned": ({"metric": Product([LogEuclidean()] * 2, relevances="learned"), "sigma2": 1.0}, PAIRS, CLASS),
    "product-packed": ({"metric": PACKED, "batch_size": 5}, PACKED.pack([HERMITIAN, VECTORS]), CLASS),
    "projected": ({"metric": ProjectedEuclidean(tau=1e-3)}, SPD, CLASS),
    "euclidean": ({"metric": "euclidean"}, SPD * 1e-12, CLASS),
    "vectors": ({"metric": EuclideanVectors()}, VECTORS, CLASS),
    "rslvq-priors": ({"cost": RSLVQ(priors=(0.1, 0.2, 0.3, 0.4)), "decision": "posterior"}, SPD, CLASS),
    "plvq": ({"cost": "plvq"}, SPD, CLASS),
    "soft-labels": ({"cost": PLVQ(priors=[0.25] * 4)}, SPD, SOFT),
    "constant": ({"sigma2": Constant(2.5), "step_size": 0.05}, SPD, CLASS),
    "annealed": ({"sigma2": Annealed(), "step_size": GeometricDecay(ratio=0.1)}, SPD, CLASS),
    "step-decay": ({"sigma2": np.float32(1.5), "step_size": StepDecay(0.2, every=1)}, SPD, CLASS),
    "uncapped": ({"metric": AffineInvariant(max_step_length=5.0), "step_size": StepSize(max_weight=None)}, SPD,
                 CLASS),
    "step-size": ({"step_size": StepSize(GeometricDecay(0.2), max_weight=0.5)}, SPD, CLASS),
    "adaptive": ({"step_size": AdaptiveStep(0.1, max_weight=0.8), "max_epochs": 3}, SPD, CLASS),
    "adaptive-hermitian": ({"step_size": "adaptive"}, HERMITIAN, CLASS),
    "held-out": ({"sigma2": HeldOut(["auto", 2.0, Annealed(1.5)])}, SPD, CLASS),
    "held-out-names": ({"sigma2": HeldOut(), "max_epochs": 4}, SPD.repeat(3, axis=0), CLASS.repeat(3)),
    "growth": ({"growth": [Grow(every=1, at_most=2), Prune(every=2)], "step_size": "adaptive"}, SPD, CLASS),
    "not-compiled": ({"metric": AffineInvariant(compiled=False)}, SPD, CLASS),
    "class-means": ({"init": ClassMeans(perturbation=0.1), "prototypes_per_class": 2}, SPD, CLASS),
    "k-means": ({"init": ClassKMeans(), "prototypes_per_class": 2}, SPD, CLASS),
    "per-class": ({"init": "kmeans", "prototypes_per_class": dict(zip(STRINGS, (1, 2, 1, 3), strict=True))}, SPD,
                  named(STRINGS)),
    "per-class-numpy": ({"prototypes_per_class": dict(zip(np.arange(4), np.array([1, 2, 1, 1]), strict=True))}, SPD,
                        CLASS),
    "given-arrays": ({"init": INIT}, SPD, CLASS),
    "given-lists": ({"init": [INIT[0].tolist(), INIT[1].tolist()]}, SPD, CLASS),
    "early-stopping-default": ({"early_stopping": True}, SPD.repeat(3, axis=0), CLASS.repeat(3)),
    "early-stopping": ({"early_stopping": EarlyStopping(fraction=0.2, tol=np.inf)}, SPD, CLASS),
    "strings": ({}, SPD, named(STRINGS)),
    "objects": ({}, SPD, named(STRINGS.astype(object))),
    "small-integers": ({}, SPD, named(np.array([-3, 0, 1, 7], dtype=np.int8))),
    "booleans": ({}, SPD, CLASS > 1),
    "floats": ({}, SPD, named([0.0, 1.0, 2.0, 1e15])),
    "dates": ({}, SPD, named(np.array(["2024-01-01", "2024-01-02", "2025-01-01", "1969-01-01"], "M8[D]"))),
}  # fmt: skip


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "model.npz"


def fitted(X: Array = SPD, y: Array = CLASS, **parameters: Any) -> RiemannianLVQ:
    settings = {"sigma2": HeldOut(["auto"]), "max_epochs": 2, "random_state": 3} | parameters
    return RiemannianLVQ(**settings).fit(X, y)


def assert_same(one: RiemannianLVQ, other: RiemannianLVQ, X: Array) -> None:
    """Same answers and same fitted attributes, bit for bit, with the same types."""
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"):
        expected, found = getattr(one, method)(X), getattr(other, method)(X)
        assert_array_equal(found, expected, err_msg=method)
        assert found.dtype == expected.dtype
    for name in ("classes_", "prototypes_", "prototype_labels_", "sigma2_", "n_epochs_", "n_features_in_"):
        expected, found = getattr(one, name), getattr(other, name)
        assert_array_equal(found, expected, err_msg=name)
        assert type(found) is type(expected)
    assert list(one.history_) == list(other.history_)
    for name in set(one.history_) - {"seconds"}:
        assert_array_equal(one.history_[name], other.history_[name], err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_loaded_model_answers_and_goes_on_as_the_saved_one(case: str, path: pathlib.Path) -> None:
    parameters, X, y = CASES[case]
    model = fitted(X, y, **parameters)
    save_model(model, path)
    again = load_model(path)
    assert repr(again.get_params()) == repr(model.get_params())
    assert repr(again.history_) == repr(model.history_)
    assert_same(model, again, X)
    for part in (slice(None, None, 2), slice(1, None, 2)):
        model.partial_fit(X[part], y[part])
        again.partial_fit(X[part], y[part])
    assert_same(model, again, X)


def test_the_memory_of_adaptive_steps_comes_back(path: pathlib.Path) -> None:
    model = fitted(step_size=AdaptiveStep(0.1))
    save_model(model, path)
    memory, again = model.state_.memory, load_model(path).state_.memory
    assert type(memory) is type(again) is DoGState
    assert memory.n_steps == 2 * len(CLASS)
    assert memory.max_dist > 0
    assert_array_equal(again.init, memory.init)
    assert again[1:] == memory[1:]


def test_parts_of_parts_come_back_equal(path: pathlib.Path) -> None:
    parts = {
        "step_size": StepSize(StepDecay(0.2, every=3), max_weight=None),
        "early_stopping": EarlyStopping(fraction=0.2, patience=4, tol=0.5),
        "sigma2": HeldOut(["half_median", 0.5, Constant(2.0), Annealed(power=1.0), "untrained"]),
    }
    model = fitted(**parts)
    save_model(model, path)
    again = load_model(path)
    for name, part in parts.items():
        assert getattr(again, name) == part
        assert type(getattr(again, name)) is type(part)
    assert again.trainer_ == model.trainer_
    assert again.get_params() == model.get_params()


def test_columns_of_callbacks_come_back(path: pathlib.Path) -> None:
    def extra(report: Any) -> dict[str, float]:
        return {"twice": 2.0 * report.state.epoch} | ({"once": 0.5} if report.state.epoch == 1 else {})

    model = fitted(callbacks=[extra, EpochScore()])
    save_model(model, path)
    again = load_model(path)
    assert list(again.history_)[-2:] == ["twice", "once"]
    assert_array_equal(again.history_["twice"], [2.0, 4.0])
    assert_array_equal(again.history_["once"], [0.5, np.nan])
    assert_same(model, again, SPD)
    assert_same(model.partial_fit(SPD, CLASS), again.partial_fit(SPD, CLASS), SPD)
    assert_array_equal(again.history_["twice"], [2.0, 4.0, np.nan])


def test_estimator_saves_itself(path: pathlib.Path) -> None:
    model = fitted()
    model.save(path)
    assert_same(model, rplvq.load_model(path), SPD)


def test_partial_fit_goes_on_in_the_middle_of_the_schedules(path: pathlib.Path) -> None:
    straight = RiemannianLVQ(sigma2=Annealed(), max_epochs=6, random_state=1)
    broken = RiemannianLVQ(sigma2=Annealed(), max_epochs=6, random_state=1)
    for _ in range(6):
        straight.partial_fit(SPD, CLASS)
        broken.partial_fit(SPD, CLASS)
        save_model(broken, path)
        broken = load_model(path)
    assert_same(straight, broken, SPD)
    assert len(set(straight.history_["step_size"])) == 6


def test_parameters_changed_after_fit_do_not_reach_into_the_trained_parts(path: pathlib.Path) -> None:
    model = fitted().set_params(cost="plvq", sigma2=7.0)
    save_model(model, path)
    again = load_model(path)
    assert (again.cost, again.sigma2) == ("plvq", 7.0)
    assert_same(model.partial_fit(SPD, CLASS), again.partial_fit(SPD, CLASS), SPD)


def test_saving_changes_nothing_and_callbacks_are_left_out(path: pathlib.Path) -> None:
    seen: list[Any] = []
    model = fitted(callbacks=[seen.append])
    save_model(model, path)
    assert model.callbacks == [seen.append]
    assert load_model(path).callbacks == ()
    assert len(seen) == 2


def test_random_state_instance_goes_on(path: pathlib.Path) -> None:
    model = fitted(random_state=np.random.RandomState(4))
    save_model(model, path)
    again = load_model(path)
    assert_same(model.fit(SPD, CLASS), again.fit(SPD, CLASS), SPD)


def test_names_of_features_output_and_requests_survive(path: pathlib.Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VECTORS, columns=["a", "b", "c"])
    with sklearn.config_context(enable_metadata_routing=True):
        model = RiemannianLVQ("euclidean_vectors", max_epochs=1).set_fit_request(sample_weight="trust")
    model.set_output(transform="pandas").fit(frame, pandas.Series(named(STRINGS)))
    save_model(model, path)
    again = load_model(path)
    assert_array_equal(again.feature_names_in_, ["a", "b", "c"])
    pandas.testing.assert_frame_equal(again.transform(frame), model.transform(frame))
    assert again.get_metadata_routing().fit.requests == {"sample_weight": "trust", "groups": True, "resume": None}
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("wrap", [lambda sphere: sphere, FromPymanopt], ids=["bare", "wrapped"])
def test_pymanopt_manifold_is_given_again(wrap: Any, path: pathlib.Path) -> None:
    model = fitted(SPHERE, CLASS, metric=wrap(Sphere(3)))
    save_model(model, path)
    again = load_model(path, manifold=wrap(Sphere(3)))
    assert_same(model.partial_fit(SPHERE, CLASS), again.partial_fit(SPHERE, CLASS), SPHERE)
    with pytest.raises(ModelFileError, match=r"Sphere manifold of 3-vectors.*load_model\(path, manifold="):
        load_model(path)
    with pytest.raises(ModelFileError, match="4-vectors does not match: the model was trained on pymanopt's Sphere"):
        load_model(path, manifold=Sphere(4))
    save_model(fitted(), path)
    with pytest.raises(ValueError, match="was not trained on a pymanopt manifold"):
        load_model(path, manifold=Sphere(3))
