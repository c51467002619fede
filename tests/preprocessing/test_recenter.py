"""Recenter moves the mean of each group to the identity and leaves everything inside it as it was."""

from __future__ import annotations

import pathlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from rplvq import AffineInvariant, RiemannianLVQ
from rplvq.arrays import invsqrtm
from rplvq.datasets import make_syn1
from rplvq.manifolds import riemannian_mean
from rplvq.preprocessing import Recenter
from rplvq.protocols import Array

MANIFOLD = AffineInvariant()


def covariances(n_samples: int, n: int, seed: int, kind: str = "real") -> Array:
    """Random positive definite matrices (N, n, n) away from the identity."""
    rng = np.random.default_rng(seed)
    shape = (n_samples, n, 3 * n)
    parts = rng.standard_normal(shape)
    if kind == "complex":
        parts = parts + 1j * rng.standard_normal(shape)
    mixing = rng.standard_normal((n, n))
    signals = mixing @ parts
    return signals @ signals.conj().swapaxes(1, 2)


def mean_of(X: Array) -> Array:
    return riemannian_mean(MANIFOLD, MANIFOLD.encode(X)).code


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_mean_of_each_group_is_the_identity(n: int, kind: str, scale: float) -> None:
    X = scale * np.concatenate([covariances(9, n, seed, kind) for seed in range(3)])
    groups = np.repeat(["b", "a", "c"], 9)
    centered = Recenter().fit_transform(X, groups=groups)
    assert centered.dtype == X.dtype if n > 1 else centered.shape == X.shape
    assert_array_equal(centered, centered.conj().swapaxes(1, 2))
    for name in "abc":
        assert_allclose(mean_of(centered[groups == name]), np.eye(n), atol=1e-8)


def test_distances_inside_a_group_stay_and_those_between_shrink() -> None:
    X = np.concatenate([covariances(8, 5, seed) for seed in (0, 1)])
    groups = np.repeat([0, 1], 8)
    before = MANIFOLD.sqdist(X, X)
    after = MANIFOLD.sqdist(*[Recenter().fit_transform(X, groups=groups)] * 2)
    same = groups[:, None] == groups
    assert_allclose(after[same], before[same], rtol=1e-9, atol=1e-12)
    assert after[~same].mean() < 0.5 * before[~same].mean()


def test_congruence_of_a_group_is_undone_up_to_a_rotation() -> None:
    X, mixing = covariances(10, 4, 3), np.random.default_rng(1).standard_normal((4, 4))
    mixed = mixing @ X @ mixing.T
    one, other = Recenter().fit_transform(X), Recenter().fit_transform(mixed)
    rotation = invsqrtm(mean_of(mixed)) @ mixing @ np.linalg.inv(invsqrtm(mean_of(X)))
    assert_allclose(rotation @ rotation.T, np.eye(4), atol=1e-8)
    assert_allclose(rotation @ one @ rotation.T, other, atol=1e-8)


def test_stored_means_serve_known_groups_and_new_groups_have_their_own() -> None:
    first, second = covariances(8, 3, 0), covariances(8, 3, 1)
    recenter = Recenter().fit(np.concatenate([first, second]), groups=[1] * 8 + [0] * 8)
    assert_array_equal(recenter.groups_, [0, 1])
    assert_allclose(recenter.means_, [mean_of(second), mean_of(first)], rtol=1e-8)
    root = invsqrtm(recenter.means_[1])
    assert_allclose(recenter.transform(second, groups=np.ones(8)), root @ second @ root, rtol=1e-9)
    mixed = recenter.transform(np.concatenate([second, first[:3]])[::-1], groups=[1] * 3 + [7] * 8)[::-1]
    assert_allclose(mean_of(mixed[:8]), np.eye(3), atol=1e-8)
    assert_allclose(mixed[8:], root @ first[:3] @ root, rtol=1e-9)
    assert_array_equal(recenter.groups_, [0, 1])


def test_without_groups_all_samples_are_one_group() -> None:
    X, later = covariances(8, 3, 0), covariances(6, 3, 1)
    recenter = Recenter().fit(X)
    assert recenter.groups_.tolist() == [None]
    root = invsqrtm(mean_of(X))
    assert_allclose(recenter.transform(later), root @ later @ root, rtol=1e-7)
    assert_allclose(mean_of(recenter.transform(later, groups=np.full(6, "new"))), np.eye(3), atol=1e-8)


