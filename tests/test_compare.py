"""compare: the same folds and seeds for all, whatever the order and the processes; scores, times, errors."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, cohen_kappa_score
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rplvq import PLVQ, AffineInvariant, LogEuclidean, RiemannianLVQ
from rplvq.compare import compare, default_estimators
from rplvq.datasets import make_syn1


class Recorder(ClassifierMixin, BaseEstimator):
    """Notes the rows that it is trained and asked on, which are in the first column of X."""

    log: ClassVar[list[tuple[str, str, object, list[int]]]] = []

    def __init__(self, name="", random_state=None):
        self.name, self.random_state = name, random_state

    def note(self, what, X):
        self.log.append((self.name, what, self.random_state, X[:, 0].tolist()))

    def fit(self, X, y):
        self.note("fit", X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        self.note("predict", X)
        return np.full(len(X), self.classes_[0])


class Failing(Recorder):
    """Raises an error when it meets a row that is negative in the second column."""

    def __init__(self, error=ValueError, during="fit", name="", random_state=None):
        super().__init__(name, random_state)
        self.error, self.during = error, during

    def note(self, what, X):
        if what == self.during and (X[:, 1] < 0).any():
            raise self.error("something is wrong")


@pytest.fixture
def log():
    Recorder.log.clear()
    return Recorder.log


@pytest.fixture(scope="module")
def matrices():
    return make_syn1(n_per_class=12, n=4, random_state=0)


def numbered(n=24, n_classes=3):
    """X whose first column is the row, and balanced labels."""
    return np.column_stack([np.arange(n), np.ones(n)]), np.arange(n) % n_classes


def flat(X):
    return X.reshape(len(X), -1)


def test_all_estimators_see_the_same_folds(log):
    X, y = numbered()
    compare(X, y, {name: Recorder(name) for name in "abc"}, cv=4, random_state=0)
    for what in ("fit", "predict"):
        seen = {name: [rows for who, done, _, rows in log if (who, done) == (name, what)] for name in "abc"}
        assert seen["a"] == seen["b"] == seen["c"]
    fitted = [set(rows) for who, done, _, rows in log if (who, done) == ("a", "fit")]
    asked = [set(rows) for who, done, _, rows in log if (who, done) == ("a", "predict")]
    assert len(fitted) == 4
    assert set().union(*asked) == set(range(24))
    assert all(train.isdisjoint(test) for train, test in zip(fitted, asked[::2], strict=True))  # predict is timed apart


def test_scorers_share_one_prediction(log):
    X, y = numbered()
    compare(X, y, [Recorder()], cv=2, scoring=["accuracy", "kappa", "balanced_accuracy", "f1_macro"])
    assert [what for _, what, _, _ in log] == ["fit", "predict", "predict"] * 2


def test_a_fold_gives_all_estimators_its_seed(log):
    X, y = numbered()
    nested = make_pipeline(FunctionTransformer(), Recorder("nested", random_state=7))
    compare(X, y, {"plain": Recorder("plain"), "nested": nested}, cv=5, random_state=3)
    seeds = {name: [seed for who, what, seed, _ in log if (who, what) == (name, "fit")] for name in ("plain", "nested")}
    assert seeds["plain"] == seeds["nested"]
    assert len(set(seeds["plain"])) == 5
    assert nested[-1].random_state == 7  # the user's own is a clone's source only


def test_without_a_seed_the_estimators_keep_their_own(log):
    X, y = numbered()
    compare(X, y, [Recorder(random_state=7)], cv=2)
    assert {seed for _, _, seed, _ in log} == {7}


def test_results_depend_neither_on_order_nor_on_processes(matrices):
    X, y = matrices
    models = {"guess": DummyClassifier(strategy="uniform"), "lvq": RiemannianLVQ(max_epochs=1), "nn": KNeighborsClassifier()}
    models["nn"] = make_pipeline(FunctionTransformer(flat), models["nn"])
    alone = compare(X, y, models, cv=3, random_state=5)
    turned = compare(X, y, dict(reversed(models.items())), cv=3, random_state=5, n_jobs=2)
    assert turned.names == alone.names[::-1]
    assert_array_equal(turned.scores[::-1], alone.scores)
    assert np.ptp(alone.of("accuracy")[0]) > 0  # guesses differ from fold to fold
    assert not np.array_equal(alone.scores, compare(X, y, models, cv=3, random_state=6).scores)


def test_scores_are_those_of_scikit_learn(matrices):
    X, y = matrices
    model = make_pipeline(RiemannianLVQ(max_epochs=0), LogisticRegression())  # a pipeline on distances
    splitter = StratifiedKFold(4, shuffle=True, random_state=1)
    result = compare(X, y, {"pipe": model}, cv=splitter, scoring=("accuracy", "kappa", "neg_log_loss"))
    assert_allclose(result.of("accuracy")[0], cross_val_score(model, X, y, cv=splitter))
    assert_allclose(result.of("neg_log_loss")[0], cross_val_score(model, X, y, cv=splitter, scoring="neg_log_loss"))
    predicted = [model.fit(X[a], y[a]).predict(X[b]) for a, b in splitter.split(X, y)]
    kappas = [cohen_kappa_score(y[b], p) for (_, b), p in zip(splitter.split(X, y), predicted, strict=True)]
    assert_allclose(result.of("kappa")[0], kappas)
    assert result.folds == tuple((len(a), len(b)) for a, b in splitter.split(X, y))


def test_seconds_are_those_of_fit_and_of_one_predict(monkeypatch):
    clock = [0.0]

    class Slow(Recorder):
        def note(self, what, X):
            clock[0] += {"fit": 5.0, "predict": 2.0}[what]

    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    X, y = numbered()
    result = compare(X, y, [Slow()], cv=3)
    assert_array_equal(result.fit_seconds, [[5.0] * 3])
    assert_array_equal(result.predict_seconds, [[2.0] * 3])


def test_real_seconds_are_positive(matrices):
    result = compare(*matrices, default_estimators(["log_euclidean"], max_epochs=1), cv=2)
    assert (result.fit_seconds > 0).all()
    assert (result.predict_seconds > 0).all()


def test_defaults_differ_in_the_metric_only():
    models = default_estimators(prototypes_per_class=2, max_epochs=7, sigma2=0.5, random_state=4)
    assert list(models) == [
        f"{metric} {kind}" for metric in ("affine_invariant", "log_euclidean", "euclidean") for kind in ("rslvq", "MDM")
    ]
    for name, model in models.items():
        other = model.get_params() | {"manifold": None}
        trained = name.endswith("rslvq")
        twin = models["euclidean rslvq" if trained else "euclidean MDM"].get_params() | {"manifold": None}
        assert other == twin
        assert model.manifold == name.split()[0]
        assert (model.max_epochs, model.prototypes_per_class) == ((7, 2) if trained else (0, 1))


def test_defaults_take_several_costs_and_objects():
    models = default_estimators([LogEuclidean(), AffineInvariant(max_step_length=1.0)], ["rslvq", PLVQ()])
    assert list(models)[:4] == ["LogEuclidean rslvq", "LogEuclidean PLVQ", "LogEuclidean MDM", "AffineInvariant rslvq"]
    twice = default_estimators([AffineInvariant(), AffineInvariant(max_step_length=1.0)], [])
    assert list(twice) == ["AffineInvariant MDM 1", "AffineInvariant MDM 2"]


def test_compare_without_estimators_compares_the_defaults(matrices):
    X, y = matrices
    result = compare(X, y, cv=2, random_state=0)
    assert result.names == tuple(default_estimators())
    assert result.metrics == ("accuracy", "kappa")
    assert (result.of("accuracy").mean(axis=1) > 0.5).all()  # chance is 0.25


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
    compare(X, y, [Recorder()], cv=iter([(mask, ~mask), ([0, 1, 2], [11, 10])]))
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
    assert_array_equal(compare(X[:, :1].tolist(), y[:, None], [KNeighborsClassifier(1)], cv=3, random_state=0).scores, plain.scores)


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


def test_progress_goes_to_standard_error(capsys):
    X, y = numbered()
    compare(X, y, [Recorder(), Recorder()], cv=3, verbose=1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "0/6" in captured.err
    compare(X, y, [Recorder()], cv=2)
    assert capsys.readouterr() == ("", "")


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
