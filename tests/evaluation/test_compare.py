"""compare: the same folds and seeds for all, whatever the order and the processes; scores, times, errors."""

from __future__ import annotations

import sys
from itertools import chain

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rplvq import PLVQ, AffineInvariant, LogEuclidean, RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.evaluation import baseline_estimators, compare, default_estimators
from rplvq.evaluation._questions import find_questions
from tests.recorders import Recorder, numbered


@pytest.fixture
def log():
    Recorder.log.clear()
    return Recorder.log


@pytest.fixture(scope="module")
def matrices():
    return make_syn1(n_per_class=12, n=4, random_state=0)


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
    models = {
        "guess": DummyClassifier(strategy="uniform"),
        "lvq": RiemannianLVQ(AffineInvariant(compiled=False), max_epochs=1),  # each process would compile anew
        "nn": KNeighborsClassifier(),
    }
    models["nn"] = make_pipeline(FunctionTransformer(flat), models["nn"])
    alone = compare(X, y, models, cv=3, random_state=5)
    turned = compare(X, y, dict(reversed(models.items())), cv=3, random_state=5, n_jobs=2)
    assert turned.names == alone.names[::-1]
    assert_array_equal(turned.scores[::-1], alone.scores)
    assert np.ptp(alone.of("accuracy")[0]) > 0  # guesses differ from fold to fold
    assert not np.array_equal(alone.scores, compare(X, y, models, cv=3, random_state=6).scores)


def test_scores_are_those_of_scikit_learn(matrices):
    X, y = matrices
    model = make_pipeline(RiemannianLVQ(max_epochs=0), LinearDiscriminantAnalysis())  # a pipeline on distances
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
        f"{metric} {kind}" for metric in ("affine_invariant", "log_euclidean") for kind in ("rslvq", "MDM")
    ]
    for name, model in models.items():
        other = model.get_params() | {"metric": None}
        trained = name.endswith("rslvq")
        twin = models["log_euclidean rslvq" if trained else "log_euclidean MDM"].get_params() | {"metric": None}
        assert other == twin
        assert model.metric == name.split()[0]
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


@pytest.mark.parametrize("how", ["metrics", "list", "objects"])
def test_metrics_can_be_named(matrices, how):
    X, y = matrices
    settings = {"cv": 2, "random_state": 0}
    if how == "metrics":
        result = compare(X, y, metrics=["riemann", "logeuclid"], **settings)
    elif how == "list":
        result = compare(X, y, ["riemann", "logeuclid"], **settings)
    else:
        result = compare(X, y, metrics=[AffineInvariant(), LogEuclidean()], **settings)
    wanted = compare(X, y, default_estimators(["affine_invariant", "log_euclidean"]), **settings)
    assert_array_equal(result.scores, wanted.scores)
    short = ("AffineInvariant", "LogEuclidean") if how == "objects" else ("riemann", "logeuclid")
    assert result.names == tuple(f"{metric} {kind}" for metric in short for kind in ("rslvq", "MDM"))
    assert [question.topic for question in result.questions] == ["training", "metric"]


def test_names_of_metrics_and_estimators_may_be_mixed(matrices):
    X, y = matrices
    result = compare(X, y, ["logeuclid", make_pipeline(FunctionTransformer(flat), KNeighborsClassifier())], cv=2)
    assert result.names == ("logeuclid rslvq", "logeuclid MDM", "Pipeline")
    pairs = {question.topic: question.pairs for question in result.questions}
    assert pairs == {"training": (("logeuclid rslvq", "logeuclid MDM"),), "other": (("logeuclid rslvq", "Pipeline"),)}


def test_questions_are_found_in_the_parameters():
    models = {
        "a": RiemannianLVQ("riemann", max_epochs=3),
        "a means": RiemannianLVQ("affine_invariant", max_epochs=0),  # another name of the same metric
        "a twice": RiemannianLVQ("riemann", max_epochs=3, prototypes_per_class=2),
        "b": RiemannianLVQ(LogEuclidean(), max_epochs=5),
        "b plvq": RiemannianLVQ("logeuclid", "plvq"),
    }
    training, metric = find_questions(models)
    assert training == ("training", (("a", "a means"), ("a twice", "a means")))
    assert metric == ("metric", (("a", "b"),))  # the other pairs differ in more than the metric
    assert find_questions({"guess": DummyClassifier(), "nn": KNeighborsClassifier()}) == ()


