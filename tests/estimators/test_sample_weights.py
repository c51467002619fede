"""Sample weights are multiplicities: w copies of a sample, none for w = 0."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pymanopt.manifolds import Sphere
from sklearn.ensemble import AdaBoostClassifier

from rplvq import (
    EarlyStopping,
    EuclideanVectors,
    FromPymanopt,
    Grow,
    HeldOut,
    LogEuclidean,
    Product,
    Prune,
    RiemannianLVQ,
    Trainer,
)
from rplvq.arrays import Samples, visits
from rplvq.training import EpochScore
from tests.covering import covering
from tests.problems import refuse, spd_classes, sphere_classes, vector_classes

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

TRAINS = HeldOut(["auto"])


def fitted(manifold, X, y, weights=None, **settings):
    settings = {"sigma2": TRAINS, "max_epochs": 2, "random_state": 3} | settings
    return RiemannianLVQ(manifold, **settings).fit(X, y, sample_weight=weights)


def assert_same(first, second):
    """Same prototypes, sigma2 and history, up to the order of additions."""
    # pymanopt's arccos resolves angles to 1.5e-8 only, so that class means on the sphere agree to that.
    tolerance = 1e-7 if isinstance(first.metric, FromPymanopt) else 1e-10
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


# --- every option: the fit knows the distinct samples and their weights, so that equality is exact

OPTIONS = {
    "plain": {},
    "the default": {"sigma2": "auto", "max_epochs": 12},
    "early stopping": {"early_stopping": EarlyStopping(0.25, patience=2), "max_epochs": 6},
    "growth": {"growth": [Grow(every=1, gain=0.0, min_samples=4)], "max_epochs": 5},
    "growth without a judge": {"growth": [Grow(every=2, gain=None, min_samples=4), Prune(every=1)], "max_epochs": 5},
    "sigma2 of held-out samples": {"sigma2": HeldOut([0.3, 1.0]), "max_epochs": 8},
    "annealed": {"sigma2": "half_median", "step_size": "auto", "prototypes_per_class": 2, "init": "kmeans"},
    "adaptive": {"step_size": "adaptive", "batch_size": 3},
    "full batch": {"batch_size": None, "cost": "glvq", "decision": "posterior"},
    "no training": {"max_epochs": 0, "prototypes_per_class": 2},
}


def paired(X, y):
    """Each matrix beside a power of itself, (N, 2, n, n), and classes (N,)."""
    return np.stack([X, X @ X], axis=1), y


PAIR = Product([LogEuclidean(), LogEuclidean()], relevances="learned")
LARGER = {
    "affine_invariant": (spd_classes(n_classes=3, per_class=12, spread=0.6), "affine_invariant"),
    "complex": (spd_classes(n_classes=2, per_class=16, spread=0.6, dtype=complex), "affine_invariant"),
    "learned_log_euclidean": (spd_classes(n_classes=2, per_class=16, spread=0.6), "learned_log_euclidean"),
    "euclidean_vectors": (vector_classes(n_classes=3, per_class=12, shift=0.6), "euclidean_vectors"),
    "product": (paired(*spd_classes(n_classes=2, per_class=16, spread=0.6)), PAIR),
}


def assert_identical(first, second):
    assert_array_equal(second.prototypes_, first.prototypes_)
    assert_array_equal(second.prototype_labels_, first.prototype_labels_)
    assert second.sigma2_ == first.sigma2_
    assert second.history_.keys() == first.history_.keys()
    for column in first.history_.keys() - {"seconds"}:
        assert_array_equal(second.history_[column], first.history_[column])


def learned(manifold, X, y, weights, settings, ends=None):
    """A model fitted at once, or call by call on the rows between ``ends``."""
    model = RiemannianLVQ(manifold, **({"sigma2": TRAINS, "max_epochs": 3, "random_state": 1} | settings))
    if ends is None:
        return model.fit(X, y, weights)
    for start, stop in pairwise(ends):
        rows = slice(start, stop)
        model.partial_fit(X[rows], y[rows], sample_weight=None if weights is None else weights[rows])
    return model


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", LARGER)
def test_every_option_sees_weights_as_repetitions_and_zero_as_removal(name, option):
    """Every other pair of an option and a problem is a fit, the rest are streams."""
    (X, y), manifold = LARGER[name]
    settings, in_stream = OPTIONS[option], ([*LARGER].index(name) + [*OPTIONS].index(option)) % 2
    times = np.arange(len(X)) * 7 % 4  # from 0 to 3
    rows = np.repeat(np.arange(len(X)), times)
    kept = np.flatnonzero(times)
    ends, rows_ends, kept_ends = None, None, None
    if in_stream:  # the calls end between the same samples
        ends = np.linspace(0, len(X), 4).astype(int)
        rows_ends, kept_ends = np.searchsorted(rows, ends), np.searchsorted(kept, ends)
    weighted = learned(manifold, X, y, times, settings, ends)
    assert_identical(learned(manifold, X[rows], y[rows], None, settings, rows_ends), weighted)
    assert_identical(learned(manifold, X[kept], y[kept], times[kept], settings, kept_ends), weighted)
    once = learned(manifold, X, y, times > 0, settings, ends)
    assert_identical(learned(manifold, X[kept], y[kept], None, settings, kept_ends), once)
    if not in_stream:
        shuffled = np.random.default_rng(0).permutation(rows)
        assert_identical(learned(manifold, X[shuffled], y[shuffled], None, settings), weighted)


def test_soft_labels_and_weights_are_held_out_together():
    X, y = vector_classes(n_classes=2, per_class=16, shift=0.6)
    soft = np.stack([0.9 - 0.8 * y, 0.1 + 0.8 * y], axis=1)
    times = 1 + np.arange(len(X)) % 3
    settings = {"cost": "plvq", "early_stopping": True, "max_epochs": 5, "growth": [Grow(every=1, min_samples=4)]}
    repeated = np.repeat(X, times, axis=0), np.repeat(soft, times, axis=0), None
    first = learned("euclidean_vectors", X, soft, times, settings)
    assert_identical(learned("euclidean_vectors", *repeated, settings), first)


def test_samples_of_weight_zero_are_not_held_out():
    X, y = spd_classes(per_class=12)
    model = RiemannianLVQ(sigma2=1.0, early_stopping=EarlyStopping(0.25), max_epochs=3, random_state=0)
    for seed in range(10):
        weights = np.zeros(len(X))
        for label in range(2):  # five of each class
            weights[np.random.default_rng(seed).permutation(np.flatnonzero(y == label))[:5]] = 1.0
        assert np.isfinite(model.fit(X, y, weights).history_["validation_cost"]).all()


def test_a_class_without_samples_to_hold_out_is_named():
    X, y = spd_classes(per_class=8)
    weights = np.where((y == 1) & (np.arange(len(y)) != np.flatnonzero(y == 1)[0]), 0.0, 1.0)
    model = RiemannianLVQ(early_stopping=True)
    refuse(model, "fit", X, np.array(["a", "b"])[y], weights, match=r"early_stopping: class 'b' has 1 distinct sample")


# --- weights that are no counts


def test_weights_below_one_are_shares():
    X, y = spd_classes(n_classes=3)
    plain = fitted("affine_invariant", X, y)
    for total in (1.0, 1e-9, 0.9 * len(X)):
        assert_identical(plain, fitted("affine_invariant", X, y, np.full(len(X), total / len(X))))
    weights = np.random.default_rng(0).uniform(0.1, 0.9, len(X))
    assert_same(fitted("affine_invariant", X, y, weights / weights.mean()), fitted("affine_invariant", X, y, weights))
    with_zeros = np.append(weights, [0.0, 0.0])
    same = fitted("affine_invariant", np.concatenate([X, X[:2]]), np.append(y, y[:2]), with_zeros)
    assert_identical(fitted("affine_invariant", X, y, weights), same)


def test_one_whole_count_makes_all_weights_counts():
    X, y = vector_classes(shift=0.5)
    weights = np.where(np.arange(len(X)) == 3, 1.0, 0.25)
    model = fitted("euclidean_vectors", X, y, weights, callbacks=[EpochScore()])
    own = model.predict_log_proba(X)[np.arange(len(X)), y]
    assert_allclose(model.history_["cost"][-1], -weights @ own)


def test_boosting_trains_its_models():
    X, y = vector_classes(n_classes=3, per_class=20, shift=0.6)
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=0.2, max_epochs=5, random_state=0)
    boosted = AdaBoostClassifier(model, n_estimators=3, random_state=0).fit(X, y)
    means = np.array([X[y == label].mean(axis=0) for label in range(3)])
    assert np.abs(boosted.estimators_[0].prototypes_ - means).max() > 0.05


def test_weights_of_a_stream_are_never_shares():
    X, y = vector_classes(shift=0.5)
    start = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=0.1, random_state=0, max_epochs=0).fit(X, y)
    moved = []
    for weight in (0.25, 0.5, 1.0):
        model = pickle.loads(pickle.dumps(start)).set_params(max_epochs=9)
        model.partial_fit(X[:1], y[:1], sample_weight=[weight])
        moved.append(np.abs(model.prototypes_ - start.prototypes_).max())
    assert_allclose(moved, moved[2] * np.array([0.25, 0.5, 1.0]), rtol=1e-9)


HUGE = {
    "all 1e6": lambda n: np.full(n, 1e6),
    "all 1e300": lambda n: np.full(n, 1e300),
    "one 1e12": lambda n: np.where(np.arange(n) == 3, 1e12, 1.0),
    "one 1e300": lambda n: np.where(np.arange(n) == 3, 1e300, 1.0),
    "one 1e300 among shares": lambda n: np.where(np.arange(n) == 3, 1e300, 1e-5),
    "1e3 to 1e6": lambda n: np.geomspace(1e3, 1e6, n),
}


@pytest.mark.parametrize(
    ("kind", "ends", "setting"),
    covering(
        HUGE,
        [None, (0, 30, 60)],
        [("batch_size", 1), ("batch_size", 5), ("early_stopping", True), ("step_size", "adaptive")],
    ),
)
def test_huge_weights_are_few_visits(kind, ends, setting):
    X, y = vector_classes(per_class=30, shift=0.8)
    weights = HUGE[kind]
    settings = {"sigma2": 1.0, "max_epochs": 2} | dict([setting])
    model = learned("euclidean_vectors", X, y, weights(len(X)), settings, ends)
    assert np.isfinite(model.prototypes_).all()
    assert np.isfinite(model.history_["cost"]).all()
    rows, each = visits(len(X), weights(len(X)))
    assert len(rows) <= 101 * len(X)
    assert_allclose(np.bincount(rows, each) / each.sum(), weights(len(X)) / weights(len(X)).sum(), rtol=1e-9)


def test_weights_beyond_any_count_are_refused():
    X, y = spd_classes()
    weights = np.where(np.arange(len(X)) == 2, 1e301, 1.0)
    refuse(
        RiemannianLVQ(), "fit", X, y, weights, match=r"sample_weight\[2\] is 1e\+301: weights must be .* at most 1e300"
    )


@pytest.mark.parametrize("weight", [1e-300, 0.999, 100.5, 1e6, 1e300])
def test_equal_weights_that_are_no_counts_are_no_weights(weight):
    X, y = spd_classes(n_classes=3)
    assert_identical(fitted("affine_invariant", X, y), fitted("affine_invariant", X, y, np.full(len(X), weight)))


def test_a_count_up_to_a_hundred_on_average_is_exact():
    X, y = vector_classes(per_class=4)
    times = 100 + np.arange(len(X)) % 2 * np.array([1, -1])[np.arange(len(X)) // 2 % 2]
    assert times.mean() == 100
    repeated = fitted("euclidean_vectors", np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_identical(repeated, fitted("euclidean_vectors", X, y, times))
    assert len(visits(len(X), times)[0]) == times.sum()
