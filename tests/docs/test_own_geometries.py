"""The curved metric and the divergence of the examples, against formulas that the examples do not use."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from rplvq import AdaptiveStep, AffineInvariant, Grow, HeldOut, RiemannianLVQ
from rplvq.arrays import adjoint
from rplvq.manifolds import riemannian_mean
from rplvq.testing import check_manifold
from tests.problems import spd_classes

pytestmark = pytest.mark.slow  # runs two examples
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name, folder):
    """Run an example and return its names."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"{name}.py", "--out", str(folder / f"{name}.png")])
        patch.syspath_prepend(str(EXAMPLES))
        return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.fixture(scope="module")
def stein(tmp_path_factory):
    return run("divergence", tmp_path_factory.mktemp("divergence"))["Stein"]()


@pytest.fixture(scope="module")
def curved(tmp_path_factory):
    return run("curved_metric", tmp_path_factory.mktemp("curved"))


def matrices(is_complex, n=4):
    return spd_classes(n=n, dtype=complex if is_complex else float)[0]


@pytest.mark.parametrize("is_complex", [False, True])
def test_the_stein_divergence_is_that_of_determinants(stein, is_complex):
    X = matrices(is_complex)
    w, x = X[:3], X[3:]
    middle = np.linalg.slogdet((x[:, None] + w) / 2)[1]
    ends = np.linalg.slogdet(x)[1][:, None] + np.linalg.slogdet(w)[1]
    assert_allclose(stein.sqdist(w, x), 8 * (middle - ends / 2), rtol=1e-9)
    assert_allclose(stein.sqdist(w, w[:1] * (1 + 1e-4))[0, 0], 4 * 1e-8, rtol=1e-3)


@pytest.mark.parametrize("is_complex", [False, True])
def test_moves_descend_at_the_rate_of_the_gradient(stein, is_complex):
    """``V = -grad d / 2``: along ``sum_b s_b V_b`` the loss ``sum_b s_b d_b`` falls by 2 |sum_b s_b V_b|^2."""
    X = matrices(is_complex)
    w, x = X[:2], X[2:9]
    slopes = np.random.default_rng(0).normal(size=(7, 2))
    geodesics = stein.connect(w, x)
    pulled = AffineInvariant().pull(geodesics, slopes)
    wanted = -2 * np.sum(np.abs(pulled) ** 2, axis=(1, 2))

    def loss(eps):
        return np.sum(slopes * stein.sqdist(stein.move(geodesics, eps * slopes), x), axis=0)

    assert_allclose((loss(1e-5) - loss(-1e-5)) / 2e-5, wanted, rtol=1e-6)


@pytest.mark.parametrize("is_complex", [False, True])
def test_the_euclidean_gradient_of_determinants_is_the_one_that_moves_follow(stein, is_complex):
    """d log det((X + W) / 2) / dW = (X + W)^-1, so that V = -W (8 (X + W)^-1 - 4 W^-1) W / 2."""
    x, w = (matrix[None] for matrix in matrices(is_complex)[:2])
    gradient = 8 * np.linalg.inv(x + w) - 4 * np.linalg.inv(w)
    geodesics = stein.connect(w, x)
    moved = np.asarray(stein.move(geodesics, np.array([[1e-6]])))
    assert_allclose((moved - w) / 1e-6, -0.5 * w @ gradient @ w, rtol=1e-4, atol=1e-5)
    assert_allclose(moved, adjoint(moved), atol=1e-12)


def test_it_is_a_divergence_and_no_metric(stein):
    check_manifold(stein, divergence=True, pickling=False)
    check_manifold(stein, matrices(True), divergence=True, pickling=False)
    with pytest.raises(AssertionError, match="move with weight 1 must reach the sample"):
        check_manifold(stein)


def test_its_mean_has_no_gradient_and_all_parts_work_with_it(stein):
    X, y = spd_classes(n_classes=3, per_class=12)
    mean = riemannian_mean(stein, X).code[None]
    geodesics = stein.connect(mean, X)
    pulled = AffineInvariant().pull(geodesics, np.full((len(X), 1), 1 / len(X)))
    assert np.abs(pulled).max() < 1e-6
    for params in (
        {"batch_size": None, "step_size": 1.0},
        {"cost": "glvq", "prototypes_per_class": 2, "init": "kmeans"},
        {"step_size": AdaptiveStep()},
        {"growth": [Grow(every=2, min_samples=4)], "early_stopping": True},
    ):
        model = RiemannianLVQ(stein, **{"max_epochs": 10, "random_state": 0} | params).fit(X, y)
        assert model.score(X, y) > 0.9
        assert_allclose(model.transform(X) ** 2, stein.sqdist(model.prototypes_, X), rtol=1e-6, atol=1e-9)


def test_a_stream_with_it_begins_with_one_class_and_meets_another_late(stein):
    X, y = spd_classes(n_classes=3, per_class=12)
    model = RiemannianLVQ(stein, random_state=0)
    for label in (2, 0, 1, 2, 0):
        model.partial_fit(X[y == label], y[y == label], classes=[0, 1, 2])
    assert model.score(X, y) > 0.9
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_the_metric_of_fisher_and_rao_has_its_known_distances(curved):
    metric = curved["FisherRao"]()
    points = np.array([[0.3, 1.0], [0.3, 2.5], [-1.0, 0.2], [4.0, 0.7]])
    codes = metric.encode(points)
    assert_allclose(metric.decode(codes), points, rtol=1e-12)
    assert_allclose(metric.sqdist(codes[:1], codes[1:2])[0, 0], 2 * np.log(2.5) ** 2, rtol=1e-12)
    (m1, s1), (m2, s2) = points[2], points[3]
    closed = np.arccosh(1 + ((m1 - m2) ** 2 / 2 + (s1 - s2) ** 2) / (2 * s1 * s2))
    assert_allclose(metric.sqdist(codes[2:3], codes[3:])[0, 0], 2 * closed**2, rtol=1e-12)


def test_its_geodesics_have_the_length_of_the_fisher_information(curved):
    """ds^2 = (d mean^2 + 2 d sd^2) / sd^2, integrated along the path that move follows."""
    metric = curved["FisherRao"]()
    w, x = np.split(metric.encode([[-1.0, 0.5], [2.0, 0.8]]), 2)

    def point(share):
        return metric.decode(metric.move(metric.connect(w, x), np.array([[share]])))[0]

    def speed(share, eps=1e-6):
        (_, sd), (d_mean, d_sd) = point(share), (point(share + eps) - point(share - eps)) / (2 * eps)
        return np.sqrt((d_mean**2 + 2 * d_sd**2) / sd**2)

    assert_allclose(quad(speed, 0, 1)[0], np.sqrt(metric.sqdist(w, x)[0, 0]), rtol=1e-6)


def test_it_keeps_all_promises_and_learns_more_than_the_flat_one(curved):
    metric, X, y = curved["FisherRao"](), curved["X"], curved["y"]
    check_manifold(metric, X[::75], pickling=False)
    flat, own = (
        RiemannianLVQ(m, sigma2=HeldOut(("auto",)), max_epochs=20, random_state=0).fit(X[::2], y[::2])
        for m in ("euclidean_vectors", metric)
    )
    assert own.score(X[1::2], y[1::2]) > flat.score(X[1::2], y[1::2])  # both are trained
    with pytest.raises(ValueError, match=r"X\[1\] is .*positive standard deviation"):
        metric.encode([[0.0, 1.0], [0.0, -1.0]])
