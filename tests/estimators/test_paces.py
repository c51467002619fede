"""The default step of a stream: which copy of the prototypes answers, when a change is clear, and what follows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import Grow, Prune, RiemannianLVQ
from rplvq.estimators._following import Paces, Stream, after_change, has_changed, leading, present_paces
from rplvq.io._codec import Packer, Unpacker
from rplvq.schedules import Constant
from rplvq.training import State
from tests.problems import vector_classes

PLACES = np.array([[0.0], [4.0]])


def paces(losses, errors, n_samples=500.0):
    """Copies of two prototypes, 0, 1, 2 away from their places, with losses and errors (M, P)."""
    losses, errors = np.asarray(losses, dtype=float), np.asarray(errors, dtype=float)
    count = losses.shape[1]
    copies = tuple(PLACES + shift for shift in range(count))
    return Paces(copies, np.array(["a", "b"]), count - 2, n_samples, losses, errors)


@pytest.mark.parametrize(
    ("losses", "errors", "leader"),
    [
        (np.empty((0, 3)), np.empty((0, 3)), 1),  # no samples yet: a single call learns
        ([[1, 1, 1]], [[1, 1, 1]], 1),
        ([[1, 2, 2]], [[0, 0, 0]], 0),  # a lower loss keeps the fit
        ([[2, 1, 2]], [[0, 1, 0]], 0),  # and so do fewer errors
        ([[3, 2, 1]], [[0, 0, 1]], 1),  # the fast one needs both
        ([[3, 2, 2]], [[1, 1, 0]], 1),
        ([[3, 2, 1]], [[1, 1, 1]], 2),
        ([[1, 2, 0.5]], [[1, 1, 0]], 2),
        ([[1, 2, 1.5]], [[1, 1, 0]], 0),
        ([[2, 1]], [[0, 1]], 0),
        ([[2, 1]], [[1, 1]], 1),
    ],
)
def test_the_copy_that_answers(losses, errors, leader):
    assert leading(paces(losses, errors)) == leader


def test_a_change_is_clear_by_two_standard_errors_of_the_loss_and_no_more_errors():
    """Four equal gains have the sum 4 and the standard error 2; a fifth makes it clear."""
    gain, tie = [3.0, 3.0, 2.0], [1.0, 1.0, 1.0]
    assert not has_changed(paces([gain] * 4, [tie] * 4))
    assert has_changed(paces([gain] * 5, [tie] * 5))
    assert not has_changed(paces([gain] * 5, [*[tie] * 4, [0.0, 0.0, 5.0]]))
    assert not has_changed(paces([[2.0, 3.0, 2.0]] * 5, [tie] * 5))  # those of the fit are as good
    assert not has_changed(paces([[3.0, 2.0, 2.0]] * 5, [tie] * 5))


def test_after_a_change_the_mean_begins_anew():
    changed = after_change(paces([[3.0, 3.0, 2.0]] * 5, [[1.0, 1.0, 0.0]] * 5))
    assert_array_equal(changed.prototypes, [PLACES + 2] * 2)
    assert changed.n_samples == 20  # ten per prototype
    assert changed.losses.shape == changed.errors.shape == (0, 2)
    assert after_change(paces([[2, 1]], [[1, 0]], n_samples=7.0)).n_samples == 7


def test_prototypes_that_were_moved_added_or_removed_between_calls():
    before = paces([[3.0, 3.0, 2.0]], [[1.0, 1.0, 0.0]])
    state = State(before.prototypes[1], np.array([0, 1]), Constant(1.0), Constant(1.0))
    assert present_paces(before, state, before.owners) is before
    moved = present_paces(before, state._replace(prototypes=np.array([[1.0], [9.0]])), before.owners)
    assert_array_equal(moved.prototypes, [[[0], [9]], [[1], [9]], [[2], [9]]])
    assert_array_equal(moved.losses, before.losses)
    more = state._replace(prototypes=np.array([[1.0], [5.0], [9.0]]), labels=np.array([0, 1, 1]))
    anew = present_paces(before, more, np.array(["a", "b", "b"]))
    assert_array_equal(anew.prototypes, [more.prototypes] * 3)
    assert (anew.n_samples, anew.leader, len(anew.losses)) == (500, 1, 0)
    assert present_paces(before, more, np.array(["a", "b", "c"])).n_samples == 30


def stationary(seed, n_samples, n_features=40):
    """Two classes in many dimensions, so that a mean of few samples is far from that of its class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % 2
    V = rng.normal(size=(n_samples, n_features))
    V[:, 0] += 2.0 * y
    return V, y


