"""Log-Cholesky, Bures-Wasserstein and the learned metric: against pyRiemann, at the edges, and in training."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.linalg

from rplvq import (
    RSLVQ,
    AffineInvariant,
    BuresWasserstein,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    RiemannianLVQ,
    Trainer,
    load_model,
)
from rplvq.arrays import Samples
from rplvq.datasets import make_syn1
from rplvq.estimators import resolve_manifold
from rplvq.manifolds import riemannian_mean
from rplvq.manifolds._learned_log_euclidean import MetricPrototypes
from rplvq.manifolds._shrinkage import coordinates
from rplvq.testing import _manifold as promises
from rplvq.testing import check_manifold
from rplvq.training import EpochScore
from tests.cases import hpd, spd
from tests.problems import cost_before_training

BW, LC, LLE = BuresWasserstein(), LogCholesky(), LearnedLogEuclidean()


def pyriemann_distance(name):
    geometry = pytest.importorskip("pyriemann.geometry.distance", reason="pyriemann is not installed")
    return getattr(geometry, f"distance_{name}")


@pytest.mark.parametrize("make", [spd, hpd])
@pytest.mark.parametrize(
    ("manifold", "name"), [(LC, "logchol"), (BW, "wasserstein"), (LearnedLogEuclidean(rate=0), "logeuclid")]
)
def test_distances_are_those_of_pyriemann(manifold, name, make):
    distance = pyriemann_distance(name)
    points = make(np.random.default_rng(0), 6, 5)
    codes = manifold.encode(points)
    wanted = [[distance(x, w, squared=True) for w in points[:2]] for x in points[2:]]
    np.testing.assert_allclose(manifold.sqdist(codes[:2], codes[2:]), wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "manifold"),
    [
        ("log_cholesky", LC),
        ("logchol", LC),
        ("bures_wasserstein", BW),
        ("wasserstein", BW),
        ("learned_log_euclidean", LLE),
    ],
)
def test_short_names(name, manifold):
    assert resolve_manifold(name) == manifold


@pytest.mark.parametrize("name", ["log_cholesky", "bures_wasserstein", "learned_log_euclidean"])
def test_training_lowers_the_cost_and_keeps_prototypes_positive_definite(name):
    X, y = make_syn1(n_per_class=15, random_state=0)
    model = RiemannianLVQ(name, sigma2="half_median", max_epochs=15, callbacks=[EpochScore()], random_state=0).fit(X, y)
    assert model.history_["cost"][-1] < 0.9 * cost_before_training(model, X, y)
    assert (np.linalg.eigvalsh(model.prototypes_) > 0).all()
    assert model.score(X, y) > 0.9


def test_the_log_cholesky_mean_has_the_geometric_mean_of_the_determinants():
    points = spd(np.random.default_rng(1), 6, 4)
    mean = LC.decode(riemannian_mean(LC, LC.encode(points)).code[None])[0]
    assert np.linalg.slogdet(mean)[1] == pytest.approx(np.linalg.slogdet(points)[1].mean())


# --- Bures-Wasserstein


def test_commuting_matrices_are_compared_by_their_roots():
    codes = BW.encode([np.diag([1.0, 4.0]), np.diag([9.0, 16.0])])
    assert BW.sqdist(codes[:1], codes[1:])[0, 0] == pytest.approx(2**2 + 2**2)


@pytest.mark.parametrize("make", [spd, hpd])
@pytest.mark.parametrize("spread", [0.7, 12.0])
def test_near_points_have_exact_distances_and_equal_ones_none(make, spread):
    """A difference of traces is lost at 1e-16 of them, which is a distance of 1e-8."""
    points = make(np.random.default_rng(2), 4, 5, spread)
    codes = BW.encode(points)
    same = np.diagonal(BW.sqdist(codes, codes))
    size = np.trace(points, axis1=1, axis2=2).real
    assert (same >= 0).all()
    assert (same < 1e-18 * size).all()
    # (1 + h) X lies at distance (sqrt(1 + h) - 1) sqrt(tr X) from X.
    step = 1e-9
    apart = np.diagonal(BW.sqdist(codes, BW.encode((1 + step) * points)))
    np.testing.assert_allclose(np.sqrt(apart), 0.5 * step * np.sqrt(size), rtol=1e-4)
    np.testing.assert_allclose(np.diagonal(BW.connect(codes, BW.encode((1 + step) * points)).sqdist), apart, rtol=1e-9)


def test_a_step_from_a_point_to_itself_is_finite_and_stays():
    codes = BW.encode(spd(np.random.default_rng(3), 2, 4))
    geodesics = BW.connect(codes, codes)
    moved = BW.move(geodesics, np.array([[-3.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_allclose(BW.decode(moved), BW.decode(codes), rtol=1e-12)


@pytest.mark.parametrize("make", [spd, hpd])
@pytest.mark.parametrize("weight", [-3.0, -50.0])
def test_a_step_that_would_leave_the_cone_ends_before_it_on_its_geodesic(make, weight):
    points = make(np.random.default_rng(4), 2, 4) * [[[1.0]], [[4.0]]]
    codes = BW.encode(points)
    geodesics = BW.connect(codes[:1], codes[1:])
    moved = BW.move(geodesics, np.array([[weight]]))
    root = scipy.linalg.sqrtm(points[0])
    inverse, one = np.linalg.inv(root), np.eye(4)
    transport = inverse @ scipy.linalg.sqrtm(root @ points[1] @ root) @ inverse
    least = np.linalg.eigvalsh(weight * (transport - one))[0]
    share = min(1.0, 0.9 / -least)
    assert share < 1
    left = BW.sqdist(moved, codes[1:])[0, 0]
    assert left == pytest.approx((1 - share * weight) ** 2 * geodesics.sqdist[0, 0])
    stretch = one + share * weight * (transport - one)
    assert np.linalg.eigvalsh(stretch)[0] == pytest.approx(0.1)
    np.testing.assert_allclose(BW.decode(moved)[0], stretch @ points[0] @ stretch, rtol=1e-9, atol=1e-12)


def test_only_the_repelled_prototype_is_shortened():
    codes = BW.encode(spd(np.random.default_rng(5), 3, 3))
    geodesics = BW.connect(codes[:2], codes[2:])
    moved = BW.move(geodesics, np.array([[-60.0, 0.4]]))
    alone = BW.move(BW.connect(codes[1:2], codes[2:]), np.array([[0.4]]))
    np.testing.assert_allclose(moved[1], alone[0], rtol=1e-12)


def test_a_prototype_repelled_for_ever_stays_positive_definite():
    points = spd(np.random.default_rng(6), 4, 4)
    codes = BW.encode(points)
    prototypes = codes[:1]
    for step in range(60):
        sample = codes[1 + step % 3][None]
        prototypes = BW.move(BW.connect(prototypes, sample), np.array([[-0.8]]))
        again = BW.encode(BW.decode(prototypes))
        assert np.isfinite(again).all()


def test_any_square_root_stands_for_its_matrix():
    points = spd(np.random.default_rng(7), 4, 3)
    codes = BW.encode(points)
    rotation = np.linalg.qr(np.random.default_rng(8).normal(size=(3, 3)))[0]
    turned = codes[:2] @ rotation
    np.testing.assert_allclose(BW.sqdist(turned, codes[2:]), BW.sqdist(codes[:2], codes[2:]))
    weights = np.full((2, 2), 0.2)
    moved, again = (BW.move(BW.connect(w, codes[2:]), weights) for w in (codes[:2], turned))
    np.testing.assert_allclose(BW.decode(again), BW.decode(moved), rtol=1e-10)


def test_the_mean_is_the_fixed_point_of_the_transport_equation():
    """A = sum (A^1/2 X A^1/2)^1/2 / N (Agueh and Carlier 2011), and smaller than the arithmetic mean."""
    points = spd(np.random.default_rng(9), 5, 3)
    mean = BW.decode(riemannian_mean(BW, BW.encode(points)).code[None])[0]
    root = scipy.linalg.sqrtm(mean)
    np.testing.assert_allclose(np.mean([scipy.linalg.sqrtm(root @ x @ root) for x in points], axis=0), mean, rtol=1e-6)
    assert np.linalg.eigvalsh(points.mean(axis=0) - mean)[0] > 0


def test_chunks_of_sqdist_do_not_show(monkeypatch):
    codes = BW.encode(spd(np.random.default_rng(10), 9, 3))
    wanted = BW.sqdist(codes[:2], codes)
    monkeypatch.setattr("rplvq.arrays._samples.BUDGET_BYTES", 1)
    np.testing.assert_allclose(BW.sqdist(codes[:2], codes), wanted, rtol=1e-12, atol=1e-30)


def test_the_unit_relates_distances_to_the_affine_invariant_ones():
    codes = BW.encode([2 * np.eye(3), 4 * np.eye(3)])
    assert BW.unit(codes) == pytest.approx(3.0 / 4)
    assert BW.unit(codes, np.array([3.0, 1.0])) == pytest.approx(2.5 / 4)
    near = 5.0 * np.array([np.eye(3), np.eye(3) + 1e-4 * spd(np.random.default_rng(22), 1, 3)[0]])
    ratio = BW.sqdist(*np.split(BW.encode(near), 2)) / AffineInvariant().sqdist(*np.split(near, 2))
    assert ratio[0, 0] == pytest.approx(BW.unit(BW.encode(near)), rel=1e-3)


@pytest.mark.parametrize("value", [0, 1, -0.5])
def test_min_stretch_lies_between_0_and_1(value):
    with pytest.raises(ValueError, match="min_stretch"):
        BuresWasserstein(min_stretch=value)


def test_training_does_not_depend_on_the_unit():
    X, y = make_syn1(n_per_class=8, random_state=0)
    found = [RiemannianLVQ(BW, max_epochs=3, random_state=0).fit(scale * X, y) for scale in (1.0, 1e-12)]
    np.testing.assert_allclose(1e12 * found[1].prototypes_, found[0].prototypes_, rtol=1e-6, atol=1e-9)


# --- the learned metric


def drawn(make, omega_rank=None, seed=11):
    """Prototypes with a metric of their own, samples, targets and labels."""
    rng = np.random.default_rng(seed)
    codes = LLE.encode(make(rng, 7, 3))
    m = 9 if np.iscomplexobj(codes) else 6
    omega = rng.normal(size=(omega_rank or m, m))
    omega *= np.sqrt(m / (omega**2).sum())
    return MetricPrototypes(codes[:3], omega), codes[3:], np.array([0, 1, 1, 0]), np.array([0, 0, 1])


@pytest.mark.parametrize("make", [spd, hpd])
def test_coordinates_are_orthonormal(make):
    codes = LLE.encode(make(np.random.default_rng(12), 4, 3))
    vectors = coordinates(codes, 9 if np.iscomplexobj(codes) else 6)
    np.testing.assert_allclose(vectors @ vectors.T, np.einsum("aij,bij->ab", codes, codes.conj()).real)


@pytest.mark.parametrize("make", [spd, hpd])
@pytest.mark.parametrize("rank", [None, 2])
def test_the_step_of_omega_is_its_gradient(make, rank):
    """Central differences of the mean loss by each entry of Omega."""
    prototypes, samples, targets, labels = drawn(make, rank)
    manifold, cost, step, sigma2 = LearnedLogEuclidean(rate=0.3, rank=rank), RSLVQ(), 1e-3, 0.8

    def loss(omega):
        d = manifold.sqdist(MetricPrototypes(prototypes.codes, omega), samples)
        return cost(d, targets, labels, sigma2).loss.mean()

    gradient = np.empty_like(prototypes.omega)
    for place in np.ndindex(gradient.shape):
        ahead, behind = prototypes.omega.copy(), prototypes.omega.copy()
        ahead[place] += 1e-5
        behind[place] -= 1e-5
        gradient[place] = (loss(ahead) - loss(behind)) / 2e-5
    geodesics = manifold.connect(prototypes, samples)
    slope = cost(geodesics.sqdist, targets, labels, sigma2).slope
    moved = manifold.move(geodesics, 2 * step * slope / len(samples))
    wanted = prototypes.omega - 0.3 * step * gradient
    wanted *= np.sqrt(wanted.shape[1] / (wanted**2).sum())
    np.testing.assert_allclose(moved.omega - prototypes.omega, wanted - prototypes.omega, rtol=1e-5, atol=1e-10)


def test_one_sample_a_step_is_a_batch_of_one():
    prototypes, samples, _, _ = drawn(spd)
    weights = np.random.default_rng(13).uniform(-0.1, 0.2, (4, 3))
    weights[1:] = 0
    batch = LLE.move(LLE.connect(prototypes, samples), weights)
    single = LLE.move(LLE.connect(prototypes, samples[:1]), weights[:1])
    np.testing.assert_allclose(single.omega, batch.omega, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(single), np.asarray(batch), rtol=1e-12)


def test_the_trace_stays_and_no_step_turns_omega_over():
    prototypes, samples, _, _ = drawn(spd)
    wild = LearnedLogEuclidean(rate=1e6)
    moved = wild.move(wild.connect(prototypes, samples), np.ones((4, 3)))
    assert np.trace(wild.metric(moved)) == pytest.approx(6.0)
    change = np.linalg.eigvals(np.linalg.solve(prototypes.omega, moved.omega))  # positive: turned over nowhere
    assert change.real.min() > 0


BROKEN_BY_A_MOVING_METRIC = {"weight_shortens_distance", "move_stays_on_manifold", "move_follows_gradient"}


@pytest.mark.parametrize("make", [spd, hpd])
def test_a_moving_metric_breaks_the_promises_that_compare_distances_before_and_after_and_no_others(make):
    points = make(np.random.default_rng(14), 7, 3)
    manifold = LearnedLogEuclidean(rate=0.5)
    check_manifold(LearnedLogEuclidean(rate=0), points)
    codes = promises.encoded(manifold, points)
    w, x = codes[:3], codes[3:]
    d = promises.distances(manifold, w, x)
    case = promises.Case(manifold, points, codes, w, x, d, float(d.max()), np.random.default_rng(0))
    broken = set()
    for promise in promises.PROMISES:
        try:
            promise(case)
        except AssertionError:
            broken.add(promise.__name__)
    assert broken == BROKEN_BY_A_MOVING_METRIC


def test_a_fixed_metric_is_the_log_euclidean_one_in_training():
    X, y = make_syn1(n_per_class=8, random_state=0)
    one, other = (
        RiemannianLVQ(part, max_epochs=3, random_state=0).fit(X, y)
        for part in (LearnedLogEuclidean(rate=0), LogEuclidean())
    )
    np.testing.assert_allclose(one.prototypes_, other.prototypes_, rtol=1e-10)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-10)


def two_classes(rng, count=40):
    """Diagonal matrices whose classes differ in the first eigenvalue; the second is noise."""
    logs = rng.normal(size=(2 * count, 2)) * [0.3, 3.0]
    logs[count:, 0] += 1.0
    return np.exp(logs)[:, :, None] * np.eye(2), np.repeat([0, 1], count)


def test_the_metric_learns_what_tells_the_classes_apart():
    X, y = two_classes(np.random.default_rng(15))
    new, labels = two_classes(np.random.default_rng(16))
    plain = RiemannianLVQ("log_euclidean", sigma2=0.3, max_epochs=0).fit(X, y)
    learned = RiemannianLVQ(
        LearnedLogEuclidean(rate=1.0), sigma2=0.3, step_size=0.02, max_epochs=30, random_state=0
    ).fit(X, y)
    assert learned.score(new, labels) > plain.score(new, labels) + 0.05
    metric = LLE.metric(learned.state_.prototypes)
    assert metric[0, 0] > 10 * metric[1, 1]


def test_the_learned_metric_survives_files_and_pickle(tmp_path):
    X, y = two_classes(np.random.default_rng(17))
    model = RiemannianLVQ("learned_log_euclidean", sigma2=1.0, max_epochs=3, random_state=0).fit(X, y)
    model.save(tmp_path / "model.npz")
    for again in (load_model(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.transform(X), model.transform(X))
    # The distances are not those of the start metric, so the file must have held the learned one.
    start = np.sqrt(LLE.sqdist(np.asarray(model.state_.prototypes), LLE.encode(X)))
    assert np.abs(model.transform(X) - start).max() > 1e-3


@pytest.mark.parametrize(
    ("field", "value"), [("rate", -1), ("rate", None), ("rank", 0), ("rank", 2.5), ("random_state", -1)]
)
def test_bad_fields_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=field):
        LearnedLogEuclidean(**{field: value})


def test_a_rank_above_the_dimension_is_refused():
    with pytest.raises(ValueError, match="rank must be at most 6 for matrices of size 3, got 7"):
        LearnedLogEuclidean(rank=7).encode(spd(np.random.default_rng(18), 2, 3))
    assert LearnedLogEuclidean(rank=9).encode(hpd(np.random.default_rng(18), 2, 3)).shape == (2, 3, 3)


def test_a_metric_too_large_for_memory_is_refused_with_the_way_out():
    points = np.eye(150)[None]
    with pytest.raises(ValueError, match=r"of size 150, whose metric of rank 11325 .* 0.96 GiB: give a lower rank"):
        LLE.encode(points)
    assert LearnedLogEuclidean(rank=20).encode(points).shape == (1, 150, 150)


def test_complex_samples_are_refused_where_the_metric_is_of_real_ones():
    prototypes, _, _, _ = drawn(spd)
    with pytest.raises(ValueError, match="X is complex, but the metric was learned on real"):
        LLE.sqdist(prototypes, LLE.encode(hpd(np.random.default_rng(19), 2, 3)))


def test_real_samples_meet_a_metric_of_complex_ones():
    prototypes, _, _, _ = drawn(hpd)
    real = LLE.encode(spd(np.random.default_rng(20), 2, 3))
    as_complex = LLE.sqdist(prototypes, real.astype(complex))
    np.testing.assert_allclose(LLE.sqdist(prototypes, real), as_complex, rtol=1e-12)
    assert LLE.connect(prototypes.codes, real).omega.shape == (9, 9)


def test_a_trainer_keeps_the_metric_between_epochs():
    X, y = two_classes(np.random.default_rng(21))
    trainer, rng = Trainer(LLE, max_epochs=2), np.random.default_rng(0)
    samples = Samples(LLE.encode(X), y)
    state = trainer.init(samples, 2, rng)
    first = trainer.step(state, samples.at(slice(3)))
    second = trainer.step(state._replace(prototypes=first.prototypes), samples.at(slice(3, 6)))
    assert not np.array_equal(LLE.metric(second.prototypes), LLE.metric(first.prototypes))


def test_means_hold_the_metric():
    """A mean that moved the metric on its way would be measured by another one at its end."""
    points = spd(np.random.default_rng(23), 6, 3)
    wild = LearnedLogEuclidean(rate=5.0)
    found = riemannian_mean(wild, wild.encode(points))
    np.testing.assert_allclose(found.code, LogEuclidean().encode(points).mean(axis=0), atol=1e-12)
    assert found.n_iter == 2
