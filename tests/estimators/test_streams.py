"""Streams with the defaults: they follow samples that change, keep classes that are absent, and go on from a file."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import RiemannianLVQ, Share, load_model
from rplvq.arrays import expm
from rplvq.datasets import make_syn1
from rplvq.estimators._following import ABSENT
from tests.covering import covering
from tests.problems import vector_classes


def rotating(seed, spread, n_calls=40, size=20, turn=0.04):
    """Calls with 2 x 2 matrices (20, 2, 2) of two classes whose axes turn by 0.04 rad from call to call."""
    rng = np.random.default_rng(seed)
    for call in range(n_calls):
        y = rng.permutation(np.repeat([0, 1], size // 2))
        angle = turn * call + 0.5 * np.pi * y
        axes = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        noise = rng.normal(size=(size, 2, 2))
        tangents = 0.5 * spread * (noise + noise.swapaxes(1, 2)) + axes[:, :, None] * axes[:, None]
        yield expm(tangents), y


@pytest.mark.parametrize(
    ("metric", "begins_with_fit", "n_before"), covering(["affine_invariant", "log_euclidean"], [False, True], [0, 10])
)
def test_a_stream_follows_classes_that_turn(metric, begins_with_fit, n_before):
    """By 1.6 rad in 40 calls, so that each class ends where the other one began; 200 samples may come before."""
    for seed in range(3):
        model, right = RiemannianLVQ(metric, random_state=seed), []
        if n_before:
            calls = rotating(seed + 100, 0.3, n_before, turn=0.0)
            model.fit(*map(np.concatenate, zip(*calls, strict=True)))
        for call, (S, y) in enumerate(rotating(seed, 0.3)):
            if call:
                right.append(model.score(S, y))
            if begins_with_fit and call == 0:
                model.fit(S, y)
            else:
                model.partial_fit(S, y)
        assert np.mean(right[-5:]) >= 0.9
        assert np.mean(right) >= 0.9


@pytest.mark.parametrize("prototypes_per_class", [1, 2])
def test_classes_that_are_absent_for_long_are_still_known(prototypes_per_class):
    S, y = make_syn1(400, random_state=0)
    train, test = slice(None, None, 4), np.arange(len(y)) % 4 == 1
    model = RiemannianLVQ(prototypes_per_class=prototypes_per_class, random_state=0).fit(S[train], y[train])
    first = np.flatnonzero((y == model.classes_[0]) & ~test)

    def recalls():
        return np.array([model.score(S[test & (y == label)], y[test & (y == label)]) for label in model.classes_])

    before, prototypes = recalls(), model.prototypes_.copy()
    rng = np.random.default_rng(0)
    for _ in range(60):
        rows = rng.choice(first, 20)
        model.partial_fit(S[rows], y[rows])
    assert (recalls() >= before - 0.1).all()
    mine = model.prototype_labels_ == model.classes_[0]
    assert_array_equal(model.prototypes_[~mine], prototypes[~mine])  # in calls of this size they never move
    assert np.abs(model.prototypes_[mine] - prototypes[mine]).max() > 0


def test_a_class_rests_only_while_none_of_the_latest_samples_is_of_it():
    """In calls of a single sample; two samples per class is the memory of who is there."""
    V, y = vector_classes(per_class=40, n_classes=3)
    model = RiemannianLVQ("euclidean_vectors", sigma2=5.0, random_state=0).partial_fit(V, y, classes=[0, 1, 2])
    moves = []
    for sample in V[y == 0][: 3 * ABSENT + 2]:
        before = model.prototypes_
        model.partial_fit(sample[None], [0])
        moves.append(np.abs(model.prototypes_ - before).max(axis=1) > 0)
    moves = np.array(moves)
    assert moves[:, 0].all()
    assert moves[0].any()
    assert not moves[-2:, 1:].any()
    before = model.prototypes_
    model.partial_fit(V[y == 1][:1], [1])
    assert (np.abs(model.prototypes_ - before).max(axis=1) > 0).tolist()[1]


def test_the_default_share_is_that_of_a_sample_in_the_mean():
    """K / n, where n begins at the samples of the fit, with their weights."""
    V, y = vector_classes(per_class=10, n_classes=2, shift=8.0)
    model = RiemannianLVQ("euclidean_vectors", sigma2=2.0, random_state=0)
    for call in (1, 2):
        model.partial_fit(V, y)
        assert model.history_["step_size"][-1] == pytest.approx(2.0 * 2 / (20 * call))
    weighted = copy.deepcopy(model).fit(V, y).partial_fit(V, y, sample_weight=np.full(20, 2.0))
    assert weighted.history_["step_size"][-1] == pytest.approx(2.0 * 2 / 60)
    assert model.fit(V, y).partial_fit(V, y).history_["step_size"][-1] == pytest.approx(2.0 * 2 / 40)
    given = RiemannianLVQ("euclidean_vectors", sigma2=2.0, step_size=Share(0.5), max_epochs=2, random_state=0)
    for _ in range(4):
        given.partial_fit(V, y)
    assert_allclose(given.history_["step_size"], 2.0 * 0.5 * np.array([0.1, 0.01, 0.01, 0.01]))


def test_sigma2_follows_the_latest_samples_of_a_stream_that_did_not_begin_with_fit():
    """The spread of both classes grows tenfold, and sigma2 with it; after fit it stays."""
    rng = np.random.default_rng(0)
    streamed = RiemannianLVQ("euclidean_vectors", random_state=0)
    fitted = RiemannianLVQ("euclidean_vectors", random_state=0)
    for call in range(30):
        y = rng.permutation(np.repeat([0, 1], 20))
        V = rng.normal(size=(40, 2)) * (1 + 9 * (call > 4)) + 3.0 * y[:, None]
        streamed.partial_fit(V, y)
        if call == 4:
            early = streamed.sigma2_
            fitted.fit(V, y)
            kept = fitted.state_.sigma2
        elif call > 4:
            fitted.partial_fit(V, y)
    assert streamed.sigma2_ > 5 * early
    assert fitted.state_.sigma2 == kept


@pytest.mark.parametrize("begins_with_fit", [False, True])
def test_a_stream_continues_from_a_file_to_the_bit(tmp_path, begins_with_fit):
    """With classes that come late, rest, and come back, and with sigma2 that follows."""
    S, y = make_syn1(60, random_state=0)
    codes = np.unique(y, return_inverse=True)[1]
    model = RiemannianLVQ("log_euclidean", random_state=0)
    if begins_with_fit:
        model.fit(S[codes < 3], y[codes < 3])
    rng, again = np.random.default_rng(0), None
    for call in range(24):
        present = [0, 1, 2] if call < 8 else [0] if call < 12 else [0, 1, 2, 3]
        rows = rng.choice(np.flatnonzero(np.isin(codes, present)), 10)
        known = {"classes": np.unique(y)}
        model.partial_fit(S[rows], y[rows], **known)
        if again is not None:
            again.partial_fit(S[rows], y[rows], **known)
        if call % 6 == 5:  # in each phase
            model.save(tmp_path / "model.npz")
            loaded = load_model(tmp_path / "model.npz")
            if again is not None:
                assert_array_equal(again.prototypes_, model.prototypes_)
            again = loaded
    assert_array_equal(again.prototypes_, model.prototypes_)
    assert (again.sigma2_, again.step_size_) == (model.sigma2_, model.step_size_)
    for name in set(model.history_) - {"seconds"}:
        assert_array_equal(again.history_[name], model.history_[name])
