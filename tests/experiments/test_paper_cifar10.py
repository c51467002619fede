"""The CIFAR-10 experiments of examples/paper."""

from __future__ import annotations

import numpy as np
import pytest

from examples.paper import cifar10, data, runner
from rplvq import AffineInvariant
from rplvq.exceptions import PointError

needs_data = pytest.mark.skipif(
    not data.is_available("cifar10_cov9.npz"), reason="real data absent: no cifar10_cov9.npz (set RPLVQ_DATA)"
)


def test_regularization_raises_eigenvalues_of_the_correlations_in_any_units():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((4, 6, 3))
    features = np.concatenate([features, features[..., :1]], axis=2)  # a feature twice: singular
    covariances = features.swapaxes(1, 2) @ features
    with pytest.raises(PointError, match="singular"):
        AffineInvariant().encode(covariances)
    regular = cifar10.regularized(covariances, 0.01)
    scale = 1 / np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    correlations = covariances * scale[:, :, None] * scale[:, None, :]
    raised = regular * scale[:, :, None] * scale[:, None, :]
    np.testing.assert_allclose(np.linalg.eigvalsh(raised), np.linalg.eigvalsh(correlations) + 0.01, atol=1e-12)
    units = np.array([1e-6, 1.0, 1e3, 10.0])
    units = units[:, None] * units
    np.testing.assert_allclose(cifar10.regularized(covariances * units, 0.01), regular * units)


def test_regularization_refuses_a_constant_feature():
    covariances = np.array([np.eye(2), np.diag([1.0, 0.0])])
    with pytest.raises(ValueError, match=r"covariances\[1\] has variance 0 of feature 1"):
        cifar10.regularized(covariances)


@needs_data
def test_split_is_stratified_and_positive_definite():
    drawn = cifar10.split(500, repetition=3, n_test=300)
    assert drawn.X_train.shape == (500, 9, 9)
    np.testing.assert_array_equal(np.bincount(drawn.y_train), 50)
    np.testing.assert_array_equal(np.bincount(drawn.y_test), 30)
    again, other = cifar10.split(500, repetition=3), cifar10.split(500, repetition=4)
    np.testing.assert_array_equal(drawn.X_train, again.X_train)
    assert not np.array_equal(drawn.X_train, other.X_train)
    assert again.X_test.shape == (10000, 9, 9)
    AffineInvariant().encode(again.X_test)  # refuses what is not positive definite, and so the raw matrices:
    raw = data.unpack_symmetric(data.load_arrays("cifar10_cov9.npz", "test_cov")[0], 9)
    with pytest.raises(PointError):
        AffineInvariant().encode(raw)


@needs_data
@pytest.mark.parametrize("n_train", [0, 205, 20010])
def test_split_refuses_what_it_cannot_draw(n_train):
    with pytest.raises(ValueError, match=f"n_train={n_train} images cannot be drawn evenly"):
        cifar10.split(n_train, repetition=0)


@needs_data
def test_smoke_runs_every_method_through_the_runner(tmp_path):
    jobs = cifar10.smoke()
    records = {record["method"]: record["result"] for record in runner.run(jobs, folder=tmp_path, verbose=0)}
    assert set(records) == {*cifar10.BASELINES, *cifar10.PLRSQ}
    assert min(result["accuracy"] for result in records.values()) > 0.2  # chance is .1
    assert records["PLRSQ-Const"]["epochs"] == 5
    assert records["PLRSQ-Const"]["seconds_per_epoch"] > 0
    assert runner.pending(jobs, tmp_path) == []


def test_every_job_has_a_file_of_its_own_and_bounded_visits():
    jobs = cifar10.jobs(quick=False)
    assert len({runner.path_of("", job) for job in jobs}) == len(jobs)
    assert {job.settings["n_train"] for job in jobs} == {200, 500, 1000, 5000, 10000, 20000}
    visits = [job.settings["n_train"] * job.settings["max_epochs"] for job in jobs if "max_epochs" in job.settings]
    assert max(visits) <= 200_000
