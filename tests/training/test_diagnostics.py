"""Trouble that leaves finite numbers is named, with what helps; quiet training stays quiet."""

from __future__ import annotations

import warnings

import attrs
import numpy as np
import pytest
from cases import hpd, spd
from numpy.testing import assert_allclose
from problems import spd_classes, vector_classes

from rplvq import AffineInvariant, EuclideanVectors, LogEuclidean, RiemannianLVQ
from rplvq.arrays import expm, logm, powm, rank_tolerance
from rplvq.exceptions import DivergenceWarning
from rplvq.manifolds import InverseFactors, flat_connect, flat_move, flat_sqdist, inverse_factors
from rplvq.training import edge_trouble, step_trouble

X, Y = spd_classes(per_class=10)
GEOMETRIES = pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean"])


@pytest.mark.parametrize("make", [spd, hpd])
def test_the_margin_is_the_reciprocal_condition(make):
    matrices = make(np.random.default_rng(0), 5, 4, 3.0)
    wanted = 1 / np.linalg.cond(matrices)
    assert_allclose(AffineInvariant().margin(matrices), wanted, rtol=1e-10)
    assert_allclose(AffineInvariant().margin(InverseFactors(inverse_factors(matrices))), wanted, rtol=1e-10)
    assert_allclose(LogEuclidean().margin(logm(matrices)), wanted, rtol=1e-10)


@GEOMETRIES
def test_the_edge_is_where_encode_refuses(manifold):
    labels, n = np.array(["near", "far"])[Y], 3
    for reach, edge in ((16.3, False), (16.5, True)):
        init = np.array([np.diag(np.exp([-reach, 0.0, reach])), np.eye(n)])
        assert edge == (np.exp(-2 * reach) < rank_tolerance(n))
        model = RiemannianLVQ(manifold, init=(init, ["far", "near"]), max_epochs=0, sigma2=1.0)
        if edge:
            with pytest.raises(ValueError, match="singular to rounding"):
                model.fit(X, labels)
        else:
            model.fit(X, labels)  # quiet
        flat = LogEuclidean() if manifold == "log_euclidean" else AffineInvariant()
        factors = np.array([np.diag(np.exp([reach / 2, 0.0, -reach / 2])), np.eye(n)])
        codes = np.array([np.diag([-reach, 0.0, reach]), np.zeros((n, n))])
        state = RiemannianLVQ(max_epochs=0).fit(X, labels)._state
        state = state._replace(prototypes=codes if manifold == "log_euclidean" else InverseFactors(factors))
        trouble = edge_trouble(flat, state, np.array(["far", "near"]))
        assert (trouble is not None) == edge
        if edge:
            assert "prototype 0 (class 'far') is at the edge of the cone" in trouble
            assert f"its smallest eigenvalue is {np.exp(-2 * reach):.2g} of its largest" in trouble


@GEOMETRIES
def test_a_fit_that_ends_at_the_edge_warns(manifold):
    """One sample against twenty, under a mixture so wide that they push its prototype away for good."""
    rng = np.random.default_rng(0)
    samples = np.array([np.diag([np.exp(shift), 1.0]) for shift in [1.0, *rng.uniform(-0.1, 0.1, 20)]])
    labels = np.where(np.arange(21) == 0, "one", "many")
    model = RiemannianLVQ(manifold, sigma2=1e4, step_size=2e3, max_epochs=5, random_state=0)
    with pytest.warns(DivergenceWarning, match=r"prototype 1 \(class 'one'\) is at the edge .*shrinkage.* lower step"):
        model.fit(samples, labels)
    assert np.isfinite(model.predict_log_proba(samples)).all()


@pytest.mark.parametrize("batch_size", [1, 4, None])
def test_steps_that_are_mostly_cut_are_named_with_the_cure(batch_size):
    V, y = vector_classes(shift=0.3)
    settings = {"sigma2": 0.01, "step_size": 50.0, "max_epochs": 3, "random_state": 0, "batch_size": batch_size}
    with pytest.warns(DivergenceWarning, match=r"steps were cut \d+ times in 48 visits: .*lower step_size"):
        model = RiemannianLVQ("euclidean_vectors", **settings).fit(V, y)
    assert model.history_["n_capped"].sum() > 24


def test_a_warning_is_given_once_a_fit_and_after_it():
    V, y = vector_classes(shift=0.3)
    model = RiemannianLVQ("euclidean_vectors", sigma2=0.01, step_size=50.0, max_epochs=5, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(V, y)
    assert [warning.category for warning in caught] == [DivergenceWarning]
    assert caught[0].filename == __file__
    again = RiemannianLVQ(**model.get_params())
    with pytest.raises(DivergenceWarning):  # as all warnings are errors in these tests
        again.fit(V, y)
    assert np.array_equal(again.prototypes_, model.prototypes_)


def test_half_the_visits_are_too_many():
    V, y = vector_classes()
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=2, monitor="epoch").fit(V, y)
    history = {"epoch": np.array([0, 1, 2]), "n_capped": np.array([0, 10, 6])}
    assert step_trouble(model._state, history, 16) is None
    assert "17 times in 32 visits" in step_trouble(model._state, history | {"n_capped": np.array([0, 10, 7])}, 16)
    assert step_trouble(model._state, {}, 16) is None


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_are_no_trouble(manifold, scale):
    RiemannianLVQ(manifold, max_epochs=2, random_state=0).fit(scale * X, Y)


def test_a_geometry_without_a_margin_is_not_looked_at():
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=1).fit(*vector_classes())
    assert edge_trouble(EuclideanVectors(), model._state, model.prototype_labels_) is None


@attrs.frozen
class PowerEuclidean:
    """``|X^p - W^p|_F / p``: flat, but the powers of matrices are a cone, not all of the space."""

    power: float = 0.7

    def encode(self, points):
        return expm(self.power * LogEuclidean().encode(points)) / self.power

    def decode(self, codes):
        return powm(self.power * codes, 1 / self.power)

    def sqdist(self, prototypes, samples):
        return flat_sqdist(prototypes, samples)

    def connect(self, prototypes, samples):
        return flat_connect(prototypes, samples)

    def move(self, geodesics, weights):
        return flat_move(geodesics, weights)


def test_a_prototype_that_left_the_manifold_is_named_and_the_model_stays():
    samples = np.array([np.diag([value, value]) for value in (1.0, 1.1, 1.2, 3.0, 3.1, 3.2)])
    labels = ["small"] * 3 + ["large"] * 3
    model = RiemannianLVQ(PowerEuclidean(), sigma2=1.0, max_epochs=2, random_state=0).fit(samples, labels)
    before = model.prototypes_
    model.set_params(step_size=2.0, sigma2=20.0, max_epochs=60)
    wanted = r"prototype 1 \(class 'small'\) has left the manifold: decode of PowerEuclidean\(power=0.7\)"
    with pytest.raises(FloatingPointError, match=wanted):
        model.fit(samples, labels)
    assert model.prototypes_ is before
