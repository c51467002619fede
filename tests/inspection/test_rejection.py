"""Refusing to answer, and probabilities that mean what they say."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from rplvq import RejectOption, RiemannianLVQ, TransferClassifier, compare
from rplvq.datasets import load_digits_covariances, make_syn1
from rplvq.inspection import accuracy_reject_curve, calibrate_sigma2, reliability
from rplvq.plotting import plot_accuracy_reject
from rplvq.preprocessing import Recenter
from tests.problems import vector_classes

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits_covariances()
    return X[:900], y[:900], X[900:], y[900:]


def model(**settings):
    return RiemannianLVQ(**({"max_epochs": 5, "random_state": 0} | settings))


# --- RejectOption


GIVEN = {"sigma2": 0.3, "max_epochs": 2}


@pytest.mark.parametrize(
    ("settings", "criterion"),
    [
        (GIVEN, "posterior"),
        (GIVEN, "relative_distance"),
        # Under the default the folds choose anew whether to train, and relative distances then differ: 0.82 for 0.7.
        pytest.param({"max_epochs": 60}, "posterior", marks=pytest.mark.slow, id="default"),
    ],
)
def test_coverage_holds_on_new_data_and_errors_fall(digits, settings, criterion):
    rows = np.random.default_rng(0).permutation(1797)  # the images are sorted by writers
    X, y = (np.concatenate([digits[k], digits[k + 2]])[rows] for k in (0, 1))
    X, y, X_test, y_test = X[:900], y[:900], X[900:], y[900:]
    option = RejectOption(model(**settings), coverage=0.7, criterion=criterion).fit(X, y)
    labels = option.predict(X_test)
    kept = labels != -1
    assert abs(kept.mean() - 0.7) < 0.075  # three standard deviations over other divisions of the images
    error, error_kept = 1 - option.estimator_.score(X_test, y_test), 1 - np.mean(labels[kept] == y_test[kept])
    assert error_kept < 0.7 * error
    assert_array_equal(labels[kept], option.estimator_.predict(X_test)[kept])


def test_a_threshold_is_taken_as_it_is(digits):
    X, y, X_test, _ = digits
    option = RejectOption(model(sigma2=0.3), threshold=0.6).fit(X[::2], y[::2])
    sure = option.predict_proba(X_test).max(axis=1)
    assert_array_equal(option.certainty(X_test), sure)
    assert_array_equal(option.predict(X_test) == -1, sure < 0.6)
    never = RejectOption(model(sigma2=0.3), threshold=0.0).fit(X[::2], y[::2])
    assert_array_equal(never.predict(X_test), option.estimator_.predict(X_test))


def test_samples_of_weight_zero_do_not_move_the_threshold():
    X, y = make_syn1(60, noise=0.5, random_state=0)
    weights = (np.arange(len(y)) % 2).astype(float)
    others = np.where(weights[:, None, None] > 0, X, X[:, ::-1, ::-1])
    option = RejectOption(model(sigma2=0.5), coverage=0.7)
    wanted = option.fit(X[weights > 0], y[weights > 0]).threshold_
    assert_allclose(option.fit(others, y, sample_weight=weights).threshold_, wanted, rtol=1e-12)


def test_full_coverage_rejects_no_more_than_unseen_doubt(digits):
    X, y, X_test, _ = digits
    option = RejectOption(model(**GIVEN), coverage=1.0).fit(X, y)
    assert np.mean(option.predict(X_test) == -1) < 0.01


def test_relative_distance_by_hand():
    init = (np.array([[0.0], [4.0], [0.5]]), [0, 1, 0])
    plain = RiemannianLVQ("euclidean_vectors", init=init, max_epochs=0)
    option = RejectOption(plain, threshold=0.5, criterion="relative_distance").fit([[0.0], [4.0]], [0, 1])
    assert_allclose(option.certainty([[0.0], [1.0], [2.0], [4.0]]), [1.0, 8.75 / 9.25, 1.75 / 6.25, 1.0])
    assert_array_equal(option.predict([[0.0], [1.0], [2.0], [4.0]]), [0, 0, -1, 1])


def test_a_sample_on_two_prototypes_of_different_classes_is_not_certain():
    init = (np.zeros((2, 1)), [0, 1])
    plain = RiemannianLVQ("euclidean_vectors", init=init, max_epochs=0, sigma2=1.0)
    option = RejectOption(plain, threshold=0.1, criterion="relative_distance").fit([[0.0], [4.0]], [0, 1])
    assert_array_equal(option.certainty([[0.0]]), [0.0])


def test_labels_of_other_kinds():
    X, y = make_syn1(n_per_class=12, n=4, random_state=0)
    words = np.array(["a", "bb", "c", "d"])[y]
    option = RejectOption(model(), coverage=0.5).fit(X, words)
    assert set(option.predict(X)) <= {"a", "bb", "c", "d", "rejected"}
    assert "rejected" in option.predict(X)
    kept = RejectOption(model(), coverage=0.5, reject_label="?").fit(X, words).predict(X)
    assert set(kept) <= {"a", "bb", "c", "d", "?"}
    with pytest.raises(ValueError, match="reject_label='a' is one of the classes"):
        RejectOption(model(), coverage=0.5, reject_label="a").fit(X, words)
    with pytest.raises(ValueError, match="reject_label=-1 is one of the classes"):
        RejectOption(model(), coverage=0.5).fit(X, y - 1)
    with pytest.raises(ValueError, match="labels of type bool have no default"):
        RejectOption(model(), coverage=0.5).fit(X, y > 1)


def test_strings_as_objects_are_strings():
    X, y = make_syn1(n_per_class=12, n=4, random_state=0)
    words = np.array(["a", "bb", "c", "d"], dtype=object)[y]
    labels = RejectOption(model(), coverage=0.5).fit(X, words).predict(X)
    assert "rejected" in labels
    assert set(labels) <= {"a", "bb", "c", "d", "rejected"}


@pytest.mark.parametrize(("reject_label", "names"), [("?", [0, 1, 2, 3]), (-1, ["a", "b", "c", "d"])])
def test_a_reject_label_of_another_kind_is_refused(reject_label, names):
    X, y = make_syn1(n_per_class=6, n=3, random_state=0)
    with pytest.raises(ValueError, match=re.escape(f"reject_label={reject_label!r} is of another kind")):
        RejectOption(model(), threshold=0.5, reject_label=reject_label).fit(X, np.array(names)[y])


def test_sparse_samples_are_folded_as_dense_ones():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)) + np.repeat([[0.0], [1.5]], 30, axis=0), np.repeat([0, 1], 30)
    dense, sparse = (RejectOption(LogisticRegression(), coverage=0.6).fit(samples, y) for samples in (X, csr_array(X)))
    assert_allclose(dense.threshold_, sparse.threshold_, rtol=1e-6)
    assert_array_equal(dense.predict(X), sparse.predict(csr_array(X)))


@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression(max_iter=500)], ids=repr)
def test_any_classifier_with_probabilities_can_refuse(estimator):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)) + np.repeat([[0.0], [1.5]], 100, axis=0), np.repeat([0, 1], 100)
    option = RejectOption(estimator, coverage=0.6).fit(X, y)
    assert abs(np.mean(option.predict(X) == -1) - 0.4) < 0.08
    with pytest.raises(ValueError, match="needs transform"):
        RejectOption(estimator, coverage=0.6, criterion="relative_distance").fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "give threshold or coverage, not both or none"),
        ({"threshold": 0.5, "coverage": 0.5}, "not both or none"),
        ({"coverage": 0}, "coverage must be above 0"),
        ({"coverage": 1.2}, "at most 1, got 1.2"),
        ({"coverage": True}, "coverage must be"),
        ({"threshold": np.nan}, "threshold must be finite"),
        ({"threshold": 0.5, "criterion": "entropy"}, "criterion must be one of"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    X, y = make_syn1(n_per_class=6, n=3, random_state=0)
    with pytest.raises(ValueError, match=message):
        RejectOption(model(), **settings).fit(X, y)


def test_what_the_estimator_lacks_is_named():
    with pytest.raises(ValueError, match="needs predict_proba"):
        RejectOption(LinearSVC(), threshold=0.5).fit([[0.0], [1.0]], [0, 1])


def test_it_clones_and_keeps_its_estimator():
    inner = model()
    option = RejectOption(inner, coverage=0.9, criterion="relative_distance", cv=3)
    again = clone(option)
    assert again.get_params(deep=False).keys() == option.get_params(deep=False).keys()
    assert again.set_params(estimator__max_epochs=2).estimator.max_epochs == 2
    X, y = make_syn1(n_per_class=6, n=3, random_state=0)
    option.fit(X, y)
    assert not hasattr(inner, "classes_")
    assert_array_equal(option.classes_, [0, 1, 2, 3])


@pytest.mark.parametrize("settings", [{"coverage": 0.8}, {"threshold": 0.5}], ids=["coverage", "threshold"])
@pytest.mark.parametrize("index", [0, 3, 17, 39])
@pytest.mark.parametrize("estimator", [model(), make_pipeline(Recenter(), model())], ids=["plain", "pipeline"])
def test_a_bad_sample_is_named_by_its_index_among_all(estimator, index, settings):
    X, y = make_syn1(n_per_class=10, n=3, random_state=0)
    X[index] = -X[index]
    with pytest.raises(ValueError, match=rf"^X\[{index}\] is not positive definite"):
        RejectOption(estimator, **settings).fit(X, y)


@pytest.mark.parametrize("names", [[0, 1, 2, 3], ["a", "b", "c", "d"], [b"a", b"b", b"c", b"d"]], ids=["i", "U", "S"])
@pytest.mark.parametrize(("size", "cv"), [(1, 2), (2, 3), (4, 5)])
def test_a_class_smaller_than_the_folds_is_named(names, size, cv):
    X, y = make_syn1(n_per_class=10, n=3, random_state=0)
    rows = np.concatenate([np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:size]])
    X, y, option = X[rows], np.array(names)[y[rows]], RejectOption(model(), coverage=0.8, cv=cv)
    message = re.escape(f"class {names[2]!r} has {size} sample(s), fewer than cv={cv}: lower cv")
    with pytest.raises(ValueError, match=message):
        option.fit(X, y)
    assert not hasattr(option, "estimator_")
    RejectOption(model(), threshold=0.5, cv=cv).fit(X, y)


@pytest.mark.parametrize("cv", [1, 0, 2.5, True, None, "5"])
def test_a_wrong_number_of_folds_is_named(cv):
    X, y = make_syn1(n_per_class=6, n=3, random_state=0)
    with pytest.raises(ValueError, match=re.escape(f"cv must be an integer of at least 2, got {cv!r}")):
        RejectOption(model(), coverage=0.5, cv=cv).fit(X, y)


def test_folds_of_data_frames_keep_their_columns():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)) + np.repeat([[0.0], [1.5]], 30, axis=0), np.repeat([0, 1], 30)

    def needs_names(part):
        return part[["b", "a"]]

    frame = pandas.DataFrame(X, columns=["a", "b"], index=range(100, 160))
    named = RejectOption(make_pipeline(FunctionTransformer(needs_names), GaussianNB()), coverage=0.6).fit(frame, y)
    assert_allclose(named.threshold_, RejectOption(GaussianNB(), coverage=0.6).fit(X, y).threshold_)


# --- Ctrl-C


def pressed_in(call):
    """A callback that presses Ctrl-C in its call of a certain number, also if it is a copy."""
    calls = itertools.count(1)

    def callback(report):
        if next(calls) == call:
            raise KeyboardInterrupt

    return callback


def interrupted(call):
    return RiemannianLVQ("euclidean_vectors", max_epochs=3, sigma2=1.0, callbacks=[pressed_in(call)])


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: inner,
        lambda inner: make_pipeline(StandardScaler(), inner),
        lambda inner: GridSearchCV(inner, {"batch_size": [1, 2]}, cv=2),
        lambda inner: RejectOption(inner, threshold=0.5),
    ],
    ids=["plain", "pipeline", "search", "nested"],
)
@pytest.mark.parametrize("call", [1, 4, 6])
@pytest.mark.parametrize("outer", ["reject", "compare"])
def test_an_interrupted_inner_fit_ends_the_outer_call(outer, around, call):
    X, y = vector_classes(per_class=20)
    if outer == "compare":
        with pytest.raises(KeyboardInterrupt, match="training was interrupted"):
            compare(X, y, [around(interrupted(call))], cv=2)
        return
    option = RejectOption(around(interrupted(10**6)), coverage=0.8).fit(X, y)
    before = {name: value for name, value in vars(option).items() if name.endswith("_")}
    option.set_params(estimator=around(interrupted(call)))
    with pytest.raises(KeyboardInterrupt, match="training was interrupted"):
        option.fit(X, y)
    assert all(vars(option)[name] is value for name, value in before.items())


# --- the curve


def test_the_curve_by_hand_with_ties():
    curve = accuracy_reject_curve([1, 1, 0, 0, 1], [1, 0, 0, 1, 1], [0.9, 0.7, 0.7, 0.2, 0.9])
    assert_allclose(curve.coverage, [0.4, 0.8, 1.0])
    assert_allclose(curve.accuracy, [1.0, 0.75, 0.6])
    assert_allclose(curve.area, 0.4 + 0.4 * 0.875 + 0.2 * 0.675)
    assert curve.at(0.5) == 0.75
    assert curve.at(0.8) == 0.75
    assert curve.at(1.0) == 0.6


def test_the_curve_does_not_depend_on_the_order_and_ends_at_the_accuracy():
    rng = np.random.default_rng(0)
    y, p, c = rng.integers(0, 3, 50), rng.integers(0, 3, 50), rng.integers(0, 9, 50) / 9
    curve, order = accuracy_reject_curve(y, p, c), rng.permutation(50)
    again = accuracy_reject_curve(y[order], p[order], c[order])
    for one, other in zip(curve, again, strict=True):
        assert_allclose(one, other)
    assert curve.accuracy[-1] == np.mean(y == p)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), r"one shape \(N,\)"),
        (([0, 1], [0, 1], [0.5]), r"one shape \(N,\)"),
        (([0, 1], [0, 1], [0.5, np.nan]), r"certainty\[1\] is nan"),
    ],
)
def test_curves_of_nothing_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        accuracy_reject_curve(*arguments)


# --- calibration


def test_reliability_by_hand():
    proba = np.array([[0.55, 0.45], [0.55, 0.45], [0.05, 0.95], [0.0, 1.0]])
    found = reliability([0, 1, 1, 1], proba, [0, 1])
    assert_allclose(found.probability, [0.55, 0.975])
    assert_allclose(found.accuracy, [0.5, 1.0])
    assert_array_equal(found.n_samples, [2, 2])
    assert_allclose(found.ece, (0.05 + 0.025) / 2)


def test_probabilities_that_mean_what_they_say_have_no_error():
    rng = np.random.default_rng(0)
    proba = softmax(3 * rng.normal(size=(40000, 3)), axis=1)
    y = (rng.uniform(size=(40000, 1)) > np.cumsum(proba, axis=1)).sum(axis=1)
    assert reliability(y, proba, [0, 1, 2]).ece < 0.01
    assert reliability(y, softmax(3 * np.log(proba), axis=1), [0, 1, 2]).ece > 0.05


def test_reliability_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"proba must have shape \(2, 3\), got \(2, 2\)"):
        reliability([0, 1], np.full((2, 2), 0.5), [0, 1, 2])
    with pytest.raises(ValueError, match="n_bins must be an integer of at least 1"):
        reliability([0, 1], np.full((2, 2), 0.5), [0, 1], n_bins=0)


@pytest.mark.filterwarnings("ignore:training raised")  # sigma2 is far too large here
def test_calibrating_sigma2_lowers_the_loss_and_moves_no_label(digits):
    X, y, X_test, y_test = digits
    wide = model(sigma2=5.0).fit(X, y)
    found = calibrate_sigma2(wide, X_test[:400], y_test[:400])
    assert wide.sigma2_ == 5.0
    assert_array_equal(found.predict(X_test), wide.predict(X_test))
    before, after = (reliability(y_test[400:], m.predict_proba(X_test[400:]), m.classes_) for m in (wide, found))
    assert after.log_loss < 0.8 * before.log_loss
    assert after.ece < 0.5 * before.ece


def test_the_calibrated_sigma2_is_where_the_derivative_vanishes(digits):
    X, y, X_test, y_test = digits
    found = calibrate_sigma2(model(sigma2=0.3).fit(X, y), X_test, y_test)
    sqdist, targets = found.transform(X_test) ** 2, np.searchsorted(found.classes_, y_test)
    cost, labels = found.trainer_.cost, found.state_.labels
    slope = cost(sqdist, targets, labels, found.sigma2_).slope
    assert abs((slope * sqdist).sum()) < 1e-3 * np.abs(slope * sqdist).sum()


def test_with_one_prototype_a_class_it_is_the_temperature_of_scikit_learn(digits):
    X, y, X_test, y_test = digits
    fitted = model(sigma2=0.3).fit(X, y)
    found = calibrate_sigma2(fitted, X_test[:400], y_test[:400])
    if SKLEARN < (1, 8):
        pytest.skip("scikit-learn calibrates by temperature from 1.8")
    other = CalibratedClassifierCV(FrozenEstimator(fitted), method="temperature", ensemble=False)
    other.fit(X_test[:400], y_test[:400])
    assert_allclose(found.predict_proba(X_test), other.predict_proba(X_test), atol=1e-5)


def test_unknown_labels_are_named(digits):
    X, y, *_ = digits
    fitted = model(sigma2=0.3).fit(X[y < 5], y[y < 5])
    with pytest.raises(ValueError, match=r"y\[1\] is .*7.*, which is not among the classes"):
        calibrate_sigma2(fitted, X[:2], [0, 7])
    with pytest.raises(ValueError, match="y has 1 labels for 2 samples"):
        calibrate_sigma2(fitted, X[:2], [0])


# --- pictures


def test_pictures_show_the_curves():
    pytest.importorskip("matplotlib")
    curve = accuracy_reject_curve([1, 1, 0, 0, 1], [1, 0, 0, 1, 1], [0.9, 0.7, 0.7, 0.2, 0.9])
    ax = plot_accuracy_reject(curve, label="a")
    assert_allclose(ax.lines[0].get_xdata()[1:], curve.coverage)
    assert ax.get_legend_handles_labels()[1] == [f"a (area {curve.area:.3f})"]
    assert plot_accuracy_reject(curve).get_ylabel() == "accuracy of the answers"


def test_of_a_transfer_only_samples_of_the_target_are_held_out(monkeypatch):
    X, y = make_syn1(n_per_class=30, n=4, random_state=0)
    domain = np.array(["a", "b", "target"])[np.arange(len(y)) % 3]
    fit, seen = TransferClassifier.fit, []

    def watched(self, X, y, groups=None, sample_weight=None):
        seen.append([int((groups == name).sum()) for name in ("a", "b", "target")])
        return fit(self, X, y, groups, sample_weight)

    monkeypatch.setattr(TransferClassifier, "fit", watched)
    transfer = TransferClassifier(RiemannianLVQ(max_epochs=0), target="target")
    option = RejectOption(transfer, coverage=0.8).fit(X, y, groups=domain)
    assert seen == [[40, 40, 40], *[[40, 40, 32]] * 5]
    own = X[domain == "target"]
    assert 0.75 <= np.mean(option.predict(own) != -1) <= 1
    everybody = option.without_rejection()
    assert_array_equal(everybody.predict(own), option.estimator_.predict(own))
    assert_array_equal(everybody.certainty(own), option.certainty(own))
    with pytest.raises(ValueError, match="'elsewhere' is not among the domains"):
        RejectOption(transfer.set_params(target="elsewhere"), coverage=0.8).fit(X, y, groups=domain)
