"""TransferClassifier: own samples, other domains, samples without labels, and what none of them may tell."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from rplvq import Recenter, RejectOption, RiemannianLVQ, TransferClassifier
from rplvq.datasets import make_syn1

FITS = []


class Recorder(ClassifierMixin, BaseEstimator):
    """Logistic regression that notes what each fit is given."""

    def fit(self, X, y, sample_weight=None):
        FITS.append((X.copy(), y.copy(), None if sample_weight is None else sample_weight.copy()))
        self.model_ = LogisticRegression(C=10.0).fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def blobs(rng, shift=0.0, n=40):
    """Two classes of vectors (n, 2) in turns, moved along the second axis."""
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + np.where(y == 1, 1.0, -1.0)[:, None]
    return X + np.array([0.0, shift]), y


@pytest.fixture
def domains():
    """Two good sources, one whose labels are swapped, and a target; vectors, labels and names."""
    rng, parts = np.random.default_rng(0), {}
    for name in ("anna", "ben", "swapped", "target"):
        X, y = blobs(rng, n=12 if name == "target" else 40)
        parts[name] = X, 1 - y if name == "swapped" else y
    groups = np.repeat(list(parts), [len(y) for _, y in parts.values()])
    return np.concatenate([X for X, _ in parts.values()]), np.concatenate([y for _, y in parts.values()]), groups


@pytest.fixture(scope="module")
def subjects():
    """Covariances of three subjects with different gains, re-centred, and which samples of "carla" are labelled."""
    X, y = make_syn1(n_per_class=30, random_state=0)
    subject = np.tile(["anna", "ben", "carla"], len(X) // 3)
    X[subject == "ben"] *= 4.0
    return Recenter().fit_transform(X, groups=subject), y, subject, np.arange(len(X)) % 30 < 6


def lvq(**settings):
    return RiemannianLVQ(max_epochs=2, random_state=0, **settings)


# --- the weights of other domains


def test_sources_count_as_many_own_samples_as_asked_for(domains):
    X, y, groups = domains
    FITS.clear()
    model = TransferClassifier(Recorder(), target="target", weights=(7.5,)).fit(X, y, groups)
    fitted, labels, weights = FITS[-1]
    n_own = np.count_nonzero(groups == "target")
    assert_array_equal(weights[:n_own], 1.0)
    assert_allclose(weights[n_own:].sum(), 7.5 * 2)
    assert model.source_weights_["swapped"] == 0
    assert_allclose(np.mean(list(model.source_weights_.values())), 1.0)
    used = np.isin(groups, ["anna", "ben"])
    assert_array_equal(fitted[n_own:], X[used])  # the swapped domain takes part in no way
    assert_array_equal(labels[n_own:], y[used])
    by_domain = [weights[n_own:][groups[used] == name].mean() for name in ("anna", "ben")]
    assert_allclose(by_domain[0] / by_domain[1], model.source_weights_["anna"] / model.source_weights_["ben"])


def test_other_domains_help_where_own_samples_are_few(subjects):
    X, y, subject, first = subjects
    rng, noise = np.random.default_rng(0), make_syn1(n_per_class=30, random_state=1)[0]
    X = X + 0.3 * noise / np.trace(noise, axis1=1, axis2=2)[:, None, None] * X.shape[1]
    own = np.flatnonzero((subject == "carla") & first)
    few = np.concatenate([rng.permutation(own[y[own] == label])[:1] for label in np.unique(y)])
    fit, test = np.union1d(few, np.flatnonzero(subject != "carla")), np.flatnonzero((subject == "carla") & ~first)
    scores = []
    for weights in ((0.0,), (15.0,)):
        model = TransferClassifier(lvq(), target="carla", weights=weights).fit(X[fit], y[fit], subject[fit])
        assert model.weight_ == weights[0]
        scores.append(model.score(X[test], y[test]))
    assert scores[1] > scores[0] + 0.05


def test_domains_that_do_not_beat_guessing_leave_own_samples_alone(domains):
    X, y, groups = domains
    bad = np.isin(groups, ["swapped", "target"])
    model = TransferClassifier(Recorder(), target="target").fit(X[bad], y[bad], groups[bad])
    assert model.weight_ == 0
    assert model.source_weights_ == {"swapped": 0.0}
    own = groups == "target"
    assert_allclose(model.predict_proba(X), Recorder().fit(X[own], y[own]).predict_proba(X))


def test_held_out_samples_prefer_own_ones_to_a_misleading_domain():
    rng = np.random.default_rng(0)
    X, y = blobs(rng, n=200)
    other, labels = X + 0.8, y.copy()  # right about many, and wrong about those of the border
    labels[(other.sum(axis=1) < 3.0)] = 0
    groups = np.repeat(["target", "other"], 200)
    model = TransferClassifier(LogisticRegression(), target="target", weights=(1000.0, 0.0))
    model.fit(np.concatenate([X, other]), np.concatenate([y, labels]), groups)
    assert model.source_weights_["other"] > 0
    assert model.weight_ == 0
    trials = model.trials_
    assert_array_equal(trials["weight"], [1000.0, 0.0])
    assert_array_equal(trials["chosen"], [False, True])
    assert trials["loss"][1] < trials["loss"][0] - 2 * trials["margin"][1]
    assert trials["margin"][0] == 0


def test_without_clear_evidence_the_first_weight_is_taken(domains):
    X, y, groups = domains
    model = TransferClassifier(Recorder(), target="target", weights=(15.0, 14.0, 0.0)).fit(X, y, groups)
    assert model.weight_ == 15.0
    assert_array_equal(model.trials_["chosen"], [True, False, False])


@pytest.mark.parametrize("target", [None, "target"])
def test_without_own_labels_it_is_the_plain_fit(domains, target):
    X, y, groups = domains
    rows = groups != "target" if target is None else slice(None)
    FITS.clear()
    model = TransferClassifier(Recorder(), target=target, unlabeled=-1)
    model.fit(X[rows], np.where(groups == "target", -1, y)[rows], groups[rows])
    assert model.weight_ == np.inf
    assert_array_equal(FITS[0][0], X[groups != "target"])
    assert FITS[0][2] is None
    assert len(FITS) == (1 if target is None else 4)  # three more with samples without labels
    assert all(len(column) == 0 for column in model.trials_.values())


def test_a_target_alone_is_the_plain_fit(domains):
    X, y, groups = domains
    own = groups == "target"
    model = TransferClassifier(Recorder(), target="target").fit(X[own], y[own], groups[own])
    assert (model.weight_, model.source_weights_) == (0.0, {})
    assert_allclose(model.predict_proba(X), Recorder().fit(X[own], y[own]).predict_proba(X))


def test_a_class_without_own_samples_comes_from_the_sources(domains):
    X, y, groups = domains
    kept = (groups != "target") | (y == 0)
    model = TransferClassifier(Recorder(), target="target").fit(X[kept], y[kept], groups[kept])
    assert model.weight_ == 15.0
    assert min(model.source_weights_.values()) > 0
    assert_array_equal(np.unique(model.predict(X)), [0, 1])


def test_one_own_sample_per_class_decides_nothing(domains):
    X, y, groups = domains
    kept = (groups != "target") | (np.cumsum(groups == "target") <= 2)
    model = TransferClassifier(Recorder(), target="target").fit(X[kept], y[kept], groups[kept])
    assert model.weight_ == 15.0
    assert len(model.trials_["loss"]) == 0


# --- nothing leaks


def test_labels_of_a_held_out_fold_reach_no_fit_that_it_judges(domains):
    X, y, groups = domains
    own = np.flatnonzero(groups == "target")
    folds = list(StratifiedKFold(5).split(y[own], y[own]))
    kept, held = folds[-1]
    assert_array_equal(y[own[held]], [0, 1])
    conflicting = y.copy()
    conflicting[own[held]] = [1, 0]  # neighbours of equally frequent classes, so that the folds stay
    for one, other in zip(folds, StratifiedKFold(5).split(y[own], conflicting[own]), strict=True):
        assert_array_equal(one[1], other[1])
    seen = []
    for labels in (y, conflicting):
        FITS.clear()
        TransferClassifier(Recorder(), target="target").fit(X, labels, groups)
        seen.append([*FITS])
    n_sources, n_candidates = 3, 2
    judged = slice(n_sources + 4 * n_candidates, n_sources + 5 * n_candidates)
    for one, other in zip(seen[0][judged], seen[1][judged], strict=True):
        for a, b in zip(one, other, strict=True):
            assert_array_equal(a, b)
    for fitted, _, _ in seen[0][:n_sources]:
        assert not (fitted[:, None] == X[own]).all(axis=2).any()
    for fitted, _, _ in seen[0][judged]:
        same = (fitted[:, None] == X[own]).all(axis=2).any(axis=0)
        assert_array_equal(np.flatnonzero(same), kept)
    # The labels of the fold do tell in the end, when they train.
    assert not np.array_equal(seen[0][-1][1], seen[1][-1][1])


def test_prediction_changes_nothing_and_depends_on_the_sample_alone(subjects):
    X, y, subject, first = subjects
    fit, test = (subject != "carla") | first, (subject == "carla") & ~first
    model = TransferClassifier(lvq(), target="carla").fit(X[fit], y[fit], subject[fit])
    before = pickle.dumps(model)
    together = model.predict_proba(X[test])
    assert_allclose(np.concatenate([model.predict_proba(one[None]) for one in X[test]]), together, atol=1e-12)
    assert pickle.dumps(model) == before


# --- samples without labels


def test_samples_without_labels_help_after_a_shift():
    rng = np.random.default_rng(0)
    X, y = blobs(rng, n=200)
    other, labels = blobs(rng, shift=1.5, n=200)
    groups = np.repeat(["source", "target"], 200)
    model = TransferClassifier(LogisticRegression(), target="target", unlabeled=-1)
    plain = LogisticRegression().fit(X, y)
    model.fit(np.concatenate([X, other]), np.concatenate([y, np.full(200, -1)]), groups)
    assert_array_equal(model.classes_, [0, 1])
    assert model.score(other, labels) > plain.score(other, labels) + 0.03


def test_the_weight_of_samples_without_labels_is_limited(domains):
    X, y, groups = domains
    own = np.flatnonzero(groups == "target")
    for n_hidden in (2, 8):
        hidden = own[-n_hidden:]
        marked = y.copy()
        marked[hidden] = -1
        FITS.clear()
        TransferClassifier(Recorder(), target="target", weights=(15.0,), unlabeled=-1).fit(X, marked, groups)
        weights = FITS[-1][2]
        assert (weights[-n_hidden:] <= 1.0).all()
        assert weights[-n_hidden:].sum() <= 0.25 * weights[:-n_hidden].sum() + 1e-12
        assert_array_equal(FITS[-1][0][-n_hidden:], X[hidden])


# --- forms of the input


def test_labels_with_domains_need_no_groups(domains):
    X, y, groups = domains
    encoded = np.array([f"{name}/{label}" for name, label in zip(groups, y, strict=True)])
    given = TransferClassifier(Recorder(), target="target").fit(X, y.astype(str), groups)
    model = TransferClassifier(Recorder(), target="target").fit(X, encoded)
    assert_array_equal(model.classes_, ["0", "1"])
    assert_array_equal(model.predict(X), given.predict(X))
    assert model.source_weights_ == given.source_weights_
    own = groups == "target"
    assert model.score(X[own], encoded[own]) == model.score(X[own], y[own].astype(str)) > 0.5


def test_labels_of_pyriemann_are_those_of_its_encoder(domains):
    transfer = pytest.importorskip("pyriemann.transfer")
    X, y, groups = domains
    _, encoded = transfer.encode_domains(X, y, groups)
    splitter = transfer.TLSplitter("target", StratifiedKFold(3))
    model = TransferClassifier(Recorder(), target="target", weights=(15.0,))
    scores = cross_val_score(model, X, encoded, cv=splitter.split(X, encoded))
    assert len(scores) == 3
    assert scores.mean() > 0.7


def test_pyriemann_s_classifier_can_be_the_estimator(subjects):
    classification = pytest.importorskip("pyriemann.classification")
    X, y, subject, first = subjects
    fit, test = (subject != "carla") | first, (subject == "carla") & ~first
    model = TransferClassifier(classification.MDM(), target="carla").fit(X[fit], y[fit], subject[fit])
    assert model.score(X[test], y[test]) > 0.9


@pytest.mark.parametrize("kind", ["strings", "complex", "vectors"])
def test_labels_and_samples_of_any_kind(subjects, kind):
    X, y, subject, first = subjects
    model = lvq()
    if kind == "strings":
        y = np.array(["left", "right", "feet", "tongue"])[y]
    elif kind == "complex":
        phase = np.exp(1j * np.arange(X.shape[1]))
        X = phase[:, None] * X * phase.conj()
    else:
        X, model = np.log(np.diagonal(X, axis1=1, axis2=2)), lvq(metric="euclidean_vectors")
    fit, test = (subject != "carla") | first, (subject == "carla") & ~first
    transfer = TransferClassifier(model, target="carla").fit(X[fit], y[fit], subject[fit])
    assert_array_equal(transfer.classes_, np.unique(y))
    assert transfer.score(X[test], y[test]) > 0.5
    assert_allclose(transfer.predict_proba(X[test]).sum(axis=1), 1.0)


def test_sample_weights_count_within_domains(domains):
    X, y, groups = domains
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 1.5, len(y))
    weights[[0, 50, len(y) - 1]] = 0.0
    used = weights > 0
    model = TransferClassifier(Recorder(), target="target")
    FITS.clear()
    whole = model.fit(X, y, groups, weights).predict_proba(X)
    own = (groups == "target") & used
    assert_allclose(FITS[-1][2][: own.sum()], weights[own])
    assert_allclose(FITS[-1][2][own.sum() :].sum(), 30.0 * weights[own].mean())
    assert_allclose(model.fit(X[used], y[used], groups[used], weights[used]).predict_proba(X), whole, rtol=1e-12)
    assert_allclose(
        TransferClassifier(Recorder()).fit(X, y, groups, weights).predict_proba(X),
        LogisticRegression(C=10.0).fit(X[used], y[used], weights[used]).predict_proba(X),
    )


# --- scikit-learn's habits


def test_clones_pickles_and_grids(domains):
    X, y, groups = domains
    model = TransferClassifier(Recorder(), target="target", weights=(10.0, 0.0), unlabeled=None, cv=3)
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    fitted = clone(model).fit(X, y, groups)
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    encoded = np.array([f"{name}/{label}" for name, label in zip(groups, y, strict=True)])
    grid = GridSearchCV(model, {"weights": [(15.0,), (0.0,)], "cv": [2]}, cv=3).fit(X, encoded)
    assert grid.best_score_ > 0.5
    assert grid.predict(X).shape == y.shape


def test_nested_parameters_reach_the_estimator(subjects):
    X, y, subject, first = subjects
    fit = (subject != "carla") | first
    model = TransferClassifier(lvq(), target="carla", weights=(15.0,)).set_params(estimator__sigma2=3.0)
    assert model.fit(X[fit], y[fit], subject[fit]).estimator_.sigma2_ == 3.0
    assert not hasattr(model.estimator, "prototypes_")


def test_groups_are_routed_through_a_pipeline(subjects):
    X, y, subject, first = subjects
    X = np.where((subject == "ben")[:, None, None], 9.0 * X, X)
    fit, test = (subject != "carla") | first, (subject == "carla") & ~first
    with sklearn.config_context(enable_metadata_routing=True):
        transfer = TransferClassifier(lvq(), target="carla")
        recenter = Recenter().set_fit_request(groups=True).set_transform_request(groups=True)
        pipeline = make_pipeline(recenter, transfer).fit(X[fit], y[fit], groups=subject[fit])
        assert pipeline.score(X[test], y[test], groups=subject[test]) > 0.9
        # Or inside, where each fit re-centres its own samples.
        inner = make_pipeline(recenter, lvq().set_fit_request(sample_weight=True, groups=False))
        model = TransferClassifier(inner, target="carla").fit(X[fit], y[fit], groups=subject[fit])
        assert model.weight_ == 15.0
        assert model.score(X[test], y[test], groups=subject[test]) > 0.9


def test_an_estimator_without_weights_serves_where_none_are_needed(domains):
    X, y, groups = domains
    assert TransferClassifier(KNeighborsClassifier()).fit(X, y, groups).weight_ == np.inf
    with pytest.raises(ValueError, match="takes no sample_weight in fit"):
        TransferClassifier(KNeighborsClassifier(), target="target").fit(X, y, groups)


@pytest.mark.parametrize("kind", ["data frame", "sparse"])
def test_the_estimator_gets_samples_of_the_type_that_was_given(domains, kind):
    X, y, groups = domains
    given = pd.DataFrame(X, columns=["a", "b"]) if kind == "data frame" else scipy.sparse.csr_matrix(X)
    model = TransferClassifier(LogisticRegression(), target="target").fit(given, y, groups)
    plain = TransferClassifier(LogisticRegression(), target="target").fit(X, y, groups)
    assert_allclose(model.predict_proba(given), plain.predict_proba(X), rtol=1e-6)
    if kind == "data frame":
        assert model.estimator_.feature_names_in_.tolist() == ["a", "b"]
        with pytest.raises(ValueError, match="feature names"):
            model.predict(given[["b", "a"]])


@pytest.mark.parametrize("settings", [{"prototypes_per_class": 3, "init": "kmeans"}, {"early_stopping": True}], ids=str)
def test_a_source_that_is_too_small_for_the_estimator_takes_the_weight_of_the_others(subjects, settings):
    X, y, subject, first = subjects
    fit = ((subject != "carla") | first) & ~((subject == "ben") & (np.arange(len(X)) % 30 > 1))
    model = TransferClassifier(lvq(**settings), target="carla").fit(X[fit], y[fit], subject[fit])
    assert model.source_weights_ == pytest.approx({"anna": 1.0, "ben": 1.0})
    with pytest.raises(ValueError, match="fewer than its 99 prototype"):
        TransferClassifier(lvq(prototypes_per_class=99, init="kmeans"), target="carla").fit(
            X[fit], y[fit], subject[fit]
        )


def test_an_estimator_that_passes_weights_on_is_accepted(subjects):
    X, y, subject, first = subjects
    fit = (subject != "carla") | first
    model = TransferClassifier(RejectOption(lvq(), threshold=0.5), target="carla")
    assert model.fit(X[fit], y[fit], subject[fit]).weight_ == 15.0


# --- errors


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"weights": ()}, "weights is empty"),
        ({"weights": (15.0, -1.0)}, r"weights\[1\] must be a finite number of at least 0, got -1.0"),
        ({"weights": (np.inf,)}, r"weights\[0\]"),
        ({"weights": (True,)}, r"weights\[0\]"),
        ({"weights": "auto"}, r"weights\[0\]"),
        ({"cv": 1}, "cv must be an integer of at least 2"),
        ({"target": "nobody"}, "target='nobody' is not among the domains"),
        ({"unlabeled": "none"}, "unlabeled='none' is of another type than the labels"),
        ({"unlabeled": 1}, r"y\[1\] has no label, and is of the domain 'anna'"),
    ],
)
def test_invalid_parameters_are_named(domains, settings, match):
    X, y, groups = domains
    model = TransferClassifier(Recorder(), **{"target": "target", **settings})
    with pytest.raises(ValueError, match=match):
        model.fit(X, y, groups)
    assert not hasattr(model, "estimator_")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X, y, groups: (X, y, None), "groups is None, and y of dtype int"),
        (lambda X, y, groups: (X, y, groups[:-1]), r"groups must have shape \(132,\)"),
        (lambda X, y, groups: (X[:-1], y, groups), "y has 132 labels for 131 samples of X"),
        (lambda X, y, groups: (X, np.eye(2)[y], groups), "y must have one label per sample"),
        (lambda X, y, groups: (X, np.where(groups == "ben", 0, y), groups), "domain 'ben' has the class 0 only"),
        (lambda X, y, groups: (X, np.zeros_like(y), groups), "only one class"),
    ],
)
def test_invalid_data_are_named(domains, change, match):
    with pytest.raises(ValueError, match=match):
        TransferClassifier(Recorder(), target="target").fit(*change(*domains))


def test_an_invalid_sample_is_named_by_its_row_in_the_data(subjects):
    X, y, subject, _ = subjects
    X = X.copy()
    X[7] = -X[7]
    assert subject[7] == "ben"
    with pytest.raises(ValueError, match=r"X\[7\]"):
        TransferClassifier(lvq(), target="carla").fit(X, y, subject)
