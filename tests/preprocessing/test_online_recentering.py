"""Recenter(online=True): running means of past samples, the same in a stream as in one call."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm, fractional_matrix_power
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rplvq import AffineInvariant, Recenter, RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.manifolds import riemannian_mean
from tests.problems import spd_classes


def sessions(n=4):
    X, _ = make_syn1(n_per_class=12, n=n, random_state=0)
    X = X[np.random.default_rng(0).permutation(len(X))]
    return X[:24], 3.0 * X[24:]


def by_hand(X, mean, weight, horizon=50):
    """The definition, with scipy's matrix powers."""
    result = []
    for t, x in enumerate(X):
        inverse = fractional_matrix_power(mean, -0.5)
        result.append(inverse @ x @ inverse)
        root = fractional_matrix_power(mean, 0.5)
        share = 1 / min(weight + t + 1, horizon)
        mean = root @ fractional_matrix_power(inverse @ x @ inverse, share) @ root
    return np.array(result)


@pytest.mark.parametrize(("weight", "horizon"), [(0, None), (2.5, 50), (10, 12.5), (0, 1)])
def test_each_sample_is_recentred_at_the_mean_of_those_before_it(weight, horizon):
    first, second = sessions()
    recenter = Recenter(online=True, prior_weight=weight, horizon=horizon).fit(first, groups=["a"] * 24)
    found = recenter.transform(second, groups=["b"] * 24)
    assert_allclose(found, by_hand(second, recenter.means_[0], weight, horizon or np.inf), rtol=1e-8, atol=1e-10)


def drifting(X, per_sample):
    """Samples seen through a gain that changes a little with each of them: G_t X_t G_t with G_t = exp(t S)."""
    generator = np.random.default_rng(1).standard_normal(X.shape[1:])
    generator = per_sample * (generator + generator.T) / np.linalg.norm(generator + generator.T)
    gains = np.stack([expm(t * generator) for t in range(len(X))])
    return gains @ X @ gains


def test_a_group_that_drifts_is_followed_by_default():
    X, y = make_syn1(n_per_class=150, random_state=0)
    is_test = np.arange(len(y)) % 150 >= 50
    train, test = X[~is_test], X[is_test]
    order = np.random.default_rng(0).permutation(len(test))
    stream, labels = drifting(test[order], 0.01), y[is_test][order]
    scores = []
    for horizon in (50, None):
        recenter = Recenter(online=True, horizon=horizon).fit(train, groups=["a"] * len(train))
        model = RiemannianLVQ(max_epochs=0).fit(recenter.transform(train, groups=["a"] * len(train)), y[~is_test])
        recenter.partial_fit(stream[:1], groups=["a"])  # from now on the group has a running mean
        late = recenter.transform(stream[1:], groups=["a"] * (len(stream) - 1))[-100:]
        scores.append(model.score(late, labels[-100:]))
    assert scores[0] > 0.9 > scores[1] + 0.2


def test_a_stream_gives_what_one_call_gives():
    first, second = sessions()
    recenter = Recenter(online=True).fit(first, groups=[0] * 24)
    groups = np.tile([1, 2, 2], 8)
    whole = recenter.transform(second, groups=groups)
    for i in range(24):
        one = recenter.transform(second[i : i + 1], groups=groups[i : i + 1])
        assert_array_equal(one[0], whole[i])
        recenter.partial_fit(second[i : i + 1], groups=groups[i : i + 1])
    assert {name: count for name, (_, count) in recenter.running_.items()} == {1: 8, 2: 16}


def test_transform_forgets_and_partial_fit_in_blocks_is_the_same_as_one_by_one():
    first, second = sessions()
    recenter = Recenter(online=True).fit(first, groups=[0] * 24)
    assert_array_equal(recenter.transform(second, groups=[1] * 24), recenter.transform(second, groups=[1] * 24))
    one, many = clone(recenter).fit(first, groups=[0] * 24), recenter
    many.partial_fit(second[:9], groups=[1] * 9)
    for x in second[:9]:
        one.partial_fit(x[None], groups=[1])
    assert_array_equal(one.running_[1][0], many.running_[1][0])


def test_only_past_samples_count():
    first, second = sessions()
    recenter = Recenter(online=True).fit(first, groups=[0] * 24)
    changed = second.copy()
    changed[10:] *= 7.0
    before, after = (recenter.transform(X, groups=[1] * 24) for X in (second, changed))
    assert_array_equal(before[:10], after[:10])
    assert_allclose(after[10], 7.0 * before[10], rtol=1e-12)  # not even itself
    assert np.abs(after[11] - 7.0 * before[11]).max() > 1e-3


