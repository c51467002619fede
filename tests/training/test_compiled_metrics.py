"""Compiled steps are the plain steps for every metric and every cost, and only where a part says so of itself."""

from __future__ import annotations

from importlib.util import find_spec

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    GLVQ,
    PLVQ,
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    BuresWasserstein,
    ClassMeans,
    EuclideanVectors,
    FromPymanopt,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    Representability,
    RiemannianLVQ,
    StepSize,
    TangentSpace,
    Trainer,
)
from rplvq.arrays import Samples
from rplvq.costs import FlatGaussian, RiemannianGaussian, SpreadRSLVQ, terms_of
from rplvq.lanes import into_lanes
from rplvq.parts import kernel_of
from rplvq.training.compiled import PLAIN, compiled_kernels
from rplvq.training.compiled._lanes import may_be_indefinite
from tests.problems import spd

KERNELS = [
    "python",
    pytest.param("numba", marks=pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")),
]
REFERENCE, COVARIANCE = (spd(np.random.default_rng(7), 1, n)[0] for n in (3, 6))
METRICS = {
    "affine-invariant": AffineInvariant(),
    "Log-Euclidean": LogEuclidean(),
    "log-Cholesky": LogCholesky(),
    "vectors": EuclideanVectors(),
    "tangent": TangentSpace(REFERENCE),
    "tangent, whitened": TangentSpace(REFERENCE, whiten=True, covariance=COVARIANCE),
    "projected": ProjectedEuclidean(tau=0.3),
    "projected, relative": ProjectedEuclidean(tau=0.3, relative=True),
    "projected, smallest floor": ProjectedEuclidean(relative=True),
    "Bures-Wasserstein": BuresWasserstein(),
    "learned": LearnedLogEuclidean(rate=0.1),
    "learned, rank 2": LearnedLogEuclidean(rate=0.1, rank=2),
    "fixed": LearnedLogEuclidean(rate=0),
}
COSTS = {
    "RSLVQ": RSLVQ(),
    "priors": RSLVQ(priors=(0.5, 0.2, 0.3)),
    "PLVQ": PLVQ(),
    "GLVQ": GLVQ(steepness=3.0),
    "Representability": Representability(),
    "spread": SpreadRSLVQ((0.5, 2.0, 1.1), FlatGaussian(3)),
    "sum": 0.7 * (RSLVQ() + 0.3 * GLVQ()) + 0.1 * Representability(),
}
SOFT = {name: COSTS[name] for name in ("PLVQ", "Representability", "spread")}
OF_ANY_SIZE = [name for name in METRICS if not name.startswith(("vectors", "tangent", "learned, rank"))]
LABELS = np.array([0, 0, 1, 2, 2, 2])


@pytest.fixture(params=KERNELS)
def kernels(request):
    return PLAIN if request.param == "python" else compiled_kernels()


def problem(metric, n=3, dtype=float, soft=False, n_samples=18):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n_samples, n)) if metric == "vectors" else spd(rng, n_samples, n, 0.7, dtype)
    targets = rng.dirichlet(np.ones(3), n_samples) if soft else rng.integers(0, 3, n_samples)
    return Samples(METRICS[metric].encode(points), targets, rng.uniform(0, 2.5, n_samples) if soft else None)


def trained(monkeypatch, kernels, metric, samples, cost, n_epochs=2, **settings):
    """State, costs and number of caps after some sweeps with these kernels, or on the plain path without."""
    asked = []

    def found():
        asked.append(kernels)
        return kernels

    with monkeypatch.context() as patch:
        patch.setattr("rplvq.training.compiled._runs.compiled_kernels", found)
        patch.setattr("rplvq.training.compiled._runs.is_due", lambda *_: True)
        settings = {"sigma2": 1.0, "initializer": ClassMeans((2, 1, 3))} | settings
        trainer, rng = Trainer(METRICS[metric], cost, max_epochs=5, **settings), np.random.default_rng(1)
        state, scores, total = trainer.init(samples, 3, rng), [], 0
        for epoch in range(n_epochs):
            state, score, n_capped = trainer.sweep(state.at_epoch(epoch + 1, 5), samples, rng)
            scores.append(score)
            total += n_capped
    assert asked, "no kernel knows these parts"
    return state, scores, total


