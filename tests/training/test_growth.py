"""Rules that add and remove prototypes: what they do, what changes with K, and the same on every path."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import (
    PLVQ,
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    Checkpoint,
    Constant,
    EuclideanVectors,
    Grow,
    LearnedLogEuclidean,
    Prune,
    RiemannianLVQ,
    load_model,
)
from rplvq.arrays import Samples, expm
from rplvq.training import State, Window, with_prototypes, without_prototypes
from rplvq.training.compiled import compiled_kernels
from tests.cases import EVERY, made
from tests.problems import refuse

ONE = Constant(1.0)


def spd_clusters(per_cluster=15, seed=0):
    """Matrices (N, 3, 3) in four clusters, on both sides of the identity in two directions, one for each class."""
    rng = np.random.default_rng(seed)
    cluster = rng.permutation(np.repeat(np.arange(4), per_cluster))
    noise = 0.15 * rng.normal(size=(len(cluster), 3, 3))
    directions = np.array([np.diag([1.0, -1.0, 0.0]), np.eye(3)[[1, 0, 2]] - np.diag([0.0, 0.0, 1.0])])
    centers = (np.array([-1.0, -1.0, 1.0, 1.0])[:, None, None] * directions[[0, 1, 0, 1]])[cluster]
    return expm(centers + noise + noise.swapaxes(1, 2)), cluster % 2


X, Y = spd_clusters()


def window_of(prototypes, labels, samples, targets, cost=None, sweep=10, weights=None):
    """Window of numbers on the line, with sigma2 = 1."""
    state = State(np.array(prototypes, dtype=float)[:, None], np.array(labels), ONE, ONE, sweep, 1.0, 1.0)
    record = Samples(np.array(samples, dtype=float)[:, None], np.array(targets), weights)
    return Window(EuclideanVectors(), cost or RSLVQ(), state, record, sweep)


def twice(*rows):
    """Each entry twice, so that both halves of a window hold it."""
    return tuple(np.repeat(row, 2, axis=0) for row in rows)


def places(window):
    return np.asarray(window.state.prototypes).ravel().tolist()


# --- the window


@EVERY
def test_a_window_knows_the_distances_of_what_it_adds_and_removes(case):
    manifold, codes = made(case, count=9)
    state = State(codes[:3], np.array([0, 1, 1]), ONE, ONE, 1, 1.0, 1.0)
    window = Window(manifold, RSLVQ(), state, Samples(codes[3:], np.array([0, 1, 0, 1, 0, 1])))
    changed = window.added(0, window.mean(window.loss)).added(1, codes[4]).removed(1).removed(2)
    assert changed.labels.tolist() == [0, 1, 1]
    assert len(changed.state.prototypes) == 3
    assert_allclose(changed.sqdist, manifold.sqdist(changed.state.prototypes, codes[3:]), rtol=1e-6, atol=1e-9)
    loss = RSLVQ()(changed.sqdist, window.targets, changed.labels, 1.0).loss
    assert_allclose(changed.loss, loss)
    assert_allclose(changed.loss_without(2), changed.removed(2).loss)


def test_a_learned_metric_stays():
    model = RiemannianLVQ(LearnedLogEuclidean(rate=1.0), step_size=0.2, sigma2=1.0, max_epochs=2, random_state=0)
    state = model.fit(X, Y).state_
    more = with_prototypes(state, np.asarray(state.prototypes)[:1], np.array([1]))
    assert np.abs(state.prototypes.omega - np.eye(6)).max() > 1e-3
    assert_array_equal(more.prototypes.omega, state.prototypes.omega)
    assert_array_equal(np.asarray(without_prototypes(more, np.array([2])).prototypes), np.asarray(state.prototypes))


def test_the_last_prototype_of_a_class_stays():
    with pytest.raises(ValueError, match="prototype 1 is the last one of class index 1"):
        window_of([0, 4], [0, 1], [0], [0]).removed(1)


# --- grow


def test_a_prototype_grows_where_the_loss_is():
    # Class 0 is around 0 and at 8, beyond class 1 at 4: almost all of the loss is at 8.
    window = window_of([0, 4], [0, 1], *twice([-1, 0, 1, 8, 4, 3, 5], [0, 0, 0, 0, 1, 1, 1]))
    grown = Grow(min_samples=3)(window)
    assert grown.labels.tolist() == [0, 0, 1]
    assert places(grown)[::2] == [0, 4]
    assert 7 < places(grown)[1] < 12
    assert places(Grow(min_samples=3, at="sample")(window)) == [0, 8, 4]
    assert places(window) == [0, 4]


def test_tuning_lowers_the_loss_and_holds_the_others():
    window = window_of([0, 4], [0, 1], [-1, 0, 1, 8, 7, 4, 3, 5], [0, 0, 0, 0, 0, 1, 1, 1])
    put = window.added(0, np.array([5.0]))
    tuned = put.tuned(0, 1)
    assert places(tuned)[::2] == [0, 4]
    assert tuned.loss.sum() < put.tuned(0, 1, n_steps=1).loss.sum() < put.loss.sum()
    assert_allclose(tuned.sqdist, tuned.manifold.sqdist(tuned.state.prototypes, tuned.codes))
    both = put.tuned(0, 2)
    assert places(both)[2] == 4
    assert places(both)[0] != 0
    assert both.loss.sum() < put.loss.sum()
    perfect = window_of([0, 400], [0, 1], [0, 400], [0, 1])
    assert perfect.tuned(0, 1) is perfect


def test_samples_that_place_a_prototype_do_not_judge_it():
    # The one sample at 9 is in the half that places: for the other half the new prototype is of no use.
    alone = window_of([0, 4], [0, 1], [9, 0, 0, 0, 4, 4, 4, 4], [0, 0, 0, 0, 1, 1, 1, 1])
    assert Grow(min_samples=1)(alone) is alone
    window = window_of([0, 4], [0, 1], *twice([9, 0, 0, 4, 4], [0, 0, 0, 1, 1]))
    assert len(Grow(min_samples=1)(window).labels) == 3
    assert [half.codes.ravel().tolist() for half in (alone.every_other(0), alone.every_other(1))] == [
        [9, 0, 4, 4],
        [0, 0, 4, 4],
    ]


@pytest.mark.parametrize(
    "rule",
    [Grow(at_most=1, min_samples=1), Grow(min_samples=9), Grow(every=3, min_samples=1), Grow(gain=0.9999999)],
    ids=str,
)
def test_what_keeps_a_prototype_from_growing(rule):
    window = window_of([0, 4], [0, 1], *twice([-1, 0, 1, 8, 4, 3, 5], [0, 0, 0, 0, 1, 1, 1]))
    assert rule(window) is window


def test_another_class_grows_where_the_first_may_not():
    # Class 0 has the larger loss (at 9) and its one prototype; class 1 has some loss (at -3), too.
    window = window_of([0, 0.5, 4], [0, 0, 1], *twice([0, 0, 9, 4, 4, -3], [0, 0, 0, 1, 1, 1]))
    assert window.loss[:6].sum() > window.loss[6:].sum() > 0
    grown = Grow(at_most=2, min_samples=3)(window)
    assert grown.labels.tolist() == [0, 0, 1, 1]


def test_weights_and_soft_labels_count():
    samples, targets = twice([-1, 0, 1, 8, 4], [0, 0, 0, 0, 1])
    light = window_of([0, 4], [0, 1], samples, targets, weights=twice([1, 1, 1, 0, 1.0])[0])
    assert Grow(min_samples=1, gain=0.5)(light) is light
    soft = window_of([0, 4], [0, 1], samples, np.eye(2)[targets], PLVQ())
    assert 7 < places(Grow(min_samples=1)(soft))[1] < 12


# --- prune


def test_losers_go():
    samples, targets = [0, 1, 4, 5], [0, 0, 1, 1]
    # 20 wins nothing; 4.4 of class 0 wins samples of class 1; 0.6 is of use to nobody beside 0.5.
    window = window_of([0.5, 0.6, 4.4, 20, 4.5], [0, 0, 0, 0, 1], samples, targets)
    rule = Prune(min_samples=2)
    pruned = rule(window)
    assert pruned.labels.tolist() == [0, 1]
    assert places(pruned)[0] in (0.5, 0.6)
    assert pruned.loss.sum() < window.loss.sum()
    assert len(Prune(min_samples=2, at_least=3)(window).labels) == 4
    assert rule(pruned) is pruned


@pytest.mark.parametrize("rule", [Prune(min_samples=3), Prune(min_samples=1, every=4)], ids=str)
def test_what_keeps_a_loser(rule):
    window = window_of([0.5, 20, 4.5], [0, 0, 1], [0, 1, 4, 5], [0, 0, 1, 1])
    assert rule(window) is window


def test_a_class_that_is_away_keeps_its_prototypes():
    window = window_of([0, 9, 4, 5], [0, 0, 1, 1], [4, 5, 4, 5], [1, 1, 1, 1])
    assert Prune(min_samples=1)(window).labels.tolist()[:2] == [0, 0]


def test_rise_lets_useful_prototypes_go():
    window = window_of([0, 2, 6], [0, 0, 1], [0, 0, 2, 6], [0, 0, 0, 1])
    assert Prune(min_samples=1)(window) is window
    assert Prune(min_samples=1, rise=10.0)(window).labels.tolist() == [0, 1]


# --- in fit


def fitted(growth, **params):
    params = {"sigma2": 0.5, "step_size": 0.05, "max_epochs": 12, "random_state": 0} | params
    return RiemannianLVQ(growth=growth, **params).fit(X, Y)


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", LearnedLogEuclidean()], ids=str)
def test_a_fit_grows_to_the_clusters_of_its_classes(manifold):
    plain = fitted((), metric=manifold)
    model = fitted([Grow(at_most=2, every=2)], metric=manifold)
    assert_array_equal(model.history_["n_prototypes"][:3], [2, 2, 3])
    assert model.history_["n_prototypes"][-1] in (3, 4)
    assert len(model.prototypes_) == len(model.prototype_labels_) == model.history_["n_prototypes"][-1]
    assert model.score(X, Y) > plain.score(X, Y) + 0.1
    assert_array_equal(fitted([Grow(at_most=2, every=2)], metric=manifold).prototypes_, model.prototypes_)


def test_too_many_prototypes_are_pruned():
    model = fitted([Prune(every=3, rise=0.01)], prototypes_per_class=6, init="kmeans")
    assert 4 <= model.history_["n_prototypes"][-1] < 12 == model.history_["n_prototypes"][0]
    assert model.score(X, Y) > 0.95


def test_growing_compiled_and_plain_are_the_same():
    if compiled_kernels() is None:
        pytest.skip("numba is not installed")
    rules = [Grow(every=2, gain=None), Prune(every=4, rise=0.01)]
    plain, compiled = (fitted(rules, metric=AffineInvariant(compiled=which)) for which in (False, True))
    assert_array_equal(plain.history_["n_prototypes"], compiled.history_["n_prototypes"])
    assert len(set(plain.history_["n_prototypes"])) > 2
    assert_allclose(compiled.prototypes_, plain.prototypes_, rtol=1e-6)


@pytest.mark.parametrize(
    "settings", [{}, {"step_size": AdaptiveStep(0.05)}, {"early_stopping": True, "batch_size": 5}], ids=str
)
def test_a_growing_fit_is_resumed_to_the_same_bits(settings, tmp_path):
    path, rules = tmp_path / "fit.npz", [Grow(every=2, min_samples=5)]

    def stop(report):
        if report.state.epoch == 4:
            raise RuntimeError

    whole = fitted(rules, **settings)
    with pytest.raises(RuntimeError):
        fitted(rules, callbacks=[Checkpoint(path), stop], **settings)
    params = whole.get_params(deep=False)
    again = RiemannianLVQ(**params).fit(X, Y, resume=path)
    assert_array_equal(again.prototypes_, whole.prototypes_)
    assert_array_equal(again.history_["n_prototypes"], whole.history_["n_prototypes"])
    assert len(set(whole.history_["n_prototypes"])) > 1
    state = whole.state_
    assert len(state.labels) == len(state.prototypes) == len(whole.prototype_labels_)
    if state.memory is not None:
        assert len(state.memory.init) == len(state.labels)
    assert (state.memory is None) == ("step_size" not in settings)


def test_a_rule_of_ones_own():
    seen = []

    def double(window):
        seen.append((window.sweep, window.sqdist.shape))
        return window.added(0, window.mean(np.ones(len(window.codes)))) if window.sweep == 1 else window

    model = fitted([double], max_epochs=3)
    assert model.history_["n_prototypes"].tolist() == [2, 3, 3]
    assert seen == [(1, (len(X), 2)), (2, (len(X), 3))]
    refuse(RiemannianLVQ(growth=[Grow(), 3]), "fit", X, Y, match=r"growth\[1\] is 3, which cannot be called")


# --- in a stream


def test_a_stream_grows_and_prunes_by_its_latest_samples(tmp_path):
    rules = [Prune(every=10, window=40, rise=0.01), Grow(at_most=3, every=5, window=40)]
    model = RiemannianLVQ(sigma2=0.5, step_size=0.05, growth=rules, random_state=0)
    model.partial_fit(X[:10], Y[:10])
    rng, counts = np.random.default_rng(0), []
    for row in rng.integers(0, len(X), 150):
        model.partial_fit(X[[row]], Y[[row]])
        counts.append(len(model.prototypes_))
    assert max(counts) >= 4
    assert all(np.bincount(model.state_.labels) <= 3)
    assert_array_equal(model.history_["n_prototypes"][1:], counts)
    assert model.score(X, Y) > 0.9
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    for row in range(12):
        model.partial_fit(X[[row]], Y[[row]])
        again.partial_fit(X[[row]], Y[[row]])
    assert_array_equal(again.prototypes_, model.prototypes_)


@pytest.mark.parametrize("weighted", [False, True])
def test_rules_see_the_latest_samples_of_a_stream(weighted):
    class Watching:
        window = 12

        def __call__(self, window):
            seen.append((window.codes[:, 0].tolist(), window.classes.tolist(), window.weights.tolist(), window.sweep))
            return window

    seen = []
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, growth=[Watching()], random_state=0)
    model.partial_fit([[0.0], [1.0], [10.0], [11.0]], ["a", "a", "b", "b"])
    for number in range(2, 12):
        weight = [2.0] if weighted else None
        model.partial_fit([[float(number)]], ["b" if number % 2 else "a"], sample_weight=weight)
    numbers, classes, weights, sweep = seen[-1]
    assert [len(codes) for codes, *_ in seen] == [5, 6, 7, 8, 9, 10, 11, 12, 12, 12]
    assert numbers[-10:] == list(range(2, 12))
    assert classes[-10:] == [number % 2 for number in range(2, 12)]
    assert weights[-10:] == [2.0 if weighted else 1.0] * 10
    assert sweep == 10


def test_rules_can_come_after_the_fit():
    model = fitted((), max_epochs=3)
    model.set_params(growth=[Grow(every=1, at_most=2)])
    for _ in range(4):
        model.partial_fit(X, Y)
    assert model.history_["n_prototypes"].tolist() == [2, 2, 2, 3, 4, 4, 4]


@pytest.mark.parametrize(
    ("rule", "bad"),
    [
        (Grow, {"at_most": 0}),
        (Grow, {"every": 0}),
        (Grow, {"gain": 1.0}),
        (Grow, {"gain": -0.1}),
        (Grow, {"at": "median"}),
        (Grow, {"min_samples": 0}),
        (Grow, {"window": 0}),
        (Prune, {"at_least": 0}),
        (Prune, {"every": True}),
        (Prune, {"rise": -1.0}),
        (Prune, {"min_samples": 1.5}),
        (Prune, {"window": None}),
    ],
)
def test_bad_settings_are_refused(rule, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        rule(**bad)
