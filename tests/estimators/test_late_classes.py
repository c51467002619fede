"""Classes that turn up late in a stream: announced or not, one sample or many, and everything indexed by class."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pymanopt.manifolds import Sphere

from rplvq import (
    GLVQ,
    PLVQ,
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    ClassKMeans,
    ClassMeans,
    DiscriminantMeans,
    Grow,
    HeldOut,
    LearnedLogEuclidean,
    Prune,
    Representability,
    RiemannianLVQ,
    StepSize,
    load_model,
)
from rplvq.costs import FlatGaussian, SpreadRSLVQ, restrict_to_classes
from rplvq.estimators._online import SETTLED
from rplvq.inspection import calibrate_sigma2
from rplvq.manifolds import riemannian_mean
from tests.problems import refuse, spd_classes, sphere_classes, vector_classes

X, INDEX = spd_classes(n_classes=3, per_class=12)
Y = np.array(["b", "c", "a"])[INDEX]  # the class that is late comes first in the order
EARLY, LATE = Y != "a", Y == "a"


def begun(classes=None, **params):
    params = {"sigma2": 1.0, "step_size": 0.1, "random_state": 0} | params
    return RiemannianLVQ(**params).partial_fit(X[EARLY], Y[EARLY], classes=classes)


@pytest.mark.parametrize("classes", [None, ["a", "b", "c"]])
@pytest.mark.parametrize(
    "manifold",
    ["affine_invariant", AffineInvariant(compiled=False), "log_euclidean", LearnedLogEuclidean()],
    ids=["affine_invariant", "affine_invariant, not compiled", "log_euclidean", "learned_log_euclidean"],
)
def test_a_late_class_is_learned(classes, manifold):
    model = begun(classes, metric=manifold)
    assert "a" not in model.predict(X)
    model.partial_fit(X[LATE], Y[LATE])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.prototype_labels_.tolist() == ["a", "b", "c"]
    model.partial_fit(X, Y)
    assert model.score(X, Y) > 0.9
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("decision", ["nearest", "posterior"])
def test_a_class_that_waits_has_probability_zero_and_is_not_predicted(decision):
    model, two = begun(["a", "b", "c"], decision=decision), begun(decision=decision)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.prototype_labels_.tolist() == two.prototype_labels_.tolist() == ["b", "c"]
    assert_array_equal(model.prototypes_, two.prototypes_)
    assert_array_equal(model.predict_proba(X), np.insert(two.predict_proba(X), 0, 0.0, axis=1))
    assert_array_equal(model.predict_log_proba(X)[:, 0], -np.inf)
    scores = model.decision_function(X)
    assert scores.shape == (len(X), 3)
    assert_array_equal(scores[:, 0], -np.inf)
    assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
    assert_array_equal(model.predict(X), two.predict(X))
    assert model.transform(X).shape == (len(X), 2)
    assert len(model.get_feature_names_out()) == 2


def cost_of(model, place, samples, labels):
    """Cost of samples, with the first prototype at a place."""
    parts, state = model.trainer_, model.state_
    sqdist = parts.manifold.sqdist(np.concatenate([[place], model.prototypes_[1:]]), samples)
    return parts.cost(sqdist, np.searchsorted(model.classes_, labels), state.labels, state.sigma2).loss.sum()


def test_one_sample_makes_a_prototype_and_ten_settle_it():
    late, early = np.flatnonzero(LATE), np.flatnonzero(EARLY)
    model, came = begun(step_size=1e-12), []  # so that prototypes stay where they are put
    for count, pair in enumerate(zip(late, early[: len(late)], strict=True), start=1):
        for row in pair:
            model.partial_fit(X[[row]], Y[[row]])
            came.append(row)
        mine = [row for row in came if LATE[row]]
        if count < SETTLED:
            assert len(model._stream.pending.samples.codes) == len(came)
            mean = riemannian_mean(model.trainer_.manifold, X[mine]).code
            assert cost_of(model, model.prototypes_[0], X[came], Y[came]) < cost_of(model, mean, X[came], Y[came])
            kept = model.prototypes_[0]
        else:
            assert model._stream.pending is None
    assert_allclose(model.prototypes_[0], kept, atol=0.3)
    others = begun(step_size=1e-12).prototypes_
    assert_allclose(model.prototypes_[1:], others, rtol=1e-9)


def test_a_late_class_beside_prototypes_that_training_drove_off_their_data():
    """A mean would be nearest to the samples of all classes: it is moved away from those that are not its own."""
    model = RiemannianLVQ(sigma2=1.0, max_epochs=100, step_size=0.2, random_state=0).fit(X[EARLY], Y[EARLY])
    mean = riemannian_mean(model.trainer_.manifold, X[LATE]).code
    sqdist = model.trainer_.manifold.sqdist(np.concatenate([[mean], model.prototypes_]), X)
    assert np.mean(np.array(["a", "b", "c"])[sqdist.argmin(axis=1)] == Y) < 0.7
    model.partial_fit(X, Y, classes=["a", "b", "c"])
    assert model.score(X, Y) > 0.9


def test_only_so_many_samples_of_other_classes_are_kept(monkeypatch):
    monkeypatch.setattr("rplvq.estimators._online.OTHERS", 5)
    model, late = begun(), np.flatnonzero(LATE)
    model.partial_fit(X[late[:2]], Y[late[:2]])
    for row in range(len(X)):
        if EARLY[row]:
            model.partial_fit(X[[row]], Y[[row]])
    kept = model._stream.pending.samples.targets
    assert np.count_nonzero(kept == "a") == 2
    assert len(kept) == 7


@pytest.mark.parametrize(
    "settings",
    [
        {"prototypes_per_class": 2},
        {"prototypes_per_class": {"a": 2, "b": 1, "c": 3}, "init": "kmeans"},
        {"init": ClassKMeans(2)},
        {"init": ClassMeans(2)},
    ],
    ids=str,
)
def test_as_many_prototypes_as_there_are_samples(settings):
    model = begun(["a", "b", "c"], **settings)
    rows = np.flatnonzero(LATE)
    for size, wanted in ((1, 1), (1, 2), (3, 2)):
        model.partial_fit(X[rows[:size]], Y[rows[:size]])
        rows = rows[size:]
        assert np.count_nonzero(model.prototype_labels_ == "a") == wanted
    assert model.score(X, Y) > 0.8


def test_given_prototypes_leave_a_late_class_to_its_mean():
    first = [int(np.flatnonzero(label == Y)[0]) for label in "bc"]
    model, means = (begun(init=init, prototypes_per_class=1) for init in ((X[first], Y[first]), "mean"))
    state, other = (one.partial_fit(X[LATE], Y[LATE]).state_ for one in (model, means))
    assert state.labels.tolist() == other.labels.tolist() == [0, 1, 2]
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("path", [True, False], ids=["saved", "pickled"])
def test_a_stream_goes_on_from_disk_in_the_middle_of_it(tmp_path, path):
    settings = {"prototypes_per_class": 2, "max_epochs": 8}
    model, rows = begun(["a", "b", "c"], **settings), np.flatnonzero(LATE)
    for state in ("waiting", "pending"):
        model.save(tmp_path / "model.npz")
        again = load_model(tmp_path / "model.npz") if path else pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict_proba(X), model.predict_proba(X), err_msg=state)
        for part in (rows[:1], rows[1:2], np.arange(len(X))):
            assert_array_equal(
                again.partial_fit(X[part], Y[part]).prototypes_, model.partial_fit(X[part], Y[part]).prototypes_
            )
        assert_array_equal(again.classes_, model.classes_)
    unannounced = begun()
    unannounced.save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").partial_fit(X[rows[:1]], ["d"]).classes_.tolist() == ["b", "c", "d"]


def test_the_memory_of_a_step_rule_grows_with_the_prototypes():
    model = begun(step_size=AdaptiveStep(0.05)).partial_fit(X[LATE], Y[LATE])
    state = model.state_
    assert len(state.memory.init) == len(state.labels) == 3
    assert np.linalg.norm(state.memory.init[0] - model.prototypes_[0]) < 2  # where it was put, not where others began
    assert_array_equal(state.memory.init[1:], begun(step_size=AdaptiveStep(0.05)).state_.memory.init)
    assert state.memory.n_steps == len(X)
    assert model.partial_fit(X, Y).score(X, Y) > 0.8


def test_priors_and_variances_are_those_of_the_classes_met():
    model = begun(["a", "b", "c"], cost=RSLVQ(priors=(0.5, 0.2, 0.3)))
    assert_allclose(model.trainer_.cost.priors, (0.4, 0.6))
    assert model.partial_fit(X[LATE], Y[LATE]).trainer_.cost.priors == (0.5, 0.2, 0.3)
    few = np.array([0, 2])
    assert_allclose(
        (2 * PLVQ(priors=(0.2, 0.6, 0.2)) + GLVQ()).restrict_to_classes(few).terms[0].cost.priors, (0.5, 0.5)
    )
    assert restrict_to_classes(SpreadRSLVQ([1.0, 2.0, 3.0], FlatGaussian(2)), few).variances == (1.0, 3.0)
    for same in (Representability(), GLVQ(), RSLVQ()):
        assert restrict_to_classes(same, few) is same
    refuse(begun(cost=RSLVQ(priors=(0.5, 0.5))), "partial_fit", X[LATE], Y[LATE], match="priors has 2 entries, but")
    for cost in (RSLVQ(priors=(0.5, 0.5)), SpreadRSLVQ([1.0, 2.0], FlatGaussian(2))):
        with pytest.raises(ValueError, match="has 2 entries, none for class index 2"):
            restrict_to_classes(cost, few)


def test_which_labels_are_welcome():
    late = X[LATE][:1]
    closed = begun(["a", "b", "c"])
    refuse(closed, "partial_fit", late, ["z"], match=r"y\[0\] is 'z', which is not among the classes \['a', 'b', 'c'\]")
    assert closed.partial_fit(late, ["z"], classes=list("abcz")).classes_.tolist() == ["a", "b", "c", "z"]
    refuse(begun(), "partial_fit", late, [1], match=r"y\[0\] is 1, which is not among the classes \['b', 'c'\]")
    fitted = RiemannianLVQ(max_epochs=1).fit(X[EARLY], Y[EARLY])
    refuse(fitted, "partial_fit", late, ["a"], match="'a', which is not among")
    assert fitted.partial_fit(late, ["a"], classes=list("abc")).predict(late).tolist() == ["a"]
    numbers = RiemannianLVQ().partial_fit(X[EARLY], INDEX[EARLY]).partial_fit(late, [7.0])
    assert numbers.classes_.tolist() == [0, 1, 7]
    assert numbers.classes_.dtype.kind == "i"
    refuse(begun(prototypes_per_class={"b": 1, "c": 1}), "partial_fit", late, ["a"], match="no entry for class 'a'")


def test_soft_labels_need_prototypes_of_every_class():
    model = begun(["a", "b", "c"], cost="plvq")
    refuse(model, "partial_fit", X[:2], np.full((2, 3), 1 / 3), match="soft labels need .*class 'a' has none yet")
    model.partial_fit(X[LATE], Y[LATE]).partial_fit(X[:2], np.full((2, 3), 1 / 3))


def test_samples_without_weight_found_no_class():
    model = begun(["a", "b", "c"])
    rows = np.r_[np.flatnonzero(LATE)[:1], np.flatnonzero(EARLY)[:2]]
    again = copy.deepcopy(model).partial_fit(X[rows], Y[rows], sample_weight=[0, 1, 1])
    assert again.prototype_labels_.tolist() == ["b", "c"]
    assert_array_equal(again.prototypes_, model.partial_fit(X[rows[1:]], Y[rows[1:]]).prototypes_)


def test_calibration_knows_the_classes_met():
    model = begun(["a", "b", "c"])
    assert calibrate_sigma2(model, X[EARLY], Y[EARLY]).sigma2_ != model.sigma2_
    with pytest.raises(ValueError, match=r"is 'a', which is not among the classes \['b', 'c'\]"):
        calibrate_sigma2(model, X, Y)


# GLVQ has larger slopes later than where its step was measured; the default then cuts them to the share, and says so.
@pytest.mark.filterwarnings("ignore:.* steps of epoch .* were cut:rplvq.exceptions.DivergenceWarning")
@pytest.mark.parametrize("cost", ["glvq", "plvq", RSLVQ() + 0.1 * Representability()], ids=str)
@pytest.mark.parametrize("case", ["complex", "sphere", "wasserstein", "volts"])
def test_every_geometry_and_cost_follows_a_stream(case, cost):
    samples, labels = (
        sphere_classes(per_class=12)
        if case == "sphere"
        else spd_classes(n_classes=3, per_class=12, dtype=complex if case == "complex" else float)
    )
    samples = samples * (1e-12 if case == "volts" else 1.0)
    manifold = {"sphere": Sphere(3), "wasserstein": "wasserstein", "volts": "euclidean"}.get(case, "affine_invariant")
    growth = [Prune(every=5), Grow(every=5, at_most=2)]
    model = RiemannianLVQ(manifold, cost, max_epochs=2, growth=growth, random_state=0)
    model.fit(samples[labels > 0], labels[labels > 0])
    for sample, label in zip(samples, labels, strict=True):
        model.partial_fit(sample[None], [label], classes=[0, 1, 2])
    assert model.score(samples, labels) > 0.85
    assert set(model.prototype_labels_) == {0, 1, 2}


# --- the step in a stream


@pytest.mark.parametrize("step_size", ["auto", StepSize()], ids=["auto", "StepSize"])
def test_default_steps_do_not_end_in_a_stream(step_size):
    """After a fit, whose own steps ended far below, the samples that a prototype stands for are counted on."""
    model = RiemannianLVQ(sigma2=2.0, step_size=step_size, max_epochs=3, random_state=0).fit(X, Y)
    assert model.history_["step_size"][-1] < 0.02 * 2.0
    model.partial_fit(X[:20], Y[:20])
    assert_allclose(model.history_["step_size"][-1], 3 / (len(X) + 20) * 2.0)


def test_default_steps_of_a_stream_are_the_share_of_one_sample_in_the_means_so_far():
    """K / n of sigma2 for K prototypes after n samples; n is at most 10 K where a late class comes."""
    model, rows = RiemannianLVQ(sigma2=2.0, random_state=0), np.concatenate([*np.flatnonzero(EARLY).reshape(2, -1).T])
    wanted = []
    for start in range(0, len(rows), 6):
        part = rows[start : start + 6]
        model.partial_fit(X[part], Y[part])
        wanted.append(2 / (start + 6) * 2.0)
    assert_allclose(model.history_["step_size"], wanted)
    model.partial_fit(X[LATE], Y[LATE])
    n_samples = min(np.count_nonzero(EARLY), 30) + np.count_nonzero(LATE)
    assert_allclose(model.history_["step_size"][-1], 3 / n_samples * 2.0)


def test_steps_of_a_stream_are_the_default_after_a_fit_that_chose_its_amount_of_training():
    model = RiemannianLVQ(sigma2=HeldOut([0.5, 1.0]), max_epochs=4, random_state=0).fit(X, Y)
    model.partial_fit(X, Y)
    assert_allclose(model.history_["step_size"][-1], 3 / (2 * len(X)) * model.state_.sigma2)


@pytest.mark.parametrize("step_size", [0.01, StepSize(0.01)], ids=["number", "StepSize"])
def test_steps_that_the_user_gave_stay_at_their_end(step_size):
    model = RiemannianLVQ(step_size=step_size, max_epochs=1).fit(X, Y).partial_fit(X, Y).partial_fit(X, Y)
    assert_array_equal(model.history_["step_size"], 0.01)


# --- a drifting stream with a late class


def drifting_stream(seed=0, length=600):
    """Vectors (N, 2) of three classes that move half a distance between them, the third from the middle on."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 1, length)
    y = rng.integers(0, np.where(time < 0.5, 2, 3))
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 5.0]])
    return centers[y] + np.stack([4 * time, 0 * time], axis=1) + rng.normal(size=(length, 2)), y


