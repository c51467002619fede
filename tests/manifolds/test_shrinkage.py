"""The covariance within groups: its scatter, the choice of its shrinkage, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from sklearn.covariance import ledoit_wolf, shrunk_covariance
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import LeaveOneOut

from rplvq.manifolds import LowRankCovariance, from_coordinates, within_covariance
from rplvq.manifolds import _shrinkage as shrinking

UNEVEN = np.array([3.0, 3.0, 1.0, 1.0, 1.0, 0.3, 0.3, 0.1, 0.1, 0.1])
"""Standard deviations of the ten real coordinates of symmetric 4 x 4 matrices."""


def problem(seed=0, n_samples=45, n_classes=3, deviations=UNEVEN, distance=0.4):
    """Return vectors, whose classes differ in the directions that vary little, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % n_classes
    centers = np.random.default_rng(99).normal(scale=distance, size=(n_classes, len(deviations))) * deviations**0.2
    return centers[y] + deviations * rng.normal(size=(n_samples, len(deviations))), y


def within(vectors, y=None, weights=None, shrinkage=None):
    return within_covariance(from_coordinates(vectors, 4), 10, y, weights, shrinkage)


def plain_energies(vectors, y, weights, left_out, shrinkage, multiple):
    """Scores of one sample by the discriminant of all others, computed from its definition."""
    others = np.arange(len(y)) != left_out
    X, y, w = vectors[others], y[others], weights[others]
    means = np.array([np.average(X[y == k], axis=0, weights=w[y == k]) for k in range(y.max() + 1)])
    rests = X - means[y]
    covariance = (1 - shrinkage) * (rests.T * w) @ rests + shrinkage * multiple * np.eye(X.shape[1])
    far = vectors[left_out] - means
    return 0.5 * np.vecdot(far, np.linalg.solve(covariance / w.sum(), far.T).T)


@pytest.mark.parametrize(("n_samples", "n_classes"), [(40, 3), (12, 2), (8, 3)])
def test_the_energies_are_those_of_a_discriminant_without_the_sample(n_samples, n_classes):
    vectors, y = problem(n_samples=n_samples, n_classes=n_classes)
    vectors += 100  # the origin does not count
    weights = np.random.default_rng(1).uniform(0.5, 2, n_samples)
    means = np.array([np.average(vectors[y == k], axis=0, weights=weights[y == k]) for k in range(n_classes)])
    rests = vectors - means[y]
    scatter = (rests.T * weights) @ rests
    if n_samples < 10:  # without the directions that the samples do not span
        _, singular, rows = np.linalg.svd(np.sqrt(weights)[:, None] * rests, full_matrices=False)
        spectrum = singular**2, rows.T
    else:
        spectrum = np.linalg.eigh(scatter)
    centred, totals = means - means.mean(axis=0), np.bincount(y, weights)
    found = list(
        shrinking.leave_one_out_energies(np.array(shrinking.CANDIDATES), rests, y, weights, centred, totals, *spectrum)
    )
    assert len(found) == len(shrinking.CANDIDATES)
    for shrinkage, energies in zip(shrinking.CANDIDATES, found, strict=True):
        wanted = [plain_energies(vectors, y, weights, i, shrinkage, np.trace(scatter) / 10) for i in range(n_samples)]
        assert_allclose(energies, wanted, rtol=1e-7)


@pytest.mark.parametrize("n_samples", [45, 9])  # with nine samples, their products are decomposed
def test_the_chosen_shrinkage_is_the_best_of_leave_one_out_with_scikit_learn(n_samples):
    vectors, y = problem(n_samples=n_samples)

    def loss(shrinkage):
        lda = LinearDiscriminantAnalysis("lsqr", shrinkage=shrinkage, priors=np.full(3, 1 / 3))
        scores = np.zeros((len(y), 3))
        for kept, held in LeaveOneOut().split(vectors):
            scores[held] = lda.fit(vectors[kept], y[kept]).decision_function(vectors[held])
        scaled = np.exp(np.linspace(-4, 2, 61))[:, None, None] * scores
        return -log_softmax(scaled, axis=2)[:, range(len(y)), y].mean(axis=1).max()

    losses = np.array([loss(shrinkage) for shrinkage in shrinking.CANDIDATES])
    chosen = within(vectors, y).shrinkage
    # scikit-learn computes the multiple of the identity without the sample, too, so that neighbours are about as good.
    assert losses[shrinking.CANDIDATES.index(chosen)] < losses.min() + 0.01
    assert losses.max() > losses.min() + 0.1


