"""Labels: what fit takes, every other call takes, and what fit refuses, every other call refuses."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import RejectOption, RiemannianLVQ, SPDProjection, compare, load_model
from rplvq.datasets import make_syn1
from rplvq.inspection import accuracy_reject_curve, calibrate_sigma2, reliability
from rplvq.preprocessing import Recenter

X, Y = make_syn1(n_per_class=8, n=3, random_state=0)
WORDS = np.array(["a", "bb", "c", "d"])[Y]
LABELS = {
    "integers": Y,
    "list": Y.tolist(),
    "column": Y[:, None],
    "small integers": Y.astype(np.uint8),
    "floats": Y.astype(float),
    "booleans": Y > 1,
    "integers as objects": Y.astype(object),
    "booleans as objects": (Y > 1).astype(object),
    "strings": WORDS,
    "list of strings": WORDS.tolist(),
    "column of strings": WORDS[:, None],
    "strings as objects": WORDS.astype(object),
    "column of objects": WORDS.astype(object)[:, None],
    "StringDType": WORDS.astype(np.dtypes.StringDType()),
    "column of StringDType": WORDS.astype(np.dtypes.StringDType())[:, None],
    "bytes": WORDS.astype("S"),
    "column of bytes": WORDS.astype("S")[:, None],
    "bytes as objects": np.array([word.encode() for word in WORDS], dtype=object),
    "dates": np.datetime64("2020-01-01") + Y,
}
each_kind = pytest.mark.parametrize("y", LABELS.values(), ids=LABELS.keys())
pytestmark = pytest.mark.filterwarnings("ignore:A column-vector y:sklearn.exceptions.DataConversionWarning")


def indexed(y):
    return np.unique(np.asarray(y).ravel(), return_inverse=True)[1].ravel()


def model(**settings):
    return RiemannianLVQ(**{"sigma2": 1.0, "max_epochs": 2, "random_state": 0} | settings)


@each_kind
def test_fit_predict_and_score_take_the_same_labels(y, tmp_path):
    fitted, plain = model(sigma2="auto").fit(X, y), model(sigma2="auto").fit(X, indexed(y))  # folds take them, too
    assert_array_equal(fitted.prototypes_, plain.prototypes_)
    assert_array_equal(fitted.predict(X), fitted.classes_[plain.predict(X)])
    assert fitted.score(X, y) == plain.score(X, indexed(y))
    assert fitted.score(X, y, sample_weight=np.arange(len(X))) == plain.score(X, indexed(y), np.arange(len(X)))
    fitted.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.score(X, y) == fitted.score(X, y)


@each_kind
def test_partial_fit_and_announced_classes_take_the_same_labels(y):
    classes = np.unique(np.asarray(y))
    for announced in (classes, classes.tolist(), set(classes.tolist())):
        fitted = model().partial_fit(X[:16], y[:16], classes=announced).partial_fit(X[16:], y[16:], classes=announced)
        plain = model().partial_fit(X[:16], indexed(y)[:16], np.unique(indexed(y))).partial_fit(X[16:], indexed(y)[16:])
        assert_array_equal(fitted.prototypes_, plain.prototypes_)
        assert_array_equal(fitted.classes_, classes)


@each_kind
def test_compare_takes_the_same_labels(y):
    scores = compare(X, y, [model()], cv=2, random_state=0).scores
    assert_array_equal(scores, plain_scores(tuple(indexed(y).tolist())))


@functools.cache
def plain_scores(labels):
    return compare(X, np.array(labels), [model()], cv=2, random_state=0).scores


@functools.cache
def plain_option(labels, criterion):
    """An option for indices of classes, which tests only ask; most kinds of labels have the same ones."""
    return RejectOption(model(), coverage=0.8, criterion=criterion).fit(X, np.array(labels))


@each_kind
@pytest.mark.parametrize("criterion", ["posterior", "relative_distance"])
def test_rejection_takes_the_same_labels(y, criterion):
    label = np.datetime64("1999-01-01") if np.asarray(y).dtype.kind == "M" else None
    if indexed(y).max() == 1:
        with pytest.raises(ValueError, match="labels of type bool have no default"):
            RejectOption(model(), coverage=0.8, criterion=criterion).fit(X, y)
        return
    option = RejectOption(model(), coverage=0.8, criterion=criterion, reject_label=label).fit(X, y)
    plain = plain_option(tuple(indexed(y).tolist()), criterion)
    assert option.threshold_ == plain.threshold_
    assert_array_equal(option.predict(X) == option.reject_label_, plain.predict(X) == -1)
    assert option.score(X, y) == plain.score(X, indexed(y))


@each_kind
def test_measures_of_certainty_take_the_same_labels(y):
    fitted, plain = model().fit(X, y), model().fit(X, indexed(y))
    assert calibrate_sigma2(fitted, X, y).sigma2_ == calibrate_sigma2(plain, X, indexed(y)).sigma2_
    found, wanted = (
        reliability(labels, m.predict_proba(X), m.classes_) for labels, m in ((y, fitted), (indexed(y), plain))
    )
    for one, other in zip(found, wanted, strict=True):
        assert_allclose(one, other, rtol=1e-12)
    sure = plain.predict_proba(X).max(axis=1)
    assert (
        accuracy_reject_curve(y, fitted.predict(X), sure).area
        == accuracy_reject_curve(indexed(y), plain.predict(X), sure).area
    )


@each_kind
def test_projection_takes_the_same_labels(y):
    found, plain = (SPDProjection(n_alternations=1, max_iter=3).fit(X, labels) for labels in (y, indexed(y)))
    assert_array_equal(found.components_, plain.components_)
    assert_array_equal(found.prototype_labels_, found.classes_[plain.prototype_labels_])


def test_soft_labels_stand_for_their_likeliest_class():
    soft = 0.4 * np.eye(4)[Y] + 0.15
    fitted = model(cost="plvq").fit(X, soft)
    assert fitted.score(X, soft) == fitted.score(X, Y)
    assert calibrate_sigma2(fitted, X, np.eye(4)[Y]).sigma2_ == pytest.approx(calibrate_sigma2(fitted, X, Y).sigma2_)
    option = RejectOption(model(cost="plvq"), coverage=0.8).fit(X, soft)
    assert 0.5 < np.mean(option.predict(X) != -1) < 1
    assert option.score(X, soft) == option.score(X, Y)


MISSING = {
    "None": (["a", None, "b"] * 8, r"y\[1\] is None"),
    "NaN": (np.array([0, 1, np.nan] * 8), r"y\[2\] is nan"),
    "NaN in a column": (np.array([0, 1, np.nan] * 8)[:, None], r"y\[2\] is nan"),
    "NaN as an object": (np.array([0, np.nan, 1] * 8, dtype=object), r"y\[1\] is nan"),
    "None in a column of objects": (np.array([["a"], [None], ["b"]] * 8, dtype=object), r"y\[1\] is None"),
    "NaN among StringDType": (
        np.array(["a", "b", np.nan] * 8, dtype=np.dtypes.StringDType(na_object=np.nan)),
        r"y\[2\] is nan",
    ),
    "NaT": (np.array(["2020-01-01", "2020-01-02", "NaT"] * 8, dtype="M8[D]"), r"y\[2\] is NaT"),
    "complex NaN": (np.array([0, complex(0, np.nan)] * 12), r"y\[1\] is nan|y\[1\] is .*nanj"),
    "mixed list": (["a", "b", 1] * 8, r"mixed types: y\[0\] is 'a', y\[2\] is 1"),
    "mixed column": ([["a"], ["b"], [1]] * 8, r"mixed types: y\[0\] is 'a', y\[2\] is 1"),
    "mixed objects": (np.array([0, 1, b"x"] * 8, dtype=object), r"mixed types: y\[0\] is 0, y\[2\] is b'x'"),
}
DOORS = {
    "fit": lambda y: model().fit(X[:24], y),
    "partial_fit": lambda y: model().partial_fit(X[:24], y),
    "score": lambda y: model().fit(X, Y).score(X[:24], y),
    "compare": lambda y: compare(X[:24], y, [model()], cv=2),
    "reject": lambda y: RejectOption(model(), coverage=0.8).fit(X[:24], y),
    "reject by threshold": lambda y: RejectOption(model(), threshold=0.8).fit(X[:24], y),
    "score with rejects": lambda y: RejectOption(model(), threshold=0.8).fit(X, Y).score(X[:24], y),
    "calibrate": lambda y: calibrate_sigma2(model().fit(X, Y), X[:24], y),
    "reliability": lambda y: reliability(y, np.full((24, 4), 0.25), [0, 1, 2, 3]),
    "curve": lambda y: accuracy_reject_curve(y, Y[:24], np.ones(24)),
    "projection": lambda y: SPDProjection().fit(X[:24], y),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
@pytest.mark.parametrize(("y", "message"), MISSING.values(), ids=MISSING.keys())
def test_missing_and_mixed_labels_are_named_at_every_door(door, y, message):
    if door is DOORS["reliability"] or door is DOORS["curve"]:
        message = message.replace(r"y\[", r"y_true\[")
    with pytest.raises(ValueError, match=message):
        door(y)


@pytest.mark.parametrize("name", [name for name in DOORS if name not in ("reliability", "curve")])
@pytest.mark.parametrize("n", [23, 25])
def test_labels_of_another_number_are_named_at_every_door(name, n):
    with pytest.raises(ValueError, match=f"y has {n} labels for 24 samples of X"):
        DOORS[name](Y[:n])


@pytest.mark.parametrize("name", ["score", "score with rejects", "curve"])
@pytest.mark.parametrize("y", [WORDS[:24], WORDS[:24].astype("S"), WORDS[:24].astype(object)], ids=["U", "S", "O"])
def test_labels_of_another_type_are_not_wrong_predictions(name, y):
    with pytest.raises(ValueError, match=r"y(_true)?\[0\] is b?'.*' and .* is .*: they are of different types"):
        DOORS[name](y)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0.0, np.nan] * 12, r"groups\[1\] is nan.*every sample needs a group"),
        (["a", None] * 12, r"groups\[1\] is None.*every sample needs a group"),
        (["a", 1] * 12, r"mixed types: groups\[0\] is 'a', groups\[1\] is 1"),
        (np.array(["2024-01-01", "NaT"] * 12, "M8[D]"), r"groups\[1\] is NaT"),
        ([0, 1], r"groups must have shape \(24,\)"),
        (np.zeros((24, 2)), r"groups must have shape \(24,\)"),
    ],
    ids=["NaN", "None", "mixed", "NaT", "too few", "two columns"],
)
@pytest.mark.parametrize(
    "door",
    [
        lambda groups: Recenter().fit(X[:24], groups=groups),
        lambda groups: Recenter().fit(X).transform(X[:24], groups=groups),
        lambda groups: Recenter(online=True).fit(X).partial_fit(X[:24], groups=groups),
        lambda groups: compare(X[:24], Y[:24], [model()], cv=2, groups=groups),
    ],
    ids=["Recenter.fit", "Recenter.transform", "Recenter.partial_fit", "compare"],
)
def test_missing_groups_are_named_at_every_door(door, groups, message):
    with pytest.raises(ValueError, match=message):
        door(groups)


def test_pairs_and_dates_as_objects_name_groups():
    pairs = np.empty(24, dtype=object)
    pairs[:] = [("anna", 1), ("anna", 2)] * 12
    assert Recenter().fit(X[:24], groups=pairs).groups_.tolist() == [("anna", 1), ("anna", 2)]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (3, "classes must be a list of labels, got 3"),
        ("ab", "classes must be a list of labels, got 'ab'"),
        (iter([0, 1]), "classes must be a list of labels"),
        ([[0, 1], [2, 3]], "classes must be a list of labels"),
        ([0, None], re.escape("classes[1] is None")),
    ],
    ids=["number", "string", "iterator", "square", "missing"],
)
def test_announced_classes_that_are_no_list_are_refused(classes, message):
    with pytest.raises(ValueError, match=message):
        model().partial_fit(X, Y, classes=classes)


@pytest.mark.parametrize(
    "kind",
    [set, frozenset, lambda labels: dict.fromkeys(labels).keys(), range],
    ids=["set", "frozenset", "keys", "range"],
)
def test_announced_classes_may_be_a_set(kind):
    classes = range(5) if kind is range else kind([0, 1, 2, 3, 4])
    assert_array_equal(model().partial_fit(X, Y, classes=classes).classes_, [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    ("first", "later", "classes"),
    [
        (Y.astype(np.uint8), 300, [0, 1, 2, 3, 300]),
        (Y.astype(np.int8), -1000, [-1000, 0, 1, 2, 3]),
        (Y > 1, 2, [0, 1, 2]),
        (Y.astype(np.float16), 70000.0, [0, 1, 2, 3, 70000]),
        (WORDS, "longer", ["a", "bb", "c", "d", "longer"]),
    ],
    ids=["uint8", "int8", "bool", "float16", "strings"],
)
def test_a_late_label_that_does_not_fit_the_type_of_the_first_ones_is_kept_as_it_is(first, later, classes):
    fitted = model().partial_fit(X, first)
    fitted.partial_fit(X[:3], np.array([first[0], later, later]) if isinstance(later, str) else [later] * 3)
    assert_array_equal(fitted.classes_, classes)


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        ([[0.5, 0.5], [np.nan, 0.5]], r"proba\[1, 0\] is nan"),
        ([[0.5, np.inf], [0.5, 0.5]], r"proba\[0, 1\] is inf"),
        ([[0.5, 0.5], [0.5, -0.5]], r"proba\[1, 1\] is -0.5"),
        ([[0.5, 1.5], [0.5, 0.5]], r"proba\[0, 1\] is 1.5"),
    ],
    ids=["NaN", "infinite", "negative", "above one"],
)
def test_reliability_names_what_is_no_probability(proba, message):
    with pytest.raises(ValueError, match=message):
        reliability([0, 1], proba, [0, 1])


def test_reliability_names_a_label_that_is_no_class():
    with pytest.raises(ValueError, match=r"y_true\[1\] is 7, which is not among the classes \[0, 1\]"):
        reliability([0, 7], np.full((2, 2), 0.5), [0, 1])
