"""StreamingPipeline: scikit-learn's Pipeline that also learns batch by batch, all steps or none."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rplvq import Recenter, RiemannianLVQ, SPDProjection
from rplvq.datasets import make_syn1
from rplvq.preprocessing import StreamingPipeline
from tests.problems import vector_classes


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def weighted_lvq(**settings):
    return RiemannianLVQ(max_epochs=3, random_state=0, **settings).set_partial_fit_request(sample_weight=True)


def streaming(*transformers, last=None):
    return StreamingPipeline(make_pipeline(*transformers, weighted_lvq() if last is None else last).steps)


def sessions(gain=4.0):
    """A session with its labels, and batches (X, y, groups) of the next one, in which all samples have another gain."""
    X, y = make_syn1(n_per_class=24, n=4, random_state=0)
    later = [slice(start, start + 6) for start in range(48, 96, 6)]
    return X[:48], y[:48], [(gain * X[rows], y[rows], np.array(["tuesday"] * 6)) for rows in later]


def answers(pipeline, batches):
    """The labels of batches, each before the pipeline learns from it."""
    found = []
    for X, y, groups in batches:
        found.append(pipeline.predict(X, groups=groups))
        pipeline.partial_fit(X, y, groups=groups)
    return np.concatenate(found)


@pytest.mark.parametrize("n_fitted", [48, 0])
def test_it_does_what_the_loop_by_hand_does(n_fitted):
    """Two transformers, one of which learns, with weights and late classes; with a fit before the stream and without.

    Every second sample is of a group that the first call has met.
    """
    X, y, batches = sessions()
    rng = np.random.default_rng(1)
    unweighted = RiemannianLVQ().set_fit_request(sample_weight=False)
    steps = [Recenter(online=True), SPDProjection(3, max_iter=3, classifier=unweighted)]
    pipeline, model = streaming(*map(clone, steps)), weighted_lvq()
    first = X, y, np.array(["monday"] * 48)
    if n_fitted:
        pipeline.fit(X, y)
        model.fit(pipeline[:-1].transform(X), y)
        steps = [pickle.loads(pickle.dumps(step)) for _, step in pipeline.steps[:-1]]
        first = X[:0], y[:0], np.array([])
    recenter, projection = steps
    for index, (X, y, groups) in enumerate([first, *batches]):
        if not len(X):
            continue
        groups = groups.astype("U8")
        groups[1::2] = "monday"
        weights, classes = rng.uniform(0.5, 2.0, len(X)), [0, 1, 2, 3, 4]
        pipeline.partial_fit(X, y, classes=classes, sample_weight=weights, groups=groups)
        if index == 0:
            centered = recenter.fit_transform(X, groups=groups)
            small = projection.fit_transform(centered, y)
        else:
            centered = recenter.transform(X, groups=groups)
            small = projection.transform(centered)
            recenter.partial_fit(X, groups=groups)
        model.partial_fit(small, y, classes=classes, sample_weight=weights)
    found = pipeline.named_steps
    assert_array_equal(found["riemannianlvq"].prototypes_, model.prototypes_)
    assert found["riemannianlvq"].history_["cost"].tolist() == model.history_["cost"].tolist()
    assert_array_equal(found["recenter"].running_["monday"][0], recenter.running_["monday"][0])
    assert_array_equal(found["spdprojection"].components_, projection.components_)
    assert pipeline.classes_.tolist() == classes


def test_it_follows_a_session_with_another_gain():
    X, y, batches = sessions()
    truth = np.concatenate([labels for _, labels, _ in batches])
    following = streaming(Recenter(online=True, prior_weight=1)).fit(X, y)
    staying = streaming(Recenter()).fit(X, y)
    right = np.mean(answers(following, batches) == truth)
    right_staying = np.mean(np.concatenate([staying.predict(X) for X, _, _ in batches]) == truth)
    assert right > right_staying + 0.2
    assert following["recenter"].running_["tuesday"][1] == 48


def test_without_labels_the_transformers_alone_follow_and_the_classifier_stays():
    X, y, batches = sessions()
    pipeline = streaming(Recenter(online=True)).fit(X, y)
    prototypes = pipeline["riemannianlvq"].prototypes_
    for X, _, groups in batches[:3]:
        pipeline[:-1].partial_fit(X, groups=groups)
    assert pipeline["recenter"].running_["tuesday"][1] == 18
    assert_array_equal(pipeline["riemannianlvq"].prototypes_, prototypes)
    X, _, groups = batches[3]
    centered = pipeline["recenter"].transform(X, groups=groups)
    assert_array_equal(pipeline.predict(X, groups=groups), pipeline["riemannianlvq"].predict(centered))


def refused(batch):
    """Changes of a batch (X, y, groups) that a step refuses, with the message."""
    X, y, groups = batch
    broken = X.copy()
    broken[3] = -np.eye(4)
    return [
        ((broken, y, groups), r"X\[3\]"),
        ((X, y[:-1], groups), "y has 5 labels for 6 samples"),
        ((X, np.where(y == y[0], 9, y), groups), r"y\[0\] is 9, which is not among the classes"),
        ((X, y, groups[:-1]), r"groups must have shape \(6,\)"),
        ((X[:, :2, :2], y, groups), "2 features"),
    ]


@pytest.mark.parametrize("fitted", [True, False])
def test_a_batch_that_a_step_refuses_changes_no_step(fitted):
    X, y, batches = sessions()
    pipeline = streaming(Recenter(online=True))
    start = {} if fitted else {"classes": np.unique(y)}
    if fitted:
        pipeline.fit(X, y)
        answers(pipeline, batches[:1])
    before = pickle.dumps(pipeline)
    cases = refused(batches[1])[: None if fitted else -1]
    for (X, labels, groups), message in cases:
        with pytest.raises(ValueError, match=message):
            pipeline.partial_fit(X, labels, groups=groups, **start)
    X, labels, groups = batches[1]
    with pytest.raises(ValueError, match=r"sample_weight\[0\]"):
        pipeline.partial_fit(X, labels, groups=groups, sample_weight=[-1.0] * len(X), **start)
    assert pickle.dumps(pipeline) == before
    if not fitted:
        with pytest.raises(NotFittedError):
            pipeline.predict(X)


def test_a_step_that_is_not_online_refuses_the_batch_and_says_what_to_do():
    X, y, _ = sessions()
    pipeline = streaming(Recenter()).fit(X, y)
    before = pickle.dumps(pipeline)
    with pytest.raises(ValueError, match="partial_fit needs a fit with online=True"):
        pipeline.partial_fit(X[:6], y[:6])
    assert pickle.dumps(pipeline) == before


def test_groups_need_not_be_named_then_all_samples_are_one_group():
    X, y, batches = sessions(gain=1.0)
    pipeline = streaming(Recenter(online=True)).partial_fit(X, y)
    for X, y, _ in batches:
        pipeline.partial_fit(X, y)
    assert pipeline["recenter"].running_[None][1] == 96
    named = streaming(Recenter(online=True)).partial_fit(*batches[0][:2], groups=batches[0][2])
    with pytest.raises(ValueError, match="groups is None, but fit was given groups"):
        named.partial_fit(*batches[1][:2])


def test_a_stream_may_begin_with_one_class():
    X, y, _ = sessions()
    pipeline = streaming(Recenter(online=True))
    for label in range(4):
        rows = y == label
        pipeline.partial_fit(X[rows], y[rows], classes=[0, 1, 2, 3])
    assert pipeline.score(X, y) > 0.5
    assert set(pipeline["riemannianlvq"].prototype_labels_) == {0, 1, 2, 3}


def test_everything_else_is_as_in_a_pipeline():
    X, y, batches = sessions()
    streamed = streaming(Recenter(online=True), "passthrough", last=weighted_lvq()).set_params(
        riemannianlvq__max_epochs=2
    )
    plain = Pipeline(clone(streamed).steps).fit(X, y)
    streamed.fit(X, y)
    X, y, groups = batches[0]
    assert_array_equal(streamed.predict_proba(X, groups=groups), plain.predict_proba(X, groups=groups))
    assert streamed.score(X, y, groups=groups) == plain.score(X, y, groups=groups)
    streamed.partial_fit(X, y, groups=groups)
    copied = pickle.loads(pickle.dumps(streamed))
    for pipeline in (streamed, copied):
        answers(pipeline, batches[1:3])
    X, _, groups = batches[3]
    assert_array_equal(copied.predict_proba(X, groups=groups), streamed.predict_proba(X, groups=groups))
    fresh = clone(streamed)
    assert type(fresh) is StreamingPipeline
    assert fresh.get_params()["riemannianlvq__max_epochs"] == 2
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_partial_fit_exists_if_the_last_step_has_it():
    assert hasattr(streaming(Recenter()), "partial_fit")
    for last in (SVC(), "passthrough", SPDProjection()):
        assert not hasattr(streaming(Recenter(), last=last), "partial_fit")
    assert not hasattr(StreamingPipeline([]), "partial_fit")


def test_transformers_and_classifiers_of_scikit_learn_stream_too():
    X, y = vector_classes(per_class=30)
    pipeline = streaming(StandardScaler(), last=SGDClassifier(random_state=0))
    scaler, model = StandardScaler(), SGDClassifier(random_state=0)
    for rows in (slice(20), slice(20, 40), slice(40, 60)):
        pipeline.partial_fit(X[rows], y[rows], classes=[0, 1])
        scaled = scaler.transform(X[rows]) if rows.start else scaler.fit_transform(X[rows])
        if rows.start:
            scaler.partial_fit(X[rows])
        model.partial_fit(scaled, y[rows], classes=[0, 1])
    assert_array_equal(pipeline["sgdclassifier"].coef_, model.coef_)
    assert_array_equal(pipeline["standardscaler"].mean_, scaler.mean_)
    assert pipeline["standardscaler"].n_samples_seen_ == 60


class Doubled(BaseEstimator):
    """A transformer without state and without fit_transform."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return 2 * X


