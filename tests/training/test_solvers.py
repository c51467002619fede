"""Solvers: gradient and Hessian by differences, transport, descent, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pymanopt.manifolds import SymmetricPositiveDefinite

from rplvq import (
    PLVQ,
    RSLVQ,
    AffineInvariant,
    Annealed,
    BuresWasserstein,
    EuclideanVectors,
    FromPymanopt,
    LearnedLogEuclidean,
    RiemannianLVQ,
    Trainer,
)
from rplvq.arrays import Samples, sqrtm
from rplvq.initializers import ClassMeans
from rplvq.manifolds import inverse_factors
from rplvq.training import EpochScore
from rplvq.training.solvers import SOLVERS, minimize
from rplvq.training.solvers._objective import Objective
from rplvq.training.solvers._stack import TANGENTS, PrototypeStack, rotate
from tests.cases import CASES, made
from tests.problems import spd_classes, vector_classes

KNOWN = {name: case for name, case in CASES.items() if type(case.manifold(3)) in TANGENTS}
EVERY_KNOWN = pytest.mark.parametrize("case", KNOWN.values(), ids=KNOWN.keys())
EVERY_SOLVER = pytest.mark.parametrize("solver", SOLVERS)
X, Y = spd_classes(per_class=10, n_classes=3, spread=0.6, shift=0.4)


def minimized(solver, X, y, manifold=None, cost=None, weights=None, iterations=100, per_class=1, sigma2=1.0):
    """Samples, and the result of a solver from the class means."""
    manifold, cost = manifold or AffineInvariant(), cost or RSLVQ()
    samples = Samples(manifold.encode(X), y, weights)
    trainer = Trainer(manifold, cost, ClassMeans(per_class), sigma2)
    start = trainer.init(samples, samples.classes.max() + 1, np.random.default_rng(0))
    return samples, minimize(solver, manifold, cost, start, samples, max_iterations=iterations)


def scored(manifold, state, samples, cost=None):
    """Loss of all samples, and their training error."""
    sqdist = manifold.sqdist(state.prototypes, samples.codes)
    loss = (cost or RSLVQ())(sqdist, samples.targets, state.labels, state.sigma2).loss
    wrong = state.labels[sqdist.argmin(axis=1)] != samples.classes
    return samples.filled_weights @ loss, np.average(wrong, weights=samples.weights)


def problem(case, seed=0):
    """Objective, space and three moved prototypes of a geometry."""
    manifold, codes = made(case, count=9, seed=seed)
    targets, labels = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 0, 1])
    weight = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0])
    objective = Objective(manifold, RSLVQ(), Samples(codes[3:], targets, weight), labels, 0.4)
    point = manifold.move(manifold.connect(codes[:3], codes[3:]), np.full((6, 3), 0.02))
    return objective, PrototypeStack(manifold, point, 1.0, np.inf), point


def direction(objective, space, point, seed):
    """Some tangent: a pull with random weights."""
    weights = np.random.default_rng(seed).normal(size=(6, 3)) * 0.3
    return objective.manifold.pull(objective.manifold.connect(point, objective.codes), weights)


@EVERY_KNOWN
def test_the_gradient_is_that_of_finite_differences(case):
    objective, space, point = problem(case)
    gradient = objective.gradient(point)
    for seed in range(4):
        tangent = direction(objective, space, point, seed)
        h = 1e-4 / space.norm(point, tangent)
        ahead, behind = (objective.value(space.retraction(point, s * h * tangent)) for s in (1, -1))
        rate = space.inner_product(point, gradient, tangent)
        size = space.norm(point, gradient) * space.norm(point, tangent)
        assert abs((ahead - behind) / (2 * h) - rate) < 1e-5 * size


@EVERY_KNOWN
def test_the_norm_of_a_tangent_is_the_distance_that_it_leads(case):
    objective, space, point = problem(case)
    tangent = direction(objective, space, point, 1)
    tangent = tangent * (1e-3 / space.norm(point, tangent))
    assert space.dist(point, space.retraction(point, tangent)) == pytest.approx(1e-3, rel=1e-2)


@EVERY_KNOWN
def test_the_hessian_is_symmetric_and_the_second_derivative(case):
    """On geodesics, f'' = <H v, v>."""
    objective, space, point = problem(case)
    gradient = objective.gradient(point)
    first, second = (direction(objective, space, point, seed) for seed in (2, 3))
    first, second = first / space.norm(point, first), second / space.norm(point, second)
    along = {name: objective.hessian(space, point, gradient, v) for name, v in (("a", first), ("b", second))}
    h = 1e-3
    values = [objective.value(space.retraction(point, s * h * first)) for s in (-1, 0, 1)]
    curvature = (values[0] - 2 * values[1] + values[2]) / h**2
    size = max(space.norm(point, v) for v in along.values())
    assert abs(space.inner_product(point, along["a"], first) - curvature) < 2e-3 * size
    cross = [space.inner_product(point, along["a"], second), space.inner_product(point, along["b"], first)]
    assert abs(cross[0] - cross[1]) < 2e-3 * size


@EVERY_KNOWN
def test_transport_keeps_inner_products(case):
    objective, space, point = problem(case)
    first, second = (direction(objective, space, point, seed) for seed in (4, 5))
    near = space.retraction(point, first * (0.3 / space.norm(point, first)))
    carried = [space.transport(point, near, v) for v in (first, second)]
    kept = space.inner_product(near, *carried)
    size = space.norm(point, first) * space.norm(point, second)
    assert abs(kept - space.inner_product(point, first, second)) < 1e-7 * size


@pytest.mark.parametrize("name", ["affine-invariant", "affine-invariant, complex"])
def test_affine_invariant_transport_is_parallel(name):
    """Against E V E^H with E = W^1/2 exp(S/2) W^-1/2, and Log_b(a) = -T Log_a(b)."""
    manifold, codes = made(CASES[name])
    starts, ends = codes[:2], codes[2:4]
    geodesics = manifold.connect(starts, ends)
    there = manifold.pull(geodesics, np.eye(2))
    back = manifold.pull(manifold.connect(ends, starts), np.eye(2))
    carried = rotate(inverse_factors(starts), inverse_factors(ends), there)
    assert_allclose(carried, -back, atol=1e-9)
    roots = sqrtm(starts)
    whitened = np.linalg.inv(roots) @ ends @ np.linalg.inv(roots)
    map_ = roots @ sqrtm(whitened) @ np.linalg.inv(roots)
    plain = np.array([np.diag([1.0, 2.0, 3.0]), np.ones((3, 3))])
    wanted = map_ @ plain @ map_.conj().swapaxes(1, 2)
    g, h = inverse_factors(starts), inverse_factors(ends)
    seen = rotate(g, h, g @ plain @ g.conj().swapaxes(1, 2))
    assert_allclose(np.linalg.inv(h) @ seen @ np.linalg.inv(h).conj().swapaxes(1, 2), wanted, atol=1e-8)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@EVERY_SOLVER
def test_every_geometry_descends_or_says_why_not(case, solver):
    points, manifold = case.points(np.random.default_rng(0), 24, 3), case.manifold(3)
    codes = manifold.encode(points)
    y = (manifold.sqdist(codes[:1], codes)[:, 0] > 0.8).astype(int)
    y[:2] = 0, 1
    if type(manifold) not in TANGENTS:
        with pytest.raises(ValueError, match="solvers do not know the tangents of manifold="):
            minimized(solver, points, y, manifold)
        return
    samples, (state, history) = minimized(solver, points, y, manifold, iterations=6, sigma2=0.5)
    cost = history["cost"]
    assert cost[-1] < cost[0]
    assert (np.diff(cost) <= 0).all()
    assert_allclose(scored(manifold, state, samples)[0], cost[-1], rtol=1e-7)


@EVERY_SOLVER
@pytest.mark.parametrize("count", [1, 2])
def test_the_cost_ends_below_that_of_stochastic_descent(solver, count):
    _, (_, history) = minimized(solver, X, Y, iterations=60, per_class=count)
    settings = {"sigma2": 1.0, "prototypes_per_class": count, "random_state": 0, "max_epochs": 60}
    stochastic = RiemannianLVQ(callbacks=[EpochScore()], **settings).fit(X, Y)
    assert history["cost"][-1] < stochastic.history_["cost"][-1]


@EVERY_SOLVER
def test_the_gradient_vanishes_at_the_end(solver):
    data = vector_classes(per_class=40, n_classes=3, shift=0.7)
    _, (state, history) = minimized(solver, *data, EuclideanVectors(), iterations=300)
    norms = history["gradient_norm"]
    assert norms[-1] < 1e-5 * norms[0]
    assert len(norms) - 1 < 300 == state.epoch


def test_both_forms_of_the_affine_invariant_metric_take_the_same_steps():
    results = [
        minimized("cg", X, Y, manifold, iterations=4)[1]
        for manifold in (AffineInvariant(), FromPymanopt(SymmetricPositiveDefinite(3)))
    ]
    first, second = (np.asarray(result.state.prototypes) for result in results)
    assert_allclose(first, second, rtol=1e-6, atol=1e-8)
    assert_allclose(results[0].history["cost"], results[1].history["cost"], rtol=1e-7)


@EVERY_SOLVER
def test_other_units_give_the_same_prototypes(solver):
    V, y = vector_classes()
    (_, (wanted, _)), (_, (other, _)) = (
        minimized(solver, scale * V, y, EuclideanVectors(), iterations=5, sigma2=scale**2) for scale in (1.0, 1e-6)
    )
    assert_allclose(1e6 * other.prototypes, wanted.prototypes, rtol=1e-3)


def test_the_history_has_one_row_per_accepted_step():
    sigma2 = Annealed(1.0, drop=0.2)
    samples, (state, history) = minimized("cg", X, Y, iterations=5, sigma2=sigma2)
    assert history["epoch"].tolist() == list(range(6))
    assert state.epoch == 5
    assert set(history["sigma2"]) == {sigma2(5, 5)} == {state.sigma2}
    cost, error = scored(AffineInvariant(), state, samples)
    assert history["cost"][-1] == pytest.approx(cost)
    assert history["training_error"][-1] == pytest.approx(error)
    assert history["n_prototypes"].tolist() == [3] * 6
    assert history["step_size"][0] == 0
    assert (history["step_size"][1:] > 0).all()
    means = RiemannianLVQ(sigma2=sigma2(5, 5), max_epochs=0).fit(X, Y)
    assert history["cost"][0] == pytest.approx(-means.predict_log_proba(X)[np.arange(len(Y)), Y].sum())
    one_step = minimized("cg", X, Y, iterations=1, sigma2=sigma2(5, 5))[1]
    moved = means.trainer_.manifold.sqdist(means.state_.prototypes, np.asarray(one_step.state.prototypes)).diagonal()
    assert one_step.history["step_size"][1] == pytest.approx(np.sqrt(moved.sum()), rel=1e-6)


def test_no_iterations_leave_the_initial_prototypes():
    _, (state, history) = minimized("cg", X, Y, iterations=0)
    start = Trainer(AffineInvariant(), sigma2=1.0).init(Samples(X, Y), 3, np.random.default_rng(0))
    assert_array_equal(np.asarray(state.prototypes), np.asarray(start.prototypes))
    assert history == {}


def test_sample_weights_are_repetitions():
    weight = np.where(np.arange(len(Y)) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(len(Y)), weight.astype(int))
    weighted = minimized("cg", X, Y, weights=weight, iterations=4)[1]
    repeated = minimized("cg", X[rows], Y[rows], iterations=4)[1]
    assert_allclose(np.asarray(weighted.state.prototypes), np.asarray(repeated.state.prototypes), rtol=1e-6)
    for name in ("cost", "training_error", "gradient_norm"):
        assert_allclose(weighted.history[name], repeated.history[name], rtol=1e-6)


def test_soft_labels():
    soft = np.eye(3)[Y] * 0.8 + 0.2 / 3
    samples, (state, history) = minimized("trust_regions", X, soft, cost=PLVQ(), iterations=5)
    assert (np.diff(history["cost"]) < 0).all()
    assert history["cost"][-1] == pytest.approx(scored(AffineInvariant(), state, samples, PLVQ())[0])


def test_chunks_of_samples_add_up(monkeypatch):
    objective, _, point = problem(CASES["affine-invariant"])
    whole = objective.gradient(point)
    monkeypatch.setattr("rplvq.arrays._samples.BLOCK_BYTES", 1)
    assert_allclose(objective.gradient(point), whole, rtol=1e-10, atol=1e-12)


def test_steps_are_no_longer_than_the_cap():
    objective, space, point = problem(CASES["affine-invariant"])
    short = PrototypeStack(objective.manifold, point, 1.0, 0.1)
    tangent = 10 * direction(objective, space, point, 0)
    moved = np.diagonal(objective.manifold.sqdist(short.retraction(point, tangent), np.asarray(point)))
    assert (np.sqrt(moved) <= 0.1 + 1e-9).all()
    assert np.sqrt(moved.max()) == pytest.approx(0.1)


def test_what_no_solver_does_is_refused():
    with pytest.raises(ValueError, match=r"name='steepest_descent' is not known; choose from \['cg', 'trust_region"):
        minimized("steepest_descent", X, Y)
    for manifold in (LearnedLogEuclidean(), BuresWasserstein()):
        with pytest.raises(ValueError, match=r"do not know the tangents of manifold=.*: they know \[.*'LogEuclidean'"):
            minimized("cg", X, Y, manifold)
    space = problem(CASES["vectors"])[1]
    for method in (space.random_point, lambda: space.random_tangent_vector(None)):
        with pytest.raises(NotImplementedError, match="solver"):
            method()


def test_prototypes_on_their_samples_stay():
    points = np.array([[0.0], [1.0]])
    _, (state, history) = minimized("cg", points, np.array([0, 1]), EuclideanVectors())
    assert_array_equal(state.prototypes, points)
    assert history == {}


def test_the_progress_bar_is_shown_on_demand_only(capsys):
    samples, trainer = Samples(X, Y), Trainer(AffineInvariant(), sigma2=1.0)
    start = trainer.init(samples, 3, np.random.default_rng(0))
    for verbose, shown in ((0, False), (1, True)):
        minimize("cg", trainer.manifold, RSLVQ(), start, samples, max_iterations=2, verbose=verbose)
        out, err = capsys.readouterr()
        assert out == ""
        assert ("step" in err) == shown