@pytest.mark.parametrize("size", [1, 20])
def test_where_nothing_changes_learning_on_does_not_lose(size):
    """The fast copy, which would be the model with a constant share, loses 0.01 against the model that answers."""
    lost = []
    for seed in range(3):
        V, y = stationary(seed, 800)
        test, right = stationary(seed + 100, 2000)
        model = RiemannianLVQ("euclidean_vectors", sigma2=4.0, max_epochs=5, random_state=0).fit(V[:200], y[:200])
        frozen = model.score(test, right)
        for rows in np.arange(200, 800).reshape(-1, size):
            model.partial_fit(V[rows], y[rows])
        assert model.score(test, right) >= frozen
        fast = np.square(test[:, None] - model._stream.paces.prototypes[-1]).sum(axis=-1).argmin(axis=1)
        lost.append(model.score(test, right) - np.mean(fast == right))
    assert np.mean(lost) > 0.01


@pytest.mark.parametrize("begins_with_fit", [False, True])
def test_an_abrupt_change_is_followed_and_the_share_falls_again(begins_with_fit):
    """The classes swap their places after 300 samples."""
    V, y = stationary(0, 900, n_features=2)
    V[:, 0] *= 2
    V[300:, 0] = 4.0 - V[300:, 0]
    model = RiemannianLVQ("euclidean_vectors", sigma2=2.0, max_epochs=5, random_state=0)
    calls = np.arange(900).reshape(-1, 10)
    if begins_with_fit:
        model.fit(V[:200], y[:200])
    for rows in calls[20 * begins_with_fit : 30]:
        model.partial_fit(V[rows], y[rows])
    assert model.score(V[300:], y[300:]) < 0.2
    before = model.history_["step_size"][-1]
    for rows in calls[30:]:
        model.partial_fit(V[rows], y[rows])
    assert model.score(V[600:], y[600:]) > 0.8
    steps = model.history_["step_size"][-60:]
    assert steps.max() >= 0.05 * 2.0 > before
    assert steps[-1] < 0.02 * 2.0


def test_weights_count_as_samples_and_a_weight_of_zero_does_not():
    V, y = vector_classes(per_class=10, n_classes=2, shift=8.0)
    model = RiemannianLVQ("euclidean_vectors", sigma2=2.0, max_epochs=2, random_state=0).fit(V, y)
    weights = np.r_[np.full(10, 3.0), np.zeros(10)]
    for _ in range(2):
        model.partial_fit(V, y, sample_weight=weights)
    assert model._stream.paces.n_samples == 20 + 2 * 30
    assert_allclose(model.history_["step_size"][2], 2.0 * 2 / 50)
    assert len(model._stream.paces.losses) == 10


def test_soft_labels_are_judged_too():
    V, y = vector_classes(per_class=10, n_classes=2)
    soft = np.stack([0.9 - 0.8 * y, 0.1 + 0.8 * y], axis=1)
    model = RiemannianLVQ("euclidean_vectors", "plvq", sigma2=2.0, max_epochs=2, random_state=0).fit(V, soft)
    for _ in range(3):
        model.partial_fit(V, soft)
    assert model._stream.paces.errors.shape == (40, 3)  # in the first call all copies were equal


def test_growth_and_a_step_of_the_users_own():
    V, y = stationary(0, 200, n_features=2)
    rules = (Prune(every=2), Grow(every=2, at_most=2))
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, growth=rules, random_state=0)
    own = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=0.1, random_state=0)
    for rows in np.arange(200).reshape(-1, 20):
        model.partial_fit(V[rows], y[rows])
        own.partial_fit(V[rows], y[rows])
        copies = model._stream.paces.prototypes
        assert all(len(one) == len(model.prototypes_) for one in copies)
        assert_array_equal(copies[model._stream.paces.leader], model.state_.prototypes)
    assert own._stream.paces is None


def test_streams_in_files_of_older_versions_go_on():
    """They hold neither the samples of the fit nor the copies, and begin at ten samples per prototype."""
    packer = Packer()
    packed = packer.pack(Stream(is_open=True), "stream")
    for name in ("fitted", "paces"):
        del packed["part"][1][name]
    assert Unpacker(packer.arrays).unpack(packed) == Stream(is_open=True)
    V, y = vector_classes(per_class=10, n_classes=2, shift=8.0)
    model = RiemannianLVQ("euclidean_vectors", sigma2=2.0, max_epochs=2, random_state=0).fit(V, y)
    model._stream = Stream()
    assert_allclose(model.partial_fit(V, y).history_["step_size"][-1], 2.0 * 2 / 40)
    begun = RiemannianLVQ("euclidean_vectors", sigma2=2.0, random_state=0).partial_fit(V, y)
    begun._stream = begun._stream._replace(paces=None)
    assert_allclose(begun.partial_fit(V, y).history_["step_size"][-1], 2.0 * 2 / 40)
