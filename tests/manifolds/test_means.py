"""The Riemannian mean against the conditions that define it, on easy and on hard data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from pymanopt.manifolds import Grassmann, PoincareBall, Sphere
from sklearn.exceptions import ConvergenceWarning

from rplvq import AffineInvariant, EuclideanVectors, FromPymanopt, LogEuclidean, ProjectedEuclidean
from rplvq.manifolds import riemannian_mean
from tests.problems import spd

AI, LE = AffineInvariant(), LogEuclidean()


def mean_logarithm(mean, points, weights=None):
    """Mean of log(M^-1/2 X M^-1/2) over its root mean squared norm, by scipy alone."""
    inverse = np.linalg.inv(scipy.linalg.sqrtm(mean))
    logs = np.array([scipy.linalg.logm(inverse @ x @ inverse) for x in points])
    size = np.sqrt((np.abs(logs) ** 2).sum(axis=(1, 2)).mean())
    return np.linalg.norm(np.average(logs, axis=0, weights=weights)) / size


# --- the affine-invariant mean


def test_the_mean_of_two_by_hand():
    codes = AI.encode([np.diag([np.e**2, 1.0]), np.eye(2)])
    mean = riemannian_mean(AI, codes)
    assert_allclose(mean.code, np.diag([np.e, 1.0]), rtol=1e-12, atol=1e-15)
    assert mean.converged
    assert mean.gradient < 1e-9


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("n", "count"), [(1, 5), (2, 3), (5, 20), (22, 8)])
def test_the_mean_logarithm_at_the_mean_is_zero(dtype, n, count):
    points = spd(np.random.default_rng(0), count, n, dtype=dtype)
    mean = riemannian_mean(AI, AI.encode(points))
    assert mean.converged
    assert mean_logarithm(mean.code, points) < 1e-8


def test_the_mean_of_two_is_the_middle_of_their_geodesic():
    first, second = spd(np.random.default_rng(1), 2, 4)
    root = scipy.linalg.sqrtm(first)
    inverse = np.linalg.inv(root)
    middle = root @ scipy.linalg.sqrtm(inverse @ second @ inverse) @ root
    assert_allclose(riemannian_mean(AI, np.array([first, second])).code, middle, rtol=1e-8, atol=1e-12)


def test_the_weighted_mean_of_two_divides_their_geodesic():
    codes = spd(np.random.default_rng(2), 2, 4)
    geodesics = AI.connect(codes[:1], codes[1:])
    wanted = np.asarray(AI.move(geodesics, np.array([[0.3]])))[0]
    assert_allclose(riemannian_mean(AI, codes, np.array([7.0, 3.0])).code, wanted, rtol=1e-7, atol=1e-12)


def test_commuting_matrices_have_the_geometric_mean_of_their_eigenvalues():
    eigenvalues = np.random.default_rng(3).uniform(0.1, 10, (9, 4))
    mean = riemannian_mean(AI, np.array([np.diag(row) for row in eigenvalues]))
    assert_allclose(mean.code, np.diag(np.exp(np.log(eigenvalues).mean(axis=0))), rtol=1e-8, atol=1e-12)


def test_the_mean_follows_congruence_and_inversion():
    points = spd(np.random.default_rng(4), 7, 3)
    transform = np.random.default_rng(4).normal(size=(3, 3))
    mean = riemannian_mean(AI, points).code
    turned = transform @ points @ transform.T
    found = riemannian_mean(AI, 0.5 * (turned + turned.swapaxes(1, 2))).code
    assert_allclose(found, transform @ mean @ transform.T, rtol=1e-7, atol=1e-10)
    inverses = np.linalg.inv(points)
    found = riemannian_mean(AI, 0.5 * (inverses + inverses.swapaxes(1, 2))).code
    assert_allclose(found, np.linalg.inv(mean), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-28, 1e-12, 1e12])
def test_the_mean_follows_the_units(scale):
    points = spd(np.random.default_rng(5), 6, 4)
    wanted = riemannian_mean(AI, points)
    found = riemannian_mean(AI, scale * points)
    assert found.converged
    assert_allclose(found.code / scale, wanted.code, rtol=1e-7, atol=1e-10)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5), count=st.integers(2, 8), spread=st.floats(0.01, 3))
def test_no_point_is_better_than_the_mean(seed, n, count, spread):
    points = spd(np.random.default_rng(seed), count, n, spread)
    mean = riemannian_mean(AI, points)
    assert mean.converged
    best = AI.sqdist(mean.code[None], points).mean()
    nearby = spd(np.random.default_rng(seed + 1), 3, n, 0.1)
    root = np.linalg.cholesky(mean.code)
    for other in (*points, *(root @ nearby @ root.T)):
        assert AI.sqdist(other[None], points).mean() >= best * (1 - 1e-9)


@pytest.mark.parametrize("seed", [3786, *range(40)])
def test_wide_spreads_take_few_passes(seed):
    """Eigenvalues from e^-4 to e^4: steps that follow the curvature do not creep."""
    mean = riemannian_mean(AI, spd(np.random.default_rng(seed), 3, 4, 3.0 if seed == 3786 else 4.0))
    assert mean.converged
    assert mean.gradient < 1e-9
    assert mean.n_iter < 30


def test_the_search_does_not_climb_into_another_valley():
    """Planes so far apart that their squared distances have several valleys: no step may raise the cost."""
    planes = np.linalg.qr(np.eye(5)[:, :2] + 0.4 * np.random.default_rng(8).normal(size=(6, 5, 2)))[0]
    manifold = FromPymanopt(Grassmann(5, 2))
    mean = riemannian_mean(manifold, planes)
    assert mean.converged
    assert mean.gradient < 1e-9
    first = manifold.move(manifold.connect(planes[:1], planes), np.full((6, 1), 1 / 6))
    costs = [manifold.sqdist(np.asarray(point), planes).mean() for point in (planes[:1], first, mean.code[None])]
    assert costs[2] < costs[1] < costs[0]


# --- weights


@pytest.mark.parametrize("manifold", [AI, LE, ProjectedEuclidean()], ids=repr)
def test_integer_weights_are_repetitions(manifold):
    codes, counts = manifold.encode(spd(np.random.default_rng(6), 5, 3)), np.array([1, 4, 2, 3, 1])
    weighted = riemannian_mean(manifold, codes, counts)
    repeated = riemannian_mean(manifold, np.repeat(codes, counts, axis=0))
    assert_allclose(weighted.code, repeated.code, rtol=1e-7, atol=1e-10)
    scaled = riemannian_mean(manifold, codes, 1e-3 * counts)
    assert_allclose(scaled.code, weighted.code, rtol=1e-7, atol=1e-10)


def test_points_of_weight_zero_are_not_even_looked_at():
    codes = spd(np.random.default_rng(7), 5, 3)
    wanted = riemannian_mean(AI, codes[[1, 2, 4]], np.array([1.0, 2.0, 1.0]))
    codes[[0, 3]] = np.nan
    found = riemannian_mean(AI, codes, np.array([0.0, 1.0, 2.0, 0.0, 1.0]))
    assert np.array_equal(found.code, wanted.code)


def test_the_start_does_not_matter():
    codes = spd(np.random.default_rng(9), 6, 4)
    wanted = riemannian_mean(AI, codes).code
    found = riemannian_mean(AI, codes, start=spd(np.random.default_rng(10), 1, 4, spread=2.0)[0]).code
    assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
    again = riemannian_mean(AI, codes, start=wanted)
    assert again.n_iter == 1


def test_the_data_are_left_alone():
    codes, weights = spd(np.random.default_rng(11), 4, 3), np.array([1.0, 2.0, 0.0, 1.0])
    kept = codes.copy(), weights.copy()
    riemannian_mean(AI, codes, weights, start=codes[0])
    assert np.array_equal(codes, kept[0])
    assert np.array_equal(weights, kept[1])


# --- other geometries


def test_flat_means_are_found_in_one_step():
    vectors = np.random.default_rng(12).normal(size=(9, 4))
    mean = riemannian_mean(EuclideanVectors(), vectors)
    assert_allclose(mean.code, vectors.mean(axis=0), rtol=1e-12, atol=1e-14)
    assert mean.n_iter == 2


def test_the_log_euclidean_mean_is_the_exponential_of_the_mean_logarithm():
    points = spd(np.random.default_rng(13), 6, 4, spread=2.0)
    mean = riemannian_mean(LE, LE.encode(points))
    wanted = scipy.linalg.expm(np.mean([scipy.linalg.logm(x) for x in points], axis=0))
    assert_allclose(LE.decode(mean.code[None])[0], wanted, rtol=1e-10, atol=1e-12)


def test_the_projected_mean_is_the_arithmetic_one():
    points = spd(np.random.default_rng(14), 6, 4)
    mean = riemannian_mean(ProjectedEuclidean(), points)
    assert_allclose(mean.code, points.mean(axis=0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("condition", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("manifold", [ProjectedEuclidean(relative=True), ProjectedEuclidean(tau=1e-12)], ids=repr)
def test_one_dominant_direction_leaves_the_projected_mean_the_arithmetic_one(manifold, condition):
    rng = np.random.default_rng(0)
    points = np.array([np.diag([condition, *(1 + rng.random(7))]) for _ in range(600)])  # read in several parts
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    points = rotation @ points @ rotation.T
    points = 0.5 * (points + points.swapaxes(1, 2))
    mean = riemannian_mean(manifold, points)
    assert mean.converged
    assert_allclose(mean.code, points.mean(axis=0), atol=1e-14 * condition)


def test_three_points_around_the_pole_of_a_sphere_have_it_as_mean():
    angles = 2 * np.pi / 3 * np.arange(3)
    ring = np.stack([0.6 * np.cos(angles), 0.6 * np.sin(angles), np.full(3, 0.8)], axis=1)
    mean = riemannian_mean(FromPymanopt(Sphere(3)), ring)
    assert mean.converged
    assert_allclose(mean.code, [0, 0, 1], atol=1e-8)


def test_lines_at_two_angles_of_a_plane_have_the_line_between_as_mean():
    lines = np.array([[[np.cos(a)], [np.sin(a)]] for a in (0.2, 0.8)])
    mean = riemannian_mean(FromPymanopt(Grassmann(2, 1)), lines).code[:, 0]
    assert abs(mean @ [np.cos(0.5), np.sin(0.5)]) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("space", "points"),
    [
        (Grassmann(5, 2), np.linalg.qr(np.eye(5)[:, :2] + 0.2 * np.random.default_rng(15).normal(size=(6, 5, 2)))[0]),
        (PoincareBall(3), np.random.default_rng(16).uniform(-0.5, 0.5, (6, 3))),
    ],
    ids=str,
)
def test_pymanopts_own_logarithms_cancel_at_the_mean(space, points):
    mean = riemannian_mean(FromPymanopt(space), points)
    assert mean.converged
    logs = [space.log(mean.code, point) for point in points]
    size = np.sqrt(np.mean([space.norm(mean.code, log) ** 2 for log in logs]))
    assert space.norm(mean.code, np.mean(logs, axis=0)) < 1e-8 * size


# --- hard data


def symmetric(matrices):
    return 0.5 * (matrices + matrices.swapaxes(1, 2))


def test_matrices_of_condition_1e10_converge():
    """One bad frame for all, as in covariances of channels that nearly depend on each other."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    frame = (basis * np.logspace(0, -5, 5)) @ basis.T
    clean = spd(np.random.default_rng(17), 30, 5)
    points = AI.encode(symmetric(frame @ clean @ frame.T))
    assert np.linalg.cond(points).min() > 1e9
    mean = riemannian_mean(AI, points)
    assert mean.converged
    wanted = riemannian_mean(AI, clean).code
    inverse = np.linalg.inv(frame)
    assert_allclose(inverse @ mean.code @ inverse.T, wanted, atol=1e-4)