def assert_same(metric, plain, fast):
    """Bures-Wasserstein prototypes are roots, known up to a rotation."""
    decode = METRICS[metric].decode
    assert_allclose(decode(fast[0].prototypes), decode(plain[0].prototypes), rtol=1e-9, atol=1e-11)
    assert_allclose(fast[1], plain[1], rtol=1e-9)
    assert fast[2] == plain[2]
    if hasattr(plain[0].prototypes, "omega"):
        assert_allclose(fast[0].prototypes.omega, plain[0].prototypes.omega, rtol=1e-9, atol=1e-11)


def assert_compiled_is_plain(monkeypatch, kernels, metric, samples, cost, **settings):
    plain, fast = (trained(monkeypatch, each, metric, samples, cost, **settings) for each in (None, kernels))
    assert_same(metric, plain, fast)
    return plain


# --- every metric with every cost


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("metric", METRICS)
def test_steps_are_the_same_compiled(kernels, monkeypatch, metric, cost):
    assert_compiled_is_plain(monkeypatch, kernels, metric, problem(metric), cost)


@pytest.mark.parametrize("cost", SOFT.values(), ids=SOFT)
@pytest.mark.parametrize("metric", ["affine-invariant", "Log-Euclidean", "Bures-Wasserstein"])
def test_soft_labels_and_weights_of_samples_are_known(kernels, monkeypatch, metric, cost):
    assert_compiled_is_plain(monkeypatch, kernels, metric, problem(metric, soft=True), cost)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("metric", OF_ANY_SIZE)
def test_complex_matrices_of_any_size_are_known(kernels, monkeypatch, metric, n):
    assert_compiled_is_plain(monkeypatch, kernels, metric, problem(metric, n, complex), RSLVQ())


@pytest.mark.parametrize("metric", METRICS)
def test_caps_are_counted_and_long_steps_are_the_same(kernels, monkeypatch, metric):
    settings = {"step_size": 2.0, "sigma2": 0.1}
    _, _, total = assert_compiled_is_plain(monkeypatch, kernels, metric, problem(metric), RSLVQ(), **settings)
    assert total > 0
    uncapped = {"step_size": StepSize(0.3, max_weight=None), "sigma2": 0.3}
    assert_compiled_is_plain(monkeypatch, kernels, metric, problem(metric), RSLVQ(), **uncapped)


@pytest.mark.parametrize("metric", METRICS)
def test_steps_that_adapt_themselves_are_the_same(kernels, monkeypatch, metric):
    settings = {"step_size": AdaptiveStep(0.1), "n_epochs": 3}
    samples = problem(metric)
    plain, fast = (trained(monkeypatch, each, metric, samples, RSLVQ(), **settings) for each in (None, kernels))
    assert_same(metric, plain, fast)
    assert fast[0].step_size == pytest.approx(plain[0].step_size, rel=1e-9)
    assert fast[0].memory.n_steps == plain[0].memory.n_steps == 3 * len(samples)
    for name in ("max_dist", "max_grad", "total"):
        assert getattr(fast[0].memory, name) == pytest.approx(getattr(plain[0].memory, name), rel=1e-9)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("metric", [name for name in METRICS if name.startswith(("learned", "fixed"))])
def test_a_large_metric_moves_in_the_span_of_few_vectors(kernels, monkeypatch, metric, dtype):
    """The span is that of six prototypes and five samples, and the last part has three samples."""
    spans, qr = [], np.linalg.qr
    monkeypatch.setattr("rplvq.training.compiled._runs.STEPS", 5)
    samples = problem(metric, 8, dtype)
    twice = Samples(samples.codes.copy(), samples.targets)
    twice.codes[3], twice.codes[4] = twice.codes[2], np.eye(8)
    monkeypatch.setattr(np.linalg, "qr", lambda vectors: spans.append(vectors.shape) or qr(vectors))
    for each in (samples, twice):
        assert_compiled_is_plain(monkeypatch, kernels, metric, each, RSLVQ())
    large = METRICS[metric].rank is None
    m = 36 if dtype is float else 64
    assert [shape for shape in spans if shape[1] > 2] == large * 4 * [*[(m, 11)] * 3, (m, 9)]


