"""partial_fit: classes given, inferred and late; schedules; the same as the sweeps of fit."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import DataConversionWarning

from rplvq import Annealed, EarlyStopping, GeometricDecay, RiemannianLVQ, Share, StepSize
from tests.problems import refuse, spd_classes, vector_classes


@pytest.fixture(scope="module")
def problem():
    X, y = spd_classes(n_classes=3, per_class=10)
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("settings", [{}, {"batch_size": 7, "prototypes_per_class": 2}])
def test_calls_on_all_data_are_the_sweeps_of_fit(problem, manifold, settings):
    X, y = problem
    # The default step of a stream is another one than that of a fit, so that the share is given.
    settings = {"max_epochs": 3, "sigma2": Annealed(2.0), "step_size": Share(0.3), "random_state": 5} | settings
    whole = RiemannianLVQ(manifold, **settings).fit(X, y)
    rng, parts = np.random.default_rng(0), RiemannianLVQ(manifold, **settings)
    for _ in range(3):
        order = rng.permutation(len(X))
        assert parts.partial_fit(X[order], y[order]) is parts
    assert_array_equal(parts.prototypes_, whole.prototypes_)
    assert parts.sigma2_ == whole.sigma2_
    for column in ("epoch", "cost", "step_size", "training_error"):
        assert_array_equal(parts.history_[column], whole.history_[column][-3:])


def test_schedules_advance_a_call_at_a_time_and_stay_at_their_end(problem):
    X, y = problem
    model = RiemannianLVQ(max_epochs=3, sigma2=Annealed(1.0), step_size=GeometricDecay(0.1))
    for calls in range(1, 6):
        model.partial_fit(X, y)
        assert model.n_epochs_ == calls
        assert model.sigma2_ == Annealed(1.0)(min(calls, 3), 3)
    assert_allclose(model.history_["step_size"], 0.1 * 0.01 ** (np.array([1, 2, 3, 3, 3]) / 3))


def test_training_goes_on_after_fit_and_starts_anew_at_fit(problem):
    X, y = problem
    model = RiemannianLVQ(sigma2=1.0, max_epochs=2, step_size=0.1, random_state=0).fit(X, y)
    fitted = model.prototypes_
    model.partial_fit(X, y)
    assert model.n_epochs_ == 3
    assert np.abs(model.prototypes_ - fitted).max() > 1e-6
    assert_array_equal(model.fit(X, y).prototypes_, fitted)


@pytest.mark.parametrize("epochs", [0, 2])
def test_history_goes_on_after_early_stopping_and_after_no_epoch(problem, epochs):
    X, y = problem
    model = RiemannianLVQ(sigma2=1.0, max_epochs=epochs, early_stopping=EarlyStopping(fraction=0.2), random_state=0)
    model.fit(X, y).partial_fit(X, y)
    assert model.n_epochs_ == epochs + 1
    assert len(set(map(len, model.history_.values()))) == 1
    assert np.isfinite(model.history_["cost"]).all()


# --- classes


def test_classes_are_those_of_the_first_batch_by_default(problem):
    X, y = problem
    model = RiemannianLVQ().partial_fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    model.partial_fit(X[y != "b"], y[y != "b"])  # later batches need not have them all
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_a_later_batch_may_hold_one_sample(problem):
    X, y = problem
    model = RiemannianLVQ(step_size=0.5, random_state=0).partial_fit(X, y)
    before = model.prototypes_
    model.partial_fit(X[:1], y[:1], classes=["c", "b", "a"])
    assert np.abs(model.prototypes_ - before).max() > 0


def test_announced_classes_may_wait_where_their_prototypes_are_given(problem):
    X, y = problem
    seen = y != "c"
    first = [int(np.flatnonzero(y == label)[0]) for label in "abc"]
    model = RiemannianLVQ(init=(X[first], y[first]), step_size=0.1, random_state=0)
    model.partial_fit(X[seen], y[seen], classes=["a", "b", "c"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    model.partial_fit(X, y)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(
    ("classes", "rows", "message"),
    [
        (["a", "b"], slice(None), r"y\[\d+\] is .*'c'.*, which is not among the classes \['a', 'b'\]"),
        (["a"], slice(None), "one class"),
        (["a", 1, None], slice(None), "classes|mixed"),
        (None, slice(1), "only one class"),
    ],
)
def test_a_first_call_refuses_and_stays_unfitted(problem, classes, rows, message):
    X, y = problem
    model = RiemannianLVQ()
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X[rows], y[rows], classes=classes)
    assert vars(model) == vars(RiemannianLVQ())


@pytest.mark.parametrize(
    ("X_later", "y_later", "classes", "message"),
    [
        (2, ["a", "z"], ["a", "b", "c"], r"y\[1\] is .*'z'.*, which is not among the classes \['a', 'b', 'c'\]"),
        (2, ["a", "b"], [0, 1, 2, 3], r"classes=\[0, 1, 2, 3\] differ from"),
        (2, ["a", "b"], ["a", "b"], r"classes=\['a', 'b'\] differ from .* \['a', 'b', 'c'\]"),
        (2, [0, 1], None, r"y\[0\] is .*0.*, which is not among the classes"),
        (2, ["a"], None, "y has 1 labels for 2 samples"),
        (np.stack([np.eye(2)] * 2), ["a", "b"], None, "X has 2 features, but .* expecting 3"),
        (np.ones((2, 3, 3)), ["a", "b"], None, r"X\[0\] is singular"),
    ],
)
def test_a_later_call_refuses_and_changes_nothing(problem, X_later, y_later, classes, message):
    X, y = problem
    model = RiemannianLVQ(random_state=0).partial_fit(X, y, classes=["a", "b", "c"])
    before = pickle.dumps(vars(model))
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X[:X_later] if isinstance(X_later, int) else X_later, y_later, classes=classes)
    assert pickle.dumps(vars(model)) == before
    again = RiemannianLVQ().partial_fit(X, y)
    assert_allclose(model.sigma2_, again.sigma2_)


def test_a_later_call_that_diverges_changes_nothing(problem):
    X, y = vector_classes()

    def wild(epoch, n_epochs):
        return 0.01 if epoch < 2 else 1e300

    step_size = StepSize(wild, max_weight=None)
    model = RiemannianLVQ("euclidean_vectors", step_size=step_size, sigma2=1e-3, random_state=0).partial_fit(X, y)
    kept, draws = copy.deepcopy(model.prototypes_), model._rng.bit_generator.state
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="diverged in epoch 2"):
        model.partial_fit(X, y)
    assert_array_equal(model.prototypes_, kept)
    assert model.n_epochs_ == 1
    assert model._rng.bit_generator.state == draws


# --- weights, soft labels, streams


def test_weights_are_taken(problem):
    X, y = problem
    weights = np.where(np.arange(len(X)) % 2, 2.0, 0.0)
    model, wanted = (RiemannianLVQ(random_state=0, step_size=0.1) for _ in range(2))
    for _ in range(2):
        model.partial_fit(X, y, sample_weight=weights)
        wanted.partial_fit(np.repeat(X[1::2], 2, axis=0), np.repeat(y[1::2], 2))
    assert_allclose(model.prototypes_, wanted.prototypes_, rtol=1e-9, atol=1e-9)


def test_soft_labels_are_taken():
    X, y = spd_classes()
    soft = np.stack([0.9 - 0.8 * y, 0.1 + 0.8 * y], axis=1)
    model = RiemannianLVQ(cost="plvq", sigma2=1.0, step_size=Share(0.3), max_epochs=3, random_state=0)
    for _ in range(3):
        model.partial_fit(X, soft)
    assert_array_equal(model.prototypes_, RiemannianLVQ(**model.get_params(deep=False)).fit(X, soft).prototypes_)
    assert model.classes_.tolist() == [0, 1]


def test_a_stream_follows_a_drift():
    # Classes at 0 and 4 move to 3 and 7, where the first would be taken for the second.
    y = np.arange(60) % 2
    X = 4.0 * y[:, None] + np.random.default_rng(0).uniform(-0.5, 0.5, (60, 1))
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=0.3, random_state=0).partial_fit(X, y)
    assert model.score(X, y) == 1
    assert model.score(X + 3, y) == 0.5
    for start in range(0, 60, 10):
        model.partial_fit(X[start : start + 10] + 3, y[start : start + 10])
    assert model.score(X + 3, y) == 1


@pytest.mark.parametrize("begin", ["a stream", "a long fit"])
def test_the_history_of_a_stream_is_bounded(monkeypatch, begin):
    """A call costs the same however many came before, and so does a model file."""
    monkeypatch.setattr("rplvq.training._state.STREAM_ROWS", 10)
    X, y = vector_classes(per_class=2)
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=0 if begin == "a stream" else 25, random_state=0)
    n_before = 0 if begin == "a stream" else model.fit(X, y).n_epochs_
    whole, costs = copy.deepcopy(model), [] if begin == "a stream" else model.history_["cost"].tolist()
    sizes = []
    for call in range(1, 31):
        model.partial_fit(X, y)
        costs.append(model.history_["cost"][-1])
        assert model.n_epochs_ == n_before + call
        assert {len(column) for column in model.history_.values()} == {min(len(costs), 10)}
        assert_array_equal(model.history_["cost"], costs[-10:])
        sizes.append(len(pickle.dumps(model.history_)))
    assert sizes[10] == sizes[-1]
    with monkeypatch.context() as patch:
        patch.setattr("rplvq.training._state.STREAM_ROWS", 1000)  # the bound changes nothing else
        for _ in range(30):
            whole.partial_fit(X, y)
    assert len(whole.history_["cost"]) == n_before + 30
    assert_array_equal(whole.prototypes_, model.prototypes_)
    assert whole.n_epochs_ == model.n_epochs_
    n_epochs = model.fit(X, y).n_epochs_  # a fit starts anew, and keeps all epochs
    assert model.history_["epoch"].tolist() == ([*range(1, n_epochs + 1)] or [0])


def test_the_history_of_a_fit_is_whole(monkeypatch):
    monkeypatch.setattr("rplvq.training._state.STREAM_ROWS", 10)
    X, y = vector_classes(per_class=2)
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=0.1, max_epochs=25, random_state=0).fit(X, y)
    assert_array_equal(model.history_["epoch"], np.arange(1, 26))


@pytest.mark.parametrize("accepts_more", [True, False], ids=["open stream", "after fit"])
@pytest.mark.parametrize("kind", ["data frame", "series", "objects", "list"])
def test_unknown_strings_are_read_alike_in_every_container(kind, accepts_more):
    pandas = pytest.importorskip("pandas")
    forms = {
        "data frame": lambda labels: pandas.DataFrame({"label": labels}),
        "series": pandas.Series,
        "objects": lambda labels: np.array(labels, dtype=object),
        "list": list,
    }
    X, y = vector_classes(per_class=4)
    names = np.array(["left", "right"])[y].tolist()
    model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=2, random_state=0)
    model = model.partial_fit(X, names) if accepts_more else model.fit(X, names)
    unknown = [*names[:3], "middle", *names[4:]]
    with warnings.catch_warnings(action="ignore", category=DataConversionWarning):
        for bad, value in ((None, "None|nan"), (7, "7")):
            broken = forms[kind]([*names[:3], bad, *names[4:]])
            refuse(model, "partial_fit", X, broken, match=rf"y\[3\] is ({value})")
        if accepts_more:
            assert model.partial_fit(X, forms[kind](unknown)).classes_.tolist() == ["left", "middle", "right"]
        else:
            why = r"y\[3\] is 'middle', which is not among the classes \['left', 'right'\]"
            refuse(model, "partial_fit", X, forms[kind](unknown), match=why)
