"""What compare takes: data, folds, scorers, estimators; and what it says when one is wrong or fails."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rplvq import RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.evaluation import compare
from tests.recorders import Failing, Recorder, numbered


@pytest.fixture
def log():
    Recorder.log.clear()
    return Recorder.log


@pytest.fixture(scope="module")
def matrices():
    return make_syn1(n_per_class=12, n=4, random_state=0)


def test_default_folds_are_ten_and_stratified(log):
    X, y = numbered(60)
    result = compare(X, y, [Recorder()], random_state=0)
    assert len(result.folds) == 10
    for _, what, _, rows in log:
        counts = np.bincount(y[np.asarray(rows, dtype=int)])
        assert set(counts) == ({18} if what == "fit" else {2})


def test_groups_are_not_split(log):
    X, y = numbered(24)
    groups = np.arange(24) // 4
    compare(X, y, [Recorder()], cv=3, groups=groups, random_state=0)
    compare(X, y, [Recorder()], cv=GroupKFold(3), groups=groups)
    fits = [set(groups[np.asarray(rows, dtype=int)]) for _, what, _, rows in log if what == "fit"]
    tests = [set(groups[np.asarray(rows, dtype=int)]) for _, what, _, rows in log if what == "predict"][::2]
    assert len(fits) == 6
    assert all(train.isdisjoint(test) for train, test in zip(fits, tests, strict=True))


def test_splits_can_be_given_as_rows_or_masks(log):
    X, y = numbered(12)
    mask = np.arange(12) < 9
    result = compare(X, y, [Recorder()], cv=iter([(mask, ~mask), ([0, 1, 2], [11, 10])]))
    assert result.folds == ((9, 3), (3, 2))
    assert [rows for *_, rows in log[::3]] == [list(range(9)), [0, 1, 2]]
    assert [rows for *_, rows in log[1::3]] == [[9, 10, 11], [11, 10]]


def test_soft_labels_train_and_their_most_probable_class_scores(matrices):
    X, y = matrices
    model = RiemannianLVQ(cost="plvq", max_epochs=2)
    soft = compare(X, np.eye(4)[y], [model], cv=3, random_state=0)
    assert_array_equal(soft.scores, compare(X, y, [model], cv=3, random_state=0).scores)


def test_data_frames_and_columns_of_labels_are_taken_as_they_are():
    pandas = pytest.importorskip("pandas")
    X, y = numbered()
    frame = pandas.DataFrame(X, columns=["row", "one"])

    def needs_names(part):
        return part[["row"]]

    model = make_pipeline(FunctionTransformer(needs_names), KNeighborsClassifier(1))
    plain = compare(X[:, :1], y, [KNeighborsClassifier(1)], cv=3, random_state=0)
    assert_array_equal(compare(frame, pandas.Series(y), [model], cv=3, random_state=0).scores, plain.scores)
    assert_array_equal(
        compare(X[:, :1].tolist(), y[:, None], [KNeighborsClassifier(1)], cv=3, random_state=0).scores, plain.scores
    )


def test_unnamed_estimators_are_named_after_their_class():
    X, y = numbered()
    result = compare(X, y, [Recorder(), DummyClassifier(), Recorder()], cv=2)
    assert result.names == ("Recorder 1", "DummyClassifier", "Recorder 2")


def share_of_row_zero(estimator, X, y):
    return float((X[:, 0] == 0).mean())


def test_scorers_can_be_callables_or_named():
    X, y = numbered()
    result = compare(X, y, [Recorder()], cv=2, scoring=share_of_row_zero)
    assert result.metrics == ("share_of_row_zero",)
    assert_allclose(sorted(result.scores.ravel()), [0, 1 / 12])
    named = compare(X, y, [Recorder()], cv=2, scoring={"mine": share_of_row_zero, "theirs": "accuracy"})
    assert named.metrics == ("mine", "theirs")


@pytest.mark.parametrize(("during", "n_jobs"), [("fit", 1), ("predict", 1), ("predict", 2)])
def test_a_failing_estimator_is_named_with_its_fold(during, n_jobs):
    X, y = numbered(12)
    X[7, 1] = -1
    splits = [(range(8, 12), [0, 1]), (range(4), [4, 5])]
    splits.append((range(6, 12), [0]) if during == "fit" else (range(6), [6, 7]))
    models = {"fine": Recorder(), "broken": Failing(ValueError, during)}
    with pytest.raises(ValueError, match="estimator 'broken' failed in fold 2: something is wrong"):
        compare(X, y, models, cv=splits, scoring="accuracy", n_jobs=n_jobs)


def test_other_errors_keep_their_kind_in_the_message_and_as_cause():
    X, y = numbered(12)
    X[:, 1] = -1
    with pytest.raises(RuntimeError, match="estimator 'Failing' failed in fold 0: KeyError: ") as caught:
        compare(X, y, [Failing(KeyError)], cv=2)
    assert isinstance(caught.value.__cause__, KeyError)


def test_interrupts_are_not_turned_into_failures():
    X, y = numbered(12)
    X[:, 1] = -1
    with pytest.raises(KeyboardInterrupt, match="something is wrong"):
        compare(X, y, [Failing(KeyboardInterrupt)], cv=2)


def test_a_bad_matrix_is_named_by_its_row_in_the_data(matrices):
    X, y = matrices[0].copy(), matrices[1]
    X[17] = -X[17]
    splits = [(np.arange(10, 48), np.arange(10))]
    with pytest.raises(ValueError, match=r"failed in fold 0: X\[7\] is not positive definite.*X\[17\] of the data"):
        compare(X, y, [RiemannianLVQ()], cv=splits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimators": {}}, "estimators is empty"),
        ({"estimators": Recorder()}, "estimators must be a mapping"),
        ({"estimators": {"a": Recorder}}, r"estimators\['a'\]=.*is a class, pass an instance"),
        ({"estimators": [3]}, r"estimators\['int'\]=3 is not a classifier: it lacks fit, predict"),
        ({"estimators": {1: Recorder()}}, "names must be strings"),
        ({"estimators": ["manhattan"]}, r"estimators\[0\]='manhattan' is no metric: .* not known; choose from"),
        ({"estimators": None, "metrics": ["riemann", "manhattan"]}, r"metrics\[1\]: metric='manhattan' is not known"),
        ({"estimators": {"a": RiemannianLVQ("no")}, "cv": 2}, "'a' failed in fold 0: metric='no' is not known"),
        ({"metrics": ["riemann"]}, "either estimators or metrics"),
        ({"test": "sign"}, "test must be 'corrected_t' or 'wilcoxon', got 'sign'"),
        ({"repeats": 0}, "repeats must be an integer of at least 1, got 0"),
        ({"cv": [(range(24), range(2))], "repeats": 2}, "repeats=2 needs a number of folds as cv"),
        ({"groups": np.arange(24) % 2, "cv": 3}, "cv=3 folds need as many groups, but groups has 2"),
        ({"scoring": "acuracy"}, "scoring='acuracy' is neither"),
        ({"scoring": []}, "scoring is empty"),
        ({"scoring": ["kappa", "kappa"]}, "same name twice"),
        ({"scoring": [3]}, "scoring=3 is neither a name nor a callable"),
        ({"scoring": accuracy_score}, "looks like it is a metric function"),
        ({"cv": 1}, "cv must be at least 2 folds"),
        ({"cv": True}, "cv must be at least 2 folds"),
        ({"cv": "5"}, "cv must be a number of folds"),
        ({"cv": 2.5}, "cv must be a number of folds"),
        ({"cv": []}, "cv gives no fold"),
        ({"cv": [(range(24), [])]}, "cv gives 24 training and 0 test samples in fold 0"),
        ({"cv": 9}, "n_splits=9 cannot be greater"),
        ({"y": np.arange(23) % 3}, "y has 23 labels for 24 samples of X"),
        ({"y": None}, "y must have shape"),
        ({"y": np.linspace(0, 1, 24)}, "continuous"),
    ],
)
def test_wrong_arguments_are_named(arguments, message, log):
    X, y = numbered()
    with pytest.raises(ValueError, match=message):
        compare(**{"X": X, "y": y, "estimators": [Recorder()]} | arguments)
    assert not log  # nothing was trained


def test_random_splitters_are_asked_once(log):
    X, y = numbered()
    splitter = ShuffleSplit(3, random_state=np.random.RandomState(0))  # every call of split gives other folds
    compare(X, y, {"a": Recorder("a"), "b": Recorder("b")}, cv=splitter, scoring="accuracy")
    rows = {name: [part for who, what, _, part in log if (who, what) == (name, "fit")] for name in "ab"}
    assert rows["a"] == rows["b"]