def test_classes_that_underflow_keep_their_slopes(kernels, monkeypatch):
    samples = problem("Log-Euclidean")
    assert_compiled_is_plain(monkeypatch, kernels, "Log-Euclidean", samples, RSLVQ(), sigma2=1e-4, step_size=1e-6)


def test_the_initial_prototypes_are_not_written_to(kernels, monkeypatch):
    for metric in METRICS:
        samples = problem(metric)
        state, _, _ = trained(monkeypatch, kernels, metric, samples, RSLVQ(), n_epochs=1)
        before = np.array(state.prototypes)
        with monkeypatch.context() as patch:
            patch.setattr("rplvq.training.compiled._runs.compiled_kernels", lambda: kernels)
            Trainer(METRICS[metric], sigma2=1.0).sweep(state, samples, np.random.default_rng(0))
        assert_array_equal(np.array(state.prototypes), before)


# --- steps of Bures-Wasserstein near the boundary of the cone


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [3, 4])
def test_roots_that_would_leave_the_cone_are_shortened_and_raised_alike(kernels, monkeypatch, n, dtype):
    """Prototypes are repelled with large weights."""
    shares, share = [], BuresWasserstein._share

    def recorded(self, roots, steps):
        shares.append(share(self, roots, steps))
        return shares[-1]

    monkeypatch.setattr(BuresWasserstein, "_share", recorded)
    samples = problem("Bures-Wasserstein", n, dtype)
    settings = {"step_size": StepSize(2.0, max_weight=0.6), "sigma2": 0.2}
    assert_compiled_is_plain(monkeypatch, kernels, "Bures-Wasserstein", samples, RSLVQ(), **settings)
    assert min(found.min() for found in shares) < 0.9


def test_weights_above_one_take_the_step_of_the_manifold(kernels, monkeypatch):
    taken, move = [], BuresWasserstein.move

    def counted(self, geodesics, weights):
        taken.extend(row for row in weights if (row > 1).any())
        return move(self, geodesics, weights)

    counted.kernels = move.kernels
    samples, settings = problem("Bures-Wasserstein"), {"step_size": StepSize(0.5, max_weight=None), "sigma2": 0.3}
    plain = trained(monkeypatch, None, "Bures-Wasserstein", samples, RSLVQ(), **settings)
    monkeypatch.setattr(BuresWasserstein, "move", counted)
    fast = trained(monkeypatch, kernels, "Bures-Wasserstein", samples, RSLVQ(), **settings)
    assert_same("Bures-Wasserstein", plain, fast)
    assert 0 < len(taken) < 2 * len(samples)


INDEFINITE = {
    "last": np.diag([2.0, 1.0, -1e-3]),
    "first": np.diag([-1e-3, 1.0, 2.0]),
    "zero": np.diag([1.0, 2.0, 0.0]),
    "zero inside": np.diag([1.0, 0.0, 2.0]),
    "rank one": np.ones((3, 3)),
    "off the diagonal": np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 2j], [0.0, -2j, 1.0]]),
    "no number": np.diag([1.0, np.nan, 1.0]),
}


@pytest.mark.parametrize("matrix", INDEFINITE.values(), ids=INDEFINITE)
def test_one_indefinite_matrix_of_a_block_is_noticed(matrix):
    definite = spd(np.random.default_rng(0), 4, 3, 0.7, complex)
    assert not may_be_indefinite(into_lanes(definite, 4), 3, (0.0,) * 4)
    for lane in range(4):
        block = definite.copy()
        block[lane] = matrix
        with np.errstate(divide="ignore", invalid="ignore"):
            assert may_be_indefinite(into_lanes(block, 4), 3, (0.0,) * 4)


# --- only parts that say so


@attrs.frozen
class Slower(LogEuclidean):
    def move(self, geodesics, weights):
        return LogEuclidean.move(geodesics, 0.5 * weights)


