"""Synthetic problems: the paper's recipe checked from outside, seeds, bases, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestCentroid

from rplvq.arrays import logm
from rplvq.datasets import make_syn1, make_syn2, random_bases

SEEDS = st.integers(0, 2**32 - 1)
MAKERS = [make_syn1, make_syn2]
# Class -> (number of the spectrum, number of the basis), as documented.
CLASSES = {make_syn1: [(1, 1), (1, 2), (2, 1), (2, 2)], make_syn2: [(1, 1), (2, 1), (3, 1), (4, 1)]}


def profile(number, n=10):
    """Spectrum eta of the paper, by its number from 1, scaled to mean 1."""
    formulas = {
        1: lambda j: 13 - j,
        2: lambda j: 1 + 100 * np.exp(-0.5 * j),
        3: lambda j: 13 - 0.5 * j,
        4: lambda j: 1 / j,
    }
    eta = np.array([formulas[number](j) for j in range(1, n + 1)])
    return eta * n / eta.sum()


# --- bases --------------------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 12), st.integers(1, 3))
def test_random_bases_are_gram_schmidt_of_gaussians(seed, n, n_bases):
    bases = random_bases(n, n_bases, random_state=seed)
    gaussians = np.random.RandomState(seed).standard_normal((n_bases, n, n))
    assert_allclose(bases.swapaxes(1, 2) @ bases, np.broadcast_to(np.eye(n), bases.shape), atol=1e-12)
    # Columns in order: V^T G is upper triangular, with a positive diagonal.
    r = bases.swapaxes(1, 2) @ gaussians
    assert_allclose(np.tril(r, -1), 0.0, atol=1e-12 * n)
    assert (np.diagonal(r, axis1=1, axis2=2) > 0).all()


def test_random_bases_are_uniform():
    """Every entry of a uniform basis has variance 1 / n, and reflections are as frequent as not."""
    bases = random_bases(4, 4000, random_state=0)
    assert_allclose(bases.mean(axis=0), 0.0, atol=0.04)
    assert_allclose((bases**2).mean(axis=0), 0.25, atol=0.02)
    assert abs(np.mean(np.linalg.det(bases) > 0) - 0.5) < 0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, r"n must be an integer of at least 1, got 0"),
        ({"n": 2.0}, r"n must be an integer of at least 1, got 2.0"),
        ({"n_bases": 0}, r"n_bases must be an integer of at least 1, got 0"),
        ({"n_bases": True}, r"n_bases must be an integer of at least 1, got True"),
        ({"random_state": "one"}, r"one"),
    ],
)
def test_random_bases_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        random_bases(**arguments)


# --- SynI and SynII -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKERS)
def test_shapes_and_balance(make):
    X, y = make(random_state=0)
    assert X.shape == (1000, 10, 10)
    assert_array_equal(np.bincount(y), [250] * 4)
    X, y = make(n_per_class=3, random_state=0)
    assert X.shape == (12, 10, 10)
    assert_array_equal(np.bincount(y), [3] * 4)
    assert np.issubdtype(y.dtype, np.integer)


@pytest.mark.parametrize("make", MAKERS)
def test_without_noise_a_sample_is_its_spectrum_in_its_basis(make):
    bases = random_bases(10, random_state=1)
    X, y = make(4, noise=0.0, spread=0.0, bases=bases, random_state=2)
    for x, label in zip(X, y, strict=True):
        spectrum, basis = CLASSES[make][label]
        v = bases[basis - 1]
        assert_allclose(x, v @ np.diag(profile(spectrum)) @ v.T, atol=1e-12)


@pytest.mark.parametrize("make", MAKERS)
def test_spectra_fill_their_intervals(make):
    """Without noise V^T X V is diagonal with the eigenvalues in order: uniform in eta +- 0.1."""
    bases = random_bases(10, random_state=1)
    X, y = make(2000, noise=0.0, bases=bases, random_state=2)
    for label, (spectrum, basis) in enumerate(CLASSES[make]):
        v = bases[basis - 1]
        rotated = v.T @ X[y == label] @ v
        eigenvalues = np.diagonal(rotated, axis1=1, axis2=2)
        assert_allclose(rotated, eigenvalues[:, :, None] * np.eye(10), atol=1e-12)
        offset = eigenvalues - profile(spectrum)
        assert np.abs(offset).max() <= 0.1 + 1e-12
        assert_allclose(offset.min(axis=0), -0.1, atol=0.002)
        assert_allclose(offset.max(axis=0), 0.1, atol=0.002)
        assert_allclose(offset.std(axis=0), 0.1 / np.sqrt(3), rtol=0.05)
        correlation = np.corrcoef(offset.T) - np.eye(10)
        assert np.abs(correlation).max() < 0.1  # drawn independently


def test_noise_turns_the_basis_and_leaves_the_spectrum():
    """The same seed draws the same numbers, so that noise changes the eigenvectors alone."""
    bases = random_bases(10, random_state=1)
    still, _ = make_syn1(50, noise=0.0, bases=bases, random_state=2)
    turned, _ = make_syn1(50, bases=bases, random_state=2)
    assert_allclose(np.linalg.eigvalsh(turned), np.linalg.eigvalsh(still), rtol=1e-8)
    assert np.linalg.norm(turned - still, axis=(1, 2)).min() > 0.1


def test_eigenvectors_are_gram_schmidt_of_basis_plus_noise():
    """The first eigenvector of class 2 is V's first column plus noise, normalised."""
    bases = random_bases(10, random_state=3)
    for noise in (0.05, 0.3):
        X, y = make_syn1(2000, noise=noise, bases=bases, random_state=4)
        leading = np.linalg.eigh(X[y == 2])[1][:, :, -1]
        cosine = np.abs(leading @ bases[0, :, 0])
        draws = np.random.default_rng(5).standard_normal((20_000, 10)) * noise
        draws[:, 0] += 1.0
        expected = np.abs(draws[:, 0]) / np.linalg.norm(draws, axis=1)
        assert_allclose(cosine.mean(), expected.mean(), atol=0.02)


