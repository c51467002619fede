"""Contract tests over a table of all geometries, and what is special to each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from pymanopt.manifolds import Euclidean as PymanoptEuclidean
from pymanopt.manifolds import (
    Grassmann,
    PoincareBall,
    Product,
    Sphere,
    SymmetricPositiveDefinite,
)
from pymanopt.manifolds.manifold import Manifold as PymanoptManifold

import rplvq.manifolds.affine_invariant as affine_invariant_module
from rplvq import AffineInvariant, EuclideanVectors, FromPymanopt, LogEuclidean, ProjectedEuclidean
from rplvq.protocols import Manifold
from rplvq.testing import check_manifold

AI, LE = AffineInvariant(), LogEuclidean()


# --- points and references


def spd(rng, count, n, spread=0.7, dtype=float):
    """Positive definite matrices (count, n, n) whose log-eigenvalues are uniform in +-spread."""
    noise = rng.normal(size=(count, n, n))
    if dtype is complex:
        noise = noise + 1j * rng.normal(size=(count, n, n))
    basis = np.linalg.qr(noise)[0]
    eigenvalues = np.exp(rng.uniform(-spread, spread, (count, 1, n)))
    matrices = (basis * eigenvalues) @ basis.conj().swapaxes(1, 2)
    return 0.5 * (matrices + matrices.conj().swapaxes(1, 2))


def hpd(rng, count, n, spread=0.7):
    return spd(rng, count, n, spread, complex)


def vectors(rng, count, n):
    return rng.normal(size=(count, n))


def on_sphere(rng, count, n):
    points = 0.4 * rng.normal(size=(count, n + 1)) + np.eye(n + 1)[0]
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def bases(rng, count, n):
    return np.linalg.qr(np.eye(n + 2)[:, :2] + 0.15 * rng.normal(size=(count, n + 2, 2)))[0]


def in_ball(rng, count, n):
    return rng.uniform(-0.7, 0.7, (count, n)) / np.sqrt(n)


def affine_invariant_distance(x, w):
    return np.sqrt((np.log(scipy.linalg.eigvalsh(x, w)) ** 2).sum())


def log_euclidean_distance(x, w):
    return np.linalg.norm(scipy.linalg.logm(x) - scipy.linalg.logm(w))


def norm_of_difference(x, w):
    return np.linalg.norm(x - w)


def angle(x, w):
    return np.arccos(x @ w)


def principal_angles(x, w):
    return np.linalg.norm(scipy.linalg.subspace_angles(x, w))


def hyperbolic_distance(x, w):
    ratio = ((x - w) @ (x - w)) / ((1 - x @ x) * (1 - w @ w))
    return np.arccosh(1 + 2 * ratio)


class Case(NamedTuple):
    """A geometry, random points for it, and its distance by an independent formula."""

    manifold: Callable[[int], Any]
    points: Callable[..., Any]
    distance: Callable[[Any, Any], Any]


def always(manifold):
    return lambda n: manifold


CASES = {
    "affine-invariant": Case(always(AI), spd, affine_invariant_distance),
    "affine-invariant, complex": Case(always(AI), hpd, affine_invariant_distance),
    "Log-Euclidean": Case(always(LE), spd, log_euclidean_distance),
    "Log-Euclidean, complex": Case(always(LE), hpd, log_euclidean_distance),
    "projected": Case(always(ProjectedEuclidean()), spd, norm_of_difference),
    "projected, complex": Case(always(ProjectedEuclidean()), hpd, norm_of_difference),
    "projected, relative": Case(always(ProjectedEuclidean(relative=True)), spd, norm_of_difference),
    "vectors": Case(always(EuclideanVectors()), vectors, norm_of_difference),
    "sphere": Case(lambda n: FromPymanopt(Sphere(n + 1)), on_sphere, angle),
    "Grassmann": Case(lambda n: FromPymanopt(Grassmann(n + 2, 2)), bases, principal_angles),
    "Poincare ball": Case(lambda n: FromPymanopt(PoincareBall(n)), in_ball, hyperbolic_distance),
    "pymanopt's SPD": Case(lambda n: FromPymanopt(SymmetricPositiveDefinite(n)), spd, affine_invariant_distance),
}
EVERY = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def made(case, count=7, n=3, seed=0):
    """Manifold and codes of a case."""
    manifold = case.manifold(n)
    return manifold, manifold.encode(case.points(np.random.default_rng(seed), count, n))


def relative_gap(actual, wanted):
    return np.abs(actual - wanted).max() / np.abs(wanted).max()


# --- the contract


@EVERY
@pytest.mark.parametrize("n", [2, 4])
def test_the_contract_holds(case, n):
    manifold = case.manifold(n)
    assert isinstance(manifold, Manifold)
    check_manifold(manifold, case.points(np.random.default_rng(n), 7, n), random_state=n)


@EVERY
@pytest.mark.parametrize("n", [1, 2, 22])
def test_squared_distances_agree_with_an_independent_formula(case, n):
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
    ],
)
def test_manifolds_compare_and_hash_by_value(make, other):
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() != other


# --- moves, independently


def reference_move_affine_invariant(w, samples, weights):
    root = scipy.linalg.sqrtm(w)
    inverse = np.linalg.inv(root)
    logs = [scipy.linalg.logm(inverse @ x @ inverse) for x in samples]
    return root @ scipy.linalg.expm(np.tensordot(weights, logs, 1)) @ root


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


MOVES = [
    ("affine-invariant", reference_move_affine_invariant),
    ("affine-invariant", reference_move_pymanopt),
    ("affine-invariant, complex", reference_move_affine_invariant),
    ("pymanopt's SPD", reference_move_affine_invariant),
    ("Log-Euclidean", reference_move_log_euclidean),
    ("Log-Euclidean, complex", reference_move_log_euclidean),
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


# --- invariances


def congruent(matrices, transform):
    moved = transform @ matrices @ transform.conj().T
    return 0.5 * (moved + moved.conj().swapaxes(1, 2))


def inverses(matrices):
    found = np.linalg.inv(matrices)
    return 0.5 * (found + found.conj().swapaxes(1, 2))


def distances(manifold, points):
    codes = manifold.encode(points)
    return manifold.sqdist(codes, codes)


def rotation(rng, n, like):
    noise = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if np.iscomplexobj(like) else 0)
    return np.linalg.qr(noise)[0]


@pytest.mark.parametrize("make", [spd, hpd])
def test_affine_invariant_distances_survive_congruence_and_inversion(make):
    rng = np.random.default_rng(6)
    points = make(rng, 5, 4)
    transform = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4)) * np.iscomplexobj(points)
    wanted = distances(AI, points)
    np.testing.assert_allclose(distances(AI, congruent(points, transform)), wanted, atol=1e-9)
    np.testing.assert_allclose(distances(AI, inverses(points)), wanted, atol=1e-10)


@pytest.mark.parametrize("make", [spd, hpd])
def test_log_euclidean_distances_survive_rotation_inversion_and_scaling(make):
    rng = np.random.default_rng(7)
    points = make(rng, 5, 4)
    wanted = distances(LE, points)
    turned = congruent(points, rotation(rng, 4, points))
    np.testing.assert_allclose(distances(LE, turned), wanted, atol=1e-11)
    np.testing.assert_allclose(distances(LE, inverses(points)), wanted, atol=1e-11)
    np.testing.assert_allclose(distances(LE, 1e5 * points), wanted, atol=1e-10)


def test_log_euclidean_distances_do_not_survive_every_congruence():
    """The difference between the two metrics, so that the tests above mean something."""
    points = spd(np.random.default_rng(8), 5, 3)
    transform = np.diag([1.0, 10.0, 100.0])
    before, after = distances(LE, points), distances(LE, congruent(points, transform))
    assert relative_gap(after, before) > 0.01


def test_affine_invariant_moves_follow_congruence():
    rng = np.random.default_rng(9)
    points, transform = spd(rng, 6, 3), rng.normal(size=(3, 3))
    weights = rng.uniform(-0.2, 0.3, (4, 2))
    moved = np.asarray(AI.move(AI.connect(points[:2], points[2:]), weights))
    turned = congruent(points, transform)
    again = np.asarray(AI.move(AI.connect(turned[:2], turned[2:]), weights))
    np.testing.assert_allclose(again, congruent(moved, transform), rtol=1e-9, atol=1e-12)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    spread=st.floats(0.01, 8),
    is_complex=st.booleans(),
)
def test_the_log_euclidean_distance_never_exceeds_the_affine_invariant(seed, n, spread, is_complex):
    points = (hpd if is_complex else spd)(np.random.default_rng(seed), 4, n, spread)
    longer, shorter = distances(AI, points), distances(LE, points)
    assert (shorter <= longer * (1 + 1e-6) + 1e-12).all()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    weight=st.floats(-1, 2),
    scale=st.integers(-24, 12),
    name=st.sampled_from(["affine-invariant", "affine-invariant, complex", "Log-Euclidean"]),
)
def test_weight_s_leaves_one_minus_s_of_the_distance(seed, n, weight, scale, name):
    manifold = CASES[name].manifold(n)
    codes = manifold.encode(10.0**scale * CASES[name].points(np.random.default_rng(seed), 3, n))
    for sample in codes[1:, None]:
        geodesics = manifold.connect(codes[:1], sample)
        left = manifold.sqdist(manifold.move(geodesics, np.array([[weight]])), sample)
        size = geodesics.sqdist[0, 0]
        assert left[0, 0] == pytest.approx((1 - weight) ** 2 * size, rel=1e-6, abs=1e-9 * size)


@pytest.mark.parametrize("scale", [1e-28, 1e-12, 1.0, 1e12])
@pytest.mark.parametrize("manifold", [AI, LE, ProjectedEuclidean(relative=True)], ids=str)
def test_units_do_not_matter(manifold, scale):
    points = spd(np.random.default_rng(10), 6, 4)
    weights = np.random.default_rng(11).uniform(-0.3, 0.3, (4, 2))
    results = []
    for unit in (1.0, scale):
        codes = manifold.encode(unit * points)
        geodesics = manifold.connect(codes[:2], codes[2:])
        size = manifold.unit(codes) if hasattr(manifold, "unit") else 1.0
        moved = manifold.decode(manifold.move(geodesics, weights)) / unit
        results.append((geodesics.sqdist / size, moved))
    (wanted_d, wanted), (d, moved) = results
    np.testing.assert_allclose(d, wanted_d, rtol=1e-9)
    np.testing.assert_allclose(moved, wanted, rtol=1e-9)


def test_channels_in_mixed_units_are_as_good_as_in_one():
    """Rows that differ by 12 orders of magnitude, as EEG in volts beside a temperature."""
    points = spd(np.random.default_rng(12), 4, 3)
    mixed = congruent(points, np.diag([1e-6, 1.0, 1e3]))
    np.testing.assert_allclose(AI.sqdist(mixed, mixed), AI.sqdist(points, points), atol=1e-9)


# --- the affine-invariant machine


def test_carried_factors_stay_exact_on_one_geodesic():
    points = spd(np.random.default_rng(13), 2, 6)
    rng, prototype, left = np.random.default_rng(14), points[:1], 1.0
    for weight in rng.uniform(-1e-3, 1.2e-3, 10_000):
        prototype = AI.move(AI.connect(prototype, points[1:]), np.array([[weight]]))
        left *= 1 - weight
    wanted = reference_move_affine_invariant(points[0], points[1:], np.array([1 - left]))
    assert relative_gap(np.asarray(prototype)[0], wanted) < 1e-10


def test_carried_factors_stay_with_the_path_that_starts_anew_at_each_step():
    points = spd(np.random.default_rng(15), 12, 4, spread=2.0)
    rng, carried, fresh = np.random.default_rng(16), points[:2], points[:2]
    for _ in range(10_000):
        sample = points[2:][rng.integers(10)][None]
        weights = rng.uniform(-1e-2, 2e-2, (1, 2))
        carried = AI.move(AI.connect(carried, sample), weights)
        fresh = np.asarray(AI.move(AI.connect(fresh, sample), weights))
    assert relative_gap(np.asarray(carried), fresh) < 1e-10


def test_chunks_of_sqdist_do_not_show(monkeypatch):
    points = spd(np.random.default_rng(17), 9, 3)
    wanted = AI.sqdist(points[:2], points)
    monkeypatch.setattr(affine_invariant_module, "CHUNK_BYTES", 2 * 2 * points[:2].nbytes)
    assert np.array_equal(AI.sqdist(points[:2], points), wanted)


def test_a_pair_further_apart_than_float64_resolves_is_far_not_nan():
    far = AI.encode([np.diag([1.0, 1e-14]), np.diag([1e-14, 1.0])])
    d = AI.connect(far[:1], far[1:]).sqdist
    assert np.isfinite(d).all()
    assert d[0, 0] > 30**2


def test_a_single_matrix_by_hand():
    """d^2(diag(a, b), I) = log^2 a + log^2 b, and half-way lies diag(sqrt a, sqrt b)."""
    codes = AI.encode([np.eye(2), np.diag([4.0, 9.0])])
    geodesics = AI.connect(codes[:1], codes[1:])
    assert geodesics.sqdist[0, 0] == pytest.approx(np.log(4) ** 2 + np.log(9) ** 2)
    half = np.asarray(AI.move(geodesics, np.array([[0.5]])))[0]
    np.testing.assert_allclose(half, np.diag([2.0, 3.0]), atol=1e-15)


def test_carried_prototypes_have_a_length_and_are_exactly_hermitian():
    points = hpd(np.random.default_rng(18), 5, 4)
    moved = AI.move(AI.connect(points[:3], points[3:]), np.full((2, 3), 0.2))
    codes = np.asarray(moved)
    assert len(moved) == 3
    assert np.array_equal(codes, codes.conj().swapaxes(1, 2))
    assert np.asarray(moved, dtype=np.complex64).dtype == np.complex64


@pytest.mark.parametrize("value", [0, -1.0])
@pytest.mark.parametrize("kind", [AffineInvariant, LogEuclidean])
def test_max_step_length_must_be_positive(kind, value):
    with pytest.raises(ValueError, match="max_step_length"):
        kind(max_step_length=value)


# --- number of eigendecompositions


@pytest.fixture
def decompositions(monkeypatch):
    """Count the matrices that any spectral routine is given."""
    seen = {"matrices": 0}

    def counting(function):
        def wrapper(a, *args, **kwargs):
            seen["matrices"] += int(np.prod(np.shape(a)[:-2]))
            return function(a, *args, **kwargs)

        return wrapper

    for module, names in (
        (np.linalg, ("eigh", "eigvalsh", "eig", "eigvals", "svd")),
        (scipy.linalg, ("eigh", "eigvalsh", "svd", "logm", "expm", "sqrtm")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, counting(getattr(module, name)))

    def count(function, *arguments):
        seen["matrices"] = 0
        return function(*arguments), seen["matrices"]

    return count


@pytest.mark.parametrize(("n_samples", "of_move"), [(1, 0), (5, 3)])
def test_affine_invariant_decomposes_each_pair_once(decompositions, n_samples, of_move):
    points = spd(np.random.default_rng(19), 3 + n_samples, 4)
    codes, of_encode = decompositions(AI.encode, points)
    geodesics, of_connect = decompositions(AI.connect, codes[:3], codes[3:])
    moved, found = decompositions(AI.move, geodesics, np.full((n_samples, 3), 0.1))
    assert (of_encode, of_connect, found) == (len(points), 3 * n_samples, of_move)
    assert decompositions(AI.connect, moved, codes[3:])[1] == 3 * n_samples
    assert decompositions(AI.sqdist, moved, codes[3:])[1] == 3 * n_samples
    assert decompositions(AI.decode, moved)[1] == 0


@pytest.mark.parametrize("n_samples", [1, 5])
def test_log_euclidean_decomposes_the_data_once_and_never_again(decompositions, n_samples):
    points = spd(np.random.default_rng(20), 3 + n_samples, 4)
    codes, of_encode = decompositions(LE.encode, points)
    geodesics, of_connect = decompositions(LE.connect, codes[:3], codes[3:])
    moved, of_move = decompositions(LE.move, geodesics, np.full((n_samples, 3), 0.1))
    of_sqdist = decompositions(LE.sqdist, moved, codes)[1]
    assert (of_encode, of_connect, of_move, of_sqdist) == (len(points), 0, 0, 0)
    assert decompositions(LE.decode, moved)[1] == 3


def test_projected_euclidean_decomposes_each_prototype_once_a_step(decompositions):
    manifold = ProjectedEuclidean()
    codes = manifold.encode(spd(np.random.default_rng(21), 7, 4))
    geodesics, of_connect = decompositions(manifold.connect, codes[:3], codes[3:])
    assert of_connect == 0
    assert decompositions(manifold.move, geodesics, np.full((4, 3), 0.1))[1] == 3


# --- the flat ones


@pytest.mark.parametrize(
    ("manifold", "floor"),
    [(ProjectedEuclidean(tau=0.25), 0.25), (ProjectedEuclidean(tau=0.25, relative=True), 0.5)],
    ids=["absolute", "relative to the mean eigenvalue 2"],
)
def test_eigenvalues_below_the_floor_are_raised_to_it(manifold, floor):
    codes = manifold.encode([np.diag([1.0, 3.0]), np.diag([9.0, 2.0])])
    away = manifold.move(manifold.connect(codes[:1], codes[1:]), np.array([[-0.5]]))
    np.testing.assert_allclose(away[0], np.diag([floor, 3.5]), atol=1e-15)
    straight = manifold.move(manifold.connect(codes[:1], codes[1:]), np.array([[0.5]]))
    np.testing.assert_allclose(straight[0], np.diag([5.0, 2.5]))


def test_only_the_prototypes_below_the_floor_are_projected():
    manifold = ProjectedEuclidean(tau=0.25)
    codes = manifold.encode(spd(np.random.default_rng(22), 3, 3))
    weights = np.array([[-5.0, 0.1]])
    moved = manifold.move(manifold.connect(codes[:2], codes[2:]), weights)
    np.testing.assert_allclose(moved[1], codes[1] + 0.1 * (codes[2] - codes[1]))
    assert np.linalg.eigvalsh(moved[0])[0] == pytest.approx(0.25)


def test_an_absolute_floor_above_the_data_is_refused_by_name():
    points = 1e-12 * spd(np.random.default_rng(23), 3, 4)
    points[0] *= 1e12
    with pytest.raises(ValueError, match=r"X\[1\] has mean eigenvalue .*tau=0.0001.*relative=True"):
        ProjectedEuclidean().encode(points)
    assert ProjectedEuclidean(relative=True).encode(points).shape == (3, 4, 4)


@pytest.mark.parametrize("tau", [0, -1e-4])
def test_tau_must_be_positive(tau):
    with pytest.raises(ValueError, match="tau"):
        ProjectedEuclidean(tau=tau)


def test_units_are_squared_lengths():
    assert ProjectedEuclidean().unit(np.array([2 * np.eye(3), 4 * np.eye(3)])) == pytest.approx(9.0)
    assert EuclideanVectors().unit(np.array([[0.0, 1.0], [2.0, 5.0]])) == pytest.approx(2.5)


def test_a_real_sample_and_a_complex_prototype_meet():
    codes = LE.encode(hpd(np.random.default_rng(24), 2, 3))
    real = LE.encode(spd(np.random.default_rng(25), 2, 3))
    for first, second in ((codes, real), (real, codes)):
        wanted = [[np.linalg.norm(x - w) ** 2 for w in first] for x in second]
        np.testing.assert_allclose(LE.sqdist(first, second), wanted)
        np.testing.assert_allclose(LE.sqdist(first, second[:1]), wanted[:1])


# --- pymanopt's manifolds


class WithoutLog(Sphere):
    """A sphere that has forgotten its logarithm."""

    log = PymanoptManifold.log


@pytest.mark.parametrize(
    ("manifold", "sentence"),
    [
        ("sphere", "must be a pymanopt manifold, got 'sphere'"),
        (WithoutLog(3), "does not offer log"),
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
        (Sphere(3), [[1.0, 0, 0], [0, np.nan, 1]], r"X\[1\] contains NaN .*\(1, 1\) is nan"),
        (
            Sphere(3),
            [1.0, 0, 0],
            r"numbers of shape \(n_points, ...\), got float64 of shape \(3,\)",
        ),
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
