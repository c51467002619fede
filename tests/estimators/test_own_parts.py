"""Parts that a user writes, in about ten lines each, and geometries that come from elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pymanopt.manifolds import Grassmann, Sphere
from sklearn.base import clone

from rplvq import (
    RSLVQ,
    AffineInvariant,
    Annealed,
    ClassMeans,
    EarlyStopping,
    EuclideanVectors,
    FromPymanopt,
    HeldOut,
    RiemannianLVQ,
)
from rplvq.arrays import Samples
from rplvq.protocols import Cost, Evaluation, Initializer, Manifold, Schedule
from rplvq.testing import check_cost, check_initializer, check_manifold, check_schedule
from rplvq.training import EpochScore, measure
from tests.problems import distances, grassmann_classes, spd, spd_classes, sphere_classes

# --- a user's own parts


class Lines(NamedTuple):
    sqdist: Any
    logarithms: Any
    prototypes: Any


@attrs.frozen
class LogCholesky:
    """Cholesky factors as codes, their diagonals by logarithm: then everything is flat (Lin 2019)."""

    def encode(self, points):
        lower = np.linalg.cholesky(AffineInvariant().encode(points))  # which refuses what is not positive definite
        diagonal = np.einsum("...ii->...i", lower)
        diagonal[:] = np.log(diagonal)
        return lower

    def decode(self, codes):
        lower = np.array(codes)
        diagonal = np.einsum("...ii->...i", lower)
        diagonal[:] = np.exp(diagonal)
        return lower @ lower.swapaxes(-1, -2)

    def sqdist(self, prototypes, samples):
        return self.connect(prototypes, samples).sqdist

    def connect(self, prototypes, samples):
        logarithms = samples[:, None] - prototypes
        return Lines((logarithms**2).sum(axis=(2, 3)), logarithms, prototypes)

    def move(self, geodesics, weights):
        return geodesics.prototypes + np.einsum("bk,bkij->kij", weights, geodesics.logarithms)


@attrs.frozen
class Hinge:
    """How much closer the nearest wrong prototype is than the nearest right one, plus a margin."""

    margin: float = 1.0

    def __call__(self, sqdist, targets, labels, sigma2):
        if targets.ndim == 2:
            raise ValueError("Hinge learns from one class a sample")
        own, rows = labels == targets[:, None], np.arange(len(sqdist))
        right = np.where(own, sqdist, np.inf).argmin(axis=1)
        wrong = np.where(own, np.inf, sqdist).argmin(axis=1)
        loss = np.maximum(0, self.margin + (sqdist[rows, right] - sqdist[rows, wrong]) / sigma2)
        slope = np.zeros_like(sqdist)
        slope[rows, right], slope[rows, wrong] = (loss > 0) / sigma2, (loss > 0) / -sigma2
        return Evaluation(loss, slope)


@attrs.frozen
class Cosine:
    start: float | None = None

    def __call__(self, epoch, n_epochs):
        return self.start * (0.51 + 0.49 * np.cos(np.pi * epoch / max(n_epochs, 1)))


@attrs.frozen
class FirstSamples:
    """The first samples of each class."""

    per_class: tuple[int, ...] | None = None

    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        rows = [np.flatnonzero(targets == label)[:count] for label, count in enumerate(self.per_class)]
        return codes[np.concatenate(rows)], np.repeat(np.arange(n_classes), self.per_class)


def test_own_parts_keep_their_promises():
    assert isinstance(LogCholesky(), Manifold)
    assert isinstance(Hinge(), Cost)
    assert isinstance(Cosine(), Schedule)
    assert isinstance(FirstSamples(), Initializer)
    check_manifold(LogCholesky(), spd(np.random.default_rng(0), 6, 3))
    check_cost(Hinge(margin=20.0))
    check_schedule(Cosine(2.0))
    check_initializer(FirstSamples(), LogCholesky(), *spd_classes())  # its per_class is filled in
    check_initializer(FirstSamples((2, 3)), LogCholesky(), *spd_classes())


@pytest.mark.parametrize("manifold", [LogCholesky(), AffineInvariant(), "log_euclidean", "euclidean"], ids=str)
@pytest.mark.parametrize("cost", [Hinge(), "rslvq", "plvq"], ids=str)
@pytest.mark.parametrize(
    "settings",
    [
        {"sigma2": Cosine(), "step_size": Cosine(0.1), "init": FirstSamples(), "prototypes_per_class": 2},
        {"sigma2": Annealed(1.0), "batch_size": 5, "init": "kmeans"},
        {"sigma2": 1.0, "step_size": Cosine(), "early_stopping": EarlyStopping(fraction=0.25)},
    ],
    ids=["own", "mixed", "early stopping"],
)
def test_own_parts_compose_with_all_others(manifold, cost, settings):
    X, y = spd_classes(n_classes=3, per_class=10, shift=0.9, spread=0.2)
    model = clone(RiemannianLVQ(manifold, cost, max_epochs=4, random_state=0, **settings)).fit(X, y)
    assert model.score(X, y) > 0.8
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (np.linalg.eigvalsh(model.prototypes_) > 0).all()


def test_an_own_initializer_starts_training():
    X, y = spd_classes()
    model = RiemannianLVQ(init=FirstSamples(), prototypes_per_class=2, max_epochs=0).fit(X, y)
    assert model.prototype_labels_.tolist() == [0, 0, 1, 1]
    assert_allclose(distances(model.prototypes_, X).min(axis=1), 0, atol=1e-7)
    assert (y[distances(model.prototypes_, X).argmin(axis=1)] == model.prototype_labels_).all()


def test_a_cost_without_log_proba_has_the_mixture_s():
    X, y = spd_classes()
    own = RiemannianLVQ(cost=Hinge(), sigma2=2.0, max_epochs=0).fit(X, y)
    assert_allclose(own.predict_proba(X), RiemannianLVQ(sigma2=2.0, max_epochs=0).fit(X, y).predict_proba(X))


def test_priors_reach_the_probabilities():
    X, y = spd_classes()
    even = RiemannianLVQ(sigma2=2.0, max_epochs=0).fit(X, y).predict_proba(X)
    model = RiemannianLVQ(cost=RSLVQ(priors=(0.9, 0.1)), sigma2=2.0, max_epochs=0).fit(X, y)
    expected = even * [0.9, 0.1]
    assert_allclose(model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True))


# --- pymanopt, complex matrices, one channel


def test_a_sphere_trains():
    X, y = sphere_classes(per_class=20, spread=0.4)
    between = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]) / np.sqrt(2)
    settings = {"sigma2": 0.3, "step_size": 0.1, "init": (between, [0, 1, 2]), "random_state": 0}
    before = RiemannianLVQ(Sphere(3), max_epochs=0, **settings).fit(X, y)
    model = RiemannianLVQ(Sphere(3), max_epochs=5, callbacks=[EpochScore()], **settings).fit(X, y)
    assert before.score(X, y) < 0.7
    assert model.score(X, y) > 0.85  # chance is 1/3
    assert_allclose(np.linalg.norm(model.prototypes_, axis=1), 1)
    assert_allclose(model.transform(X), np.arccos(np.clip(X @ model.prototypes_.T, -1, 1)), atol=1e-7)
    samples = Samples(before.trainer_.manifold.encode(X), y)
    cost = measure(before.trainer_.manifold, before.trainer_.cost, before.state_, samples).cost
    assert model.history_["cost"][-1] < 0.4 * cost


@pytest.mark.parametrize("manifold", [Grassmann(4, 2), FromPymanopt(Grassmann(4, 2))], ids=["bare", "wrapped"])
def test_a_grassmann_trains(manifold):
    X, y = grassmann_classes(per_class=15)
    model = RiemannianLVQ(manifold, sigma2=0.3, step_size=0.1, max_epochs=5, batch_size=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85  # chance is 1/2
    assert_allclose(model.prototypes_.swapaxes(1, 2) @ model.prototypes_, np.stack([np.eye(2)] * 2), atol=1e-9)


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("batch_size", [1, 6])
def test_complex_hermitian_matrices_train(manifold, batch_size):
    X, y = spd_classes(n_classes=3, dtype=complex, spread=0.2)
    model = RiemannianLVQ(manifold, sigma2=1.0, max_epochs=3, batch_size=batch_size, random_state=0).fit(X, y)
    assert model.prototypes_.dtype == complex
    assert_allclose(model.prototypes_, model.prototypes_.conj().swapaxes(1, 2), atol=1e-12)
    assert (np.linalg.eigvalsh(model.prototypes_) > 0).all()
    assert model.score(X, y) > 0.85
    assert model.predict(X.conj()).shape == y.shape


def test_complex_training_is_real_training_in_disguise():
    # D^H X D with a diagonal D of phases is a congruence, so that the run is the same but for D.
    X, y = spd_classes()
    phases = np.exp(1j * np.array([0.3, 1.1, -2.0]))
    turned = X * (phases[:, None].conj() * phases)
    settings = {"sigma2": 1.0, "batch_size": None, "max_epochs": 4}
    real, unreal = RiemannianLVQ(**settings).fit(X, y), RiemannianLVQ(**settings).fit(turned, y)
    assert_allclose(unreal.prototypes_, real.prototypes_ * (phases[:, None].conj() * phases), atol=1e-9)
    assert_array_equal(unreal.predict(turned), real.predict(X))


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean"])
def test_one_channel_is_the_line_of_logarithms(manifold):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    logs = rng.normal(size=30) + 2 * y
    settings = {"sigma2": 1.0, "step_size": 0.05, "batch_size": None, "max_epochs": 5}
    model = RiemannianLVQ(manifold, **settings).fit(np.exp(logs)[:, None, None], y)
    line = RiemannianLVQ(EuclideanVectors(), **settings).fit(logs[:, None], y)
    assert_allclose(np.log(model.prototypes_[:, 0, 0]), line.prototypes_[:, 0], rtol=1e-9)
    assert_allclose(model.history_["cost"], line.history_["cost"], rtol=1e-9)


def test_one_channel_trains_under_the_euclidean_metric():
    y = np.arange(20) % 2
    X = (1.0 + y + np.random.default_rng(0).uniform(-0.4, 0.4, 20))[:, None, None]
    assert RiemannianLVQ("euclidean", sigma2=HeldOut(["auto"]), max_epochs=3, random_state=0).fit(X, y).score(X, y) == 1


def test_initializers_without_per_class_are_completed():
    X, y = spd_classes()
    model = RiemannianLVQ(init=ClassMeans(perturbation=0.0), prototypes_per_class={0: 1, 1: 3}, max_epochs=0)
    assert model.fit(X, y).prototype_labels_.tolist() == [0, 1, 1, 1]


def initializer_with(prototypes=lambda codes: codes, labels=(0, 1)):
    """Return an initializer that takes the first two codes, changed, and these labels."""
    return lambda manifold, codes, targets, n_classes, rng: (prototypes(codes[:2]), np.array(labels))


def constant_cost(value, dtype=float):
    return lambda sqdist, targets, labels, sigma2: (sqdist.sum(axis=1), np.full(sqdist.shape, value, dtype))


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"init": lambda codes, rng: codes[:2]}, ValueError, "init=.* is called with .manifold, codes, targets, n_cla"),
        ({"init": lambda *parts: None}, ValueError, r"init must return \(prototypes, labels\), got None"),
        ({"init": initializer_with(labels=[0, -1])}, ValueError, r"init labels\[1\] is -1, not among class"),
        ({"init": initializer_with(labels=[0.0, 1.0])}, ValueError, "init labels must be integers .* of float64"),
        ({"init": initializer_with(lambda codes: codes * np.nan)}, ValueError, r"init prototypes\[0\] .* not finite"),
        ({"init": initializer_with(lambda codes: codes[:, :1, :1])}, ValueError, r"shape \(1, 1\), the samples \(2, 2"),
        ({"init": initializer_with(np.negative)}, np.linalg.LinAlgError, r"prototypes\[0\] is not positive definite"),
        ({"growth": [lambda window: None]}, TypeError, r"growth\[0\]=.* must return a Window, got None"),
        ({"growth": [lambda: None]}, ValueError, r"growth\[0\]=.* is called with \(window\)"),
        ({"callbacks": [lambda: None]}, ValueError, r"callbacks\[0\]=.* is called with \(report\)"),
        ({"cost": lambda sqdist, targets: 0.0}, ValueError, "cost=.* is called with .sqdist, targets, labels, sigma2"),
        ({"cost": constant_cost(np.nan)}, ValueError, "cost .* its slope is NaN at squared distances"),
        ({"cost": constant_cost(1j, complex)}, ValueError, "cost .* returned complex slopes"),
    ],
)
def test_parts_that_break_their_promise_are_named(settings, error, sentence):
    X, y = spd_classes(n=2, n_classes=2)
    with pytest.raises(error, match=sentence):
        RiemannianLVQ(**{"sigma2": 0.5, "max_epochs": 2, "random_state": 0} | settings).fit(X, y)


def test_an_initializer_may_return_lists():
    X, y = spd_classes(n=2, n_classes=2)

    def listed(manifold, codes, targets, n_classes, rng):
        return [codes[targets == label].mean(axis=0) for label in range(n_classes)], [0, 1]

    own = RiemannianLVQ(init=listed, max_epochs=0).fit(X, y)
    assert_allclose(own.prototypes_, [X[y == label].mean(axis=0) for label in range(2)], rtol=1e-12)
