"""Mini-batches: the same result whatever the threads, and as much progress an epoch as single samples."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import AdaptiveStep, AffineInvariant, ClassMeans, FromPymanopt, RiemannianLVQ, Trainer
from rplvq.arrays import Samples
from rplvq.datasets import make_syn1
from rplvq.schedules import GeometricDecay
from rplvq.training.compiled import _batches, connection
from rplvq.training.compiled._batches import Split


def matrices(n, n_samples=37, imaginary=False):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(n_samples, n, 3 * n)) + 1j * imaginary * rng.normal(size=(n_samples, n, 3 * n))
    vectors = vectors if imaginary else vectors.real
    return vectors @ vectors.conj().swapaxes(1, 2) / (3 * n), np.arange(n_samples) % 3


@pytest.mark.parametrize("compiled", ["auto", False])
@pytest.mark.parametrize("imaginary", [False, True])
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
@pytest.mark.parametrize("step_size", [0.1, AdaptiveStep(0.1)], ids=["constant", "adaptive"])
def test_threads_change_no_bit(monkeypatch, step_size, n_jobs, imaginary, compiled):
    monkeypatch.setattr(_batches, "ENOUGH", 1)
    X, y = matrices(4, imaginary=imaginary)
    manifold, samples = AffineInvariant(compiled=compiled), Samples(X, y)
    settings = {"initializer": ClassMeans(2), "sigma2": 1.0, "step_size": step_size, "batch_size": 16}
    trainers = [Trainer(manifold, n_jobs=jobs, **settings) for jobs in (None, n_jobs)]
    state = trainers[0].init(samples, 3, np.random.default_rng(0)).at_epoch(1, 10)
    one, many = (trainer.sweep(state, samples, np.random.default_rng(0)) for trainer in trainers)
    assert_array_equal(many[0].prototypes.factors, one[0].prototypes.factors)
    assert many[1:] == one[1:]


@pytest.mark.parametrize("imaginary", [False, True])
def test_an_adaptive_step_takes_batches_by_lanes(imaginary):
    """Where numba is installed: other decompositions, the same prototypes but for rounding."""
    X, y = matrices(4, imaginary=imaginary)
    settings = {"sigma2": 1.0, "step_size": "adaptive", "batch_size": 16, "max_epochs": 5, "random_state": 0}
    lanes, plain = (RiemannianLVQ(AffineInvariant(compiled=way), **settings).fit(X, y) for way in ("auto", False))
    assert_allclose(lanes.prototypes_, plain.prototypes_, rtol=1e-9, atol=1e-12)


def test_a_fit_takes_its_threads_from_n_jobs(monkeypatch):
    monkeypatch.setattr(_batches, "ENOUGH", 1)
    started = []

    class Pool(_batches.ThreadPoolExecutor):
        def __init__(self, count):
            started.append(count)
            super().__init__(count)

    monkeypatch.setattr(_batches, "ThreadPoolExecutor", Pool)
    X, y = matrices(3)
    one, three = (
        RiemannianLVQ(sigma2=1.0, batch_size=16, max_epochs=2, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 3)
    )
    assert started == [2, 2]  # beside the calling thread, in each epoch
    assert_array_equal(one.prototypes_, three.prototypes_)


PARTS = [(16, 2, [(0, 8), (8, 16)]), (17, 3, [(0, 5), (5, 11), (11, 17)]), (1, 2, [(0, 1)]), (4, 1, [(0, 4)])]


@pytest.mark.parametrize(("total", "threads", "parts"), PARTS)
def test_work_is_shared_evenly_and_answers_keep_their_order(total, threads, parts):
    with ThreadPoolExecutor(threads) as pool:
        assert Split(pool, threads)(lambda *part: part, total, 1e9) == parts


def test_little_work_wakes_no_thread():
    class Asleep:
        def submit(self, *_):
            raise AssertionError

    assert Split(Asleep(), 2)(lambda *part: part, 100, 1.9 * _batches.ENOUGH) == [(0, 100)]


def test_singular_codes_are_left_to_lapack():
    manifold, (X, _) = AffineInvariant(), matrices(3)
    X[3] = np.diag([1.0, 1.0, 0.0])
    with connection(manifold, 16) as connect:
        assert_array_equal(connect(X[:2], X).sqdist, manifold.connect(X[:2], X).sqdist)


def test_other_manifolds_connect_as_they_do():
    from pymanopt.manifolds import Sphere

    manifold = FromPymanopt(Sphere(3))
    with connection(manifold, 16, n_jobs=2) as connect:
        assert connect == manifold.connect


@pytest.mark.parametrize("size", [4, 16])
def test_steps_times_the_batch_size_learn_as_single_samples_do(size):
    """Weights are divided by the size, so the rule of the documentation undoes that."""
    X, y = make_syn1(n_per_class=50, random_state=0)
    fits = [
        RiemannianLVQ(
            sigma2=1.0, step_size=GeometricDecay(0.1 * factor), batch_size=batch, max_epochs=8, random_state=0
        ).fit(X, y)
        for batch, factor in ((1, 1), (size, size), (size, 1))
    ]
    single, scaled, unscaled = (fit.history_["cost"][-1] for fit in fits)
    assert abs(scaled / single - 1) < 0.06
    assert unscaled > 1.2 * single
    assert abs(fits[1].score(X, y) - fits[0].score(X, y)) < 0.015
