"""Normalisers of Gaussians on manifolds, and the cost of classes that differ in spread."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad, quad
from scipy.special import erf

from rplvq import PLVQ, RSLVQ, RiemannianLVQ, load_model
from rplvq.costs import FlatGaussian, RiemannianGaussian, SpreadRSLVQ, likeliest_variance

LABELS = np.array([0, 1, 1, 2, 0])
SQDIST = np.random.default_rng(0).uniform(0.1, 8, (6, 5))
TARGETS = np.arange(6) % 3
SOFT = np.random.default_rng(1).dirichlet(np.ones(3), 6)
VARIANCES = (0.5, 2.0, 1.1)


def excess(normaliser, variance):
    return normaliser.log_z(variance) - FlatGaussian(normaliser.dimension).log_z(variance)


# --- normalisers


@pytest.mark.parametrize("variance", [1e-3, 0.1, 1.0, 20.0, 143.0, 145.0, 400.0])
@pytest.mark.parametrize("hermitian", [False, True])
def test_two_by_two_by_quadrature(variance, hermitian):
    """The difference u of both log-eigenvalues is all that the volume depends on."""
    beta, peak = (2, 2 * variance) if hermitian else (1, variance)
    reach = peak + 12 * np.sqrt(2 * variance)

    def integral(factor):
        def density(u):
            return np.exp(-(u**2) / (4 * variance) + factor(u) - peak**2 / (4 * variance))

        return quad(density, 0, reach, points=[peak], epsabs=0, epsrel=1e-12, limit=400)[0]

    curved = integral(lambda u: beta * (u / 2 + np.log1p(-np.exp(-u))) if u > 0 else -np.inf)
    flat = integral(lambda u: beta * np.log(u) if u > 0 else -np.inf)
    found = excess(RiemannianGaussian(2, hermitian=hermitian), variance)
    assert_allclose(found, np.log(curved / flat), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("variance", [0.02, 0.7, 4.0])
def test_three_by_three_by_quadrature(variance):
    """Ordered log-eigenvalues by their gaps a and b; their mean integrates out."""

    def integral(volume):
        def density(b, a):
            square = (2 * a * a + 2 * b * b + 2 * a * b) / 3
            return np.exp(-square / (2 * variance)) * volume(a) * volume(b) * volume(a + b)

        reach = 2 * variance + 10 * np.sqrt(variance)
        return dblquad(density, 0, reach, 0, reach, epsabs=0, epsrel=1e-8)[0]

    wanted = np.log(integral(lambda gap: 2 * np.sinh(gap / 2)) / integral(lambda gap: gap))
    assert_allclose(excess(RiemannianGaussian(3), variance), wanted, rtol=1e-6)


@pytest.mark.parametrize("hermitian", [False, True])
def test_larger_matrices_by_sampling_the_flat_ensemble(hermitian):
    """Z over its flat limit is the mean of the volume's factors over random matrices with a flat density."""
    n, variance, rng = 6, 0.05, np.random.default_rng(0)
    parts = rng.normal(size=(40000, n, n))
    if hermitian:
        parts = parts + 1j * rng.normal(size=parts.shape)
    matrices = np.sqrt(variance) * (parts + parts.conj().swapaxes(1, 2)) / 2
    roots = np.linalg.eigvalsh(matrices)
    upper = np.triu_indices(n, 1)
    half = (roots[:, :, None] - roots[:, None, :])[:, *upper] / 2
    factors = np.prod(np.sinh(half) / half, axis=1) ** (2 if hermitian else 1)
    assert_allclose(excess(RiemannianGaussian(n, hermitian=hermitian), variance), np.log(factors.mean()), rtol=0.02)


