"""First prototypes: class means, k-means inside each class, and points of the user's own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pymanopt.manifolds import Sphere

from rplvq import (
    AffineInvariant,
    ClassKMeans,
    ClassMeans,
    DiscriminantMeans,
    EuclideanVectors,
    FromPymanopt,
    LogEuclidean,
)
from rplvq.arrays import hard_targets
from rplvq.exceptions import PointError
from rplvq.initializers import GivenPrototypes, prototype_counts
from rplvq.manifolds import riemannian_mean
from rplvq.protocols import Initializer
from rplvq.testing import check_initializer

AI, EV = AffineInvariant(), EuclideanVectors()
INITIALIZERS = {"class means": ClassMeans(), "k-means": ClassKMeans(), "discriminant": DiscriminantMeans()}
KINDS = pytest.mark.parametrize("kind", [ClassMeans, ClassKMeans])


def spd_classes(seed=0, count=12, n=3, n_classes=3):
    """Positive definite matrices around one center a class, and their class indices, shuffled."""
    rng = np.random.default_rng(seed)
    targets = rng.permutation(np.repeat(np.arange(n_classes), count))
    centers = np.array([np.diag(np.exp(rng.normal(size=n))) for _ in range(n_classes)])
    noise = np.linalg.qr(rng.normal(size=(len(targets), n, n)))[0]
    spread = (noise * np.exp(0.3 * rng.normal(size=(len(targets), 1, n)))) @ noise.swapaxes(1, 2)
    roots = np.sqrt(centers)[targets]
    codes = roots @ spread @ roots
    return 0.5 * (codes + codes.swapaxes(1, 2)), targets


CENTERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def clusters(seed=0, count=15):
    """Four clusters of one class, and a fifth of another class amid them."""
    rng = np.random.default_rng(seed)
    centers = np.concatenate([CENTERS, [[5.0, 5.0]]])
    vectors = np.repeat(centers, count, axis=0) + rng.normal(scale=0.3, size=(5 * count, 2))
    return vectors, np.repeat([0, 0, 0, 0, 1], count)


def seeded(initializer, manifold, codes, targets, n_classes, seed=0, weights=None):
    return initializer(manifold, codes, targets, n_classes, np.random.default_rng(seed), weights)


# --- what all of them promise


@pytest.mark.parametrize("initializer", INITIALIZERS.values(), ids=INITIALIZERS.keys())
def test_the_contract_holds(initializer):
    assert isinstance(initializer, Initializer)
    check_initializer(initializer, AI, *spd_classes())


@KINDS
@pytest.mark.parametrize(
    ("per_class", "wanted"),
    [
        (None, [0, 1, 2]),
        (1, [0, 1, 2]),
        (2, [0, 0, 1, 1, 2, 2]),
        ((1, 3, 2), [0, 1, 1, 1, 2, 2]),
        ([3, 1, 1], [0, 0, 0, 1, 2]),
    ],
)
def test_each_class_gets_its_number_of_prototypes(kind, per_class, wanted):
    initializer = kind(per_class=per_class)
    assert isinstance(initializer, Initializer)
    codes, targets = spd_classes()
    prototypes, labels = seeded(initializer, AI, codes, targets, 3)
    assert labels.tolist() == wanted
    assert prototypes.shape == (len(wanted), 3, 3)
    assert AI.encode(prototypes).shape == prototypes.shape


@KINDS
def test_seeds_decide(kind):
    codes, targets = spd_classes()
    first, again, other = (seeded(kind(3), AI, codes, targets, 3, seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@KINDS
def test_nothing_is_written_to(kind):
    codes, targets = spd_classes()
    weights = np.linspace(0, 1, len(codes))
    kept = codes.copy(), targets.copy(), weights.copy()
    seeded(kind(2), AI, codes, targets, 3, weights=weights)
    assert all(map(np.array_equal, (codes, targets, weights), kept))


@KINDS
def test_soft_labels_count_for_their_largest_class(kind):
    codes, targets = spd_classes()
    soft = 0.6 * np.eye(3)[targets] + 0.4 / 3
    wanted, labels = seeded(kind(2), AI, codes, targets, 3)
    found, soft_labels = seeded(kind(2), AI, codes, soft, 3)
    assert np.array_equal(found, wanted)
    assert np.array_equal(soft_labels, labels)
    assert np.array_equal(hard_targets(soft), targets)


@KINDS
def test_integer_weights_are_repetitions_for_one_prototype_a_class(kind):
    codes, targets = spd_classes()
    counts = np.random.default_rng(1).integers(0, 4, len(codes))
    weighted, _ = seeded(kind(), AI, codes, targets, 3, weights=counts.astype(float))
    repeated, _ = seeded(kind(), AI, np.repeat(codes, counts, axis=0), np.repeat(targets, counts), 3)
    assert_allclose(weighted, repeated, rtol=1e-7, atol=1e-10)


@KINDS
def test_samples_of_weight_zero_do_not_count(kind):
    codes, targets = spd_classes(count=4)
    weights = np.ones(len(codes))
    weights[np.flatnonzero(targets == 1)[:2]] = 0
    seeded(kind(2), AI, codes, targets, 3, weights=weights)
    with pytest.raises(ValueError, match=r"class index 1 has 2 sample\(s\) of positive weight, fewer than its 3"):
        seeded(kind(3), AI, codes, targets, 3, weights=weights)


@KINDS
def test_a_class_without_samples_is_refused(kind):
    codes, targets = spd_classes()
    with pytest.raises(ValueError, match=r"class index 3 has 0 sample\(s\).*lower prototypes_per_class or drop"):
        seeded(kind(), AI, codes, targets, 4)


@pytest.mark.parametrize(
    ("per_class", "sentence"),
    [
        (0, "at least 1, got 0 for class index 0"),
        ([2, 1, -1], "at least 1, got -1 for class index 2"),
        ([1, 2], "has 2 entries, but there are 3 classes"),
        (1.5, "must be integers, got 1.5"),
        ([1.0, 1.0, 1.0], "must be integers"),
        (True, "must be integers, got True"),
        ("two", "must be integers, got 'two'"),
    ],
)
def test_bad_numbers_of_prototypes_are_refused(per_class, sentence):
    with pytest.raises(ValueError, match=f"prototypes_per_class .*{sentence}"):
        prototype_counts(per_class, 3)


@KINDS
def test_equal_samples_are_no_obstacle(kind):
    codes = np.repeat(spd_classes()[0][:1], 6, axis=0)
    prototypes, _ = seeded(kind(3), AI, codes, np.repeat([0, 1], 3), 2)
    assert_allclose(prototypes, np.repeat(codes[:1], 6, axis=0), rtol=1e-9, atol=1e-12)


@KINDS
def test_prototypes_lie_on_a_pymanopt_manifold(kind):
    rng = np.random.default_rng(2)
    points = rng.normal(size=(20, 3)) * 0.3 + [[0, 0, 1]]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    prototypes, _ = seeded(kind(2), FromPymanopt(Sphere(3)), points, np.repeat([0, 1], 10), 2)
    assert_allclose(np.linalg.norm(prototypes, axis=1), 1, rtol=1e-12)


@KINDS
def test_initializers_compare_by_value(kind):
    assert kind(2) == kind(2)
    assert kind(2) != kind(3)


# --- class means


@pytest.mark.parametrize("manifold", [AI, LogEuclidean()], ids=repr)
def test_one_prototype_is_the_mean_of_its_class(manifold):
    points, targets = spd_classes(3)
    codes = manifold.encode(points)
    prototypes, _ = seeded(ClassMeans(), manifold, codes, targets, 3)
    wanted = [riemannian_mean(manifold, codes[targets == c]).code for c in range(3)]
    assert_allclose(prototypes, wanted, rtol=1e-12)


def test_without_perturbation_all_prototypes_are_the_mean():
    codes, targets = spd_classes(4)
    one, _ = seeded(ClassMeans(), AI, codes, targets, 3)
    several, _ = seeded(ClassMeans(3, perturbation=0), AI, codes, targets, 3)
    assert np.array_equal(several, np.repeat(one, 3, axis=0))


@pytest.mark.parametrize("size", [1e-3, 0.03])
def test_the_perturbation_is_measured_in_distances_of_the_class(size):
    codes, targets = spd_classes(5, count=40)
    several, labels = seeded(ClassMeans(50, perturbation=size), AI, codes, np.minimum(targets, 0), 1)
    mean = riemannian_mean(AI, codes).code[None]
    moved = np.sqrt(AI.sqdist(mean, several).mean())
    wanted = size * np.sqrt(AI.sqdist(mean, codes).mean())
    assert moved == pytest.approx(wanted, rel=0.25)
    assert len({prototype.tobytes() for prototype in several}) == 50
    assert labels.tolist() == [0] * 50


@pytest.mark.parametrize(
    "transform", [1e-6 * np.eye(3), np.diag([1e-3, 1.0, 1e3]), np.tri(3)], ids=["scaled", "stretched", "sheared"]
)
def test_the_perturbation_follows_scale_and_shape_of_the_data(transform):
    codes, targets = spd_classes(6)
    turned = transform @ codes @ transform.T
    turned = 0.5 * (turned + turned.swapaxes(1, 2))
    wanted, _ = seeded(ClassMeans(3), AI, codes, targets, 3)
    found, _ = seeded(ClassMeans(3), AI, turned, targets, 3)
    gaps, turned_gaps = (AI.sqdist(w[:3], w[:3])[np.triu_indices(3, 1)] for w in (wanted, found))
    assert (gaps > 0).all()
    assert_allclose(turned_gaps, gaps, rtol=1e-4)


def test_perturbation_must_not_be_negative():
    with pytest.raises(ValueError, match="perturbation"):
        ClassMeans(perturbation=-1e-3)


# --- k-means


@pytest.mark.parametrize("seed", range(8))
def test_separated_clusters_are_found(seed):
    vectors, targets = clusters(seed)
    prototypes, labels = seeded(ClassKMeans((4, 1)), EV, vectors, targets, 2, seed)
    distance = np.sqrt(EV.sqdist(prototypes[:4], CENTERS))
    assert (distance.min(axis=1) < 0.5).all()
    assert sorted(distance.argmin(axis=1)) == [0, 1, 2, 3]
    assert_allclose(prototypes[4], vectors[targets == 1].mean(axis=0))
    assert labels.tolist() == [0, 0, 0, 0, 1]


def test_clusters_of_matrices_are_found_in_the_manifold():
    """Far apart in the affine-invariant metric, though all of them are small matrices."""
    rng = np.random.default_rng(7)
    centers = np.array([np.diag([1e-3, 1e-6]), np.diag([1e-6, 1e-3]), np.diag([1e-6, 1e-6])])
    codes = (centers[:, None] * np.exp(0.1 * rng.normal(size=(3, 10, 1, 1)))).reshape(-1, 2, 2)
    prototypes, _ = seeded(ClassKMeans(3), AI, codes, np.zeros(30, dtype=int), 1)
    assert sorted(AI.sqdist(prototypes, centers).argmin(axis=1)) == [0, 1, 2]
    assert AI.sqdist(prototypes, centers).min(axis=1).max() < 0.1


def test_centers_are_the_means_of_their_samples():
    codes, _ = spd_classes(8, count=15)
    centers, _ = seeded(ClassKMeans(3, max_iter=100), AI, codes, np.zeros(len(codes), dtype=int), 1)
    owner = AI.sqdist(centers, codes).argmin(axis=1)
    for k in range(3):
        assert_allclose(centers[k], riemannian_mean(AI, codes[owner == k]).code, rtol=1e-4, atol=1e-6)


def test_lloyds_steps_shorten_distances():
    vectors = np.random.default_rng(9).uniform(size=(300, 2))
    everything = np.zeros(300, dtype=int)
    runs = [seeded(ClassKMeans(6, max_iter=m), EV, vectors, everything, 1)[0] for m in (1, 2, 4, 100)]
    costs = [EV.sqdist(centers, vectors).min(axis=1).sum() for centers in runs]
    assert (np.diff(costs) < 0).all()


def test_as_many_prototypes_as_samples_are_the_samples():
    codes, targets = spd_classes(10, count=4)
    prototypes, labels = seeded(ClassKMeans(4), AI, codes, targets, 3)
    for c in range(3):
        d = AI.sqdist(prototypes[labels == c], codes[targets == c])
        assert_allclose(np.sort(d, axis=1)[:, 0], 0, atol=1e-20)
        assert sorted(d.argmin(axis=1)) == [0, 1, 2, 3]


def test_weights_pull_the_centers():
    vectors = np.array([[0.0], [1.0], [10.0], [11.0]])
    weights = np.array([1.0, 3.0, 1.0, 1.0])
    centers, _ = seeded(ClassKMeans(2), EV, vectors, np.zeros(4, dtype=int), 1, weights=weights)
    assert_allclose(np.sort(centers[:, 0]), [0.75, 10.5])


@pytest.mark.parametrize("max_iter", [0, -1])
def test_k_means_needs_an_iteration(max_iter):
    with pytest.raises(ValueError, match="max_iter"):
        ClassKMeans(max_iter=max_iter)


# --- given prototypes


def given(prototypes, labels, n_classes=2, manifold=AI):
    codes, targets = spd_classes(11, n=2)
    encoded = manifold.encode(codes)
    initializer = GivenPrototypes(prototypes, np.asarray(labels))
    return seeded(initializer, manifold, encoded, np.minimum(targets, 1), n_classes)


THREE = np.array([np.diag([1.0, 2.0]), np.diag([3.0, 4.0]), np.diag([5.0, 6.0])])


def test_given_prototypes_are_sorted_by_class_and_encoded():
    prototypes, labels = given(THREE, [1, 0, 1])
    assert labels.tolist() == [0, 1, 1]
    assert np.array_equal(prototypes, THREE[[1, 0, 2]])
    logs, _ = given(THREE, [1, 0, 1], manifold=LogEuclidean())
    assert_allclose(logs, np.array([np.diag(np.log(np.diag(w))) for w in THREE[[1, 0, 2]]]), atol=1e-15)


def test_given_prototypes_are_checked_under_their_own_name():
    bad = THREE.copy()
    bad[1] = -np.eye(2)
    with pytest.raises(PointError, match=r"init prototypes\[1\] is not positive definite"):
        given(bad, [0, 0, 1])


@pytest.mark.parametrize(
    ("prototypes", "labels", "sentence"),
    [
        (np.array([np.eye(3)] * 2), [0, 1], r"init prototypes have shape \(3, 3\), the samples \(2, 2\)"),
        (THREE, [0, 1], "init has 3 prototypes and 2 labels"),
        (THREE, [1, 1, 1], "init has no prototype for class index 0"),
        (THREE, [0, 0, 0], "init has no prototype for class index 1"),
        (THREE, [0, 1, 2], "label.* 2"),
        (THREE, [0, 1, -1], "label.* -1"),
    ],
)
def test_bad_given_prototypes_are_refused(prototypes, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        given(prototypes, labels)
