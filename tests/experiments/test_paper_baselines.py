"""The baselines of examples/paper that no library has: GMLVQ with projection and Log-Euclidean kernel methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import logm
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from examples.paper.data import Split
from examples.paper.evaluate import fit_and_score, select_and_score
from examples.paper.gmlvq import ProjectedGMLVQ, half_vectors, matrices_of, raise_eigenvalues, sample_cost
from examples.paper.kernel_kmeans import KernelKMeans, median_gamma
from examples.paper.kernels import (
    LogEuclideanSVC,
    clustering_accuracy,
    le_kernel_kmeans,
    le_kmeans,
    log_vectors,
    majority_labels,
    tuned_le_svc,
)
from rplvq import LogEuclidean, RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.protocols import Array

pytestmark = pytest.mark.slow  # trains experiments or examples, which takes minutes in all


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def random_spd(rng: np.random.Generator, count: int, n: int) -> Array:
    factors = rng.standard_normal((count, n, 2 * n))
    return factors @ factors.swapaxes(1, 2) / (2 * n)


def test_half_vectors_keep_the_frobenius_norm(rng):
    matrices = random_spd(rng, 5, 4)
    vectors = half_vectors(matrices)
    assert vectors.shape == (5, 10)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.linalg.norm(matrices, axis=(1, 2)))
    np.testing.assert_allclose(matrices_of(vectors, 4), matrices)


def test_raise_eigenvalues_touches_only_the_low_ones():
    low = np.diag([2.0, -1.0, 0.5])
    np.testing.assert_allclose(raise_eigenvalues(low[None], 0.01)[0], np.diag([2.0, 0.01, 0.5]), atol=1e-15)
    high = np.diag([2.0, 1.0])[None]
    assert raise_eigenvalues(high, 0.01) is high


@pytest.mark.parametrize("sigmoid", [False, True])
def test_gmlvq_gradient_by_finite_differences(rng, sigmoid):
    x, prototypes, omega = rng.standard_normal(6), rng.standard_normal((4, 6)), rng.standard_normal((6, 6))
    same = np.array([True, True, False, False])
    gradient = sample_cost(x, same, prototypes, omega, sigmoid)

    def cost(prototypes: Array, omega: Array) -> float:
        return sample_cost(x, same, prototypes, omega, sigmoid).cost

    full = np.zeros_like(prototypes)
    full[gradient.pair] = gradient.prototypes
    by_prototypes, by_omega = np.zeros_like(prototypes), np.zeros_like(omega)
    for index in np.ndindex(prototypes.shape):
        step = np.zeros_like(prototypes)
        step[index] = 1e-6
        by_prototypes[index] = (cost(prototypes + step, omega) - cost(prototypes - step, omega)) / 2e-6
    for index in np.ndindex(omega.shape):
        step = np.zeros_like(omega)
        step[index] = 1e-6
        by_omega[index] = (cost(prototypes, omega + step) - cost(prototypes, omega - step)) / 2e-6
    assert np.abs(full).max() > 0.01
    np.testing.assert_allclose(full, by_prototypes, atol=1e-7)
    np.testing.assert_allclose(gradient.omega, by_omega, atol=1e-7)


def test_gmlvq_cost_by_hand():
    # Distances 1 to the own prototype, 9 to the other: mu = -8 / 10.
    identity = sample_cost(np.zeros(1), np.array([True, False]), np.array([[1.0], [3.0]]), np.eye(1), False)
    assert identity.cost == pytest.approx(-0.8)
    logistic = sample_cost(np.zeros(1), np.array([True, False]), np.array([[1.0], [3.0]]), np.eye(1), True)
    assert logistic.cost == pytest.approx(1 / (1 + np.exp(0.8)))


@pytest.mark.parametrize("cost", ["identity", "sigmoid"])
def test_gmlvq_learns_and_stays_positive_definite(cost):
    X, y = make_syn1(n_per_class=40, random_state=1)
    names = np.array(["a", "b", "c", "d"])[y - y.min()]
    model = ProjectedGMLVQ(2, cost=cost, max_epochs=8, random_state=0)
    again = clone(model).fit(X, names)
    model.fit(X, names)
    assert model.prototypes_.shape == (8, 10, 10)
    assert np.linalg.eigvalsh(model.prototypes_).min() >= 1e-4 * (1 - 1e-9)
    assert np.linalg.norm(model.omega_) == pytest.approx(1)
    assert model.cost_[-1] < model.cost_[0]
    assert model.score(X, names) > 0.9
    np.testing.assert_array_equal(model.prototypes_, again.prototypes_)


def test_gmlvq_relevance_finds_the_entry_that_matters(rng):
    # Classes differ in the first diagonal entry only; the second varies as much and says nothing.
    y = np.repeat([0, 1], 60)
    X = np.zeros((120, 2, 2))
    X[:, 0, 0] = 2 + y + 0.2 * rng.uniform(-1, 1, 120)
    X[:, 1, 1] = 3 + 2 * rng.uniform(-1, 1, 120)
    model = ProjectedGMLVQ(max_epochs=30, random_state=0).fit(X, y)
    relevance = np.diag(model.omega_.T @ model.omega_)
    assert relevance[0] > 5 * relevance[2]
    assert model.score(X, y) == 1.0


def test_gmlvq_prediction_is_the_nearest_prototype_in_its_own_metric():
    X, y = make_syn1(n_per_class=10, random_state=2)
    model = ProjectedGMLVQ(max_epochs=2, random_state=0).fit(X, y)
    difference = half_vectors(X)[:, None] - half_vectors(model.prototypes_)
    distance = np.linalg.norm(difference @ model.omega_.T, axis=2)
    np.testing.assert_array_equal(model.predict(X), model.prototype_labels_[distance.argmin(axis=1)])


def test_gmlvq_refuses_bad_input():
    X, y = make_syn1(n_per_class=3, random_state=0)
    with pytest.raises(ValueError, match="cost must be"):
        ProjectedGMLVQ(cost="square").fit(X, y)
    with pytest.raises(ValueError, match=r"X\[0\] .*positive definite"):
        ProjectedGMLVQ().fit(-X, y)
    with pytest.raises(ValueError, match="only one class"):
        ProjectedGMLVQ().fit(X, np.zeros(len(X)))


def test_log_vectors_against_scipy(rng):
    X = random_spd(rng, 3, 4)
    logs = np.array([logm(matrix) for matrix in X])
    np.testing.assert_allclose(matrices_of(log_vectors(X), 4), logs, atol=1e-10)


def test_kernel_is_the_gaussian_of_the_log_euclidean_distance(rng):
    X = random_spd(rng, 6, 3)
    manifold = LogEuclidean()
    codes = manifold.encode(X)
    expected = np.exp(-0.3 * manifold.sqdist(codes, codes))
    np.testing.assert_allclose(rbf_kernel(log_vectors(X), gamma=0.3), expected, atol=1e-12)


def test_svm_and_its_tuned_version():
    X, y = make_syn1(n_per_class=60, random_state=0)
    (X, X_test), (y, y_test) = (X[::2], X[1::2]), (y[::2], y[1::2])
    model = LogEuclideanSVC(gamma_factor=2.0).fit(X, y)
    assert model.gamma_ == pytest.approx(2 * median_gamma(log_vectors(X)))
    np.testing.assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))
    tuned = tuned_le_svc(n_splits=2).fit(X, y)
    assert set(tuned.best_params_) == {"C", "gamma_factor"}
    assert tuned.score(X_test, y_test) > 0.9
    assert LogEuclideanSVC(gamma=0.5).fit(X, y).gamma_ == 0.5


def test_median_gamma_refuses_equal_samples():
    with pytest.raises(ValueError, match="median squared distance is 0"):
        median_gamma(np.ones((5, 2)))


def brute_force(kernel: Array, labels: Array, n_clusters: int) -> float:
    """Summed squared distances to the means in feature space, from their definition."""
    total = 0.0
    for label in range(n_clusters):
        mine = np.flatnonzero(labels == label)
        if len(mine):
            total += np.trace(kernel[np.ix_(mine, mine)]) - kernel[np.ix_(mine, mine)].sum() / len(mine)
    return total


def test_kernel_kmeans_finds_the_best_partition_of_few_points():
    rng = np.random.default_rng(5)
    points = rng.standard_normal((9, 2))
    model = KernelKMeans(2, gamma=0.7, n_init=30, random_state=0).fit(points)
    kernel = rbf_kernel(points, gamma=0.7)
    best = min(brute_force(kernel, (number >> np.arange(9)) & 1, 2) for number in range(2**9))
    assert model.inertia_ == pytest.approx(brute_force(kernel, model.labels_, 2))
    assert model.inertia_ == pytest.approx(best)
    np.testing.assert_array_equal(model.predict(points), model.labels_)


def test_kernel_kmeans_separates_rings_that_kmeans_cannot():
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    points = np.concatenate([0.1 * circle, 3 * circle])
    y = np.repeat([0, 1], 40)
    # A kernel so narrow that the ring's points are almost orthogonal keeps the tight inner ring as a cluster.
    labels = KernelKMeans(2, gamma=2.0, n_init=20, random_state=0).fit(points).labels_
    assert clustering_accuracy(y, labels) == 1.0


def test_kernel_kmeans_survives_fewer_different_points_than_clusters():
    labels = KernelKMeans(3, gamma=1.0, random_state=0).fit(np.array([[0.0]] * 4 + [[1.0]] * 4)).labels_
    assert len(np.unique(labels)) == 2
    with pytest.raises(ValueError, match="fewer than n_clusters"):
        KernelKMeans(3, gamma=1.0).fit(np.zeros((2, 1)))


@pytest.mark.parametrize("make", [le_kmeans, le_kernel_kmeans])
def test_clusterings_find_separate_clouds(rng, make):
    X = np.concatenate([random_spd(rng, 20, 3) * scale for scale in (1.0, 1e4, 1e8)])
    y = np.repeat([0, 1, 2], 20)
    model = make(3, random_state=1).fit(X)
    assert clustering_accuracy(y, model[-1].labels_) == 1.0
    labels = majority_labels(model[-1].labels_, y, 3)
    np.testing.assert_array_equal(labels[model.predict(X)], y)


def test_clustering_accuracy_takes_the_best_one_to_one_assignment():
    y = np.array([0, 0, 0, 1, 1, 2])
    # Cluster 5 holds most of both 0 and 1, but can stand for one of them only.
    clusters = np.array([5, 5, 5, 5, 5, 9])
    assert clustering_accuracy(y, clusters) == pytest.approx(4 / 6)
    assert clustering_accuracy(y, (y + 1) % 3) == 1.0
    assert clustering_accuracy(np.array(["b", "a"]), np.array([0, 1])) == 1.0


def test_fit_and_score_reports_both_decisions():
    X, y = make_syn1(n_per_class=30, random_state=0)
    data = Split(X[::2], y[::2], X[1::2], y[1::2])
    settings = {"sigma2": 30.0, "prototypes_per_class": 3, "max_epochs": 2, "random_state": 0}
    result = fit_and_score(RiemannianLVQ(**settings), data)
    for decision, key in (("nearest", "accuracy"), ("posterior", "posterior_accuracy")):
        model = RiemannianLVQ(**settings, decision=decision).fit(data.X_train, data.y_train)
        assert result[key] == model.score(data.X_test, data.y_test)
    assert result["epochs"] == 2
    assert "posterior_accuracy" not in fit_and_score(LogEuclideanSVC(), data)


def test_select_and_score_chooses_by_the_training_part_only():
    X, y = make_syn1(n_per_class=30, random_state=0)
    data = Split(X[::2], y[::2], X[1::2], y[1::2])
    grid = {"C": [1e-6, 10.0], "gamma_factor": [1.0, 4.0]}
    result = select_and_score(lambda **values: LogEuclideanSVC(**values), grid, data, n_folds=3, seed=0)
    assert result["chosen"]["C"] == 10.0
    assert [row[:2] for row in result["tried"]] == [[1e-6, 1.0], [1e-6, 4.0], [10.0, 1.0], [10.0, 4.0]]
    wrong = data._replace(y_test=np.roll(data.y_test, 1))
    again = select_and_score(lambda **values: LogEuclideanSVC(**values), grid, wrong, n_folds=3, seed=0)
    assert again["tried"] == result["tried"]
