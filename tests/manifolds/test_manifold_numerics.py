"""Rounding, floors and the number of eigendecompositions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from rplvq import AffineInvariant, EuclideanVectors, LogEuclidean, ProjectedEuclidean
from tests.cases import hpd, reference_move_affine_invariant, relative_gap, spd

AI, LE = AffineInvariant(), LogEuclidean()


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
    monkeypatch.setattr("rplvq.arrays._samples.BUDGET_BYTES", 2 * 2 * points[:2].nbytes)
    assert np.array_equal(AI.sqdist(points[:2], points), wanted)


def test_a_pair_further_apart_than_float64_resolves_is_far_not_nan():
    far = AI.encode([np.diag([1.0, 1e-14]), np.diag([1e-14, 1.0])])
    d = AI.connect(far[:1], far[1:]).sqdist
    assert np.isfinite(d).all()
    assert d[0, 0] > 30**2


def of_condition(rng, condition, n=5, is_complex=False):
    """A matrix in a random frame whose smallest and largest eigenvalues are 1 / sqrt(condition) and its inverse."""
    noise = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if is_complex else 0)
    basis = np.linalg.qr(noise)[0]
    shares = np.array([-0.5, 0.5, *rng.uniform(-0.5, 0.5, n - 2)])
    matrix = (basis * condition**shares) @ basis.conj().T
    return 0.5 * (matrix + matrix.conj().T)


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("is_complex", [False, True])
def test_ill_conditioned_distances_are_symmetric_and_zero_to_oneself(condition, is_complex):
    rng = np.random.default_rng(0)
    codes = AI.encode([of_condition(rng, condition, is_complex=is_complex) for _ in range(12)])
    d = np.sqrt(AI.sqdist(codes, codes))
    off = ~np.eye(len(codes), dtype=bool)
    assert (np.abs(d - d.T)[off] / d[off]).max() < 1e-8
    assert (np.diag(d) >= 0).all()
    assert np.diag(d).max() < 1e-7


@pytest.mark.parametrize("n_shears", [0, 4, 12, 20])
def test_ill_conditioned_distances_are_exact(n_shears):
    """W = T T^T and X = T D T^T of integers that float64 holds exactly, so that d(X, W) = ||log D||."""
    rng, n = np.random.default_rng(n_shears), 4
    frame = np.eye(n)
    for _ in range(n_shears):
        i, j = rng.choice(n, 2, replace=False)
        frame[i] += rng.integers(-2, 3) * frame[j]
    powers = 2.0 ** np.array([-3, 0, 5, 8])
    w, x = frame @ frame.T, (frame * powers) @ frame.T
    assert np.abs(frame).max() < 2**20  # products are exact
    assert np.linalg.cond(w) < 1e12
    wanted = np.linalg.norm(np.log(powers))
    tolerance = 1e-15 * max(np.linalg.cond(w), 100)
    codes = AI.encode([w, x])
    assert np.sqrt(AI.sqdist(codes, codes)[[0, 1], [1, 0]]) == pytest.approx([wanted] * 2, rel=tolerance)


def test_two_ill_conditioned_matrices_at_an_angle_by_extended_precision():
    """Condition 1e10, eigenbases at angles .3 and 1.4: d^2 is 1039.3 in arithmetic of 128 bits."""
    frames = [np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) for t in (0.3, 1.4)]
    codes = AI.encode([frame @ np.diag([1.0, 1e-10]) @ frame.T for frame in frames])
    geodesics = AI.connect(codes[:1], codes[1:])
    assert geodesics.sqdist[0, 0] == pytest.approx(1039.3, abs=0.05)
    moved = AI.move(geodesics, np.ones((1, 1)))
    assert AI.sqdist(moved, codes[1:])[0, 0] < 1e-10


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("n_samples", [1, 4])
@pytest.mark.parametrize("n", [2, 5])
def test_steps_use_the_distances_of_sqdist_and_reach_the_sample(condition, is_complex, n_samples, n):
    rng = np.random.default_rng(1)
    codes = AI.encode([of_condition(rng, condition, n, is_complex) for _ in range(3 + n_samples)])
    geodesics = AI.connect(codes[:3], codes[3:])
    wanted = AI.sqdist(codes[:3], codes[3:])
    np.testing.assert_allclose(geodesics.sqdist, wanted, rtol=1e-8)
    np.testing.assert_array_equal(geodesics.sqdist, np.vecdot(geodesics.log_eigenvalues, geodesics.log_eigenvalues))
    weights = np.zeros((n_samples, 3))
    weights[-1] = 1.0
    left = np.sqrt(AI.sqdist(AI.move(geodesics, weights), codes[-1:])[0])
    assert (left < 1e-8 + 1e-16 * condition * np.sqrt(wanted[-1])).all()


@pytest.mark.parametrize("scale", [2.0**-830, 2.0**-530, 2.0**530, 2.0**830])
@pytest.mark.parametrize("condition", [1e2, 1e10])
def test_neither_distances_nor_steps_depend_on_the_unit(scale, condition):
    rng = np.random.default_rng(2)
    codes = np.array([of_condition(rng, condition) for _ in range(5)])
    scaled = AI.encode(scale * codes)
    wanted = AI.sqdist(codes[:2], codes[2:])
    np.testing.assert_allclose(AI.sqdist(scaled[:2], scaled[2:]), wanted, rtol=1e-12)
    np.testing.assert_allclose(AI.connect(scaled[:2], scaled[2:]).sqdist, wanted, rtol=1e-12)


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
    points, plain = spd(np.random.default_rng(19), 3 + n_samples, 4), AffineInvariant(compiled=False)
    codes, of_encode = decompositions(plain.encode, points)
    geodesics, of_connect = decompositions(plain.connect, codes[:3], codes[3:])
    moved, found = decompositions(plain.move, geodesics, np.full((n_samples, 3), 0.1))
    assert (of_encode, of_connect, found) == (0, 3 * n_samples, of_move)
    assert decompositions(plain.connect, moved, codes[3:])[1] == 3 * n_samples
    assert decompositions(plain.sqdist, moved, codes[3:])[1] == 3 * n_samples
    assert decompositions(plain.decode, moved)[1] == 0


@pytest.mark.parametrize(
    ("lowest", "highest", "wanted"),
    [(-0.499, 0.499, 1), (-0.501, 0.501, 2), (0.0, 0.999, 1), (0.0, 1.001, 2), (-9.0, -8.5, 1)],
)
def test_exactly_the_wide_spectra_are_decomposed_again(decompositions, lowest, highest, wanted):
    """The range counts, in units of log 1e8, wherever the spectrum lies; beside it stands the near pair (I, I)."""
    sample = np.diag(np.exp(np.log(1e8) * np.array([lowest, highest])))
    points = np.stack([np.eye(2), sample])
    geodesics, found = decompositions(AffineInvariant(compiled=False).connect, points[:1], points)
    assert found == 1 + wanted
    np.testing.assert_allclose(geodesics.log_eigenvalues[1, 0], np.log(np.diag(sample)), atol=1e-6)


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
