"""Trouble that leaves finite numbers is named, with what helps; quiet training stays quiet."""

from __future__ import annotations

import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    EuclideanVectors,
    HeldOut,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    RiemannianLVQ,
)
from rplvq.arrays import expm, logm, rank_tolerance
from rplvq.exceptions import DivergenceWarning, PointError
from rplvq.manifolds import InverseFactors, flat_connect, flat_move, flat_sqdist
from rplvq.training import decoded, edge_trouble, step_trouble, warn_of
from tests.cases import hpd, spd
from tests.problems import refuse, spd_classes, vector_classes

X, Y = spd_classes(per_class=10)
GEOMETRIES = pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean"])


FLAT = [LogEuclidean(), LogCholesky(), LearnedLogEuclidean()]


@pytest.mark.parametrize("make", [spd, hpd])
@pytest.mark.parametrize(("reach", "edge"), [(16.3, False), (16.5, True), (18.0, True)])
@pytest.mark.parametrize("seed", range(5))
def test_the_edge_is_where_encode_refuses_and_distances_are_rounding(make, reach, edge, seed):
    manifold, n = AffineInvariant(), 3
    basis = np.linalg.eigh(make(np.random.default_rng(seed), 1, n)[0])[1]
    far = (basis * np.exp([-reach, 0.0, reach])) @ basis.conj().T
    matrices = np.array([np.eye(n), 0.5 * (far + far.conj().T)])
    factors = np.array([np.eye(n), (basis * np.exp([reach / 2, 0.0, -reach / 2])).conj().T])
    assert edge == (np.exp(-2 * reach) < rank_tolerance(n))
    for prototypes in (matrices, InverseFactors(factors)):
        trouble = edge_trouble(manifold, prototypes, np.array(["near", "far"]))
        assert (trouble is not None) == edge
        if not edge:
            continue
        assert "prototype 1 (class 'far') is at the edge of the manifold" in trouble
        assert "it is singular to rounding" in trouble
        assert "shrinkage" in trouble
        assert "lower step_size or the manifold's max_step_length" in trouble


@pytest.mark.parametrize("manifold", [*FLAT, BuresWasserstein()], ids=lambda manifold: type(manifold).__name__)
@pytest.mark.parametrize("make", [spd, hpd])
def test_where_codes_give_the_distances_there_is_no_edge(manifold, make):
    """The points of these prototypes are singular to rounding, and their distances are exact."""
    X = make(np.random.default_rng(0), 6, 5)
    codes = manifold.encode(X)
    prototypes = (codes[:1] + 40 * (codes[1:3] - codes[:1])) * (1 if manifold in FLAT else np.diag([1, 1, 1, 1, 1e-10]))
    with pytest.raises(PointError, match="singular to rounding"):
        manifold.encode(manifold.decode(prototypes))
    assert edge_trouble(manifold, prototypes, np.array(["a", "b"])) is None


@pytest.mark.parametrize("n", [24, 28])
@pytest.mark.parametrize("turn", [0.0, 1j], ids=["real", "complex"])
def test_a_flat_metric_is_quiet_where_its_distances_are_exact(n, turn):
    """Covariances of few observations of many channels, whose prototypes as matrices are singular to rounding."""
    rng, y = np.random.default_rng(0), np.arange(24) % 2
    mixing = (np.eye(n) + 0.3 * rng.normal(size=(2, n, n)))[y] * np.exp(rng.uniform(-4, 3, (24, 1, n)))
    trials = mixing @ (rng.normal(size=(24, n, 40)) + turn * rng.normal(size=(24, n, 40)))
    samples = trials @ trials.conj().swapaxes(1, 2) / 40 + 1e-9 * np.eye(n)
    model = RiemannianLVQ(
        "log_euclidean", sigma2=HeldOut(["auto"]), step_size="adaptive", max_epochs=60, random_state=0
    )
    model.fit(samples, y)
    with pytest.raises(PointError):
        LogEuclidean().encode(model.prototypes_)
    logs = np.asarray(model.state_.prototypes)
    by_hand = np.linalg.norm(LogEuclidean().encode(samples)[:, None] - logs, axis=(2, 3))
    assert_allclose(model.transform(samples), by_hand, rtol=1e-13)


@GEOMETRIES
@pytest.mark.parametrize(("reach", "edge"), [(16.3, False), (16.5, True)])
def test_first_prototypes_at_the_edge_are_refused_and_short_of_it_are_quiet(manifold, reach, edge):
    labels = np.array(["near", "far"])[Y]
    init = np.array([np.diag(np.exp([-reach, 0.0, reach])), np.eye(3)])
    model = RiemannianLVQ(manifold, init=(init, ["far", "near"]), max_epochs=0, sigma2=1.0)
    if edge:
        refuse(model, "fit", X, labels, match="singular to rounding")
    else:
        model.fit(X, labels)


