"""The means of many groups at once against those of each group alone, and how many decompositions they take."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from rplvq import AffineInvariant, BuresWasserstein, ClassMeans, LogEuclidean, ProjectedEuclidean, RiemannianLVQ
from rplvq.manifolds import _means as means_module
from rplvq.manifolds import means_of_folds, means_of_groups, riemannian_mean
from tests.problems import counted_decompositions, spd, spd_classes

AI, EUCLIDEAN = AffineInvariant(), ProjectedEuclidean()
METRICS = {
    "affine_invariant": AI,
    "without compiled code": AffineInvariant(compiled=False),
    "log_euclidean": LogEuclidean(),
    "euclidean": EUCLIDEAN,
    "bures_wasserstein": BuresWasserstein(),
}


def alone(manifold, codes, groups, weights):
    return np.stack([riemannian_mean(manifold, codes[own], weights[own]).code for own in groups])


def relative_gaps(manifold, codes, groups, found, wanted):
    """Distances between means, relative to the root mean squared distance of the samples."""
    gaps = np.sqrt(np.diag(manifold.sqdist(wanted, found)))
    return gaps / np.sqrt(
        [manifold.sqdist(mean[None], codes[own]).mean() for mean, own in zip(wanted, groups, strict=True)]
    )


def random_groups(rng, sizes, n_samples):
    rows = rng.permutation(n_samples)[: sum(sizes)]
    return np.split(rows, np.cumsum(sizes)[:-1])


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize("name", METRICS)
def test_groups_have_the_means_that_each_has_alone(name, n, dtype):
    rng, manifold = np.random.default_rng(n), METRICS[name]
    codes = manifold.encode(spd(rng, 60, n, dtype=dtype))
    groups, weights = random_groups(rng, [1, 2, 7, 40], 60), rng.uniform(0.1, 3.0, 60)
    wanted = alone(manifold, codes, groups, weights)
    assert_allclose(means_of_groups(manifold, codes, groups, weights), wanted, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_units_do_not_matter(scale):
    codes, weights = spd(np.random.default_rng(0), 40, 4), np.ones(40)
    groups = [np.arange(15), np.arange(15, 40)]
    found = means_of_groups(AI, AI.encode(scale * codes), groups, weights) / scale
    assert_allclose(found, alone(AI, codes, groups, weights), rtol=1e-8, atol=1e-9)


def test_the_mean_of_ill_conditioned_matrices():
    rng = np.random.default_rng(1)
    codes = AI.encode(spd(rng, 40, 5, spread=8.0))  # condition numbers up to 1e7
    groups, weights = [np.arange(20), np.arange(20, 40)], np.ones(40)
    found, wanted = means_of_groups(AI, codes, groups, weights), alone(AI, codes, groups, weights)
    assert relative_gaps(AI, codes, groups, found, wanted).max() < 1e-7


def test_a_group_with_heavy_tails_stays_right_beside_an_easy_one():
    rng = np.random.default_rng(2)
    far = np.exp(8.0 * rng.standard_t(1.5, size=(12, 1, 1)).clip(-3, 3))
    codes = AI.encode(np.concatenate([far * spd(rng, 12, 3, spread=4.0), spd(rng, 30, 3)]))
    groups, weights = [np.arange(12), np.arange(12, 42)], np.ones(42)
    found, wanted = means_of_groups(AI, codes, groups, weights), alone(AI, codes, groups, weights)
    assert relative_gaps(AI, codes, groups, found, wanted).max() < 1e-7


def test_a_group_that_needs_many_passes_is_computed_alone(monkeypatch):
    rng = np.random.default_rng(3)
    codes, groups, weights = AI.encode(spd(rng, 30, 3)), [np.arange(10), np.arange(10, 30)], np.ones(30)
    monkeypatch.setattr(means_module, "MOST_PASSES", 2)
    assert np.array_equal(means_of_groups(AI, codes, groups, weights), alone(AI, codes, groups, weights))


def test_coincident_samples_and_single_samples_are_their_own_means():
    rng = np.random.default_rng(4)
    first, second, *rest = spd(rng, 22, 3, spread=3.0)
    codes = AI.encode(np.array([first] * 5 + [second] + rest))
    groups = [np.arange(5), np.array([5]), np.arange(6, 26)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = means_of_groups(AI, codes, groups, np.ones(26))
    assert_allclose(found[:2], [first, second], rtol=1e-10)


def test_a_mean_does_not_depend_on_the_groups_beside_it():
    codes, weights = AI.encode(spd(np.random.default_rng(5), 60, 3)), np.ones(60)
    groups = [np.arange(20), np.arange(20, 35), np.arange(35, 60)]
    found = means_of_groups(AI, codes, groups, weights)
    other = means_of_groups(AI, codes, groups[:2], weights)
    assert_allclose(found[:2], other, rtol=1e-9)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("compiled", ["auto", False])
def test_the_logarithms_of_single_pairs_are_those_of_all_pairs(compiled, dtype):
    manifold, rng = AffineInvariant(compiled=compiled), np.random.default_rng(6)
    prototypes, samples = spd(rng, 3, 4, dtype=dtype), spd(rng, 50, 4, spread=2.0, dtype=dtype)
    owners = rng.integers(0, 3, 50)
    sqdist, logs = manifold.logarithms(prototypes, samples, owners)
    assert_allclose(sqdist, manifold.sqdist(prototypes, samples)[np.arange(50), owners], rtol=1e-10)
    weights = rng.uniform(size=(50, 1)) * (owners[:, None] == np.arange(3))
    sums = manifold.pull(manifold.connect(prototypes, samples), weights)
    wanted = [np.tensordot(weights[:, k], logs, 1) for k in range(3)]
    assert_allclose(sums, wanted, rtol=1e-9, atol=1e-12)
    assert_allclose(np.linalg.norm(logs, axis=(1, 2)) ** 2, sqdist, rtol=1e-10)  # the coordinates are orthonormal


def test_the_logarithms_of_single_ill_conditioned_pairs_are_exact():
    prototype, sample = np.diag([1e-9, 1.0, 1e9]), np.diag([1.0, 1.0, 1.0])
    sqdist, _ = AffineInvariant(compiled=False).logarithms(
        np.array([np.eye(3), prototype]), np.array([sample, prototype]), np.array([1, 0])
    )
    assert_allclose(sqdist, 2 * np.log(1e9) ** 2, rtol=1e-9)


def test_a_subclass_with_a_distance_of_its_own_has_its_own_means():
    class Flat(AffineInvariant):
        def connect(self, prototypes, samples):
            return EUCLIDEAN.connect(prototypes, samples)

        def move(self, geodesics, weights):
            return EUCLIDEAN.move(geodesics, weights)

        def sqdist(self, prototypes, samples):
            return EUCLIDEAN.sqdist(prototypes, samples)

    codes = spd(np.random.default_rng(8), 40, 3)
    found = means_of_groups(Flat(), codes, [np.arange(15), np.arange(15, 40)], np.ones(40))
    assert_allclose(found, [codes[:15].mean(axis=0), codes[15:].mean(axis=0)], rtol=1e-9)


# --- folds


@pytest.mark.parametrize(("spread", "accuracy"), [(0.3, 0.01), (1.5, 0.05)])
@pytest.mark.parametrize("name", METRICS)
def test_means_of_folds_are_close_to_the_exact_ones(name, spread, accuracy):
    manifold, rng = METRICS[name], np.random.default_rng(7)
    X, y = spd_classes(per_class=40, n_classes=3, spread=spread)
    codes, weights = manifold.encode(X), rng.uniform(0.5, 2.0, len(y))
    own = [np.flatnonzero(y == label) for label in range(3)]
    means, fold = alone(manifold, codes, own, weights), rng.integers(0, 4, len(y))
    trains = np.array([weights * (fold != held) for held in range(4)])
    for shares, found in zip(trains, means_of_folds(manifold, codes, y, means, trains), strict=True):
        exact = np.stack([riemannian_mean(manifold, codes[rows], shares[rows]).code for rows in own])
        moved, wrong = (np.sqrt(np.diag(manifold.sqdist(exact, codes))) for codes in (means, found))
        assert (wrong < accuracy * moved + 1e-7).all()


def test_a_class_that_no_fold_holds_out_keeps_its_mean():
    X, y = spd_classes(per_class=20, spread=0.8)
    codes, own = AI.encode(X), [np.flatnonzero(y == label) for label in range(2)]
    means = alone(AI, codes, own, np.ones(len(y)))
    trains = np.ones((2, len(y)))
    trains[0, own[0][:5]] = trains[1, own[0][5:9]] = 0
    for found in means_of_folds(AI, codes, y, means, trains):
        assert_allclose(found[1], means[1], rtol=1e-8)
        assert not np.allclose(found[0], means[0], rtol=1e-3)


# --- how many decompositions


def test_decompositions_of_the_class_means():
    X, y = spd_classes(per_class=30, n_classes=4)
    manifold = AffineInvariant(compiled=False)
    with counted_decompositions() as counter:
        ClassMeans()(manifold, X, y, 4, np.random.default_rng(0))
    # A pass decomposes each sample, the point of the last pass, and the step, and there are six passes.
    assert counter == {"eigh": 6 * (len(X) + 4 + 4), "eigvalsh": 0}


def test_decompositions_of_the_means_of_folds():
    X, y = spd_classes(per_class=30, n_classes=4)
    manifold, own = AffineInvariant(compiled=False), [np.flatnonzero(y == label) for label in range(4)]
    means = alone(manifold, X, own, np.ones(len(y)))
    fold = np.random.default_rng(0).integers(0, 4, len(y))
    trains = np.array([fold != held for held in range(4)], dtype=float)
    with counted_decompositions() as counter:
        list(means_of_folds(manifold, X, y, means, trains))
    # All folds share the first pass; in the second each fold decomposes the samples that it keeps.
    assert counter == {"eigh": (len(X) + 4) + (3 * len(X) + 16) + 2 * 16, "eigvalsh": 0}


def test_decompositions_of_a_default_fit():
    X, y = spd_classes(per_class=40, n_classes=3, spread=0.6, shift=0.3)
    with counted_decompositions() as counter:
        model = RiemannianLVQ(AffineInvariant(compiled=False), random_state=0).fit(X, y)
    assert not model.choice_.trains
    n_trials = sum(tried.n_folds for tried in model.choice_.tried if tried.amount)
    training = n_trials * 6 * 90 * 3  # at most five epochs of 90 samples and 3 prototypes, and their end
    # Seven passes for the class means, 1 for tangent vectors, 4 for the means of folds, 1 for what is remembered for
    # missing channels, and the rest for few points.
    assert counter["eigh"] - training <= 15 * len(X)
    # The evidence, the held-out samples of the candidates, the median of each trial, and about as many for few points.
    n_judged = sum(tried.n_folds for tried in model.choice_.tried)
    assert counter["eigvalsh"] <= (1 + n_judged / 4 + 0.75 * n_trials + 2) * 3 * len(X)
