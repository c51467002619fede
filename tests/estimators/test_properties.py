"""Properties of training and of parts on random problems: what must not change an answer, what must stay in bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import AffineInvariant, Annealed, Constant, GeometricDecay, HeldOut, LogEuclidean, RiemannianLVQ, StepDecay
from rplvq.training import pair_weights
from tests.cases import CASES, mixed_parts
from tests.problems import FEW, spd_classes

SEEDS = st.integers(0, 2**32 - 1)
MATRIX_METRICS = ["affine_invariant", "log_euclidean", "log_cholesky", "bures_wasserstein", "euclidean", "tangent"]


def problem(seed, n, dtype=float):
    return spd_classes(seed=seed, per_class=5, n=n, n_classes=2, spread=0.5, dtype=dtype)


def congruent(points, transform):
    moved = transform @ points @ transform.conj().T
    return 0.5 * (moved + moved.conj().swapaxes(-1, -2))


def rotation(rng, n, dtype=float):
    noise = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if dtype is complex else 0)
    return np.linalg.qr(noise)[0]


def assert_same_answers(one, X, other, again, prototypes):
    """Equal labels where no two distances are equal by rounding, and prototypes ``prototypes`` to 1e-6."""
    distances = np.sort(one.transform(X), axis=1)
    clear = distances[:, 1] - distances[:, 0] > 1e-5
    assert clear.any()
    assert_array_equal(one.predict(X)[clear], other.predict(again)[clear])
    assert_allclose(other.transform(again), one.transform(X), atol=1e-6, rtol=1e-6)
    gaps = np.sqrt(np.diagonal(AffineInvariant().sqdist(prototypes, other.prototypes_)))
    assert gaps.max() < 1e-6


# --- invariances of training


@FEW
@given(
    SEEDS,
    st.integers(1, 4),
    st.sampled_from(["rslvq", "plvq", "glvq"]),
    st.integers(-12, 6),
    st.sampled_from([float, complex]),
)
def test_affine_invariant_training_follows_congruence(seed, n, cost, exponent, dtype):
    rng = np.random.default_rng(seed)
    X, y = problem(seed, n, dtype)
    stretch = np.exp(rng.uniform(-2, 2, n))[:, None]
    transform = 10.0**exponent * rotation(rng, n, dtype) @ (stretch * rotation(rng, n, dtype))
    turned = congruent(X, transform)
    # Whole batches: a batch's members are chosen by the samples' values, which a congruence changes.
    model, other = (
        RiemannianLVQ(
            cost=cost, sigma2="half_median", step_size="paper", max_epochs=3, batch_size=None, random_state=0
        ).fit(P, y)
        for P in (X, turned)
    )
    assert_same_answers(model, X, other, turned, congruent(model.prototypes_, transform))


@FEW
@given(SEEDS, st.integers(1, 4), st.booleans(), st.booleans(), st.sampled_from([float, complex]))
def test_log_euclidean_training_follows_inversion_rotation_and_units(seed, n, invert, turn, dtype):
    rng = np.random.default_rng(seed)
    X, y = problem(seed, n, dtype)
    basis = rotation(rng, n, dtype) if turn else 10.0 ** rng.integers(-3, 4) * np.eye(n)

    def change(points):
        points = congruent(points, basis)
        return congruent(np.linalg.inv(points), np.eye(n)) if invert else points

    model, other = (
        RiemannianLVQ(LogEuclidean(), sigma2=1.0, max_epochs=3, batch_size=None, random_state=0).fit(P, y)
        for P in (X, change(X))
    )
    assert_same_answers(model, X, other, change(X), change(model.prototypes_))


@FEW
@given(SEEDS, st.sampled_from(MATRIX_METRICS), st.sampled_from([None, 1, 3]), st.integers(1, 2))
def test_neither_a_fit_nor_its_answers_depend_on_the_order_of_samples(seed, metric, batch_size, prototypes):
    X, y = problem(seed, 2)
    order = np.random.default_rng(seed).permutation(len(X))
    settings = {"prototypes_per_class": prototypes, "batch_size": batch_size, "max_epochs": 2, "random_state": 0}
    settings |= {"init": "kmeans" if prototypes > 1 else "mean", "sigma2": HeldOut(["auto"])}
    model, other = (RiemannianLVQ(metric, **settings).fit(X[rows], y[rows]) for rows in (np.arange(len(X)), order))
    assert_array_equal(other.prototypes_, model.prototypes_)
    assert_array_equal(other.transform(X[order]), model.transform(X)[order])
    assert_array_equal(model.predict(X[order]), model.predict(X)[order])


# --- bounds of parts


def on_manifold(points, name):
    """Whether points (K, ...) lie on the manifold of a case, by its definition."""
    if name in ("sphere", "vectors"):
        return np.isfinite(points).all() and (name == "vectors" or np.allclose(np.linalg.norm(points, axis=1), 1))
    if name == "Grassmann":
        return np.allclose(points.swapaxes(1, 2) @ points, np.eye(points.shape[2]))
    if name == "Poincare ball":
        return (np.linalg.norm(points, axis=1) < 1).all()
    if name == "product, mixed":
        return all(on_manifold(part, "vectors" if part.ndim == 2 else "") for part in mixed_parts(points))
    size = np.abs(points).max()
    hermitian = np.allclose(points, points.conj().swapaxes(-1, -2), rtol=0, atol=1e-13 * size)
    return hermitian and (np.linalg.eigvalsh(points) > 0).all()


@FEW
@given(SEEDS, st.sampled_from(sorted(CASES)), st.integers(1, 4), st.floats(-3, 6))
def test_a_move_never_leaves_the_manifold(seed, name, n, exponent):
    """Whatever the slopes and the step size, within the caps that training puts on a step."""
    rng = np.random.default_rng(seed)
    manifold = CASES[name].manifold(n)
    codes = manifold.encode(CASES[name].points(rng, 6, n))
    geodesics = manifold.connect(codes[:2], codes[2:])
    slope = 10.0**exponent * rng.normal(size=(4, 2))
    weights, _ = pair_weights(slope, geodesics.sqdist, 1.0, 1.0, getattr(manifold, "max_step_length", np.inf))
    moved = np.asarray(manifold.move(geodesics, weights))
    assert on_manifold(manifold.decode(moved), name)
    assert np.isfinite(manifold.sqdist(moved, codes)).all()


POSITIVE = st.floats(1e-6, 1e6)


@FEW
@given(
    st.one_of(
        st.builds(Constant, POSITIVE),
        st.builds(GeometricDecay, POSITIVE, ratio=st.floats(1e-6, 1.0)),
        st.builds(StepDecay, POSITIVE, factor=st.floats(0.01, 1.0), every=st.integers(1, 50)),
        st.builds(Annealed, POSITIVE, beta=st.floats(0.5, 0.999), power=st.floats(1, 3), drop=POSITIVE),
    ),
    st.integers(0, 120),
)
def test_schedules_are_positive_and_finite_in_every_epoch(schedule, n_epochs):
    values = np.array([schedule(epoch, n_epochs) for epoch in range(n_epochs + 1)])
    assert np.isfinite(values).all()
    assert (values > 0).all()


# --- the same bits however the work is cut


@FEW
@given(SEEDS, st.sampled_from(MATRIX_METRICS), st.integers(1, 4), st.integers(0, 12))
def test_chunks_and_threads_do_not_show_in_bits(seed, metric, n, exponent):
    """Fit, predict and transform with every budget of memory, and with one thread or two."""
    X, y = problem(seed, n)
    results = []
    for budget, n_jobs in [(1 << 25, 1), (1 << exponent, 1), (1 << exponent, 2)]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rplvq.arrays._samples.BUDGET_BYTES", budget)
            model = RiemannianLVQ(metric, sigma2=HeldOut(["auto"]), max_epochs=1, n_jobs=n_jobs, random_state=0).fit(
                X, y
            )
            results.append((model.prototypes_, model.predict(X), model.transform(X), model.predict_proba(X)))
    for result in results[1:]:
        for found, wanted in zip(result, results[0], strict=True):
            assert_array_equal(found, wanted)