def test_transformers_need_no_state_and_no_fit_transform():
    X, y, batches = sessions()
    pipeline = streaming(Doubled()).partial_fit(X, y)
    pipeline.partial_fit(*batches[0][:2])
    model = weighted_lvq().partial_fit(2 * X, y).partial_fit(2 * batches[0][0], batches[0][1])
    assert_array_equal(pipeline["riemannianlvq"].prototypes_, model.prototypes_)


def test_metadata_that_nobody_requests_is_refused():
    X, y, batches = sessions()
    pipeline = streaming(Recenter(online=True), last=RiemannianLVQ(max_epochs=1, random_state=0)).fit(X, y)
    X, y, groups = batches[0]
    with pytest.raises(TypeError, match="colour"):
        pipeline.partial_fit(X, y, colour=groups)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        pipeline.partial_fit(X, y, groups=groups, sample_weight=np.ones(len(X)))
    assert pipeline["recenter"].running_ == {}


def test_without_metadata_routing_parameters_reach_the_last_step():
    X, y, batches = sessions()
    later, labels, groups = batches[0]
    weights = np.arange(1.0, 7.0)
    with sklearn.config_context(enable_metadata_routing=False):
        pipeline = streaming(Recenter(online=True), last=RiemannianLVQ(max_epochs=3, random_state=0)).fit(X, y)
        model = RiemannianLVQ(max_epochs=3, random_state=0).fit(pipeline[:-1].transform(X), y)
        model.partial_fit(pipeline[:-1].transform(later), labels, sample_weight=weights)
        pipeline.partial_fit(later, labels, riemannianlvq__sample_weight=weights)
        for name in ("groups", "recenter__groups", "riemannianlvq"):
            with pytest.raises(ValueError, match=rf"'{name}'.*enable_metadata_routing=True"):
                pipeline.partial_fit(later, labels, **{name: groups})
    assert_array_equal(pipeline["riemannianlvq"].prototypes_, model.prototypes_)
    assert pipeline["recenter"].running_[None][1] == 54
