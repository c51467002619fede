"""The digits as covariances: definition, documented conditioning and scaling, the Bunch."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from rplvq.arrays import logm
from rplvq.datasets import load_digits_covariances
from rplvq.features import grey5, region_covariances


def test_digits_are_region_covariances_of_scaled_features():
    X, y = load_digits_covariances()
    digits = load_digits()
    assert X.shape == (1797, 5, 5)
    assert_array_equal(y, digits.target)
    largest = np.array([7, 7, 16, 64, 64])
    features = np.stack([grey5(image) for image in digits.images]) / largest
    assert features.min() == 0.0
    assert_array_equal(features.max(axis=(0, 1, 2)), 1.0)  # every feature reaches its full scale
    plain = np.stack([np.cov(f.reshape(64, 5), rowvar=False) for f in features])
    trace = np.trace(plain, axis1=1, axis2=2)[:, None, None]
    assert_allclose(X, 0.9 * plain + 0.1 * trace / 5 * np.eye(5), rtol=1e-10, atol=1e-15)


def test_digits_are_as_well_conditioned_as_documented():
    for shrinkage, documented in ((0.0, 0.0035), (0.1, 0.048)):
        X, _ = load_digits_covariances(shrinkage=shrinkage)
        spectrum = np.linalg.eigvalsh(X)
        assert_allclose((spectrum[:, 0] / spectrum[:, -1]).min(), documented, rtol=0.01)


def test_scaling_the_features_serves_the_metrics_that_need_it():
    X, y = load_digits_covariances()
    raw = region_covariances(load_digits().images, shrinkage=0.1)
    train, test = np.arange(1797) % 2 == 0, np.arange(1797) % 2 == 1

    def accuracy(matrices):
        rows = matrices.reshape(1797, 25)
        means = np.stack([rows[train & (y == digit)].mean(axis=0) for digit in range(10)])
        return np.mean(cdist(rows[test], means).argmin(axis=1) == y[test])

    assert accuracy(X) > accuracy(raw) + 0.15
    assert accuracy(logm(X)) > accuracy(logm(raw)) + 0.1
    assert accuracy(logm(X)) > 0.65


def test_digits_bunch():
    X, y = load_digits_covariances(shrinkage=0.02)
    bunch = load_digits_covariances(shrinkage=0.02, return_X_y=False)
    assert_array_equal(bunch.data, X)
    assert_array_equal(bunch.target, y)
    assert bunch.images.shape == (1797, 8, 8)
    assert len(bunch.feature_names) == X.shape[1]
    assert_array_equal(bunch.target_names, np.arange(10))
    assert "shrinkage 0.02" in bunch.DESCR
    assert "Optical recognition of handwritten digits" in bunch.DESCR


def test_digits_refuse_wrong_shrinkage():
    with pytest.raises(ValueError, match=r"shrinkage must be a number in \[0, 1\], got 2"):
        load_digits_covariances(shrinkage=2)