def test_fit_transform_is_fit_then_transform_and_the_input_is_kept() -> None:
    X, groups = covariances(8, 3, 0), np.tile(["a", "b"], 4)
    before = X.copy()
    X.flags.writeable = False
    one = Recenter().fit_transform(X, groups=groups)
    assert_array_equal(one, Recenter().fit(X, groups=groups).transform(X, groups=groups))
    assert_array_equal(X, before)
    assert_array_equal(one, Recenter().fit_transform(X.tolist(), groups=groups.tolist()))


def test_real_sessions_beside_complex_ones() -> None:
    real, hermitian = covariances(5, 3, 0), covariances(5, 3, 1, "complex")
    recenter = Recenter().fit(np.concatenate([real, hermitian]), groups=[0] * 5 + [1] * 5)
    assert_allclose(recenter.transform(real, groups=[0] * 5), Recenter().fit_transform(real), atol=1e-9)
    assert Recenter().fit(real).transform(hermitian).dtype == complex


def test_dates_name_groups_whatever_their_unit() -> None:
    X, days = covariances(6, 2, 0), np.repeat(["2024-05-01", "2024-05-02"], 3)
    recenter = Recenter().fit(X, groups=days.astype("M8[D]"))
    nanoseconds = recenter.transform(X[:2], groups=days[:2].astype("M8[ns]"))
    assert_array_equal(nanoseconds, recenter.transform(X, groups=days.astype("M8[D]"))[:2])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], r"groups must have shape \(4,\).*got shape \(2,\).*np.full"),
        ("session", r"got shape \(\)"),
        ([[0, 0], [1, 1], [0, 0], [1, 1]], r"got shape \(4, 2\)"),
        ([0.0, np.nan, 1.0, np.nan], r"groups\[1\] is .*nan.*every sample needs a group"),
        (np.array(["a", "b", None, "a"], dtype=object), r"groups\[2\] is None"),
        (np.array(["2024-01-01", "NaT", "2024-01-01", "NaT"], "M8[D]"), r"groups\[1\] is .*NaT"),
        (np.array(["a", 1, "b", 2], dtype=object), "mixed types"),
    ],
)
def test_bad_groups_are_refused(groups: Any, message: str) -> None:
    X = covariances(4, 2, 0)
    recenter = Recenter()
    with pytest.raises(ValueError, match=message):
        recenter.fit(X, groups=groups)
    assert not hasattr(recenter, "means_")
    with pytest.raises(ValueError, match=message):
        recenter.fit(X).transform(X, groups=groups)


def test_bad_matrices_and_parameters_are_refused() -> None:
    X = covariances(4, 3, 0)
    recenter = Recenter().fit(X)
    means = recenter.means_
    singular, missing = X.copy(), X.copy()
    singular[2] = np.ones((3, 3))
    missing[1, 0, 0] = np.nan
    for bad, message in ((singular, r"X\[2\] is singular"), (missing, r"X\[1\] contains NaN")):
        for method in (recenter.fit, recenter.transform):
            with pytest.raises(ValueError, match=message):
                method(bad)
    with pytest.raises(ValueError, match="2 features, but Recenter is expecting 3"):
        recenter.transform(covariances(4, 2, 0))
    for parameters in ({"tol": 0.0}, {"tol": np.nan}, {"max_iter": 0}, {"max_iter": 2.5}, {"max_iter": True}):
        with pytest.raises(
            ValueError,
            match=f"{next(iter(parameters))} must be a positive finite number|must be an integer of at least 1",
        ):
            clone(recenter).set_params(**parameters).fit(X)
    assert recenter.means_ is means
    with pytest.raises(NotFittedError):
        Recenter().transform(X)


def test_groups_may_not_be_forgotten_after_a_fit_with_groups() -> None:
    X = covariances(4, 2, 0)
    with pytest.raises(ValueError, match=r"groups is None, but fit was given groups, \['a', 'b'\]: pass groups"):
        Recenter().fit(X, groups=["a", "b", "a", "b"]).transform(X)


