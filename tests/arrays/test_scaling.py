"""The factor of energies is the one that a plain search finds, for any priors, weights and soft labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from rplvq.arrays import _samples as blocks
from rplvq.arrays import best_factor


def problem(seed, n_classes=4, n_samples=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_samples)
    energies = rng.gamma(2.0, size=(3, n_samples, n_classes)) * 10.0 ** rng.uniform(-2, 2)
    energies[:, np.arange(n_samples), y] *= 0.5
    return energies, y, rng.integers(1, 4, n_samples).astype(float), rng


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("has_priors", [False, True])
@pytest.mark.parametrize("is_soft", [False, True])
def test_the_factor_is_the_best_one(seed, has_priors, is_soft):
    energies, y, weights, rng = problem(seed)
    offsets = np.log(rng.dirichlet(np.full(4, 5.0))) if has_priors else 0.0
    truth = 0.8 * np.eye(4)[y] + 0.05 if is_soft else np.eye(4)[y]
    factors, losses = best_factor(energies, truth if is_soft else y, weights, 1.0, (1e-6, 1e6), offsets)
    for one, factor, loss in zip(energies, factors, losses, strict=True):

        def plain(log_factor):
            log_proba = log_softmax(offsets - np.exp(log_factor) * one, axis=1)  # noqa: B023
            return np.average(-(truth * log_proba).sum(axis=1), weights=weights)

        coarse = min(np.linspace(-14, 14, 57), key=plain)
        wanted = minimize_scalar(plain, bounds=(coarse - 0.5, coarse + 0.5), method="bounded", options={"xatol": 1e-8})
        assert_allclose(loss, wanted.fun, rtol=1e-6)
        assert_allclose(factor, np.exp(wanted.x), rtol=2e-3)


def test_separated_classes_have_finite_factors():
    energies = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    factor, loss = best_factor(energies, np.array([0, 1]), np.ones(2), 1.0, (1e-4, 1e4))
    assert 10 < factor[0] < 1e4
    assert 0 < loss[0] < 1e-6


def test_the_best_factor_of_swapped_labels_is_the_smallest():
    energies = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    factor, _ = best_factor(energies, np.array([1, 0]), np.ones(2), 1.0, (1e-4, 1e4))
    assert_allclose(factor, 1e-4, rtol=1e-3)


def test_blocks_change_rounding_only(monkeypatch):
    energies, y, weights, _ = problem(0)
    whole = best_factor(energies, y, weights, 1.0, (1e-6, 1e6))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4000)
    assert_allclose(best_factor(energies, y, weights, 1.0, (1e-6, 1e6)), whole, rtol=1e-9)