@pytest.mark.parametrize("seed", [0, 1])
def test_learning_on_beats_the_frozen_model_on_a_drifting_stream(seed):
    """By 0.3 and more of all answers in the second half, test-then-train; with the late class among the right ones."""
    samples, labels = drifting_stream(seed)
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=5, random_state=0)
    frozen = copy.deepcopy(model).fit(samples[:100], labels[:100])
    model.partial_fit(samples[:100], labels[:100])
    answers = []
    for x, y in zip(samples[100:, None], labels[100:, None], strict=True):
        answers.append(model.predict(x)[0])
        model.partial_fit(x, y)
    right = np.array(answers) == labels[100:]
    late = labels[100:] == 2
    assert right[200:].mean() > frozen.score(samples[300:], labels[300:]) + 0.3
    assert right[late].mean() > 0.8
    assert right[200:].mean() > 0.85


def test_vectors_with_one_sample_a_call_from_the_start():
    samples, labels = vector_classes(n_classes=3, per_class=20, shift=4.0)
    begin = [int(np.flatnonzero(labels == label)[0]) for label in (0, 1)]
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=0.1).partial_fit(samples[begin], labels[begin])
    for row in np.setdiff1d(np.arange(len(labels)), begin):
        model.partial_fit(samples[[row]], labels[[row]])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(samples, labels) > 0.85


@pytest.mark.parametrize("init", ["discriminant", DiscriminantMeans(), ClassKMeans(2), ClassMeans(2)], ids=repr)
@pytest.mark.parametrize("begins_with_fit", [False, True])
def test_an_initializer_takes_the_samples_that_a_stream_has(init, begins_with_fit):
    model = RiemannianLVQ(init=init, random_state=0)
    if begins_with_fit:
        model.fit(X[EARLY], Y[EARLY])
    for matrix, label in zip(X, Y, strict=True):
        model.partial_fit(matrix[None], [label], classes=["a", "b", "c"])
    wanted = getattr(init, "per_class", None) or 1
    assert model.prototype_labels_.tolist() == [*np.repeat(["a", "b", "c"], wanted)]
    assert model.score(X, Y) > 0.9
