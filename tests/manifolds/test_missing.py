"""Missing channels: the filled rows follow independent formulas, and everything else is refused with its index."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg

from rplvq.exceptions import PointError
from rplvq.manifolds import (
    LowRankCovariance,
    MissingChannels,
    chosen_rows,
    coordinates,
    filler_of,
    n_coordinates,
    variation_of,
)
from rplvq.protocols import Array

N = 5


def matrices(count: int, n: int = N, complex_: bool = False, seed: int = 0) -> Array:
    """Return random positive definite matrices (count, n, n) of moderate condition."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(count, n, 3 * n)) + (1j * rng.normal(size=(count, n, 3 * n)) if complex_ else 0.0)
    X = A @ A.conj().swapaxes(1, 2) / (3 * n)
    return 0.5 * (X + X.conj().swapaxes(1, 2))


def without(X: Array, *channels: int) -> Array:
    """Return copies of matrices (N, n, n) whose rows and columns of some channels are NaN."""
    X = X.copy()
    X[:, channels, :] = np.nan
    X[:, :, channels] = np.nan
    return X


def learned(X: Array) -> MissingChannels:
    found = variation_of(X, np.ones(len(X)))
    assert found is not None
    assert found.covariance is not None
    return found


@pytest.mark.parametrize("complex_", [False, True])
def test_without_a_covariance_the_missing_channels_are_as_the_reference_has_them(complex_):
    X, M = matrices(4, complex_=complex_), matrices(1, complex_=complex_, seed=1)[0]
    filled = MissingChannels(M, np.zeros(n_coordinates(N, complex_))).fill(without(X, 1, 3))
    kept = np.ix_(range(4), [0, 2, 4], [0, 2, 4])
    assert_array_equal(filled[kept], X[kept])
    for x, whole in zip(X, filled, strict=True):
        # The generalised eigenvalues are those of the observed blocks, and 1 for every missing channel.
        o = np.ix_([0, 2, 4], [0, 2, 4])
        expected = np.sort([1.0, 1.0, *linalg.eigh(x[o], M[o], eigvals_only=True)])
        assert_allclose(linalg.eigh(whole, M, eigvals_only=True), expected, rtol=1e-10)


def test_missing_tangents_are_the_conditional_mean_of_a_normal_distribution():
    rng, n = np.random.default_rng(0), 4
    m = n_coordinates(n, False)
    basis = np.linalg.qr(rng.normal(size=(m, 3)))[0].T
    covariance = LowRankCovariance(basis, np.array([3.0, 2.0, 1.0]), 0.1)
    center, X = 0.1 * rng.normal(size=m), matrices(1, n)
    filled = MissingChannels(np.eye(n), center, covariance).fill(without(X, 1))[0]

    o, S = [0, 2, 3], basis.T @ np.diag([2.9, 1.9, 0.9]) @ basis + 0.1 * np.eye(m)  # the dense covariance
    mask = np.zeros((1, n, n))
    mask[0][np.ix_(o, o)] = 1.0
    known = coordinates(mask, m)[0] > 0
    logs = np.zeros((1, n, n))
    logs[0][np.ix_(o, o)] = linalg.logm(X[0][np.ix_(o, o)])
    s = coordinates(logs, m)[0]
    s[~known] = center[~known] + S[np.ix_(~known, known)] @ np.linalg.solve(
        S[np.ix_(known, known)], s[known] - center[known]
    )
    rows, columns = np.triu_indices(n, 1)
    tangent = np.diag(s[:n])
    tangent[rows, columns] = tangent[columns, rows] = s[n:] / np.sqrt(2)
    T = linalg.expm(tangent)
    B = T[np.ix_([1], o)] @ np.linalg.inv(T[np.ix_(o, o)])
    assert_allclose(filled[1, o], (B @ X[0][np.ix_(o, o)])[0], rtol=1e-8)
    schur = T[1, 1] - B @ T[np.ix_(o, [1])]
    assert_allclose(filled[1, 1], (schur + B @ X[0][np.ix_(o, o)] @ B.T).item(), rtol=1e-8)


def test_the_learned_covariance_is_that_of_probabilistic_principal_components():
    X = matrices(30)
    filler = variation_of(X, np.ones(30))
    inverse = np.linalg.inv(np.linalg.cholesky(filler.reference))
    tangents = np.array([linalg.logm(inverse @ x @ inverse.T) for x in X])
    vectors = coordinates(tangents, 15)
    assert_allclose(filler.center, vectors.mean(axis=0), atol=1e-10)
    values, directions = np.linalg.eigh(np.cov(vectors.T, bias=True))
    r = len(filler.covariance.variances)
    assert 0 < r <= 7
    assert_allclose(filler.covariance.variances, values[-r:], rtol=1e-8)
    assert_allclose(filler.covariance.rest, values[:-r].mean(), rtol=1e-8)
    assert_allclose(np.abs(filler.covariance.basis @ directions[:, -r:]), np.eye(r), atol=1e-6)