@given(SEEDS, st.sampled_from(MAKERS), st.integers(2, 10))
def test_samples_are_exactly_symmetric_and_positive_definite(seed, make, n):
    X, _ = make(3, n=n, random_state=seed)
    assert X.shape == (12, n, n)
    assert_array_equal(X, X.swapaxes(1, 2))
    assert np.linalg.eigvalsh(X).min() > 0


@pytest.mark.parametrize("make", MAKERS)
def test_seeds_repeat(make):
    X, y = make(5, random_state=7)
    again, labels = make(5, random_state=7)
    assert_array_equal(X, again)
    assert_array_equal(y, labels)
    other, _ = make(5, random_state=8)
    assert not np.allclose(X, other)
    rng = np.random.RandomState(7)
    assert_array_equal(make(5, random_state=rng)[0], X)
    assert not np.allclose(make(5, random_state=rng)[0], X)  # the state has moved on


@pytest.mark.parametrize("make", MAKERS)
def test_default_bases_are_those_of_random_bases(make):
    """Noiseless samples show the basis: the one that the same seed gives random_bases."""
    X, y = make(3, noise=0.0, shuffle=False, random_state=9)
    bases = random_bases(10, random_state=9)
    for label, (_, basis) in enumerate(CLASSES[make]):
        rotated = bases[basis - 1].T @ X[y == label] @ bases[basis - 1]
        assert_allclose(rotated * (1 - np.eye(10)), 0.0, atol=1e-12)


@pytest.mark.parametrize("make", MAKERS)
def test_shuffle_only_permutes(make):
    bases = random_bases(10, random_state=0)
    blocks, labels = make(6, bases=bases, shuffle=False, random_state=1)
    assert_array_equal(labels, np.repeat([0, 1, 2, 3], 6))
    X, y = make(6, bases=bases, random_state=1)
    assert not np.array_equal(y, labels)
    order = [int(np.flatnonzero((blocks == x).all(axis=(1, 2)))[0]) for x in X]
    assert sorted(order) == list(range(24))
    assert_array_equal(labels[order], y)


@pytest.mark.parametrize("make", MAKERS)
def test_shared_bases_are_one_problem_and_others_another(make):
    """Class means carry over to new samples in the same bases, not to samples in other bases."""
    bases = random_bases(10, random_state=0)
    X, y = make(250, bases=bases, random_state=1)
    same, y_same = make(250, bases=bases, random_state=2)
    other, y_other = make(250, random_state=3)
    means = NearestCentroid().fit(logm(X).reshape(1000, 100), y)
    assert means.score(logm(same).reshape(1000, 100), y_same) > 0.88
    assert means.score(logm(other).reshape(1000, 100), y_other) < 0.75


def test_syn2_uses_the_first_basis_only():
    bases = random_bases(10, 3, random_state=0)
    expected, _ = make_syn2(3, bases=bases[:1], random_state=1)
    assert_array_equal(make_syn2(3, bases=bases, random_state=1)[0], expected)
    assert_array_equal(make_syn2(3, bases=list(bases), random_state=1)[0], expected)
    assert not np.allclose(make_syn2(3, bases=bases[1:], random_state=1)[0], expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_per_class": 0}, r"n_per_class must be an integer of at least 1, got 0"),
        ({"n_per_class": 2.5}, r"n_per_class must be an integer of at least 1, got 2.5"),
        ({"n": 1}, r"n must be an integer of at least 2, got 1"),
        ({"noise": -0.1}, r"noise must be a finite number of at least 0, got -0.1"),
        ({"noise": np.inf}, r"noise must be a finite number of at least 0, got inf"),
        ({"noise": "much"}, r"noise must be a finite number of at least 0, got 'much'"),
        ({"spread": np.nan}, r"spread must be a finite number of at least 0, got nan"),
        ({"spread": 0.2}, r"spread=0.2 is too large for n=10.*around 0.1026.*become -0.09738"),
        ({"n": 11}, r"spread=0.1 is too large for n=11"),
        ({"n": 13, "spread": 0.0}, r"spread=0.0 is too large for n=13.*around 0 "),
        ({"bases": np.eye(10)}, r"bases must be at least [12] matri.*\(10, 10\), got .*\(10, 10\)"),
        ({"bases": np.ones((0, 10, 10))}, r"bases must be at least [12] matri.*\(0, 10, 10\)"),
        ({"bases": np.stack([np.eye(9)] * 2)}, r"bases must be .*\(2, 9, 9\).*random_bases\(10\)"),
        ({"bases": np.stack([np.eye(10), 2 * np.eye(10)])}, r"bases\[1\] is not orthogonal.* by 3\."),
        ({"bases": np.full((2, 10, 10), np.nan)}, r"bases\[0\] is not orthogonal.* by nan"),
    ],
)
@pytest.mark.parametrize("make", MAKERS)
def test_wrong_arguments_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_syn1_needs_two_bases():
    with pytest.raises(ValueError, match=r"bases must be at least 2 matrices"):
        make_syn1(bases=random_bases(10, 1))