def heavy_tailed(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(40, 4, 4)))[0]
    logs = np.clip(rng.standard_cauchy((40, 1, 4)), -11, 11)
    return symmetric((basis * np.exp(logs)) @ basis.swapaxes(1, 2))


HARD = {f"heavy tails {seed}": heavy_tailed(seed) for seed in range(18, 24)} | {
    f"condition 1e{k}, no common frame": spd(np.random.default_rng(17), 30, 5, spread=0.5 * k * np.log(10))
    for k in (4, 6, 8, 10)
}


@pytest.mark.parametrize("points", HARD.values(), ids=HARD.keys())
def test_hard_data_converge_or_warn(points):
    """Full steps overshoot here; the limit is float64's, some 1e-4 at condition 1e10."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mean = riemannian_mean(AI, AI.encode(points))
    assert [warning.category for warning in caught] == ([] if mean.converged else [ConvergenceWarning])
    assert mean.gradient <= 1e-4
    cost = AI.sqdist(mean.code[None], points).mean()
    assert all(cost < AI.sqdist(point[None], points).mean() for point in points)


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
def test_heavy_tails_converge_given_time():
    points = heavy_tailed(18)
    mean = riemannian_mean(AI, points, max_iter=2000)
    assert mean.converged
    assert mean_logarithm(mean.code, points) < 1e-8


@pytest.mark.parametrize("manifold", [AI, LE, ProjectedEuclidean()], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 5, 22])
@pytest.mark.parametrize("count", [1, 3])
def test_points_apart_by_rounding_only_converge_silently(manifold, n, count):
    """Distances to the mean are then rounding; so is any gradient measured in their units."""
    codes = manifold.encode(np.repeat(spd(np.random.default_rng(8), 1, n, spread=2.0), count, axis=0))
    for start in (None, codes[0] * (1 + 1e-15)):
        mean = riemannian_mean(manifold, codes, start=start)
        assert mean.converged
        assert_allclose(mean.code, codes[0], rtol=1e-12, atol=1e-13)


def test_too_few_passes_warn_and_give_the_best_seen():
    codes = spd(np.random.default_rng(19), 10, 4, spread=3.0)
    with pytest.warns(ConvergenceWarning, match=r"mean of 10 points did not converge in 3 passes.*raise max_iter"):
        mean = riemannian_mean(AI, codes, max_iter=3)
    assert not mean.converged
    assert mean.n_iter == 3
    assert mean.gradient > 1e-9
    assert AI.sqdist(mean.code[None], codes).mean() < AI.sqdist(codes[:1], codes).mean()


def test_the_cost_never_rises_from_pass_to_pass():
    codes = spd(np.random.default_rng(20), 10, 4, spread=5.0)
    costs = []
    for passes in range(1, 12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mean = riemannian_mean(AI, codes, max_iter=passes)
        costs.append(AI.sqdist(mean.code[None], codes).mean())
    assert (np.diff(costs) <= 1e-9 * costs[0]).all()
    assert costs[-1] < 0.9 * costs[0]


def test_a_coarse_tolerance_takes_fewer_passes():
    codes = spd(np.random.default_rng(21), 10, 4, spread=3.0)
    coarse, fine = (riemannian_mean(AI, codes, tol=tol) for tol in (1e-2, 1e-10))
    assert coarse.n_iter < fine.n_iter
    assert coarse.gradient <= 1e-2
    assert fine.gradient <= 1e-10
