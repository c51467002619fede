"""``fit(X, y, groups=...)``: what the default chooses if samples of one group resemble each other."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rplvq import Checkpoint, EarlyStopping, RejectOption, RiemannianLVQ, compare
from tests.covering import covering
from tests.problems import spd_classes

N_DIMENSIONS = 10


def objects(rng, per_class):
    """Eight views (N, 10) of each of some objects per class, of which each has a place of its own, and its number."""
    y, group = np.repeat([0, 1], per_class), np.arange(2 * per_class)
    centers = rng.normal(size=(2 * per_class, N_DIMENSIONS))
    centers[:, 0] += 2.0 * y - 1.0
    y, group = np.repeat(y, 8), np.repeat(group, 8)
    return centers[group] + 0.3 * rng.normal(size=(len(y), N_DIMENSIONS)), y, group


def vectors(**settings):
    return RiemannianLVQ(**({"metric": "euclidean_vectors", "random_state": 0} | settings))


def held_out_losses(model):
    return [(one.name, one.n_folds, one.loss) for one in model.choice_.tried]


def same(model, other):
    assert_array_equal(model.prototypes_, other.prototypes_)
    assert model.sigma2_ == other.sigma2_
    assert held_out_losses(model)
    assert held_out_losses(model) == held_out_losses(other)
    assert model.choice_.chosen == other.choice_.chosen


def test_groups_refuse_training_that_learns_the_objects_and_not_the_classes():
    scores, losses, trained = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        (X, y, group), (fresh, labels, _) = objects(rng, 8), objects(rng, 60)
        models = [vectors(max_epochs=0).fit(X, y), vectors().fit(X, y), vectors().fit(X, y, groups=group)]
        scores.append([model.score(fresh, labels) for model in models])
        proba = [model.predict_proba(fresh)[np.arange(len(labels)), labels] for model in models]
        losses.append([-np.log(own).mean() for own in proba])
        trained.append([model.n_epochs_ > 0 for model in models])
    means, by_samples, by_groups = np.mean(scores, axis=0)
    assert by_groups >= by_samples  # held-out views of objects that train say that training helps
    assert by_groups > means - 0.005
    assert np.mean(losses, axis=0)[2] < np.mean(losses, axis=0)[1]
    assert np.mean(trained, axis=0)[2] < np.mean(trained, axis=0)[1]


@pytest.mark.parametrize(
    ("dtype", "weighted", "early_stopping"),
    covering([float, complex], [False, True], [False, EarlyStopping(0.25, patience=3)]),
)
def test_the_order_of_samples_and_the_kind_of_names_change_nothing(dtype, weighted, early_stopping):
    X, y = spd_classes(per_class=60, n_classes=2, spread=0.6, shift=0.3, dtype=dtype)
    rng = np.random.default_rng(1)
    group, order = rng.integers(6, size=len(y)), rng.permutation(len(y))
    weights = rng.integers(0, 3, size=len(y)).astype(float) if weighted else np.ones(len(y))
    model = RiemannianLVQ(max_epochs=20, early_stopping=early_stopping, random_state=0)
    first = sklearn.clone(model).fit(X, y, weights, groups=group)
    names = np.array([f"session {one}" for one in group])
    same(sklearn.clone(model).fit(X[order], y[order], weights[order], groups=names[order].tolist()), first)
    twice = np.repeat(np.arange(len(y)), weights.astype(int))
    same(sklearn.clone(model).fit(X[twice], y[twice], groups=group[twice]), first)
    others = sklearn.clone(model).fit(X, y, weights, groups=np.roll(group, 1))
    assert held_out_losses(others) != held_out_losses(first)


def test_samples_with_soft_labels_are_held_out_by_groups_too():
    X, y = spd_classes(per_class=24, n_classes=2, spread=0.6, shift=0.3)
    group, soft = np.arange(len(y)) % 5, np.eye(2)[y] * 0.8 + 0.1
    model = RiemannianLVQ(cost="plvq", max_epochs=10, random_state=0)
    first = sklearn.clone(model).fit(X, soft, groups=group)
    same(sklearn.clone(model).fit(X[::-1], soft[::-1], groups=group[::-1]), first)
    assert held_out_losses(sklearn.clone(model).fit(X, soft)) != held_out_losses(first)


def test_groups_change_nothing_where_nothing_is_held_out():
    X, y, group = objects(np.random.default_rng(0), 3)
    for settings in ({"sigma2": 1.0}, {"max_epochs": 0}, {"sigma2": "half_median"}):
        given, plain = vectors(**settings).fit(X, y, groups=group), vectors(**settings).fit(X, y)
        assert_array_equal(given.prototypes_, plain.prototypes_)
        assert given.sigma2_ == plain.sigma2_


@pytest.mark.parametrize("settings", [{}, {"sigma2": 1.0, "early_stopping": True}], ids=["trials", "early stopping"])
def test_one_group_is_as_none_with_a_warning(settings):
    X, y, _ = objects(np.random.default_rng(0), 4)
    with pytest.warns(UserWarning, match="groups: no held-out part of whole groups"):
        alone = vectors(**settings).fit(X, y, groups=np.zeros(len(y)))
    plain = vectors(**settings).fit(X, y)
    assert_array_equal(alone.prototypes_, plain.prototypes_)
    assert alone.sigma2_ == plain.sigma2_


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"groups must have shape \(48,\), one entry per sample of X, got shape \(2,\)"),
        (np.zeros((48, 2)), r"groups must have shape \(48,\)"),
        ([*range(47), np.nan], r"groups\[47\] is nan: groups contains NaN or None"),
        (["a"] * 40 + [None] * 8, r"groups\[40\] is None: groups contains NaN or None"),
        ([*range(47), "a"], "groups has groups of mixed types"),
    ],
    ids=["short", "two columns", "NaN", "None", "mixed"],
)
def test_invalid_groups_are_named_before_anything_is_changed(groups, message):
    X, y, _ = objects(np.random.default_rng(0), 3)
    model = vectors()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, groups=groups)
    assert not hasattr(model, "prototypes_")


def test_a_fit_that_resumes_needs_the_same_groups(tmp_path):
    X, y, group = objects(np.random.default_rng(0), 4)
    path = tmp_path / "fit.npz"
    model = vectors(early_stopping=EarlyStopping(0.25, patience=50), sigma2=1.0, max_epochs=6)
    whole = sklearn.clone(model).fit(X, y, groups=group)
    with pytest.raises(RuntimeError, match="killed"):
        sklearn.clone(model).set_params(callbacks=[Checkpoint(path), killed_in_epoch_3]).fit(X, y, groups=group)
    for others in (None, np.roll(group, 3)):
        with pytest.raises(ValueError, match="or with other groups"):
            sklearn.clone(model).fit(X, y, groups=others, resume=path)
    again = sklearn.clone(model).fit(X, y, groups=group, resume=path)
    assert_array_equal(again.prototypes_, whole.prototypes_)
    assert_array_equal(again.history_["validation_cost"], whole.history_["validation_cost"])


def killed_in_epoch_3(report):
    if report.epoch == 3:
        raise RuntimeError("killed")


# --- through scikit-learn


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_fit_requests_groups_by_default_as_splitters_do(routing):
    X, y, group = objects(np.random.default_rng(0), 6)
    wanted, plain = vectors().fit(X, y, groups=group), vectors().fit(X, y)
    assert held_out_losses(wanted) != held_out_losses(plain)
    piped = make_pipeline(FunctionTransformer(), vectors())
    same(sklearn.clone(piped).fit(X, y, groups=group)[-1], wanted)
    search = GridSearchCV(piped, {"riemannianlvq__prototypes_per_class": [1]}, cv=GroupKFold(2))
    same(search.fit(X, y, groups=group).best_estimator_[-1], wanted)
    same(RejectOption(piped, coverage=0.9).fit(X, y, groups=group).estimator_[-1], wanted)
    refuses = make_pipeline(FunctionTransformer(), vectors().set_fit_request(groups=False))
    search = GridSearchCV(refuses, {"riemannianlvq__prototypes_per_class": [1]}, cv=GroupKFold(2))
    same(search.fit(X, y, groups=group).best_estimator_[-1], plain)


def test_cross_validation_without_routing_gives_each_part_its_groups():
    X, y, group = objects(np.random.default_rng(0), 6)
    found = cross_validate(
        vectors(), X, y, groups=group, params={"groups": group}, cv=GroupKFold(3), return_estimator=True
    )
    for (train, _), model in zip(GroupKFold(3).split(X, y, group), found["estimator"], strict=True):
        same(model, vectors().fit(X[train], y[train], groups=group[train]))


@pytest.mark.parametrize("enabled", [False, True], ids=["plain", "routed"])
def test_compare_gives_each_part_its_groups(enabled):
    X, y, group = objects(np.random.default_rng(0), 6)
    with sklearn.config_context(enable_metadata_routing=enabled):
        found = compare(X, y, {"default": vectors()}, groups=group, cv=GroupKFold(3))
    parts = list(GroupKFold(3).split(X, y, group))
    wanted = [vectors().fit(X[train], y[train], groups=group[train]) for train, _ in parts]
    assert_array_equal(found.sigma2[0], [model.sigma2_ for model in wanted])
    assert_array_equal(
        found.scores[0, 0], [m.score(X[test], y[test]) for m, (_, test) in zip(wanted, parts, strict=True)]
    )
    assert any(
        m.sigma2_ != vectors().fit(X[train], y[train]).sigma2_ for m, (train, _) in zip(wanted, parts, strict=True)
    )


def test_compare_of_two_sessions_trains_on_one_of_them_without_a_warning():
    X, y, _ = objects(np.random.default_rng(0), 6)
    session = np.arange(len(y)) % 2
    found = compare(X, y, {"default": vectors()}, groups=session, cv=2, random_state=0)
    assert found.scores.shape == (1, 2, 2)
