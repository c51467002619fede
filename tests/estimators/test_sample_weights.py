"""Sample weights are multiplicities: w copies of a sample, none for w = 0."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pymanopt.manifolds import Sphere

from rplvq import EuclideanVectors, FromPymanopt, RiemannianLVQ, Trainer
from rplvq.arrays import Samples, visits
from rplvq.training import EpochScore
from tests.problems import spd_classes, sphere_classes, vector_classes

PROBLEMS = {
    "affine_invariant": (spd_classes(n_classes=3), "affine_invariant"),
    "complex": (spd_classes(n_classes=2, dtype=complex), "affine_invariant"),
    "log_euclidean": (spd_classes(n_classes=3), "log_euclidean"),
    "euclidean": (spd_classes(n_classes=3), "euclidean"),
    "euclidean_vectors": (vector_classes(n_classes=3, shift=1.0), "euclidean_vectors"),
    "sphere": (sphere_classes(per_class=4), FromPymanopt(Sphere(3))),
}
EVERY_MANIFOLD = pytest.mark.parametrize(("problem", "manifold"), PROBLEMS.values(), ids=PROBLEMS.keys())
SETTINGS = pytest.mark.parametrize(
    "settings",
    [
        {},
        {"prototypes_per_class": 2, "callbacks": [EpochScore()]},
        {"prototypes_per_class": 2, "init": "kmeans", "batch_size": 4},
        {"batch_size": None, "cost": "plvq"},
    ],
    ids=["plain", "means", "k-means, batches", "full batch"],
)


def fitted(manifold, X, y, weights=None, **settings):
    return RiemannianLVQ(manifold, max_epochs=2, random_state=3, **settings).fit(X, y, sample_weight=weights)


def assert_same(first, second):
    """Same prototypes, sigma2 and history, up to the order of additions."""
    # pymanopt's arccos resolves angles to 1.5e-8 only, so that class means on the sphere agree to that.
    tolerance = 1e-7 if isinstance(first.manifold, FromPymanopt) else 1e-10
    scale = np.abs(first.prototypes_).max()
    assert_allclose(second.prototypes_, first.prototypes_, rtol=tolerance, atol=tolerance * scale)
    assert_allclose(second.sigma2_, first.sigma2_, rtol=tolerance)
    for column in ("epoch", "cost", "training_error", "step_size", "n_capped"):
        assert_allclose(second.history_[column], first.history_[column], rtol=10 * tolerance, atol=tolerance)


@SETTINGS
@EVERY_MANIFOLD
def test_an_integer_weight_is_a_repetition(problem, manifold, settings):
    X, y = problem
    times = 1 + np.arange(len(X)) * 7 % 3
    repeated = fitted(manifold, np.repeat(X, times, axis=0), np.repeat(y, times), **settings)
    assert_same(repeated, fitted(manifold, X, y, times, **settings))


@SETTINGS
@EVERY_MANIFOLD
def test_weight_zero_is_removal(problem, manifold, settings):
    X, y = problem
    kept = np.arange(len(X)) % 4 != 1
    removed = fitted(manifold, X[kept], y[kept], **settings)
    assert_same(removed, fitted(manifold, X, y, kept.astype(float), **settings))


@EVERY_MANIFOLD
def test_weights_of_one_are_no_weights(problem, manifold):
    X, y = problem
    assert_same(fitted(manifold, X, y), fitted(manifold, X, y, np.ones(len(X))))


@EVERY_MANIFOLD
def test_weights_follow_their_samples_through_any_order(problem, manifold):
    X, y = problem
    rng = np.random.default_rng(0)
    weights, order = rng.uniform(0.2, 2.5, len(X)), rng.permutation(len(X))
    assert_same(fitted(manifold, X, y, weights), fitted(manifold, X[order], y[order], weights[order]))


def test_copies_of_a_sample_may_differ_in_weight():
    # The samples as a set: which copy came first must not matter.
    X, y = spd_classes()
    X, y = np.concatenate([X[:1], X]), np.concatenate([y[:1], y])
    weights = np.array([2.5, 1.0] + [1.0] * (len(X) - 2))
    swapped = np.array([1.0, 2.5] + [1.0] * (len(X) - 2))
    assert_same(
        fitted("affine_invariant", X, y, weights, step_size=0.2),
        fitted("affine_invariant", X, y, swapped, step_size=0.2),
    )


@pytest.mark.parametrize("batch_size", [1, 3, None])
def test_fractions_are_shared_by_the_visits(batch_size):
    # A weight of 2.5 is three visits of 5/6 each, as three copies with that weight would be.
    X, y = spd_classes()
    weights = np.where(np.arange(len(X)) % 3 == 0, 2.5, 1.0)
    copies = np.ceil(weights).astype(int)
    shares = np.repeat(weights / copies, copies)
    tripled = fitted(
        "affine_invariant", np.repeat(X, copies, axis=0), np.repeat(y, copies), shares, batch_size=batch_size
    )
    assert_same(tripled, fitted("affine_invariant", X, y, weights, batch_size=batch_size))
    rows, each = visits(len(X), weights)
    assert_allclose(np.bincount(rows, each), weights)


def test_cost_and_error_are_weighted_sums():
    X, y = vector_classes(shift=0.5, n_classes=2)
    weights = np.random.default_rng(0).uniform(0.2, 2.5, len(X))
    model = fitted("euclidean_vectors", X, y, weights, callbacks=[EpochScore()])
    own = model.predict_log_proba(X)[np.arange(len(X)), y]
    assert_allclose(model.history_["cost"][-1], -weights @ own)
    assert_allclose(model.history_["training_error"][-1], weights @ (model.predict(X) != y) / weights.sum())
    assert_allclose(1 - model.history_["training_error"][-1], model.score(X, y, weights))


def test_heavy_samples_pull_harder():
    X, y = vector_classes(shift=0.2)
    weights = np.ones(len(X))
    weights[0] = 50
    target = X[0]

    def reach(model):
        return np.linalg.norm(model.prototypes_[y[0]] - target)

    assert reach(fitted("euclidean_vectors", X, y, weights)) < reach(fitted("euclidean_vectors", X, y))


@pytest.mark.parametrize("batch_size", [1, 2])
def test_the_trainer_itself_takes_weights(batch_size):
    X, y = vector_classes(per_class=2)
    trainer = Trainer(EuclideanVectors(), sigma2=1.0, step_size=0.1, batch_size=batch_size, max_epochs=2)
    weights = np.array([1.0, 0.0, 2.0, 1.0])
    ends = []
    for codes, targets, given in [
        (X, y, weights),
        (np.repeat(X, [1, 0, 2, 1], axis=0), np.repeat(y, [1, 0, 2, 1]), None),
    ]:
        rng = np.random.default_rng(0)
        samples = Samples(codes, targets, given)
        ends.append(trainer.run(trainer.init(samples, 2, rng), samples, rng).state.prototypes)
    assert_allclose(ends[0], ends[1], rtol=1e-12)