def test_what_is_doubtful_warns() -> None:
    X = covariances(5, 2, 0)
    with pytest.warns(UserWarning, match="group 'b' has one sample, which becomes the identity"):
        centered = Recenter().fit_transform(X, groups=list("aaaab"))
    assert_allclose(centered[4], np.eye(2), atol=1e-9)
    with pytest.warns(UserWarning, match="group 'new' has one sample"):
        Recenter().fit(X).transform(X[:1], groups=["new"])
    with pytest.warns(ConvergenceWarning, match="mean of 5 points"):
        Recenter(max_iter=1).fit(X)


def test_it_is_an_estimator_of_scikit_learn() -> None:
    X = covariances(5, 2, 0)
    recenter = Recenter(tol=1e-6, max_iter=50).fit(X)
    wanted = {"tol": 1e-6, "max_iter": 50, "online": False, "prior_weight": 10.0, "horizon": 50}
    assert clone(recenter).get_params() == wanted
    assert recenter.n_features_in_ == 2
    assert_array_equal(pickle.loads(pickle.dumps(recenter)).transform(X), recenter.transform(X))
    tags = recenter.__sklearn_tags__().input_tags
    assert (tags.two_d_array, tags.three_d_array) == (False, True)


@pytest.mark.usefixtures("routing")
def test_groups_travel_through_a_pipeline() -> None:
    X, y = make_syn1(n_per_class=8, random_state=0)
    session = np.tile([0, 1], len(X) // 2)
    mixing = np.random.default_rng(0).standard_normal((2, 10, 10)) + 3 * np.eye(10)
    mixed = mixing[session] @ X @ mixing[session].swapaxes(1, 2)
    pipeline = Pipeline([("recenter", Recenter()), ("lvq", RiemannianLVQ(max_epochs=2, random_state=0))])
    pipeline.fit(mixed, y, groups=session)
    by_hand = Recenter().fit_transform(mixed, groups=session)
    classifier = RiemannianLVQ(max_epochs=2, random_state=0).fit(by_hand, y, groups=session)
    assert_array_equal(pipeline.predict_proba(mixed, groups=session), classifier.predict_proba(by_hand))
    assert pipeline.score(mixed, y, groups=session) == classifier.score(by_hand, y)
    with pytest.raises(ValueError, match="groups is None"):
        pipeline.predict(mixed)


@pytest.mark.skipif(sklearn.__version__.startswith(("1.6", "1.7")), reason="scikit-learn 1.8 hands groups to scorers")
@pytest.mark.usefixtures("routing")
def test_cross_validation_meets_each_session_as_a_new_one() -> None:
    X, y = make_syn1(n_per_class=8, random_state=0)
    order = np.argsort(y, kind="stable")
    X, y, session = X[order], y[order], np.tile(["a", "b"], len(y) // 2)
    X = np.where((session == "b")[:, None, None], 100.0, 1.0) * X
    classifier = RiemannianLVQ(max_epochs=2, random_state=0).set_fit_request(groups=False)  # one session trains
    pipeline = make_pipeline(Recenter(), classifier)
    scores = cross_val_score(pipeline, X, y, cv=LeaveOneGroupOut(), params={"groups": session})
    assert_array_equal(scores > 0.8, [True, True])


def test_real_sessions(
    real_data: Callable[[str], pathlib.Path], unpack_symmetric: Callable[[Array, int], Array]
) -> None:
    with np.load(real_data("bci2a_cov22.npz")) as data:
        X, y, test = unpack_symmetric(data["s1_cov"], 22), data["s1_y"], data["s1_test"]
    recenter = Recenter().fit(X[~test], groups=test[~test])
    centered = {held: recenter.transform(X[test == held], groups=test[test == held]) for held in (False, True)}
    for session in centered.values():
        assert_allclose(mean_of(session), np.eye(22), atol=1e-6)
    subset = slice(None, None, 40)
    before, after = X[test][subset], centered[True][subset]
    assert_allclose(MANIFOLD.sqdist(after, after), MANIFOLD.sqdist(before, before), rtol=1e-6, atol=1e-9)
    model = RiemannianLVQ(max_epochs=0).fit(centered[False], y[~test])
    assert model.score(centered[True], y[test]) > 0.5  # of four classes
