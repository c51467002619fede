"""Metadata routing: what a part of a pipeline requests reaches it through every object of the library around it."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from rplvq import RejectOption, RiemannianLVQ, SPDProjection, compare
from rplvq.datasets import make_syn1
from rplvq.inspection import calibrate_sigma2
from rplvq.preprocessing import Recenter

PLAIN, Y = make_syn1(n_per_class=15, random_state=0)
SESSIONS = np.arange(len(Y)) % 3
X = PLAIN * np.array([1e-2, 1.0, 1e2])[SESSIONS, None, None]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def model(**settings):
    return RiemannianLVQ(**({"sigma2": 1.0, "max_epochs": 2, "random_state": 0} | settings))


def pipeline():
    return make_pipeline(Recenter().set_fit_request(groups=True).set_transform_request(groups=True), model())


def scores(estimator):
    return cross_val_score(estimator, X, Y, params={"groups": SESSIONS}, error_score="raise")


def test_an_option_that_rejects_nothing_scores_as_what_it_wraps(routing):
    plain = pipeline()
    wanted = scores(plain)
    option = RejectOption(plain, threshold=-1.0, criterion="posterior")
    assert_array_equal(scores(option), wanted)
    assert_array_equal(scores(RejectOption(option, threshold=-1.0, criterion="posterior")), wanted)
    by_distance = RejectOption(PrototypesOfLast(plain.steps), threshold=-1.0, criterion="relative_distance")
    assert_array_equal(scores(by_distance), wanted)
    without_groups = cross_val_score(make_pipeline(Recenter(), model()), X, Y)
    assert wanted.mean() > without_groups.mean() + 0.2


class PrototypesOfLast(Pipeline):
    """A pipeline that shows the labels of the prototypes of its last step."""

    @property
    def prototype_labels_(self):
        return self.steps[-1][1].prototype_labels_


@pytest.mark.parametrize("as_given", [np.asarray, list], ids=["array", "list"])
def test_folds_take_their_part_of_the_groups(routing, as_given):
    option = RejectOption(pipeline(), coverage=0.7, criterion="posterior").fit(X, Y, groups=as_given(SESSIONS))
    centered = Recenter().fit_transform(X, groups=SESSIONS)
    labels = option.predict(X, groups=as_given(SESSIONS))
    assert_array_equal(option.predict_proba(X, groups=SESSIONS).max(axis=1), option.certainty(X, groups=SESSIONS))
    assert_allclose(option.predict_proba(X, groups=SESSIONS), model().fit(centered, Y).predict_proba(centered))
    typical, held_out = typical_odds(option.predict_proba(X, groups=SESSIONS)), []
    for session in range(3):  # fewer groups than folds
        test = session == SESSIONS
        train = ~test
        recenter = Recenter().fit(X[train], groups=SESSIONS[train])
        fitted = model().fit(seen := recenter.transform(X[train], groups=SESSIONS[train]), Y[train])
        factor = (typical / typical_odds(fitted.predict_proba(seen))) ** 0.7
        shares = fitted.predict_proba(recenter.transform(X[test], groups=SESSIONS[test])).max(axis=1)
        held_out.append(1 / (1 + 3 * ((1 - shares) / shares / 3) ** factor))
    assert_allclose(option.threshold_, np.sort(np.concatenate(held_out))[17])
    assert option.score(X, Y, groups=SESSIONS) == np.mean(labels == Y)
    with pytest.raises(ValueError, match="groups is None, but fit was given groups"):
        option.predict(X)


def typical_odds(proba):
    """The 0.2 quantile of the log-odds above those of a guess among four classes."""
    shares = proba.max(axis=1)
    return np.sort(np.log(3 * shares / (1 - shares)))[int(np.ceil(0.2 * len(shares))) - 1]


def test_what_nobody_requests_is_refused(routing):
    with pytest.raises(TypeError, match=r"fit got unexpected argument\(s\) \{'sessions'\}"):
        RejectOption(pipeline(), coverage=0.7).fit(X, Y, sessions=SESSIONS)
    unset = make_pipeline(Recenter().set_fit_request(groups=None).set_transform_request(groups=None), model())
    with pytest.raises(UnsetMetadataPassedError, match="groups"):
        RejectOption(unset, coverage=0.7).fit(X, Y, groups=SESSIONS)
    with pytest.raises(ValueError, match=r"estimator 'Pipeline' failed in fold 0: .*groups.* not explicitly set"):
        compare(X, Y, [unset], groups=SESSIONS, cv=3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_compare_passes_groups_to_those_that_request_them(routing, n_jobs):
    splits = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    settings = {"cv": splits, "scoring": ("accuracy", "kappa", "roc_auc_ovr", own_score)}
    models = {"moved": pipeline(), "rejected": RejectOption(pipeline(), threshold=0.0), "plain": model()}
    found = compare(X, Y, models, groups=SESSIONS, n_jobs=n_jobs, **settings)
    assert found.scores[0, 0].mean() > compare(X, Y, {"plain": model()}, **settings).scores[0, 0].mean() + 0.2
    assert_array_equal(found.scores[2], compare(X, Y, {"plain": model()}, **settings).scores[0])
    assert_array_equal(found.scores[0], found.scores[1])
    for f, (train, test) in enumerate(splits):
        recenter = Recenter().fit(X[train], groups=SESSIONS[train])
        fitted = model().fit(recenter.transform(X[train], groups=SESSIONS[train]), Y[train])
        wanted = fitted.score(recenter.transform(X[test], groups=SESSIONS[test]), Y[test])
        assert_allclose([found.scores[0, 0, f], found.scores[0, 3, f]], wanted)


def own_score(estimator, X, y):
    return estimator.score(X, y)


def test_groups_that_no_estimator_requests_only_split(routing):
    settings = {"groups": SESSIONS, "cv": LeaveOneGroupOut()}
    with sklearn.config_context(enable_metadata_routing=False):
        plain = compare(X, Y, [model()], **settings)
    assert_array_equal(compare(X, Y, [model()], **settings).scores, plain.scores)


@pytest.mark.parametrize(
    ("backend", "verbose"), [("loky", 1), ("threading", 0), ("multiprocessing", 0), ("sequential", 1)]
)
def test_compare_works_under_every_backend(backend, verbose):
    settings = {"estimators": [model()], "cv": 2, "random_state": 0}
    with joblib.parallel_backend(backend):
        found = compare(X, Y, n_jobs=2, verbose=verbose, **settings)
    assert_array_equal(found.scores, compare(X, Y, **settings).scores)


# --- sample weights


def weights():
    return np.where(Y < 2, 3.0, 1.0)


@pytest.mark.parametrize("enabled", [False, True], ids=["plain", "routed"])
@pytest.mark.parametrize("limit", [{"threshold": 0.5}, {"coverage": 0.8}], ids=["threshold", "coverage"])
def test_weights_reach_the_estimator_and_its_folds(enabled, limit):
    with sklearn.config_context(enable_metadata_routing=enabled):
        estimator = Weighed().set_fit_request(sample_weight=True) if enabled else Weighed()
        option = RejectOption(estimator, **limit).fit(X, Y, sample_weight=weights())
    assert option.estimator_.weights_ == weights().tolist()
    if "coverage" in limit:
        assert sorted(map(len, Weighed.folds[-6:])) == [48] * 5 + [60]
    plain = RejectOption(model(), threshold=0.5).fit(X, Y, sample_weight=weights())
    assert_array_equal(plain.estimator_.prototypes_, model().fit(X, Y, weights()).prototypes_)


class Weighed(ClassifierMixin, BaseEstimator):
    """Notes the weights that it is trained with, which belong to the first matrices of X."""

    folds: list[list[float]] = []  # noqa: RUF012

    def fit(self, X, y, sample_weight):
        assert_array_equal(sample_weight, np.where(y < 2, 3.0, 1.0))
        self.weights_, self.classes_ = sample_weight.tolist(), np.unique(y)
        self.folds.append(self.weights_)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_weights_that_the_estimator_does_not_take_are_refused():
    class NoWeights(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
        RejectOption(NoWeights(), threshold=0.5).fit(X[:, 0], Y, sample_weight=weights())
    with pytest.raises((TypeError, ValueError), match="sample_weight"):
        SPDProjection().fit(X, Y, sample_weight=weights())


@pytest.mark.filterwarnings("ignore:training raised")  # two channels of three, in two epochs
def test_the_classifier_of_a_projection_gets_what_it_requests(routing):
    settings = {"n_components": 2, "n_alternations": 1, "max_iter": 2}
    weighed = SPDProjection(classifier=model().set_fit_request(sample_weight=True), **settings)
    weighed.fit(PLAIN, Y, sample_weight=weights())
    plain = SPDProjection(classifier=model(), **settings).fit(PLAIN, Y)
    assert abs(weighed.prototypes_ - plain.prototypes_).max() > 1e-6
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        SPDProjection(classifier=model(), **settings).fit(PLAIN, Y, sample_weight=weights())
    piped = make_pipeline(weighed, model().set_fit_request(sample_weight=True)).fit(PLAIN, Y, sample_weight=weights())
    assert_array_equal(piped[0].prototypes_, weighed.prototypes_)


def test_a_pipeline_has_no_variance_to_calibrate():
    fitted = make_pipeline(Recenter(), model()).fit(X, Y)
    with pytest.raises(ValueError, match="Pipeline has no sigma2_: pass the RiemannianLVQ in it"):
        calibrate_sigma2(fitted, X, Y)
    assert calibrate_sigma2(fitted[-1], fitted[:-1].transform(X), Y).sigma2_ > 0
