"""Rescale gives every group of re-centred samples the same dispersion, at once or from past samples."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import fractional_matrix_power
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rplvq import AffineInvariant, Recenter, Rescale
from rplvq.arrays import logm, powm
from tests.problems import spd_classes, wrapped_normal

KINDS = [pytest.param(dtype, id=dtype.__name__) for dtype in (float, complex)]


def squared_lengths(X):
    return np.sum(np.abs(logm(X)) ** 2, axis=(1, 2))


def domains(dtype=float, n=4, sizes=(9, 12), powers=(1.0, 2.0), unit=1.0):
    """Groups "a", "b", ... of given dispersions about random places, and their names, in random order."""
    rng = np.random.default_rng(0)
    parts = []
    for size, power in zip(sizes, powers, strict=True):
        mixing = rng.normal(size=(n, n)) + 2 * np.eye(n)
        parts.append(unit * mixing @ powm(wrapped_normal(rng, size, n, 0.5, dtype), power) @ mixing.T)
    X, groups = np.concatenate(parts), np.repeat(list("abcdef")[: len(sizes)], sizes)
    order = rng.permutation(len(X))
    return 0.5 * (X + X.conj().swapaxes(1, 2))[order], groups[order]


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e6])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_all_groups_have_one_dispersion_and_stay_centred(n, dtype, unit):
    X, groups = domains(dtype, n, (9, 12, 5), (1.0, 2.0, 0.3), unit)
    centered = Recenter().fit_transform(X, groups=groups)
    rescale = Rescale()
    found = rescale.fit_transform(centered, groups=groups)
    assert_array_equal(found, found.conj().swapaxes(1, 2))
    assert_allclose(rescale.dispersion_, squared_lengths(centered).mean(), rtol=1e-9)
    for index, name in enumerate(rescale.groups_):
        members = groups == name
        assert_allclose(rescale.dispersions_[index], squared_lengths(centered[members]).mean(), rtol=1e-9)
        assert_allclose(squared_lengths(found[members]).mean(), rescale.dispersion_, rtol=1e-8)
        assert_allclose(logm(found[members]).mean(axis=0), 0, atol=1e-7)


@pytest.mark.parametrize("dtype", KINDS)
def test_a_power_and_a_mixing_are_undone_up_to_a_rotation(dtype):
    rng = np.random.default_rng(1)
    X = wrapped_normal(rng, 10, 4, 0.5, dtype)
    mixing = rng.normal(size=(4, 4))
    centered = Recenter().fit_transform(X)
    other = mixing @ powm(centered, 1.7) @ mixing.T
    both, groups = np.concatenate([X, other]), np.repeat([0, 1], 10)
    found = Rescale().fit_transform(Recenter().fit_transform(both, groups=groups), groups=groups)
    metric = AffineInvariant()
    assert_allclose(metric.sqdist(found[:10], found[:10]), metric.sqdist(found[10:], found[10:]), rtol=1e-6, atol=1e-9)


def test_it_agrees_with_pyriemann():
    transfer = pytest.importorskip("pyriemann.transfer", reason="needs pyriemann")
    X, groups = domains()
    _, encoded = transfer.encode_domains(X, np.arange(len(X)) % 2, groups)
    centered = Recenter().fit_transform(X, groups=groups)
    assert_allclose(transfer.TLCenter("b").fit_transform(X, encoded), centered, atol=1e-6)
    theirs = transfer.TLScale("b", final_dispersion=3.0, centered_data=True).fit(centered, encoded)
    ours = Rescale(dispersion=3.0).fit(centered, groups=groups)
    assert_allclose(list(theirs.scales_.values()), ours.dispersions_, rtol=1e-9)
    assert_allclose(theirs.fit_transform(centered, encoded), ours.transform(centered, groups=groups), atol=1e-9)
    members = centered[groups == "b"]
    assert_allclose(theirs.transform(members), ours.transform(members, groups=["b"] * len(members)), atol=1e-9)


def test_stored_powers_serve_known_groups_and_new_groups_have_their_own():
    X, groups = domains(sizes=(9, 12, 7), powers=(1.0, 2.0, 3.0))
    centered = Recenter().fit_transform(X, groups=groups)
    known = groups != "c"
    rescale = Rescale().fit(centered[known], groups=groups[known])
    found = rescale.transform(centered, groups=groups)
    assert_array_equal(found[known], rescale.transform(centered[known], groups=groups[known]))
    assert_allclose(squared_lengths(found[~known]).mean(), rescale.dispersion_, rtol=1e-9)
    few = np.flatnonzero(groups == "b")[:3]
    assert_allclose(rescale.transform(centered[few], groups=groups[few]), found[few], rtol=1e-12)


def test_one_group_stays_and_so_does_the_identity():
    X, _ = domains()
    centered = Recenter().fit_transform(X)
    rescale = Rescale().fit(centered)
    assert_allclose(rescale.transform(centered), centered, rtol=1e-9, atol=1e-12)
    with pytest.warns(UserWarning, match="one sample, which becomes the identity"):
        alone = Recenter().fit_transform(1e-12 * X[:1])
    assert_allclose(rescale.transform(alone, groups=["new"]), np.eye(4)[None], atol=1e-9)
    assert_array_equal(Rescale().fit_transform(np.tile(np.eye(4), (3, 1, 1))), np.tile(np.eye(4), (3, 1, 1)))


def by_hand(X, common, weight):
    result, dispersion = [], common
    for t, x in enumerate(X):
        result.append(fractional_matrix_power(x, np.sqrt(common / dispersion)))
        dispersion += (squared_lengths(x[None])[0] - dispersion) / (weight + t + 1)
    return np.array(result)


@pytest.mark.parametrize("weight", [0, 2.5, 10])
@pytest.mark.parametrize("dtype", KINDS)
def test_each_sample_is_rescaled_by_the_dispersion_of_those_before_it(dtype, weight):
    X, groups = domains(dtype)
    centered = Recenter().fit_transform(X, groups=groups)
    first, second = centered[groups == "a"], centered[groups == "b"]
    rescale = Rescale(online=True, prior_weight=weight).fit(first, groups=["a"] * len(first))
    found = rescale.transform(second, groups=["b"] * len(second))
    assert_allclose(found, by_hand(second, rescale.dispersion_, weight), rtol=1e-8, atol=1e-10)
    changed = second.copy()
    changed[5:] = powm(changed[5:], 3.0)
    after = rescale.transform(changed, groups=["b"] * len(second))
    assert_array_equal(after[:5], found[:5])
    assert_allclose(after[5], powm(found[5], 3.0), rtol=1e-9)  # not even itself
    assert np.abs(after[6] - powm(found[6], 3.0)).max() > 1e-3


def test_a_stream_gives_what_one_call_gives():
    X, groups = domains(sizes=(9, 12, 7), powers=(1.0, 2.0, 3.0))
    centered = Recenter().fit_transform(X, groups=groups)
    new = groups != "a"
    rescale = Rescale(online=True).fit(centered[~new], groups=groups[~new])
    whole = rescale.transform(centered[new], groups=groups[new])
    assert rescale.running_ == {}
    blocks = clone(rescale).fit(centered[~new], groups=groups[~new])
    blocks.partial_fit(centered[new], groups=groups[new])
    for index, row in enumerate(np.flatnonzero(new)):
        one, name = centered[row : row + 1], groups[row : row + 1]
        assert_array_equal(rescale.transform(one, groups=name)[0], whole[index])
        rescale.partial_fit(one, groups=name)
    assert rescale.running_ == blocks.running_
    assert {name: count for name, (_, count) in rescale.running_.items()} == {"b": 12, "c": 7}


def test_a_group_in_fit_goes_on_as_the_dispersion_of_all_its_samples():
    X, groups = domains()
    centered, half = Recenter().fit_transform(X, groups=groups), np.arange(len(X)) < 12
    rescale = Rescale(online=True).partial_fit(centered[half], groups=groups[half])  # the first call is fit
    assert rescale.running_ == {}
    rescale.partial_fit(centered[~half], groups=groups[~half])
    for name in "ab":
        dispersion, count = rescale.running_[name]
        assert count == np.count_nonzero(groups == name)
        assert_allclose(dispersion, squared_lengths(centered[groups == name]).mean(), rtol=1e-9)
        found = rescale.transform(centered[:1], groups=[name])
        assert_allclose(found[0], powm(centered[0], np.sqrt(rescale.dispersion_ / dispersion)), rtol=1e-9)


def test_wrong_uses_are_named():
    X, groups = domains()
    with pytest.raises(ValueError, match=r"group 'a' is not re-centred.*Put Recenter before Rescale"):
        Rescale().fit(1e-12 * X, groups=groups)
    with pytest.raises(ValueError, match="X is not re-centred"):
        Rescale().fit(1e-12 * X)
    centered = Recenter().fit_transform(X, groups=groups)
    rescale = Rescale(online=True).fit(centered, groups=groups)
    before = pickle.dumps(rescale)
    broken = centered.copy()
    broken[3] = -np.eye(4)
    for method in (rescale.fit, rescale.transform, rescale.partial_fit):
        with pytest.raises(ValueError, match=r"X\[3\]"):
            method(broken, groups=groups)
    for method in (rescale.transform, rescale.partial_fit):
        with pytest.raises(ValueError, match="groups is None, but fit was given groups"):
            method(centered)
    with pytest.raises(ValueError, match="2 features, but Rescale is expecting 4"):
        rescale.transform(centered[:, :2, :2], groups=groups)
    assert pickle.dumps(rescale) == before
    with pytest.raises(ValueError, match="partial_fit needs a fit with online=True"):
        Rescale().fit(centered).partial_fit(centered, groups=groups)
    for parameters in ({"dispersion": 0}, {"dispersion": np.nan}, {"dispersion": "auto"}, {"dispersion": True}):
        with pytest.raises(ValueError, match="dispersion must be a positive number or None"):
            Rescale(**parameters).fit(centered)
    for parameters in ({"online": 1}, {"prior_weight": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(parameters))} must be"):
            Rescale(**parameters).fit(centered)
    with pytest.raises(ValueError, match=r"all samples of fit are the identity.*fit more samples of each group"):
        Rescale(online=True).fit(np.eye(4)[None])
    assert Rescale(online=True, dispersion=2.0).fit(np.eye(4)[None]).start_ == 2.0
    for method in (Rescale().transform, Rescale().partial_fit, Rescale(online=True).transform):
        with pytest.raises(NotFittedError):
            method(X)


@pytest.mark.parametrize("fitted", KINDS)
@pytest.mark.parametrize("transformed", KINDS)
def test_real_and_complex_matrices_may_be_mixed_over_the_calls(fitted, transformed):
    first, second = (
        Recenter().fit_transform(spd_classes(seed=s, dtype=d)[0]) for s, d in ((0, fitted), (1, transformed))
    )
    for online in (False, True):
        rescale = Rescale(online=online).fit(first, groups=["a"] * len(first))
        found = rescale.transform(second, groups=["b"] * len(second))
        assert found.dtype == second.dtype
        rates = np.sqrt(squared_lengths(found) / squared_lengths(second))
        assert (np.ptp(rates) < 1e-9) == (not online)