def test_the_result_says_what_was_run(matrices):
    X, y = matrices
    result = compare(X, y, metrics=["logeuclid"], cv=3, repeats=2, random_state=7)
    assert result.about["samples"] == "48 of shape (4, 4)"
    assert result.about["classes"] == "4 (0: 12, 1: 12, 2: 12, 3: 12)"
    assert result.about["chance"].startswith("accuracy 0.2500 ")
    assert result.about["splits"] == "3 folds stratified by class, in 2 repetitions; 32 training and 16 test samples"
    assert result.about["seed"] == "7"
    for name in ("rplvq 0", "numpy 2", "scipy 1", "scikit-learn 1", "Python 3", "numba "):
        assert name in result.about["versions"]
    assert result.settings[1] == "RiemannianLVQ(max_epochs=0, metric='logeuclid')"
    assert_allclose(result.sigma2[0, 0], result.fold_rows[0]["sigma2"])
    assert (result.sigma2 > 0).all()


def test_sizes_of_many_classes_are_summed_up():
    y = np.repeat(np.arange(40), 2)
    y = np.append(y, [0, 0])
    about = compare(np.ones((82, 2)), y, [Recorder()], cv=2).about
    assert about["classes"] == "40 (of 2 to 4 samples)"
    assert about["chance"].startswith("accuracy 0.0488 ")


def test_numba_is_said_to_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    X, y = numbered()
    assert "numba not installed" in compare(X, y, [Recorder()], cv=2).about["versions"]


def test_sigma2_is_missing_where_an_estimator_has_none():
    X, y = numbered()
    result = compare(X, y, [Recorder()], cv=2)
    assert np.isnan(result.sigma2).all()
    assert "nan" not in str(result)


def test_repeats_divide_anew(log):
    X, y = numbered()
    compare(X, y, [Recorder()], cv=3, repeats=2, scoring="accuracy", random_state=0)
    asked = [rows for _, what, _, rows in log if what == "predict"][::2]
    assert len(asked) == 6
    assert sorted(chain(*asked[:3])) == sorted(chain(*asked[3:])) == list(range(24))
    assert sorted(asked[:3]) != sorted(asked[3:])


def test_blas_uses_one_thread(matrices):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    seen = []

    class Looking(Recorder):
        def note(self, what, X):
            seen.extend(pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas")

    before = threadpoolctl.threadpool_info()
    compare(*numbered(), [Looking()], cv=2)
    assert seen
    assert set(seen) == {1}
    assert threadpoolctl.threadpool_info() == before


def test_baselines_score_as_pyriemann_itself(matrices):
    classification = pytest.importorskip("pyriemann.classification")
    tangentspace = pytest.importorskip("pyriemann.tangentspace")
    X, y = matrices
    splitter = StratifiedKFold(3, shuffle=True, random_state=1)
    models = baseline_estimators(["mdm", "tangent_space"])
    result = compare(X, y, models | default_estimators(["riemann"], max_epochs=1), cv=splitter)
    own = make_pipeline(tangentspace.TangentSpace("riemann"), LogisticRegression(max_iter=1000))
    assert_array_equal(result.of("accuracy")[0], cross_val_score(classification.MDM("riemann"), X, y, cv=splitter))
    assert_array_equal(result.of("accuracy")[1], cross_val_score(own, X, y, cv=splitter))
    assert [question.topic for question in result.questions] == ["training", "other"]


def test_baselines_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyriemann.classification", None)
    with pytest.raises(
        ImportError, match=r"the baselines 'mdm' need pyRiemann: pip install \"\.\[paper\]\" in the folder"
    ):
        baseline_estimators(["mdm"])
    with pytest.raises(ValueError, match="baselines must be of mdm, tangent_space, got 'lda'"):
        baseline_estimators(["mdm", "lda"])


def test_progress_goes_to_standard_error(capsys):
    X, y = numbered()
    compare(X, y, [Recorder(), Recorder()], cv=3, verbose=1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "0/6" in captured.err
    compare(X, y, [Recorder()], cv=2)
    assert capsys.readouterr() == ("", "")
