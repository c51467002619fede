"""What distances and moves survive: congruence, inversion, rotation, scaling, units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rplvq import AffineInvariant, BuresWasserstein, LearnedLogEuclidean, LogCholesky, LogEuclidean, ProjectedEuclidean
from tests.cases import CASES, hpd, relative_gap, spd

AI, LE = AffineInvariant(), LogEuclidean()


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


@pytest.mark.parametrize("make", [spd, hpd])
def test_bures_wasserstein_distances_survive_rotation_and_carry_units(make):
    rng = np.random.default_rng(7)
    points = make(rng, 5, 4)
    wanted = distances(BuresWasserstein(), points)
    turned = congruent(points, rotation(rng, 4, points))
    np.testing.assert_allclose(distances(BuresWasserstein(), turned), wanted, atol=1e-11)
    np.testing.assert_allclose(distances(BuresWasserstein(), 1e-12 * points), 1e-12 * wanted, rtol=1e-8, atol=1e-26)


@pytest.mark.parametrize("make", [spd, hpd])
def test_log_cholesky_distances_survive_diagonal_phases_only(make):
    """Lower triangular congruence acts on Cholesky factors by product, diagonal unitary ones by signs or phases."""
    rng = np.random.default_rng(7)
    points = make(rng, 5, 4)
    wanted = distances(LogCholesky(), points)
    phases = np.exp(1j * rng.uniform(0, 6, 4)) if np.iscomplexobj(points) else np.array([1, -1, -1, 1])
    turned = congruent(points, np.diag(phases))
    np.testing.assert_allclose(distances(LogCholesky(), turned), wanted, atol=1e-11)
    for other in (congruent(points, np.eye(4)[::-1]), 10.0 * points):  # another order of rows, another unit
        assert relative_gap(distances(LogCholesky(), other), wanted) > 0.01


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


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), spread=st.floats(0.01, 8), is_complex=st.booleans())
def test_the_log_euclidean_distance_never_exceeds_the_affine_invariant(seed, n, spread, is_complex):
    points = (hpd if is_complex else spd)(np.random.default_rng(seed), 4, n, spread)
    longer, shorter = distances(AI, points), distances(LE, points)
    assert (shorter <= longer * (1 + 1e-6) + 1e-12).all()


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
@pytest.mark.parametrize(
    "manifold", [AI, LE, ProjectedEuclidean(relative=True), BuresWasserstein(), LearnedLogEuclidean(rate=0)], ids=str
)
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