def test_it_shrinks_little_where_directions_differ_and_much_where_they_do_not():
    uneven = [within(*problem(seed, n_samples=150)).shrinkage for seed in range(5)]
    even = [within(*problem(seed, 30, deviations=np.ones(10))).shrinkage for seed in range(5)]
    assert max(uneven) <= 0.1
    assert min(even) >= 0.4


def test_the_covariance_is_the_shrunk_one_within_groups():
    vectors, y = problem(n_samples=31)
    y[-1] = 3  # a class of one sample has no deviation
    covariance, shrinkage, _ = within(vectors, y, shrinkage=0.3)
    rests = vectors - np.array([vectors[y == k].mean(axis=0) for k in range(4)])[y]
    assert shrinkage == 0.3
    assert_allclose(covariance, shrunk_covariance(rests.T @ rests / 31, 0.3), atol=1e-12)
    assert 0 < within(vectors, y).shrinkage <= 1


def test_a_single_group_is_shrunk_as_ledoit_and_wolf_do():
    vectors, _ = problem()
    wanted, shrinkage = ledoit_wolf(vectors)
    for found in (within(vectors), within(vectors, np.full(len(vectors), 7))):
        assert found.shrinkage == pytest.approx(shrinkage)
        assert_allclose(found.covariance, wanted, atol=1e-10)


