"""Contract tests over the table of all geometries; distances and moves by independent formulas."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.linalg
from pymanopt.manifolds import Euclidean as PymanoptEuclidean
from pymanopt.manifolds import Grassmann, PoincareBall, Product, Sphere, SymmetricPositiveDefinite
from pymanopt.manifolds.manifold import Manifold as PymanoptManifold

from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    EuclideanVectors,
    FromPymanopt,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    ProjectedEuclidean,
    TangentSpace,
)
from rplvq.manifolds import is_additive
from rplvq.protocols import Manifold
from rplvq.testing import check_manifold
from tests.cases import CASES, EVERY, made, reference_move_affine_invariant

AI, LE = AffineInvariant(), LogEuclidean()


@EVERY
def test_the_contract_holds(case):
    for n in [2, 4]:
        manifold = case.manifold(n)
        assert isinstance(manifold, Manifold)
        check_manifold(manifold, case.points(np.random.default_rng(n), 7, n), random_state=n)


@EVERY
def test_squared_distances_agree_with_an_independent_formula(case):
    for n in [1, 2, 22]:
        points = case.points(np.random.default_rng(3), 5, n)
        manifold = case.manifold(n)
        codes = manifold.encode(points)
        wanted = [[case.distance(x, w) ** 2 for w in points[:2]] for x in points[2:]]
        np.testing.assert_allclose(manifold.sqdist(codes[:2], codes[2:]), wanted, rtol=1e-8)
        np.testing.assert_allclose(manifold.connect(codes[:2], codes[2:]).sqdist, wanted, rtol=1e-8)


@EVERY
def test_one_point_one_prototype_and_n_1(case):
    manifold, codes = made(case, count=2, n=1)
    geodesics = manifold.connect(codes[:1], codes[1:])
    moved = manifold.move(geodesics, np.ones((1, 1)))
    assert manifold.sqdist(moved, codes[1:])[0, 0] < 1e-12
    assert manifold.decode(moved).shape == manifold.decode(codes[:1]).shape


@EVERY
def test_decode_gives_back_the_points(case):
    points = case.points(np.random.default_rng(1), 4, 3)
    manifold = case.manifold(3)
    np.testing.assert_allclose(manifold.decode(manifold.encode(points)), points, atol=1e-12)


@EVERY
def test_decode_gives_a_copy(case):
    manifold, codes = made(case)
    kept = codes.copy()
    manifold.decode(codes)[:] = 0
    assert np.array_equal(codes, kept)


@EVERY
def test_the_triangle_inequality_holds(case):
    manifold, codes = made(case, count=12, n=2)
    d = np.sqrt(manifold.sqdist(codes, codes))
    assert (d[:, None, :] <= d[:, :, None] + d[None] + 1e-9).all()


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (AffineInvariant, AffineInvariant(max_step_length=5)),
        (LogEuclidean, AffineInvariant()),
        (ProjectedEuclidean, ProjectedEuclidean(relative=True)),
        (EuclideanVectors, ProjectedEuclidean()),
        (LogCholesky, LogEuclidean()),
        (TangentSpace, TangentSpace(whiten=True)),
        (TangentSpace, TangentSpace(np.eye(2))),
        (partial(TangentSpace, np.diag([1.0, 2.0])), TangentSpace(np.eye(2))),
        (BuresWasserstein, BuresWasserstein(min_stretch=0.5)),
        (LearnedLogEuclidean, LearnedLogEuclidean(rank=2)),
    ],
)
def test_manifolds_compare_and_hash_by_value(make, other):
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() != other


# --- moves in two parts; the learned metric moves with its prototypes, and has none

SPLIT = pytest.mark.parametrize(
    "case", [pytest.param(case, id=name) for name, case in CASES.items() if is_additive(case.manifold(3))]
)


@SPLIT
def test_a_move_is_the_exponential_of_the_pull(case):
    for size in [1, 4]:
        manifold, codes = made(case)
        rng = np.random.default_rng(8)
        prototypes = manifold.move(manifold.connect(codes[:2], codes[3:]), np.full((4, 2), 0.1))
        for start in (codes[:2], prototypes):
            geodesics = manifold.connect(start, codes[3 : 3 + size])
            weights = rng.uniform(-0.1, 0.2, (size, 2))
            moved = manifold.exp(start, manifold.pull(geodesics, weights))
            wanted = manifold.decode(manifold.move(geodesics, weights))
            np.testing.assert_allclose(manifold.decode(moved), wanted, rtol=1e-10, atol=1e-12)


@SPLIT
def test_pulls_add_up_over_batches_and_are_linear_in_the_weights(case):
    manifold, codes = made(case)
    weights = np.random.default_rng(9).uniform(-0.2, 0.2, (5, 2))
    prototypes = manifold.move(manifold.connect(codes[:2], codes[2:]), weights)
    whole = manifold.pull(manifold.connect(prototypes, codes[2:]), weights)
    parts = [manifold.connect(prototypes, codes[2 + b : 4 + b]) for b in (0, 2)]
    parts.append(manifold.connect(prototypes, codes[6:]))
    pulls = [manifold.pull(part, weights[b : b + 2]) for part, b in zip(parts, (0, 2, 4), strict=True)]
    np.testing.assert_allclose(sum(pulls), whole, rtol=1e-9, atol=1e-12)
    doubled = manifold.pull(manifold.connect(prototypes, codes[2:]), 2 * weights)
    np.testing.assert_allclose(doubled, 2 * whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["affine-invariant", "affine-invariant, complex"])
def test_a_whitened_tangent_has_the_length_of_the_step(name):
    manifold, codes = made(CASES[name])
    tangents = manifold.pull(manifold.connect(codes[:2], codes[2:]), np.full((5, 2), 0.3))
    moved = manifold.exp(codes[:2], tangents)
    length = np.linalg.norm(tangents, axis=(1, 2))
    np.testing.assert_allclose(np.sqrt(np.diagonal(manifold.sqdist(moved, codes[:2]))), length, rtol=1e-9)


# --- moves, independently


def reference_move_log_euclidean(w, samples, weights):
    log_w = scipy.linalg.logm(w)
    return scipy.linalg.expm(
        log_w + sum(s * (scipy.linalg.logm(x) - log_w) for s, x in zip(weights, samples, strict=True))
    )


def reference_move_pymanopt(w, samples, weights):
    space = SymmetricPositiveDefinite(len(w))
    return space.exp(w, sum(s * space.log(w, x) for s, x in zip(weights, samples, strict=True)))


def reference_move_straight(w, samples, weights):
    return w + sum(s * (x - w) for s, x in zip(weights, samples, strict=True))


def reference_move_log_cholesky(w, samples, weights):
    def code(matrix):
        lower = np.linalg.cholesky(matrix)
        return np.tril(lower, -1) + np.diag(np.log(np.diag(lower).real))

    moved = code(w) + sum(s * (code(x) - code(w)) for s, x in zip(weights, samples, strict=True))
    lower = np.tril(moved, -1) + np.diag(np.exp(np.diag(moved).real))
    return lower @ lower.conj().T


def reference_move_bures_wasserstein(w, samples, weights):
    """(I + S) W (I + S) with S the weighted sum of T - I, T = W^-1/2 (W^1/2 X W^1/2)^1/2 W^-1/2."""
    root = scipy.linalg.sqrtm(w)
    inverse, one = np.linalg.inv(root), np.eye(len(w))
    maps = [inverse @ scipy.linalg.sqrtm(root @ x @ root) @ inverse for x in samples]
    stretch = one + sum(s * (t - one) for s, t in zip(weights, maps, strict=True))
    return stretch @ w @ stretch


MOVES = [
    ("affine-invariant", reference_move_affine_invariant),
    ("affine-invariant", reference_move_pymanopt),
    ("affine-invariant, complex", reference_move_affine_invariant),
    ("pymanopt's SPD", reference_move_affine_invariant),
    ("Log-Euclidean", reference_move_log_euclidean),
    ("Log-Euclidean, complex", reference_move_log_euclidean),
    ("log-Cholesky", reference_move_log_cholesky),
    ("log-Cholesky, complex", reference_move_log_cholesky),
    ("Bures-Wasserstein", reference_move_bures_wasserstein),
    ("Bures-Wasserstein, complex", reference_move_bures_wasserstein),
    ("learned, rank 2", reference_move_log_euclidean),
    ("learned, rank 2, complex", reference_move_log_euclidean),
    ("projected", reference_move_straight),
    ("vectors", reference_move_straight),
]


@pytest.mark.parametrize("n_samples", [1, 4])
@pytest.mark.parametrize(("name", "reference"), MOVES)
def test_move_is_the_exponential_of_the_weighted_logarithms(name, reference, n_samples):
    rng = np.random.default_rng(5)
    points = CASES[name].points(rng, 2 + n_samples, 4)
    manifold = CASES[name].manifold(4)
    codes = manifold.encode(points)
    weights = rng.uniform(-0.2, 0.3, (n_samples, 2))
    moved = manifold.decode(manifold.move(manifold.connect(codes[:2], codes[2:]), weights))
    wanted = [reference(points[k], points[2:], weights[:, k]) for k in range(2)]
    np.testing.assert_allclose(moved, wanted, rtol=1e-9, atol=1e-11)


def test_a_quarter_turn_on_the_sphere_by_hand():
    manifold = FromPymanopt(Sphere(2))
    geodesics = manifold.connect(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    third = manifold.move(geodesics, np.array([[1 / 3]]))
    np.testing.assert_allclose(third, [[np.cos(np.pi / 6), np.sin(np.pi / 6)]])
    np.testing.assert_allclose(geodesics.sqdist, [[np.pi**2 / 4]])


# --- pymanopt's manifolds


class WithoutLog(Sphere):
    """A sphere that has forgotten its logarithm."""

    log = PymanoptManifold.log


@pytest.mark.parametrize(
    ("manifold", "sentence"),
    [
        ("sphere", "must be a pymanopt manifold, got 'sphere'"),
        (WithoutLog(3), "lacks log, which rplvq needs to move prototypes"),
        (Product([Sphere(3), PymanoptEuclidean(2)]), "are not single arrays"),
    ],
)
def test_what_cannot_have_prototypes_is_refused(manifold, sentence):
    with pytest.raises(TypeError, match=sentence):
        FromPymanopt(manifold)


@pytest.mark.parametrize(
    ("manifold", "points", "sentence"),
    [
        (Sphere(3), [[1.0, 0, 0], [1.0, 1.0, 0]], r"X\[1\] is not a point of Sphere.*off by"),
        (Sphere(3), [[1.0, 0, 0], [0, np.nan, 1]], r"X\[1\] contains NaN .* its entry \[1\] is nan"),
        (Sphere(3), [1.0, 0, 0], r"numbers of shape \(n_points, ...\), got float64 of shape \(3,\)"),
        (Sphere(3), np.empty((0, 3)), r"0 sample\(s\)"),
        (Sphere(3), [["a", "b", "c"]], "must be numbers"),
        (Sphere(3), np.eye(4), r"X\[0\] is not a point"),
        (Grassmann(4, 2), np.ones((2, 4, 2)), r"X\[0\] is not a point"),
        (PoincareBall(2), [[0.0, 0.1], [1.0, 2.0]], r"X\[1\] is not a point"),
    ],
)
def test_points_off_a_pymanopt_manifold_are_refused(manifold, points, sentence):
    with pytest.raises(ValueError, match=sentence):
        FromPymanopt(manifold).encode(points)


def test_coinciding_points_have_distance_0_where_pymanopt_divides_by_it():
    for case in ("sphere", "Poincare ball", "Grassmann"):
        manifold, codes = made(CASES[case])
        geodesics = manifold.connect(codes[:1], codes[:1])
        assert geodesics.sqdist[0, 0] == 0
        assert np.array_equal(manifold.move(geodesics, np.ones((1, 1))), codes[:1])


def test_points_one_rounding_apart_are_near_not_nan():
    """Logarithms that divide by the distance meet 0 / 0 there; sqdist then hides a NaN."""
    points = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 2))
    manifold = FromPymanopt(PoincareBall(2))
    with np.errstate(all="ignore"):
        found = [manifold.sqdist(x[None], np.nextafter(x, 1)[None])[0, 0] for x in points]
    assert np.isfinite(found).all(), f"{np.isnan(found).sum()} of {len(points)} distances are NaN"
    assert np.max(found) < 1e-28


def test_antipodes_of_a_sphere_are_far_apart_or_refused():
    """A logarithm does not exist there; distance 0 would make the farthest one the nearest."""
    manifold = FromPymanopt(Sphere(3))
    try:
        found = manifold.sqdist(np.eye(3)[:1], -np.eye(3)[:1])
    except ValueError:
        return
    assert found[0, 0] == pytest.approx(np.pi**2)