def by_errors(n, variance):
    """The Pfaffian's formula as it stands, where the variance is so large that float64 bears it."""
    j = np.arange(1, n + 1)
    gaps = np.sqrt(variance) * (j - j[:, None]) / 2
    size = n + n % 2
    rows = np.zeros((size, size))
    rows[:n, :n] = erf(gaps)
    if n % 2:
        rows[:n, n], rows[n, :n] = 1, -1
    growth = variance * n * (n**2 - 1) / 24
    return 0.5 * n * np.log(variance) + growth + 0.5 * np.linalg.slogdet(rows)[1]


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13, 22, 31, 32])
def test_large_variances_by_the_determinant(n):
    """Differences, because the formula leaves a constant open."""
    variances = np.array([9.0, 20.0, 100.0, 144.0, 150.0])
    found, wanted = RiemannianGaussian(n).log_z(variances), [by_errors(n, v) for v in variances]
    assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-9)


# By the Pfaffian's formula in twice the digits that it needs: n, and the excess at variances of .01, .3 and 2.
IN_MANY_DIGITS = [
    (7, [0.0788451095917773, 2.44665687587856, 18.914593262117794]),
    (10, [0.22541228866947338, 7.113357136118089, 57.633380514815585]),
    (22, [2.3200043583630956, 77.89318243054765, 685.2694639908503]),
    (32, [7.071726817161187, 248.28493355109165, 2215.9720104143594]),
]