def test_a_fit_that_ends_at_the_edge_warns():
    """One sample against twenty, under a mixture so wide that they push its prototype away for good."""
    rng = np.random.default_rng(0)
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    samples = np.array([turn @ np.diag([np.exp(shift), 1.0]) @ turn.T for shift in [1.0, *rng.uniform(-0.1, 0.1, 20)]])
    labels = np.where(np.arange(21) == 0, "one", "many")
    model = RiemannianLVQ(sigma2=1e4, step_size=2e3, max_epochs=3, random_state=0)
    with pytest.warns(
        DivergenceWarning,
        match=r"prototype 1 \(class 'one'\) is at the edge .*singular to rounding.*shrinkage.* lower step",
    ):
        model.fit(samples, labels)
    assert np.isfinite(model.predict_log_proba(samples)).all()


@pytest.mark.parametrize("batch_size", [1, 4, None])
def test_steps_that_are_mostly_cut_are_named_with_the_cure(batch_size):
    V, y = vector_classes(shift=0.3)
    settings = {"sigma2": 0.01, "step_size": 50.0, "max_epochs": 3, "random_state": 0, "batch_size": batch_size}
    with pytest.warns(DivergenceWarning, match=r"\d+ of 32 steps of epoch \d were cut: .*lower step_size"):
        model = RiemannianLVQ("euclidean_vectors", **settings).fit(V, y)
    assert model.history_["n_capped"].sum() > 24


def test_a_batch_of_a_stream_whose_steps_are_cut_warns_too():
    V, y = vector_classes(shift=0.3)
    model = RiemannianLVQ("euclidean_vectors", sigma2=0.01, step_size=50.0, max_epochs=3, random_state=0)
    for call in range(2):
        with pytest.warns(DivergenceWarning, match=rf"\d+ of 32 steps of epoch {call + 1} were cut") as caught:
            model.partial_fit(V, y)
        assert caught[0].filename == __file__
        assert model.n_epochs_ == call + 1
    RiemannianLVQ("euclidean_vectors", random_state=0).partial_fit(V, y).partial_fit(V, y)


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


def test_a_tenth_of_the_weights_of_an_epoch_are_too_many():
    """16 visits of samples with 2 or 5 prototypes are 32 or 80 weights."""
    history = {"epoch": np.array([1, 2]), "step_size": np.array([3.0, 2.0]), "sigma2": np.array([0.5, 0.25])}
    history |= {"n_prototypes": np.array([2, 5]), "n_capped": np.array([3, 8])}
    assert step_trouble(history, 16) is None
    found = step_trouble(history | {"n_capped": np.array([3, 9])}, 16)
    assert found.startswith("9 of 80 steps of epoch 2 were cut")
    assert "step_size (then 2) is too large for sigma2 (then 0.25)" in found
    found = step_trouble(history | {"n_capped": np.array([31, 9])}, 16)
    assert found.startswith("31 of 32 steps of epoch 1 were cut")  # the epoch with the largest share
    assert step_trouble({}, 16) is None


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_are_no_trouble(manifold, scale):
    RiemannianLVQ(manifold, sigma2=HeldOut(["auto"]), max_epochs=2, random_state=0).fit(scale * X, Y)


def test_a_geometry_without_an_edge_has_no_trouble():
    points = np.array([[0.0, 1e300], [1e-300, 0.0]])
    assert edge_trouble(EuclideanVectors(), points, np.array(["a", "b"])) is None


def test_the_points_of_prototypes_must_be_finite():
    class Blind(EuclideanVectors):
        def decode(self, codes):
            return np.sqrt(codes)

    state = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=0).fit([[1.0], [4.0]], [0, 1]).state_
    assert_allclose(decoded(Blind(), state, np.array(["a", "b"])), [[1.0], [2.0]])
    lost = state._replace(prototypes=np.array([[4.0], [-1.0]]))
    with pytest.raises(FloatingPointError, match=r"prototype 1 \(class 'b'\) has left the manifold: decode of .*Blind"):
        decoded(Blind(), lost, np.array(["a", "b"]))


def test_all_troubles_are_in_one_warning():
    with pytest.warns(DivergenceWarning, match="^first; second$"):
        warn_of(["first", None, "second"], 1)
    warn_of([None, None], 1)  # quiet


@attrs.frozen
class PowerEuclidean:
    """``|X^p - W^p|_F / p``: flat, but the powers of matrices are a cone, not all of the space."""

    power: float = 0.7

    def encode(self, points):
        return expm(self.power * LogEuclidean().encode(points)) / self.power

    def decode(self, codes):
        return expm(logm(self.power * codes) / self.power)

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
