"""Memory beside the data stays within what docs/reliability.md promises, and the bits don't depend on its budget."""

from __future__ import annotations

import tracemalloc
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    Recenter,
    RejectOption,
    RiemannianLVQ,
    StepSize,
)
from rplvq.inspection import calibrate_sigma2
from rplvq.manifolds import riemannian_mean
from rplvq.training import EpochScore
from tests.problems import spd_classes


def name_of(part):
    """Name of the class of a part, for the ids of tests."""
    return type(part).__name__


SMALL = 1 << 18
"""Budget and block of these tests: a quarter of a megabyte, so that what grows with the data stands out."""
N, K, N_CLASSES = 30_000, 4, 4
DATA = N * 9 * 8  # 2.2 MB


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr("rplvq.arrays._samples.BUDGET_BYTES", SMALL)
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", SMALL)


@pytest.fixture(scope="module")
def many():
    """Matrices (N, 3, 3) of four kinds, all different, and their labels."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % N_CLASSES
    X = np.zeros((N, 3, 3))
    X[:, range(3), range(3)] = np.exp(rng.normal(size=(N, 3)) * 0.3 + 0.4 * np.eye(4, 3)[y])
    X[:, 0, 1] = X[:, 1, 0] = 0.1 * rng.normal(size=N)
    return X, y


@pytest.fixture(scope="module")
def mapped(many, tmp_path_factory):
    """The same matrices in a file."""
    path = tmp_path_factory.mktemp("memory") / "X.npy"
    np.save(path, many[0])
    return np.load(path, mmap_mode="r")


def peak_of(call, *arguments):
    """Largest memory that a call holds at a time, in bytes, and its result."""
    tracemalloc.start()
    try:
        result = call(*arguments)
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def fitted(X, y, **settings):
    settings = {"sigma2": 1.0, "max_epochs": 1, "batch_size": 512, "random_state": 0} | settings
    return RiemannianLVQ(init=(X[:K], y[:K]), **settings).fit(X, y)


@pytest.mark.parametrize(("method", "columns"), [("predict", 1), ("predict_proba", N_CLASSES), ("transform", K)])
def test_answers_take_their_own_size_and_the_budget(small, many, mapped, method, columns):
    model = fitted(many[0][:100], many[1][:100])
    getattr(model, method)(many[0][:1000])  # compiles, if this has not happened yet, which takes memory, too
    ours = 8 * N * columns * (2 if method == "predict" else 1)  # prototypes, then their labels
    for X in (many[0], mapped):
        peak, found = peak_of(getattr(model, method), X)
        assert len(found) == N
        assert peak < ours + 2 * SMALL < DATA + 8 * N * columns


@pytest.mark.parametrize(("metric", "codes"), [("affine_invariant", 0), ("euclidean", 0), ("log_euclidean", 72)])
def test_fit_takes_ten_numbers_a_sample_and_its_codes_where_they_are_not_the_points(small, mapped, many, metric, codes):
    y = many[1]
    fitted(mapped[:1000], y[:1000], metric=metric)  # loads the compiled code
    for settings in ({}, {"early_stopping": True, "callbacks": [EpochScore()]}):
        peak, _ = peak_of(lambda settings=settings: fitted(mapped, y, metric=metric, **settings))
        assert peak < (96 + codes) * N + 2 * SMALL


@pytest.mark.parametrize("init", ["mean", "kmeans"])
def test_initializers_and_sigma2_take_the_distances_twice(small, mapped, many, init):
    settings = {"max_epochs": 0, "prototypes_per_class": 2, "random_state": 0}
    part, y = mapped[: N // 2], many[1][: N // 2]
    model = RiemannianLVQ("euclidean", init=init, sigma2="auto", **settings)
    peak, _ = peak_of(lambda: model.fit(part, y))
    assert peak < (16 * 8 + 96) * len(y) + 2 * SMALL


def test_a_mean_takes_three_numbers_a_sample(small, mapped):
    riemannian_mean(AffineInvariant(), mapped[:1000], max_iter=2, tol=1.0)  # loads the compiled code
    peak, _ = peak_of(lambda: riemannian_mean(AffineInvariant(), mapped, max_iter=2, tol=1.0))
    assert peak < 24 * N + 2 * SMALL < DATA


def test_recentring_takes_its_result(small, mapped):
    model = Recenter(tol=1.0)
    model.fit(mapped[:1000]).transform(mapped[:1000])  # loads the compiled code
    peak, _ = peak_of(lambda: model.fit(mapped))
    assert peak < 48 * N + 2 * SMALL < DATA
    peak, found = peak_of(lambda: model.transform(mapped))
    assert peak < found.nbytes + 32 * N + 2 * SMALL


def test_doubt_takes_the_distances(small, many, mapped):
    X, y = many
    model = RejectOption(fitted(X[:100], y[:100]), threshold=0.5, criterion="relative_distance").fit(X[:100], y[:100])
    assert peak_of(model.predict, mapped)[0] < 8 * N * (K + 2) + 2 * SMALL
    assert peak_of(calibrate_sigma2, model.estimator_, mapped, y)[0] < 8 * N * (K + 4) + 2 * SMALL


PROBLEMS = {
    name: spd_classes(n_classes=3, per_class=16, n=4, dtype=dtype) for name, dtype in {"C": complex, "R": float}.items()
}
METRICS = ["affine_invariant", "log_euclidean", "euclidean", "log_cholesky", "bures_wasserstein", "tangent"]
IN_GROUPS = {"init": "kmeans", "prototypes_per_class": 2, "batch_size": 16}
SETTINGS = [{}, IN_GROUPS | {"early_stopping": True, "callbacks": [EpochScore()]}]
KINDS = [
    pytest.param(metric, settings, "RC"[(i + j) % 2], id=f"{metric}-{settings}-{'RC'[(i + j) % 2]}")
    for i, metric in enumerate(METRICS)
    for j, settings in enumerate(SETTINGS)
]
"""Each metric with all settings, and both with real and with complex matrices."""


@pytest.mark.parametrize(("metric", "settings", "kind"), KINDS)
def test_the_budget_does_not_show_in_bits_and_parts_show_in_rounding_only(monkeypatch, metric, settings, kind):
    X, y = PROBLEMS[kind]

    def fit(block, budget):
        monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", block)
        monkeypatch.setattr("rplvq.arrays._samples.BUDGET_BYTES", budget)
        return RiemannianLVQ(metric, max_epochs=2, random_state=0, **settings).fit(X, y)

    results = []
    for budget in (1 << 25, 1 << 13, 1):
        model = fit(1 << 12, budget)  # sums of a few parts, whatever the budget
        answers = [getattr(model, name)(X) for name in ("predict", "predict_proba", "transform")]
        results.append([model.prototypes_, model.history_["cost"], model.sigma2_, *answers])
    for result in results[1:]:
        for found, wanted in zip(result, results[0], strict=True):
            assert_array_equal(found, wanted)
    whole = fit(1 << 25, 1 << 25)
    prototypes, cost, sigma2, *_ = results[0]
    assert_allclose(prototypes, whole.prototypes_, rtol=1e-7, atol=1e-9)
    assert_allclose(cost, whole.history_["cost"], rtol=1e-7)
    assert_allclose(sigma2, whole.sigma2_, rtol=1e-7)


@attrs.frozen
class Short:
    """A metric whose steps are at most 0.01 long."""

    metric: Any
    max_step_length: float = 0.01

    def __getattr__(self, name):
        return getattr(self.metric, name)


MANIFOLDS = [AffineInvariant(), LogEuclidean(), ProjectedEuclidean(relative=True), LogCholesky(), BuresWasserstein()]


@pytest.mark.parametrize("kind", ["R", "C"])
@pytest.mark.parametrize("manifold", MANIFOLDS, ids=name_of)
@pytest.mark.filterwarnings("ignore::rplvq.exceptions.DivergenceWarning")
@pytest.mark.parametrize("change", ["none", "sample_weight", "max_step_length", "max_weight"])
def test_a_large_batch_takes_the_same_step_by_parts(monkeypatch, manifold, kind, change):
    X, y = PROBLEMS[kind]
    step_size = StepSize(3.0, max_weight=1e-2 if change == "max_weight" else 1.0)
    settings = {"batch_size": None, "step_size": step_size, "sigma2": 0.5, "max_epochs": 2, "random_state": 0}
    manifold = Short(manifold) if change == "max_step_length" else manifold
    weights = np.random.default_rng(0).uniform(0.1, 1, len(y)) if change == "sample_weight" else None
    models = []
    for block in (1 << 25, 1 << 12):
        monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", block)
        models.append(RiemannianLVQ(manifold, init=(X[:9], y[:9]), **settings).fit(X, y, weights))
    assert_allclose(models[1].prototypes_, models[0].prototypes_, rtol=1e-9, atol=1e-11)
    assert_allclose(models[1].history_["cost"], models[0].history_["cost"], rtol=1e-10)
    assert_array_equal(models[1].history_["n_capped"], models[0].history_["n_capped"])
    assert ((models[0].history_["n_capped"] > 0) | (change not in ("max_weight", "max_step_length"))).all()


def test_a_batch_of_all_is_not_decomposed_at_once(small, mapped, many):
    fitted(mapped, many[1], batch_size=None)  # loads compiled code, and what a first fit keeps
    peak, model = peak_of(lambda: fitted(mapped, many[1], batch_size=None))
    assert peak < (96 + 8 * (K + 1)) * N + 3 * SMALL < 5 * DATA
    assert model.history_["cost"][0] > 0