@pytest.mark.parametrize(("n", "wanted"), IN_MANY_DIGITS)
def test_the_table_is_what_many_digits_give(n, wanted):
    assert_allclose(excess(RiemannianGaussian(n), [0.01, 0.3, 2.0]), wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("hermitian", [False, True])
def test_small_variances_are_flat(hermitian):
    """The excess begins as v E sum (r_i - r_j)^2 / (24 v) over the flat ensemble, whose moments are known."""
    for n in range(1, 33):
        normaliser, beta = RiemannianGaussian(n, hermitian=hermitian), 2 if hermitian else 1
        rate = beta * n * (n - 1) * (2 + beta * n) / 48
        for variance in (1e-8, 1e-6):
            assert_allclose(excess(normaliser, variance), rate * variance, rtol=1e-3, atol=1e-9)
        assert_allclose(normaliser.mean_sqdist(1e-9), normaliser.dimension * 1e-9, rtol=1e-4)


@pytest.mark.parametrize(
    "normaliser",
    [FlatGaussian(7), *(RiemannianGaussian(n, hermitian=h) for n in (1, 2, 9, 32) for h in (False, True))],
    ids=repr,
)
def test_the_expected_distance_is_the_derivative_and_grows(normaliser):
    variance, step = np.geomspace(1e-3, 130, 40), 1e-4
    ahead, behind = normaliser.log_z(variance * np.exp(step)), normaliser.log_z(variance * np.exp(-step))
    found = normaliser.mean_sqdist(variance)
    assert_allclose(found, variance * (ahead - behind) / step, rtol=1e-6)
    assert (np.diff(found) > 0).all()
    for method in (normaliser.log_z, normaliser.mean_sqdist):  # where the table ends
        assert_allclose(*method([144 - 1e-9, 144 + 1e-9]), rtol=1e-9)


@pytest.mark.parametrize("mean", [1e-12, 0.3, 10.0, 3e4])
@pytest.mark.parametrize("normaliser", [FlatGaussian(3), RiemannianGaussian(22), RiemannianGaussian(3, hermitian=True)])
def test_the_likeliest_variance_gives_the_mean_back(normaliser, mean):
    assert_allclose(normaliser.mean_sqdist(likeliest_variance(normaliser, mean)), mean, rtol=1e-10)


@pytest.mark.parametrize("normaliser", [FlatGaussian(3), RiemannianGaussian(4), RiemannianGaussian(4, hermitian=True)])
def test_normalisers_refuse_what_is_no_variance(normaliser):
    for bad, where in ((0.0, "variance must"), ([1.0, -1.0], r"variance\[1\] must"), ([[1.0, np.nan]], r"\[0, 1\]")):
        for method in (normaliser.log_z, normaliser.mean_sqdist):
            with pytest.raises(ValueError, match=where):
                method(bad)
    with pytest.raises(ValueError, match="mean_sqdist must be a positive finite number, got 0"):
        likeliest_variance(normaliser, 0.0)


def test_sizes_are_checked():
    for bad in (0, 2.0, True, "2"):
        for make in (RiemannianGaussian, FlatGaussian):
            with pytest.raises(ValueError, match="must be an integer of at least 1"):
                make(bad)
    with pytest.raises(ValueError, match="n=33: the table of real matrices ends at n = 32"):
        RiemannianGaussian(33)
    assert RiemannianGaussian(40, hermitian=True).log_z(1.0) > 0


# --- the cost


SPREADS = [
    SpreadRSLVQ(VARIANCES, FlatGaussian(2)),
    SpreadRSLVQ([0.05, 0.5, 3.0], RiemannianGaussian(10)),
    SpreadRSLVQ([1e-3, 1.0, 1.0], RiemannianGaussian(4, hermitian=True)),
]


@pytest.mark.parametrize("sigma2", [0.4, 5.0])
def test_values_agree_with_plain_densities(sigma2):
    variance, middle = np.array(VARIANCES)[LABELS], np.prod(VARIANCES) ** (1 / 3)
    density = np.exp(-SQDIST / (2 * variance)) / (2 * np.pi * variance) ** 1.5
    p = density ** (middle / sigma2)
    p /= p.sum(axis=1, keepdims=True)
    p_class = np.stack([p[:, c == LABELS].sum(axis=1) for c in range(3)], axis=1)
    inside, scale = p / p_class[:, LABELS], middle / (2 * variance * sigma2)
    cost = SpreadRSLVQ(VARIANCES, FlatGaussian(3))
    hard, soft = cost(SQDIST, TARGETS, LABELS, sigma2), cost(SQDIST, SOFT, LABELS, sigma2)
    assert_allclose(hard.loss, -np.log(p_class[np.arange(6), TARGETS]), rtol=1e-12)
    assert_allclose(hard.slope, ((TARGETS[:, None] == LABELS) * inside - p) * scale, atol=1e-14)
    assert_allclose(soft.loss, -(SOFT * np.log(p_class)).sum(axis=1), rtol=1e-12)
    assert_allclose(soft.slope, (SOFT[:, LABELS] * inside - p) * scale, atol=1e-14)
    assert_allclose(np.exp(cost.log_proba(SQDIST, LABELS, sigma2)), p_class, rtol=1e-12)


@pytest.mark.parametrize("normaliser", [FlatGaussian(3), RiemannianGaussian(5)])
def test_a_shared_variance_is_rslvq_and_plvq(normaliser):
    cost = SpreadRSLVQ([0.3] * 3, normaliser)
    for targets, same in ((TARGETS, RSLVQ()), (SOFT, PLVQ())):
        found, wanted = cost(SQDIST, targets, LABELS, 0.7), same(SQDIST, targets, LABELS, 0.7)
        assert_allclose(found.loss, wanted.loss, rtol=1e-12)
        assert_allclose(found.slope, wanted.slope, atol=1e-14)
    assert_allclose(cost.log_proba(SQDIST, LABELS, 0.7), RSLVQ().log_proba(SQDIST, LABELS, 0.7), rtol=1e-12)


def test_variances_are_estimated_class_by_class():
    flat = SpreadRSLVQ.from_sqdist(SQDIST, TARGETS, LABELS, FlatGaussian(4))
    own = np.where(TARGETS[:, None] == LABELS, SQDIST, np.inf).min(axis=1)
    assert_allclose(flat.variances, [own[c == TARGETS].mean() / 4 for c in range(3)], rtol=1e-10)
    curved = SpreadRSLVQ.from_sqdist(SQDIST, TARGETS, LABELS, RiemannianGaussian(4))
    for c in range(3):
        assert_allclose(RiemannianGaussian(4).mean_sqdist(curved.variances[c]), own[c == TARGETS].mean(), rtol=1e-10)
    one_hot = SpreadRSLVQ.from_sqdist(SQDIST, np.eye(3)[TARGETS], LABELS, FlatGaussian(4))
    assert_allclose(one_hot.variances, flat.variances, rtol=1e-12)


def test_weights_are_multiplicities():
    weight = np.array([2.0, 1, 1, 3, 1, 1])
    rows = np.repeat(np.arange(6), weight.astype(int))
    found = SpreadRSLVQ.from_sqdist(SQDIST, TARGETS, LABELS, FlatGaussian(4), weight)
    wanted = SpreadRSLVQ.from_sqdist(SQDIST[rows], TARGETS[rows], LABELS, FlatGaussian(4))
    assert_allclose(found.variances, wanted.variances, rtol=1e-12)


def test_a_class_without_spread_is_named():
    for sqdist, targets in ((SQDIST, TARGETS * 0), (SQDIST * (TARGETS != 1)[:, None], TARGETS)):
        with pytest.raises(ValueError, match="class index 1 has no spread"):
            SpreadRSLVQ.from_sqdist(sqdist, targets, LABELS, FlatGaussian(4))


@pytest.mark.parametrize("bad", [np.array([0, 1, 2, 3, 0, 1]), np.array(list("abcabc")), np.array([0, -1, 2, 0, 0, 1])])
def test_targets_are_class_indices(bad):
    with pytest.raises(ValueError, match=r"targets\[\d\] is .*, not a class index 0..2"):
        SpreadRSLVQ.from_sqdist(SQDIST, bad, LABELS, FlatGaussian(4))


def test_bad_settings_are_refused():
    for bad, where in (([1.0, 0.0], r"variances\[1\]"), ([], "one number per class"), (1.0, "one number per class")):
        with pytest.raises(ValueError, match=where):
            SpreadRSLVQ(bad, FlatGaussian(2))
    for bad in (None, 3, FlatGaussian):
        with pytest.raises(ValueError, match="normaliser must be FlatGaussian"):
            SpreadRSLVQ([1.0], bad)
    cost = SpreadRSLVQ([1.0, 2.0], FlatGaussian(2))
    with pytest.raises(ValueError, match="variances has 2 entries, but there are 3 classes"):
        cost(SQDIST, TARGETS, LABELS, 1.0)
    with pytest.raises(ValueError, match="soft labels have 2 columns for 3 classes"):
        SPREADS[0](SQDIST, np.full((6, 2), 0.5), LABELS, 1.0)
    with pytest.raises(ValueError, match="soft labels have 2 columns for 3 classes"):
        SpreadRSLVQ.from_sqdist(SQDIST, np.full((6, 2), 0.5), LABELS, FlatGaussian(2))


def two_spreads(rng, count=150, n=3):
    """Two classes around the identity, one three times as wide."""
    noise = rng.normal(size=(2, count, n, n)) * np.array([0.2, 0.6])[:, None, None, None]
    values, vectors = np.linalg.eigh((noise + noise.swapaxes(2, 3)).reshape(-1, n, n) / np.sqrt(2))
    return (vectors * np.exp(values)[:, None, :]) @ vectors.swapaxes(1, 2), np.repeat([0, 1], count)


def test_classes_that_differ_in_spread_alone_are_told_apart(tmp_path):
    rng = np.random.default_rng(0)
    (X, y), (unseen, truth) = two_spreads(rng), two_spreads(rng)
    means = RiemannianLVQ(max_epochs=0, random_state=0).fit(X, y)
    assert means.score(unseen, truth) < 0.7
    cost = SpreadRSLVQ.from_sqdist(means.transform(X) ** 2, y, means.prototype_labels_, RiemannianGaussian(3))
    model = RiemannianLVQ(cost=cost, decision="posterior", sigma2=0.1, max_epochs=3, random_state=0).fit(X, y)
    assert model.score(unseen, truth) > 0.9
    model.save(tmp_path / "model.npz")
    assert_array_equal(load_model(tmp_path / "model.npz").predict_proba(unseen), model.predict_proba(unseen))


def test_values_hash_pickle_and_are_set_by_name():
    cost = SPREADS[1]
    assert pickle.loads(pickle.dumps(cost)) == cost
    assert hash(SpreadRSLVQ(list(cost.variances), RiemannianGaussian(10))) == hash(cost)
    model = RiemannianLVQ(cost=cost).set_params(cost__normaliser=FlatGaussian(2))
    assert model.cost == SpreadRSLVQ(cost.variances, FlatGaussian(2))
