"""SPDProjection: the gradient by differences, the subspace, what it survives, and its manners as a transformer."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.linalg
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from rplvq import PLVQ, RSLVQ, AffineInvariant, RiemannianLVQ, SPDProjection
from rplvq.arrays import adjoint, congruence
from rplvq.datasets import make_syn1
from rplvq.manifolds import riemannian_mean
from rplvq.preprocessing._grassmann import ProjectedCost, descend, lifted
from tests.cases import hpd, spd

AI = AffineInvariant()
BOTH = pytest.mark.parametrize("make", [spd, hpd])
SOFT = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [1.0, 0.0]])


def problem(make, cost=None, targets=None, seed=0):
    """A cost over 4 samples and 3 prototypes of size 5, and a basis (5, 2)."""
    rng = np.random.default_rng(seed)
    points = make(rng, 7, 5)
    targets = np.array([0, 1, 1, 0]) if targets is None else targets
    function = ProjectedCost(points[3:], points[:3], targets, np.array([0, 0, 1]), cost or RSLVQ(), 0.7)
    return function, np.linalg.qr(make(rng, 1, 5)[0][:, :2])[0], rng


def planted(make=spd, seed=1, per_class=25, n=6):
    """Three classes that differ in two of n sources only; the sources are mixed. The filters that undo it, too."""
    rng = np.random.default_rng(seed)
    sources = make(rng, 3 * per_class, n, 0.25)
    y = np.repeat(["a", "b", "c"], per_class)
    gains = np.ones((len(y), n))
    gains[y == "a", 0] = gains[y == "b", 1] = 3.0
    mixing = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if make is hpd else 0)
    X = congruence(gains[:, :, None] * sources * gains[:, None, :], adjoint(mixing))
    return X, y, np.linalg.inv(adjoint(mixing))[:, :2]


def angle(first, second):
    """Largest principal angle between the column spaces."""
    q1, q2 = np.linalg.qr(first)[0], np.linalg.qr(second)[0]
    return float(np.arcsin(np.linalg.norm(q1 - q2 @ (adjoint(q2) @ q1), 2).clip(0, 1)))


def table(matrices):
    return AI.sqdist(matrices, matrices)


# --- the cost on the Grassmann manifold


@BOTH
@pytest.mark.parametrize(("cost", "targets"), [(RSLVQ(), None), (PLVQ(), SOFT)])
def test_the_gradient_is_that_of_central_differences(make, cost, targets):
    function, basis, rng = problem(make, cost, targets)
    gradient = function(basis)[1]
    for _ in range(4):
        direction = rng.normal(size=basis.shape) + (1j * rng.normal(size=basis.shape) if make is hpd else 0)
        eps = 1e-6
        rate = (function(basis + eps * direction)[0] - function(basis - eps * direction)[0]) / (2 * eps)
        assert np.vdot(gradient, direction).real == pytest.approx(rate, rel=1e-6, abs=1e-9)


@BOTH
def test_the_cost_belongs_to_the_subspace(make):
    """Another basis changes nothing, so the gradient is horizontal."""
    function, basis, rng = problem(make)
    value, gradient = function(basis)
    other = rng.normal(size=(2, 2)) + (1j * rng.normal(size=(2, 2)) if make is hpd else 0)
    assert function(basis @ other)[0] == pytest.approx(value, rel=1e-10)
    assert np.abs(adjoint(basis) @ gradient).max() < 1e-12 * np.abs(gradient).max() + 1e-15


@BOTH
def test_a_descent_ends_where_the_gradient_vanishes(make):
    function, basis, _ = problem(make)
    end, cost, _ = descend(function, basis, max_iter=300, tol=1e-6)
    value, gradient = function(end)
    assert value == pytest.approx(cost)
    assert cost < function(basis)[0]
    assert np.linalg.norm(gradient) < 1e-5
    np.testing.assert_allclose(adjoint(end) @ end, np.eye(2), atol=1e-13)


def test_no_iterations_and_full_size_stay_where_they_are():
    function, basis, _ = problem(spd)
    for start, max_iter in ((basis, 0), (np.eye(5), 50)):
        end, cost, n_iter = descend(function, start, max_iter, 1e-6)
        assert n_iter == 0
        assert np.array_equal(end, start)
        assert cost == function(start)[0]


@BOTH
def test_lifted_matrices_have_the_wanted_projection_and_keep_the_rest(make):
    rng = np.random.default_rng(2)
    matrices, small = make(rng, 3, 5), make(rng, 3, 2)
    basis = np.linalg.qr(make(rng, 1, 5)[0])[0]
    inside, outside = basis[:, :2], basis[:, 2:]
    result = lifted(matrices, inside, small)
    np.testing.assert_allclose(congruence(result, inside), small, atol=1e-12)
    assert (np.linalg.eigvalsh(result) > 0).all()

    def conditional(group):
        cross = adjoint(outside) @ group @ inside @ np.linalg.inv(congruence(group, inside))
        rest = congruence(group, outside) - cross @ congruence(group, inside) @ adjoint(cross)
        return cross, rest

    for kept, before in zip(conditional(result), conditional(matrices), strict=True):
        np.testing.assert_allclose(kept, before, atol=1e-12)
    np.testing.assert_allclose(lifted(matrices, inside, congruence(matrices, inside)), matrices, atol=1e-12)


# --- the transformer


@BOTH
def test_the_basis_is_orthonormal_and_canonical(make):
    X, y, _ = planted(make)
    projection = SPDProjection(3).fit(X, y)
    basis = projection.components_
    assert basis.shape == (6, 3)
    np.testing.assert_allclose(adjoint(basis) @ basis, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(projection.transform(X), adjoint(basis) @ X @ basis, atol=1e-10)
    largest = basis[np.abs(basis).argmax(axis=0), range(3)]
    np.testing.assert_allclose(largest, np.abs(largest))
    mean = np.diagonal(projection.transform(X).mean(axis=0)).real
    assert (np.diff(mean) < 0).all()


@BOTH
def test_planted_sources_are_found(make):
    X, y, filters = planted(make)
    start = SPDProjection(2, max_iter=0).fit(X, y)
    found = SPDProjection(2).fit(X, y)
    assert angle(found.components_, filters) < 0.15
    assert found.costs_[1] < found.costs_[0]
    assert start.costs_[0] == start.costs_[1] == found.costs_[0]
    model = RiemannianLVQ(max_epochs=0)
    small = model.fit(found.transform(X), y).score(found.transform(X), y)
    assert small >= model.fit(X, y).score(X, y) - 0.02


@BOTH
def test_the_costs_are_those_of_the_projected_matrices(make):
    X, y, _ = planted(make)
    projection = SPDProjection(2, n_alternations=1).fit(X, y)
    labels = np.searchsorted(projection.classes_, projection.prototype_labels_)
    targets = np.searchsorted(projection.classes_, y)
    prototypes = projection.transform(projection.prototypes_)
    d = AI.sqdist(prototypes, projection.transform(X))
    assert RSLVQ()(d, targets, labels, projection.sigma2_).loss.mean() == pytest.approx(projection.costs_[-1], rel=1e-6)


def test_a_rotation_turns_the_basis():
    X, y, _ = planted()
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(6, 6)))[0]
    one, other = SPDProjection(2).fit(X, y), SPDProjection(2).fit(congruence(X, turn.T), y)
    assert angle(turn @ one.components_, other.components_) < 1e-5
    np.testing.assert_allclose(other.costs_, one.costs_, rtol=1e-7)


@BOTH
def test_units_and_mixing_of_the_channels_do_not_change_the_sources_found(make):
    X, y, _ = planted(make)
    mixing = np.diag([1e-3, 1e-3, 1.0, 1.0, 10.0, 10.0]) @ np.linalg.qr(np.random.default_rng(4).normal(size=(6, 6)))[0]
    one, other = SPDProjection(2).fit(X, y), SPDProjection(2).fit(congruence(X, adjoint(mixing)), y)
    np.testing.assert_allclose(other.costs_, one.costs_, rtol=1e-5)
    wanted = table(one.transform(X))
    np.testing.assert_allclose(
        table(other.transform(congruence(X, adjoint(mixing)))), wanted, rtol=1e-3, atol=1e-4 * wanted.max()
    )
    volts = SPDProjection(2).fit(1e-12 * X, y)
    np.testing.assert_allclose(volts.components_, one.components_, atol=1e-5)


def test_the_order_of_the_samples_does_not_matter():
    X, y, _ = planted()
    order = np.random.default_rng(5).permutation(len(X))
    one, other = SPDProjection(2).fit(X, y), SPDProjection(2).fit(X[order], y[order])
    assert angle(one.components_, other.components_) < 1e-5


def test_a_projection_to_full_size_keeps_all_distances():
    X, y, _ = planted()
    projection = SPDProjection(6).fit(X, y)
    assert projection.n_iter_ == 0
    np.testing.assert_allclose(table(projection.transform(X)), table(X), atol=1e-8)


def test_projected_distances_never_exceed_the_full_ones():
    X, y, _ = planted()
    assert (table(SPDProjection(3).fit_transform(X, y)) <= table(X) + 1e-9).all()


# --- with the prototypes


@pytest.mark.parametrize("per_class", [1, 2])
def test_alternation_learns_prototypes_too(per_class):
    X, y, _ = planted()
    classifier = RiemannianLVQ(prototypes_per_class=per_class, max_epochs=3, random_state=0)
    plain = SPDProjection(2).fit(X, y)
    joint = SPDProjection(2, n_alternations=2, classifier=classifier).fit(X, y)
    assert plain.costs_.shape == (2,)
    assert joint.costs_.shape == (4,)
    np.testing.assert_array_equal(joint.costs_[:2], plain.costs_)
    assert joint.costs_[-1] < plain.costs_[-1]
    assert joint.prototypes_.shape == (3 * per_class, 6, 6)
    assert joint.prototype_labels_.tolist() == sorted(["a", "b", "c"] * per_class)
    assert (np.linalg.eigvalsh(joint.prototypes_) > 0).all()
    assert not hasattr(classifier, "prototypes_")
    assert classifier.init == "mean"


def test_without_alternation_the_prototypes_are_the_class_means():
    X, y, _ = planted()
    projection = SPDProjection(2).fit(X, y)
    means = RiemannianLVQ(max_epochs=0).fit(X, y)
    np.testing.assert_allclose(projection.prototypes_, means.prototypes_, rtol=1e-6)
    assert projection.prototype_labels_.tolist() == ["a", "b", "c"]


def test_soft_labels_are_learned_from():
    X, y, filters = planted()
    soft = 0.9 * (y[:, None] == np.array(["a", "b", "c"])) + 0.1 / 3
    projection = SPDProjection(2, cost="plvq", n_alternations=1).fit(X, soft)
    assert angle(projection.components_, filters) < 0.2
    assert projection.classes_.tolist() == [0, 1, 2]


def test_sigma2_may_be_given():
    X, y, _ = planted()
    assert SPDProjection(2, sigma2=0.5).fit(X, y).sigma2_ == 0.5
    start = SPDProjection(2, max_iter=0).fit(X, y)
    d = AI.sqdist(start.transform(start.prototypes_), start.transform(X))
    assert start.sigma2_ == pytest.approx(np.median(d) / 2, rel=1e-6)


# --- manners


def test_in_a_pipeline_and_a_grid():
    X, y = make_syn1(n_per_class=15, random_state=0)
    pipeline = make_pipeline(SPDProjection(max_iter=3), RiemannianLVQ(max_epochs=2, random_state=0))
    grid = GridSearchCV(pipeline, {"spdprojection__n_components": [1, 8]}, cv=3).fit(X, y)
    assert grid.best_params_ == {"spdprojection__n_components": 8}
    assert cross_val_score(grid.best_estimator_, X, y, cv=3).mean() > 0.8


def test_clones_pickles_and_repeats():
    X, y, _ = planted(per_class=8)
    projection = SPDProjection(2, classifier=RiemannianLVQ(max_epochs=2, random_state=1), n_alternations=1)
    copied = clone(projection).set_params(n_components=3, classifier__max_epochs=1)
    assert (copied.n_components, copied.classifier.max_epochs) == (3, 1)
    assert projection.classifier.max_epochs == 2
    first = projection.fit(X, y).transform(X)
    again = clone(projection).fit(X, y)
    np.testing.assert_array_equal(again.transform(X), first)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(projection)).transform(X), first)
    assert projection.n_features_in_ == 6


def test_input_is_left_alone():
    X, y, _ = planted(per_class=5)
    kept = X.copy()
    SPDProjection(2).fit_transform(X, y)
    assert np.array_equal(X, kept)


def test_before_fit_there_is_no_transform():
    with pytest.raises(NotFittedError):
        SPDProjection().transform(np.eye(3)[None])


REFUSED = {
    "none": ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
    "too many": ({"n_components": 7}, "n_components=7 exceeds the size 6 of the matrices in X"),
    "half": ({"n_components": 2.0}, "n_components must be an integer"),
    "cost": ({"cost": "best"}, "cost='best' is not known"),
    "sigma2": ({"sigma2": -1.0}, "sigma2 must be a positive finite number or 'auto', got -1.0"),
    "sigma2 by name": ({"sigma2": "mean"}, "sigma2 must be .*'mean'"),
    "alternations": ({"n_alternations": -1}, "n_alternations must be an integer of at least 0"),
    "iterations": ({"max_iter": None}, "max_iter must be an integer of at least 0, got None"),
    "tolerance": ({"tol": -1e-3}, "tol must be a finite number of at least 0, got -0.001"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_parameters_are_refused_by_name_and_nothing_changes(name):
    parameters, sentence = REFUSED[name]
    X, y, _ = planted(per_class=5)
    projection = SPDProjection(2, max_iter=1).fit(X, y)
    before = projection.components_
    with pytest.raises(ValueError, match=sentence):
        projection.set_params(**parameters).fit(X, y)
    assert projection.components_ is before


def test_bad_data_are_refused():
    X, y, _ = planted(per_class=5)
    broken = X.copy()
    broken[3] = -np.eye(6)
    with pytest.raises(ValueError, match=r"X\[3\] is not positive definite"):
        SPDProjection(2).fit(broken, y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        SPDProjection(2).fit(X, None)
    with pytest.raises(ValueError, match="14 labels for 15 samples"):
        SPDProjection(2).fit(X, y[1:])
    soft = np.column_stack([0.6 * np.ones(15), 0.4 * np.ones(15)])
    with pytest.raises(ValueError, match="no sample whose most probable class is 1"):
        SPDProjection(2).fit(X, soft)
    projection = SPDProjection(2, max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match=r"X\[3\] is not positive definite"):
        projection.transform(broken)
    with pytest.raises(ValueError, match="X has 3 features, but SPDProjection is expecting 6"):
        projection.transform(spd(np.random.default_rng(6), 2, 3))


@pytest.mark.parametrize("call", [1, 6])
def test_an_interrupt_in_an_alternation_ends_the_fit_and_changes_nothing(call):
    calls = itertools.count(1)

    def press(report):
        if next(calls) == call:
            raise KeyboardInterrupt

    X, y, _ = planted(per_class=5)
    projection = SPDProjection(2, max_iter=1, n_alternations=2).fit(X, y)
    before = {name: value for name, value in vars(projection).items() if name.endswith("_")}
    projection.set_params(classifier=RiemannianLVQ(max_epochs=4, sigma2=1.0, callbacks=[press]))
    with pytest.raises(KeyboardInterrupt, match="training was interrupted"):
        projection.fit(X[:, :4, :4], y)
    assert all(vars(projection)[name] is value for name, value in before.items())


def test_the_start_by_scipy():
    """The start spans generalised eigenvectors of the class means' scatter, written out by another route."""
    X, y, _ = planted()
    means = RiemannianLVQ(max_epochs=0).fit(X, y).prototypes_
    mean = riemannian_mean(AI, X).code
    whitening = np.linalg.inv(scipy.linalg.sqrtm(mean))
    logs = [scipy.linalg.logm(whitening @ m @ whitening) for m in means]
    leading = scipy.linalg.eigh(sum(log @ log for log in logs))[1][:, -2:]
    start = SPDProjection(2, max_iter=0).fit(X, y)
    assert angle(whitening @ leading, start.components_) < 1e-6