@pytest.mark.parametrize("complex_", [False, True])
def test_units_and_order_of_channels_do_not_matter(complex_):
    X = matrices(30, complex_=complex_)
    turned = np.diag([1e-3, 1.0, 3.0, 0.5, 1e3])[[3, 0, 4, 1, 2]]  # scales channel i, then moves it
    Y = turned @ X @ turned.T
    filled, other = learned(X).fill(without(X, 1, 2)), learned(Y).fill(without(Y, 3, 4))
    scale = turned.sum(axis=1)
    assert_allclose(other / np.outer(scale, scale), (turned @ filled @ turned.T) / np.outer(scale, scale), rtol=1e-6)


def test_the_variation_of_the_training_samples_fills_better_than_their_mean():
    rng = np.random.default_rng(0)
    directions = matrices(3, 6)
    tangents = np.einsum("bk,kij->bij", 0.4 * rng.normal(size=(150, 3)), directions)
    X = np.array([linalg.expm(t + 0.01 * np.eye(6) * rng.normal()) for t in tangents])
    filler = variation_of(X[:100], np.ones(100))
    plain = MissingChannels(filler.reference, filler.center)
    test = X[100:]
    errors = [np.abs(each.fill(without(test, 0, 4)) - test).mean() for each in (filler, plain)]
    assert errors[0] < 0.5 * errors[1]


def test_each_sample_has_its_own_missing_channels_and_whole_ones_stay():
    X = matrices(30)
    mixed = np.concatenate([X[:1], without(X[1:2], 0), without(X[2:3], 1, 4), without(X[3:4], 0)])
    filler = learned(X)
    filled = filler.fill(mixed)
    assert_array_equal(filled[0], X[0])
    for index in range(4):
        assert_allclose(filled[index], filler.fill(mixed[index : index + 1])[0], rtol=1e-12)
    assert (np.linalg.eigvalsh(filled) > 0).all()


def test_weights_count_as_copies():
    X = matrices(12)
    some = variation_of(X, np.r_[np.full(4, 2.0), np.ones(8)])
    twice = variation_of(np.concatenate([X, X[:4]]), np.ones(16))
    assert_allclose(some.center, twice.center, atol=1e-12)
    assert_allclose(some.covariance.trace, twice.covariance.trace, rtol=1e-8)


@pytest.mark.parametrize(
    ("change", "index", "message"),
    [
        (lambda X: X[2].__setitem__((0, 1), np.nan), 2, r"entry \[0, 1\] is nan, and its NaN are no whole rows"),
        (lambda X: X[1].__setitem__(slice(None), np.nan), 1, "and so are all others"),
        (lambda X: X[3].__setitem__((2, 2), np.inf), 3, "is inf"),
        (lambda X: X[2].__setitem__((2, 2), -1.0), 2, "is not positive definite"),
        (lambda X: X[2].__setitem__((2, 3), 9.0), 2, "is not symmetric"),
    ],
)
def test_anything_else_is_refused_at_its_index(change, index, message):
    X = without(matrices(5), 0)
    X[2] = matrices(5)[2]
    change(X)
    with pytest.raises(PointError, match=message) as caught:
        learned(matrices(30)).fill(X)
    assert caught.value.index == index


def test_only_positive_definite_prototypes_tell_anything():
    assert filler_of(np.ones((2, 3))) is None
    assert filler_of(np.ones((2, 3, 2))) is None
    assert filler_of(np.stack([np.eye(3), -np.eye(3)])) is None
    assert variation_of(np.ones((4, 1, 1)), np.ones(4)) is None
    assert variation_of(np.stack([3 * np.eye(3), -np.eye(3)]), np.ones(2)) is None
    assert variation_of(np.stack([np.eye(3)] * 4), np.ones(4)).covariance is None


def test_rows_are_few_and_spread_over_all_samples():
    assert_array_equal(chosen_rows(7, 5), np.arange(7))
    rows = chosen_rows(10_000, 5)
    assert len(rows) == 200
    assert (rows[0], rows[-1]) == (0, 9999)
    assert len(chosen_rows(10_000, 1000)) == 33


def test_real_matrices_are_complex_ones_to_a_model_of_complex_matrices():
    filler = learned(matrices(30, complex_=True))
    lacking = without(matrices(3).real, 1, 3)
    # An imaginary part of 1e-14 keeps the type complex, and changes the values by rounding only.
    tiny = np.zeros((N, N))
    tiny[0, 2] = 1e-14
    nearly = lacking + 1j * (tiny - tiny.T)
    assert_allclose(filler.fill(lacking), filler.fill(nearly), rtol=1e-10, atol=1e-12)
    assert_array_equal(filler.fill(lacking)[:, 0, 2], lacking[:, 0, 2])


def test_one_observed_channel_of_a_complex_matrix_is_enough():
    X = matrices(30, complex_=True)
    filled = learned(X).fill(without(X[:2], 1, 2, 3, 4))
    assert filled.dtype == complex
    assert (np.linalg.eigvalsh(filled) > 0).all()