@pytest.mark.parametrize("grouped", [False, True])
def test_weights_are_copies_and_neither_names_nor_order_of_the_groups_count(grouped):
    vectors, y = problem()
    groups = y if grouped else None
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    order = np.random.default_rng(3).permutation(len(y))
    wanted = within(vectors, groups, weights.astype(float))
    copied = within(vectors.repeat(weights, axis=0), None if groups is None else groups.repeat(weights))
    moved = within(
        vectors[order], None if groups is None else np.array([7, -1, 3])[groups[order]], weights[order] * 1.0
    )
    for found in (copied, moved):
        assert found.shrinkage == pytest.approx(wanted.shrinkage)
        assert_allclose(found.covariance, wanted.covariance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_of_vectors_and_of_weights_do_not_count(factor):
    vectors, y = problem()
    weights = np.random.default_rng(4).uniform(0.5, 2, len(y))
    wanted = within(vectors, y, weights)
    larger, heavier = within(factor * vectors, y, weights), within(vectors, y, factor * weights)
    assert larger.shrinkage == heavier.shrinkage == wanted.shrinkage
    assert_allclose(larger.covariance, factor**2 * wanted.covariance, rtol=1e-9, atol=1e-12 * factor**2)
    assert_allclose(heavier.covariance, wanted.covariance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("n_samples", "size"), [(45, 10), (9, 9)])
def test_one_decomposition_serves_all_samples_and_candidates(n_samples, size, monkeypatch):
    vectors, y = problem(n_samples=n_samples)
    shapes, plain = [], np.linalg.eigh

    def counted(matrix):
        shapes.append(matrix.shape)
        return plain(matrix)

    monkeypatch.setattr(np.linalg, "eigh", counted)
    shrinkage = within(vectors, y).shrinkage
    assert shapes == [(size, size)]
    within(vectors, y, shrinkage=shrinkage)
    within(vectors)
    assert len(shapes) == 1  # a shrinkage that is known, or a single group, needs none


def test_many_samples_are_left_out_at_intervals(monkeypatch):
    vectors, y = problem(n_samples=600)
    all_of_them = within(vectors, y)
    monkeypatch.setattr(shrinking, "MOST_LEFT_OUT", 200)
    some = within(vectors, y)
    assert_allclose(some.covariance, all_of_them.covariance, rtol=0.2, atol=0.02)


@pytest.mark.parametrize("n_distinct", [2, 3])
def test_few_samples_have_a_covariance_that_can_be_inverted(n_distinct):
    vectors, _ = problem(n_samples=n_distinct + 1)
    y = np.append(np.zeros(n_distinct, dtype=int), 1)
    covariance, shrinkage, _ = within(vectors, y)
    assert 0 < shrinkage <= 1
    assert np.linalg.eigvalsh(covariance)[0] > 0


def test_samples_without_any_deviation_are_refused():
    vectors, _ = problem(n_samples=3)
    with pytest.raises(ValueError, match="needs a class with at least two different samples, but the 6 samples"):
        within(vectors.repeat(2, axis=0), np.arange(6) // 2)


# --- few samples on many coordinates


def large_problem(is_complex=False, n=6, n_samples=14):
    """Return tangent vectors (N, n, n) with more coordinates than samples, their classes, weights and coordinates."""
    rng = np.random.default_rng(5)
    m = n * n if is_complex else n * (n + 1) // 2
    y = np.arange(n_samples) % 3
    vectors = rng.normal(size=(3, m))[y] + rng.normal(size=(n_samples, m)) * np.geomspace(3.0, 0.1, m)
    weights = rng.integers(1, 4, n_samples).astype(float)
    weights[2] = 0.0
    return from_coordinates(vectors, n), y, weights, vectors


@pytest.fixture
def few(monkeypatch):
    """Let covariances of few samples be of low rank whatever the size of the matrices."""
    monkeypatch.setattr(shrinking, "MOST_DENSE", 2)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_covariance_of_few_samples_is_that_of_the_dense_formula(few, is_complex, weighted):
    codes, y, weights, vectors = large_problem(is_complex, n_samples=9)
    w, m = weights if weighted else np.ones(9), vectors.shape[1]
    rests = vectors - np.array([np.average(vectors[y == k], axis=0, weights=w[y == k]) for k in range(3)])[y]
    plain = (rests.T * w) @ rests / w.sum()
    for shrinkage in (0.01, 0.3, 1.0):
        found = within_covariance(codes, m, y, weights if weighted else None, shrinkage).covariance
        wanted = (1 - shrinkage) * plain + shrinkage * np.trace(plain) / m * np.eye(m)
        assert len(found.variances) < 10
        assert_allclose(np.asarray(found), wanted, atol=1e-12)
        assert_allclose(found.trace, np.trace(wanted))
        assert_allclose(np.asarray(found.power(-1.0)), np.linalg.inv(wanted), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_few_samples_choose_the_shrinkage_of_the_dense_formula(is_complex, grouped, monkeypatch):
    codes, y, weights, vectors = large_problem(is_complex, n_samples=10)
    groups = y if grouped else None
    wanted = within_covariance(codes, vectors.shape[1], groups, weights)
    monkeypatch.setattr(shrinking, "MOST_DENSE", 2)
    found = within_covariance(codes, vectors.shape[1], groups, weights)
    assert found.shrinkage == pytest.approx(wanted.shrinkage, rel=1e-9)
    assert_allclose(np.asarray(found.covariance), wanted.covariance, atol=1e-12)
    assert_allclose(found.means, wanted.means)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((np.eye(2, 3), np.ones(3), 1.0), r"shapes \(r, m\) and \(r,\), got \(2, 3\) and \(3,\)"),
        ((np.eye(2, 3), np.array([1.0, 0.0]), 1.0), "must be positive"),
        ((np.eye(2, 3), np.ones(2), -1.0), "must be positive"),
    ],
)
def test_a_covariance_of_low_rank_refuses_what_does_not_fit(fields, message):
    with pytest.raises(ValueError, match=message):
        LowRankCovariance(*fields)