class Wrapped:
    def __init__(self, inner):
        self.inner = inner

    def connect(self, prototypes, samples):
        return self.inner.connect(prototypes, samples)

    def move(self, geodesics, weights):
        return self.inner.move(geodesics, weights)


@attrs.frozen
class Renamed(LogEuclidean):
    """Overrides neither ``connect`` nor ``move``."""


def test_the_kernel_of_a_manifold_is_that_of_its_methods():
    kernels = {name: kernel_of(manifold, "connect", "move") for name, manifold in METRICS.items()}
    assert list(kernels.values()) == [
        *("affine_invariant", *["flat"] * 5, *["projected_euclidean"] * 3),
        *("bures_wasserstein", *["learned_log_euclidean"] * 3),
    ]
    assert kernel_of(Renamed(), "connect", "move") == "flat"
    for own in (Slower(), Wrapped(LogEuclidean()), FromPymanopt, object()):
        assert kernel_of(own, "connect", "move") is None


@attrs.frozen
class Steeper(GLVQ):
    def __call__(self, sqdist, targets, labels, sigma2):
        loss, slope = GLVQ.__call__(self, sqdist, targets, labels, sigma2)
        return 2 * loss, 2 * slope


def own(sqdist, targets, labels, sigma2):
    return RSLVQ()(sqdist, targets, labels, sigma2)


def test_a_cost_of_ones_own_has_no_terms():
    assert terms_of(GLVQ(), LABELS, 1.0, soft=False) is not None
    for cost in (Steeper(), own, RSLVQ() + Steeper(), 2.0 * (RSLVQ() + Steeper())):
        assert terms_of(cost, LABELS, 1.0, soft=False) is None


def test_what_a_cost_refuses_is_refused_as_on_the_plain_path():
    for cost in (RSLVQ(), GLVQ(), RSLVQ() + Representability()):
        assert terms_of(cost, LABELS, 1.0, soft=True) is None
    assert terms_of(GLVQ(), np.zeros(3, dtype=int), 1.0, soft=False) is None
    with pytest.raises(ValueError, match="priors has 2 entries, but there are 3 classes"):
        terms_of(RSLVQ(priors=(0.5, 0.5)), LABELS, 1.0, soft=False)


def test_terms_of_a_spread_are_its_logits():
    cost = SpreadRSLVQ((0.5, 2.0, 1.1), RiemannianGaussian(3))
    _, scales, offsets = terms_of(cost, LABELS, 0.8, soft=False)
    sqdist = np.random.default_rng(0).uniform(0.1, 4, (5, 6))
    logits = offsets - scales * sqdist
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    by_class = np.stack([shares[:, c == LABELS].sum(axis=1) for c in range(3)], axis=1)
    assert_allclose(np.exp(cost.log_proba(sqdist, LABELS, 0.8)), by_class, rtol=1e-12)


def test_a_fit_with_a_part_of_ones_own_is_the_plain_fit(monkeypatch):
    points, y = spd(np.random.default_rng(0), 20, 3, 0.7), np.arange(20) % 2
    settings = {"sigma2": 1.0, "max_epochs": 2, "random_state": 0}
    settings["step_size"] = 0.1  # the largest slope of a cost of one's own is measured
    wrapped = RiemannianLVQ("log_euclidean", own, **settings).fit(points, y)
    monkeypatch.setattr("rplvq.training.compiled._runs.compiled_kernels", lambda: None)
    assert_array_equal(wrapped.prototypes_, RiemannianLVQ("log_euclidean", **settings).fit(points, y).prototypes_)


# --- what adaptive steps measure


def test_kernels_stop_where_the_rule_measures():
    rule, measured = AdaptiveStep(0.1), []

    class Watched(EuclideanVectors):
        def sqdist(self, prototypes, samples):
            measured.append(count)
            return super().sqdist(prototypes, samples)

    memory, stops = rule.init(np.zeros((2, 3))), []
    for count in range(1, 301):
        rule.observe(memory._replace(n_steps=count), Watched(), np.zeros((2, 3)))
    while memory.n_steps < measured[-1]:
        _, until = rule.pace(memory, 1, 10)
        memory = memory._replace(n_steps=memory.n_steps + until)
        stops.append(memory.n_steps)
    assert stops == measured