def test_known_groups_stay_at_their_means_and_the_start_weighs_groups_by_size():
    first, second = sessions()
    both, groups = np.concatenate([first, second[:8]]), [0] * 24 + [1] * 8
    online, plain = Recenter(online=True).fit(both, groups=groups), Recenter().fit(both, groups=groups)
    assert_array_equal(online.transform(both, groups=groups), plain.transform(both, groups=groups))
    wanted = riemannian_mean(AffineInvariant(), plain.means_, np.array([24.0, 8.0])).code
    assert_allclose(online.start_, wanted, rtol=1e-9)


def test_a_group_in_fit_goes_on_as_the_mean_of_all_its_samples():
    """Samples that commute have the geometric mean as their mean, in which every sample has the same share."""
    logs = np.random.default_rng(0).normal(size=(12, 3))
    X, groups = np.exp(logs)[:, :, None] * np.eye(3), np.array(list("aab") * 4)
    recenter = Recenter(online=True).fit(X[:6], groups=groups[:6])
    before = recenter.transform(X[:6], groups=groups[:6])
    recenter.partial_fit(X[6:], groups=groups[6:])
    for name in "ab":
        mean, count = recenter.running_[name]
        assert count == np.count_nonzero(groups == name)
        assert_allclose(mean, np.diag(np.exp(logs[groups == name].mean(axis=0))), rtol=1e-7, atol=1e-9)
    after = recenter.transform(X[:1], groups=["a"])
    assert np.abs(after[0] - before[0]).max() > 1e-3
    assert_allclose(after[0], X[0] / recenter.running_["a"][0].diagonal(), rtol=1e-7, atol=1e-9)
    assert_array_equal(recenter.means_, Recenter().fit(X[:6], groups=groups[:6]).means_)


def test_partial_fit_before_fit_is_fit():
    first, second = sessions()
    streamed, fitted = Recenter(online=True).partial_fit(first), Recenter(online=True).fit(first)
    for recenter in (streamed, fitted):
        recenter.partial_fit(second)
    assert streamed.running_[None][1] == 48
    assert_array_equal(streamed.transform(second), fitted.transform(second))


def test_congruence_changes_the_result_by_a_rotation_only():
    """Distances between re-centred samples are those of the samples as they came."""
    first, second = sessions()
    mixing = np.random.default_rng(3).standard_normal((4, 4))
    found = []
    for G in (np.eye(4), mixing):
        recenter = Recenter(online=True).fit(G @ first @ G.T, groups=[0] * 24)
        codes = recenter.transform(G @ second @ G.T, groups=[1] * 24)
        found.append(np.sort(np.linalg.eigvalsh(codes)))
    assert_allclose(found[1], found[0], rtol=1e-6)


def test_a_long_session_comes_near_to_its_own_mean():
    first, second = sessions()
    recenter = Recenter(online=True, prior_weight=1).fit(first, groups=[0] * 24)
    recenter.partial_fit(np.tile(second, (5, 1, 1)), groups=[1] * 120)
    own = riemannian_mean(AffineInvariant(), second).code
    ends = (recenter.start_, recenter.running_[1][0])
    start, end = (AffineInvariant().sqdist(own[None], mean[None])[0, 0] for mean in ends)
    assert end < 0.01 * start


def test_wrong_uses_are_named():
    first, second = sessions()
    with pytest.raises(ValueError, match="partial_fit needs a fit with online=True"):
        Recenter().fit(first, groups=[0] * 24).partial_fit(second, groups=[1] * 24)
    recenter = Recenter(online=True).fit(first, groups=[0] * 24)
    with pytest.raises(ValueError, match="groups is None, but fit was given groups"):
        recenter.partial_fit(second)
    assert recenter.running_ == {}
    with pytest.raises(ValueError, match="partial_fit needs a fit with online=True"):
        recenter.set_params(online=False).fit(first).partial_fit(second)
    with pytest.raises(NotFittedError):
        Recenter().partial_fit(first)
    wrong = [
        ({"online": 1}, "online must be"),
        ({"prior_weight": -1}, "prior_weight must be"),
        ({"horizon": 0.5}, "horizon must be a finite number of at least 1 or None, got 0.5"),
    ]
    for changed, message in wrong:
        with pytest.raises(ValueError, match=message):
            Recenter(**changed).fit(first)


KINDS = [pytest.param(dtype, id=dtype.__name__) for dtype in (float, complex)]


@pytest.mark.parametrize("fitted", KINDS)
@pytest.mark.parametrize("streamed", KINDS)
@pytest.mark.parametrize("transformed", KINDS)
def test_real_and_complex_matrices_may_be_mixed_over_the_calls(fitted, streamed, transformed):
    first, second, third = (
        spd_classes(seed=seed, dtype=dtype)[0] for seed, dtype in enumerate([fitted, streamed, transformed])
    )
    recenter = Recenter(online=True).fit(first, groups=["a"] * len(first))
    recenter.partial_fit(second, groups=["b"] * len(second))
    found = recenter.transform(third, groups=["b"] * len(third))
    wanted = by_hand(np.concatenate([second, third]), recenter.start_, 10)[len(second) :]
    assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)
