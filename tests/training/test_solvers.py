"""Deterministic training: gradient and Hessian by differences, transport, descent, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, made
from problems import refuse, spd_classes, vector_classes
from pymanopt.manifolds import SymmetricPositiveDefinite
from sklearn.base import clone

from rplvq import (
    PLVQ,
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    Annealed,
    BuresWasserstein,
    Constant,
    EuclideanVectors,
    Grow,
    Learned,
    LearnedLogEuclidean,
    RiemannianLVQ,
    Trainer,
    load_model,
)
from rplvq.arrays import sqrtm
from rplvq.manifolds import inverse_factors
from rplvq.training.solvers import minimise
from rplvq.training.solvers._objective import Objective
from rplvq.training.solvers._stack import PrototypeStack, can_transport, rotate, stackable

STACKED = {name: case for name, case in CASES.items() if stackable(case.manifold(3))}
CARRIED = {name: case for name, case in STACKED.items() if can_transport(case.manifold(3))}
EVERY_STACK = pytest.mark.parametrize("case", STACKED.values(), ids=STACKED.keys())
EVERY_CARRIED = pytest.mark.parametrize("case", CARRIED.values(), ids=CARRIED.keys())
SOLVERS = ("cg", "trust_regions", "steepest_descent")
X, Y = spd_classes(per_class=10, n_classes=3, spread=0.6, shift=0.4)


def problem(case, seed=0):
    """Objective, space and three moved prototypes of a geometry."""
    manifold, codes = made(case, count=9, seed=seed)
    targets, labels = np.array([0, 1, 0, 1, 1, 0]), np.array([0, 0, 1])
    weight = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0])
    objective = Objective(manifold, RSLVQ(), codes[3:], targets, labels, 0.4, weight)
    point = manifold.move(manifold.connect(codes[:3], codes[3:]), np.full((6, 3), 0.02))
    return objective, PrototypeStack(manifold, point, 1.0, np.inf), point


def direction(objective, space, point, seed):
    """Some tangent: a pull with random weights."""
    weights = np.random.default_rng(seed).normal(size=(6, 3)) * 0.3
    return objective.manifold.pull(objective.manifold.connect(point, objective.codes), weights)


@EVERY_STACK
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


@EVERY_STACK
def test_the_norm_of_a_tangent_is_the_distance_that_it_leads(case):
    objective, space, point = problem(case)
    tangent = direction(objective, space, point, 1)
    tangent = tangent * (1e-3 / space.norm(point, tangent))
    assert space.dist(point, space.retraction(point, tangent)) == pytest.approx(1e-3, rel=1e-2)


@EVERY_CARRIED
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


@EVERY_CARRIED
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
    np.testing.assert_allclose(carried, -back, atol=1e-9)
    roots = sqrtm(starts)
    whitened = np.linalg.inv(roots) @ ends @ np.linalg.inv(roots)
    map_ = roots @ sqrtm(whitened) @ np.linalg.inv(roots)
    plain = np.array([np.diag([1.0, 2.0, 3.0]), np.ones((3, 3))])
    wanted = map_ @ plain @ map_.conj().swapaxes(1, 2)
    g, h = inverse_factors(starts), inverse_factors(ends)
    seen = rotate(g, h, g @ plain @ g.conj().swapaxes(1, 2))
    np.testing.assert_allclose(np.linalg.inv(h) @ seen @ np.linalg.inv(h).conj().swapaxes(1, 2), wanted, atol=1e-8)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_geometry_descends_or_says_why_not(case, solver):
    points, manifold = case.points(np.random.default_rng(0), 24, 3), case.manifold(3)
    y = (manifold.sqdist(manifold.encode(points)[:1], manifold.encode(points))[:, 0] > 0.8).astype(int)
    y[:2] = 0, 1
    model = RiemannianLVQ(manifold, sigma2=0.5, solver=solver, max_epochs=6, random_state=0)
    if not stackable(manifold) or (solver != "steepest_descent" and not can_transport(manifold)):
        refuse(model, "fit", points, y, match="use solver='s")
        return
    cost = model.fit(points, y).history_["cost"]
    assert cost[-1] < cost[0]
    assert (np.diff(cost) <= 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("count", [1, 2])
def test_the_cost_ends_below_that_of_stochastic_descent(solver, count):
    settings = {"sigma2": 1.0, "prototypes_per_class": count, "random_state": 0, "monitor": "epoch", "max_epochs": 60}
    wanted = RiemannianLVQ(**settings).fit(X, Y).history_["cost"][-1]
    assert RiemannianLVQ(solver=solver, **settings).fit(X, Y).history_["cost"][-1] < wanted


@pytest.mark.parametrize("solver", ["cg", "trust_regions"])
def test_the_gradient_vanishes_at_the_end(solver):
    data = vector_classes(per_class=40, n_classes=3, shift=0.7)
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, solver=solver, max_epochs=300, random_state=0).fit(*data)
    norms = model.history_["gradient_norm"]
    assert norms[-1] < 1e-5 * norms[0]
    assert model.n_epochs_ == len(norms) - 1 < 300


def test_both_forms_of_the_affine_invariant_metric_take_the_same_steps():
    models = [
        RiemannianLVQ(manifold, sigma2=1.0, solver="steepest_descent", max_epochs=4, random_state=0).fit(X, Y)
        for manifold in (AffineInvariant(), SymmetricPositiveDefinite(3))
    ]
    np.testing.assert_allclose(models[0].prototypes_, models[1].prototypes_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_other_units_give_the_same_model(solver):
    data = vector_classes()
    settings = {"manifold": "euclidean_vectors", "solver": solver, "max_epochs": 5, "random_state": 0}
    wanted = RiemannianLVQ(sigma2=1.0, **settings).fit(*data)
    other = RiemannianLVQ(sigma2=1e-12, **settings).fit(1e-6 * data[0], data[1])
    np.testing.assert_allclose(1e6 * other.prototypes_, wanted.prototypes_, rtol=1e-3)


def test_the_history_tells_each_accepted_step():
    model = RiemannianLVQ(sigma2=Annealed(1.0, drop=0.2), solver="cg", max_epochs=5, random_state=0).fit(X, Y)
    history = model.history_
    assert history["epoch"].tolist() == list(range(6))
    assert set(history["sigma2"]) == {Annealed(1.0, drop=0.2)(5, 5)} == {model.sigma2_}
    sqdist = model.transform(X) ** 2
    assert sqdist.shape == (len(X), 3)
    assert history["training_error"][-1] == pytest.approx(1 - model.score(X, Y))
    loss = -np.log(model.predict_proba(X)[np.arange(len(Y)), Y]).sum()
    assert history["cost"][-1] == pytest.approx(loss)
    assert history["step_size"][0] == 0
    assert (history["step_size"][1:] > 0).all()


def test_no_epochs_are_the_initial_prototypes():
    start = RiemannianLVQ(sigma2=1.0, max_epochs=0, random_state=0).fit(X, Y)
    model = RiemannianLVQ(sigma2=1.0, max_epochs=0, solver="cg", random_state=0).fit(X, Y)
    assert np.array_equal(model.prototypes_, start.prototypes_)
    assert model.n_epochs_ == 0


def test_sample_weights_are_repetitions():
    weight = np.where(np.arange(len(Y)) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(len(Y)), weight.astype(int))
    model = RiemannianLVQ(sigma2=1.0, solver="cg", max_epochs=4, random_state=0)
    weighted, repeated = clone(model).fit(X, Y, sample_weight=weight), clone(model).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=1e-6)
    np.testing.assert_allclose(weighted.history_["cost"], repeated.history_["cost"], rtol=1e-6)


def test_soft_labels():
    soft = np.eye(3)[Y] * 0.8 + 0.2 / 3
    model = RiemannianLVQ(cost=PLVQ(), sigma2=1.0, solver="trust_regions", max_epochs=5, random_state=0).fit(X, soft)
    assert (np.diff(model.history_["cost"]) < 0).all()


def test_chunks_of_samples_add_up(monkeypatch):
    objective, _, point = problem(CASES["affine-invariant"])
    whole = objective.gradient(point)
    monkeypatch.setattr("rplvq.arrays.BLOCK_BYTES", 1)
    np.testing.assert_allclose(objective.gradient(point), whole, rtol=1e-10, atol=1e-12)


def test_steps_are_no_longer_than_the_cap():
    objective, space, point = problem(CASES["affine-invariant"])
    short = PrototypeStack(objective.manifold, point, 1.0, 0.1)
    tangent = 10 * direction(objective, space, point, 0)
    moved = np.diagonal(objective.manifold.sqdist(short.retraction(point, tangent), np.asarray(point)))
    assert (np.sqrt(moved) <= 0.1 + 1e-9).all()
    assert np.sqrt(moved.max()) == pytest.approx(0.1)


def test_a_saved_model_predicts_the_same(tmp_path):
    model = RiemannianLVQ(sigma2=1.0, solver="cg", max_epochs=3, random_state=0).fit(X, Y)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.solver == "cg"
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step_size", 0.1),
        ("step_size", AdaptiveStep()),
        ("step_size", Constant(0.1)),
        ("batch_size", None),
        ("max_weight", None),
        ("average", True),
        ("early_stopping", True),
        ("compiled", True),
        ("callbacks", [print]),
        ("growth", [Grow()]),
        ("sigma2", "heldout"),
        ("sigma2", Learned()),
    ],
)
def test_arguments_of_the_stochastic_trainer_are_refused(name, value):
    refuse(RiemannianLVQ(solver="cg", **{name: value}), "fit", X, Y, match=f"{name}=.* is for solver='sgd' only")


def test_what_no_solver_does_is_refused(tmp_path):
    refuse(RiemannianLVQ(solver="cg"), "partial_fit", X, Y, match="sees all samples at once: partial_fit needs")
    refuse(RiemannianLVQ(solver="cg"), "fit", X, Y, resume=tmp_path / "x", match="resume=.* is for solver='sgd' only")
    refuse(RiemannianLVQ(LearnedLogEuclidean(), solver="cg"), "fit", X, Y, match="does not know the tangents")
    refuse(RiemannianLVQ(BuresWasserstein(), solver="cg"), "fit", X, Y, match="use solver='steepest_descent'")
    space = problem(CASES["vectors"])[1]
    for method in (space.random_point, lambda: space.random_tangent_vector(None)):
        with pytest.raises(NotImplementedError, match="solver"):
            method()


def test_prototypes_on_their_samples_stay():
    points = np.array([[0.0], [1.0]])
    trainer = Trainer(EuclideanVectors(), sigma2=1.0)
    state = trainer.init(points, np.array([0, 1]), 2, np.random.default_rng(0))
    result = minimise("cg", trainer.manifold, RSLVQ(), state, points, np.array([0, 1]))
    assert np.array_equal(result.state.prototypes, points)
    assert result.history == {}
