"""Recenter, Rescale and Rotate together: in pipelines, in cross-validation with groups routed, and without leaks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from rplvq import Recenter, Rescale, RiemannianLVQ, Rotate
from rplvq.arrays import powm
from tests.problems import spd_classes

KINDS = [pytest.param(dtype, id=dtype.__name__) for dtype in (float, complex)]
MODES = [pytest.param(online, id="online" if online else "transductive") for online in (False, True)]


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def subjects(dtype=float, unit=1.0, per_class=10):
    """Three subjects, each in another place, with another spread and turned by another matrix."""
    rng = np.random.default_rng(0)
    X, y = spd_classes(0, per_class, 4, 3, dtype=dtype)
    X = Recenter().fit_transform(X)
    parts = []
    for power in (1.0, 1.5, 0.7):
        noise = rng.normal(size=(4, 4)) + (1j * rng.normal(size=(4, 4)) if dtype is complex else 0)
        parts.append(unit * noise @ powm(X, power) @ noise.conj().T)
    X = np.concatenate(parts)
    return 0.5 * (X + X.conj().swapaxes(1, 2)), np.tile(y, 3), np.repeat(["anna", "ben", "new"], 3 * per_class)


def aligned(online=False, prior_weight=1.0):
    steps = Recenter(online=online), Rescale(online=online), Rotate("new", prior_weight=prior_weight)
    return make_pipeline(*steps, RiemannianLVQ(max_epochs=0))


def labelled(y, groups, n=4):
    """The samples in fit: all of the sources, and the first n per class of the target."""
    found = groups != "new"
    for label in np.unique(y):
        found[np.flatnonzero((groups == "new") & (y == label))[:n]] = True
    return found


@pytest.mark.parametrize("unit", [1e-12, 1.0])
@pytest.mark.parametrize("online", MODES)
@pytest.mark.parametrize("dtype", KINDS)
def test_the_pipeline_is_the_steps_by_hand_and_finds_the_target(dtype, online, unit):
    X, y, groups = subjects(dtype, unit)
    train = labelled(y, groups)
    pipeline = pickle.loads(pickle.dumps(clone(aligned(online)).fit(X[train], y[train], groups=groups[train])))
    Z, T = X[train], X[~train]
    for step in (Recenter(online=online), Rescale(online=online), Rotate("new", prior_weight=1.0)):
        Z = step.fit_transform(Z, y[train], groups=groups[train])
        T = step.transform(T, groups=groups[~train])
    by_hand = RiemannianLVQ(max_epochs=0).fit(Z, y[train])
    assert_allclose(pipeline.predict_proba(X[~train], groups=groups[~train]), by_hand.predict_proba(T))
    alone = RiemannianLVQ(max_epochs=0).fit(X[train], y[train]).score(X[~train], y[~train])
    assert pipeline.score(X[~train], y[~train], groups=groups[~train]) > max(0.9, alone)


@pytest.mark.parametrize("online", MODES)
def test_labels_of_test_samples_change_nothing(online):
    X, y, groups = subjects()
    train = labelled(y, groups)

    def outputs(labels):
        """Fit and predict as a user would who has the labels of all samples at hand."""
        steps = aligned(online).fit(X[train], labels[train], groups=groups[train])
        return steps[:-1].transform(X[~train], groups=groups[~train]), steps.predict_proba(X, groups=groups)

    planted = y.copy()
    planted[~train] = np.random.default_rng(1).permutation(y[~train])
    assert (planted != y).any()
    for one, other in zip(outputs(y), outputs(planted), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["wednesday", "new"])
def test_online_a_sample_depends_on_no_later_one(name):
    X, y, groups = subjects()
    train = labelled(y, groups)
    steps = make_pipeline(Recenter(online=True), Rescale(online=True))
    steps.fit(X[train], y[train], groups=groups[train])
    T, days = X[~train], np.full((~train).sum(), name)
    whole = steps.transform(T, groups=days)
    for t in (1, 5, len(T) - 1):
        later = T.copy()
        later[t:] = 9.0 * powm(T[t:], 0.5)
        assert_array_equal(steps.transform(later, groups=days)[:t], whole[:t])
        assert_array_equal(steps.transform(T[:t], groups=days[:t]), whole[:t])


@pytest.mark.skipif(sklearn.__version__.startswith(("1.6", "1.7")), reason="scikit-learn 1.8 hands groups to scorers")
@pytest.mark.parametrize("online", MODES)
def test_cross_validation_and_search_over_the_samples_of_the_target(online):
    X, y, groups = subjects(complex)
    target = np.flatnonzero(groups == "new")
    folds = [
        (np.concatenate([np.flatnonzero(groups != "new"), target[train]]), target[test])
        for train, test in StratifiedKFold(3).split(target, y[target])
    ]
    scores = cross_val_score(aligned(online), X, y, cv=folds, params={"groups": groups})
    assert scores.mean() > 0.9
    search = GridSearchCV(aligned(online), {"rotate__prior_weight": [1.0, 1e9]}, cv=folds).fit(X, y, groups=groups)
    assert search.best_params_ == {"rotate__prior_weight": 1.0}
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0.3


def test_a_target_that_fit_did_not_meet_is_an_error():
    X, y, groups = subjects()
    train = groups != "new"
    with pytest.raises(ValueError, match="target 'new' is not among the groups"):
        aligned().fit(X[train], y[train], groups=groups[train])


@pytest.mark.parametrize("step", [Recenter(), Recenter(online=True), Rescale(online=True), Rotate("a")])
def test_they_are_transformers_of_scikit_learn(step):
    assert clone(step).get_params() == step.get_params()
    tags = step.__sklearn_tags__().input_tags
    assert (tags.two_d_array, tags.three_d_array) == (False, True)
    X, y = spd_classes(0, 6, 3, 2)
    X, groups = Recenter().fit_transform(X), np.tile(["a", "b"], 6)
    fitted = clone(step).fit(X, y, groups=groups)
    assert fitted.n_features_in_ == 3
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.transform(X, groups=groups), fitted.transform(X, groups=groups))
    X.flags.writeable = False
    assert_array_equal(clone(step).fit_transform(X, y, groups=groups), fitted.transform(X, groups=groups))
