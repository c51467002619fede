"""Covariances of trials: by hand, against NumPy and scikit-learn, symmetries, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import ledoit_wolf_shrinkage, oas, shrunk_covariance
from sklearn.preprocessing import FunctionTransformer

from rplvq import AffineInvariant
from rplvq.features import region_covariances, shrink, trial_covariances

SEEDS = st.integers(0, 2**32 - 1)


def signals(seed, shape=(3, 4, 30), is_complex=False):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * rng.uniform(0.2, 5.0, (shape[0], shape[1], 1)) + 0.5
    return x + 1j * rng.standard_normal(shape) if is_complex else x


def test_trial_covariances_by_hand():
    x = np.array([[[1.0, -1.0, 2.0], [0.0, 1.0, 2.0]]])
    assert_allclose(trial_covariances(x), [[[3.0, 1.5], [1.5, 2.5]]])
    assert_allclose(trial_covariances(2 * x, shrinkage=0.5), [[[11.5, 3.0], [3.0, 10.5]]])


@pytest.mark.parametrize("is_complex", [False, True])
def test_centered_covariances_are_numpys(is_complex):
    x = signals(0, is_complex=is_complex)
    expected = np.stack([np.cov(trial) for trial in x])
    assert_allclose(trial_covariances(x, center=True), expected, rtol=1e-12)
    assert np.abs(trial_covariances(x) - expected).max() > 0.05  # the means are not zero


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, np.float32(0.25), 1])
def test_shrinkage_is_that_of_scikit_learn(shrinkage):
    x = signals(1)
    plain = trial_covariances(x)
    expected = np.stack([shrunk_covariance(c, shrinkage=float(shrinkage)) for c in plain])
    assert_allclose(trial_covariances(x, shrinkage=shrinkage), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("n_samples", [3, 30, 300])
def test_ledoit_wolf_is_that_of_scikit_learn(center, n_samples):
    x = signals(2, (5, 6, n_samples))
    strengths = [ledoit_wolf_shrinkage(trial.T, assume_centered=not center) for trial in x]
    plain = trial_covariances(x, center=center, shrinkage=1e-9)
    expected = [shrunk_covariance(c, shrinkage=s) for c, s in zip(plain, strengths, strict=True)]
    computed = trial_covariances(x, center=center, shrinkage="ledoit_wolf")
    assert_allclose(computed, expected, rtol=1e-6)
    assert np.ptp(strengths) > 0


def test_ledoit_wolf_of_white_noise_is_the_target():
    """With few samples of white noise the estimated noise exceeds the scatter: s stops at 1."""
    x = np.random.default_rng(3).standard_normal((20, 4, 6))
    strengths = np.array([ledoit_wolf_shrinkage(trial.T, assume_centered=True) for trial in x])
    computed = trial_covariances(x, shrinkage="ledoit_wolf")
    expected = trial_covariances(x, shrinkage=1.0)
    assert 0 < (strengths == 1).sum() < 20
    assert_allclose(computed[strengths == 1], expected[strengths == 1], rtol=1e-12)
    assert np.abs(computed - expected)[strengths < 1].max() > 0.01


def test_ledoit_wolf_of_complex_signals():
    """It approaches the true covariance, and knows nothing of a common phase."""
    rng = np.random.default_rng(3)
    mixing = np.array([[2.0, 0.0], [1.0 + 1.0j, 0.5]])
    white = rng.standard_normal((1, 2, 40_000)) + 1j * rng.standard_normal((1, 2, 40_000))
    truth = 2 * mixing @ mixing.conj().T
    errors = []
    for n_samples in (6, 40_000):
        x = mixing @ white[..., :n_samples]
        estimate = trial_covariances(x, shrinkage="ledoit_wolf")[0]
        errors.append(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))
    assert errors[1] < 0.02 < errors[0]
    real = signals(4)
    assert_allclose(
        trial_covariances(real * np.exp(0.7j), shrinkage="ledoit_wolf"),
        trial_covariances(real, shrinkage="ledoit_wolf"),
        rtol=1e-10,
        atol=1e-12,
    )


def test_ledoit_wolf_of_degenerate_trials():
    x = np.zeros((3, 2, 4))
    x[1, 0] = 1.0  # a flat channel beside a live one
    x[2] = [[1, 1, -1, -1], [1, -1, 1, -1]]  # exactly white: the target itself
    covariances = trial_covariances(x, shrinkage="ledoit_wolf")
    assert_array_equal(covariances[0], 0.0)
    assert_allclose(covariances[1], [[4 / 3, 0.0], [0.0, 0.0]], atol=1e-15)
    assert_allclose(covariances[2], 4 / 3 * np.eye(2))


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("shape", [(5, 6, 3), (5, 6, 30), (20, 4, 6), (2, 6, 300), (2, 1, 9)], ids=str)
def test_oas_is_that_of_scikit_learn(center, shape):
    x = signals(2, shape)
    strengths = [oas(trial.T, assume_centered=not center)[1] for trial in x]
    plain = trial_covariances(x, center=center, shrinkage=1e-9)
    expected = [shrunk_covariance(c, shrinkage=s) for c, s in zip(plain, strengths, strict=True)]
    assert_allclose(trial_covariances(x, center=center, shrinkage="oas"), expected, rtol=1e-6)


def test_oas_of_complex_signals_is_nearly_the_best_shrinkage():
    """Circular Gaussian signals need another strength than real ones: the mean squared error says so."""
    rng = np.random.default_rng(3)
    n, n_samples, scales = 16, 40, np.geomspace(0.5, 2.0, 16)
    white = rng.standard_normal((400, n, n_samples)) + 1j * rng.standard_normal((400, n, n_samples))
    x = np.sqrt(scales / 2)[:, None] * white

    def error(shrinkage):
        found = trial_covariances(x, shrinkage=shrinkage) * (n_samples - 1) / n_samples
        return np.mean(np.abs(found - np.diag(scales)) ** 2)

    best = min(error(s) for s in np.linspace(0, 1, 21))
    assert error("oas") < 1.05 * best
    assert error("oas") < 0.5 * error(0.0)


def test_oas_of_degenerate_trials():
    x = np.zeros((3, 2, 4))
    x[1, 0] = 1.0
    x[2] = [[1, 1, -1, -1], [1, -1, 1, -1]]  # exactly white: the target itself
    covariances = trial_covariances(x, shrinkage="oas")
    assert_array_equal(covariances[0], 0.0)
    assert_allclose(covariances[1], np.diag([0.6, 0.4]) * 4 / 3)
    assert_allclose(covariances[2], 4 / 3 * np.eye(2))


@given(SEEDS, st.floats(1e-9, 1e9), st.booleans(), st.sampled_from([0.0, 0.3, "ledoit_wolf", "oas"]))
def test_units_only_scale(seed, factor, is_complex, shrinkage):
    """Microvolts or volts: the shrinkage is the same, also where fourth powers would underflow."""
    x = signals(seed, is_complex=is_complex)
    assert_allclose(
        trial_covariances(factor * x, shrinkage=shrinkage),
        factor**2 * trial_covariances(x, shrinkage=shrinkage),
        rtol=1e-9,
        atol=1e-12 * factor**2,
    )


@given(SEEDS, st.booleans(), st.booleans())
def test_linear_mixing_is_a_congruence(seed, is_complex, center):
    x = signals(seed, is_complex=is_complex)
    a = signals(seed + 1, (1, 4, 4), is_complex)[0]
    mixed = trial_covariances(a @ x, center=center)
    expected = a @ trial_covariances(x, center=center) @ a.conj().T
    assert_allclose(mixed, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@given(SEEDS, st.booleans(), st.sampled_from([0.0, 0.2, "ledoit_wolf", "oas"]))
def test_results_are_hermitian_positive_definite_and_keep_the_trace(seed, is_complex, shrinkage):
    x = signals(seed, is_complex=is_complex)
    covariances = trial_covariances(x, shrinkage=shrinkage)
    assert_array_equal(covariances, covariances.conj().swapaxes(1, 2))
    assert np.linalg.eigvalsh(covariances).min() > 0
    power = np.sum(np.abs(x) ** 2, axis=(1, 2)) / (x.shape[2] - 1)
    assert_allclose(np.trace(covariances, axis1=1, axis2=2).real, power, rtol=1e-12)


def test_fewer_samples_than_channels_need_shrinkage():
    x = signals(5, (2, 6, 4))
    for shrinkage in (0.05, "ledoit_wolf", "oas"):
        spectrum = np.linalg.eigvalsh(trial_covariances(x, shrinkage=shrinkage))
        assert (spectrum[:, 0] > 1e-3 * spectrum[:, -1]).all()
    with pytest.raises(ValueError, match=r"X\[0\] is (singular|not positive definite).*shrinkage"):
        AffineInvariant().encode(trial_covariances(x))
    with pytest.raises(ValueError, match=r"at least 2 samples"):
        trial_covariances(np.ones((2, 1, 1)), shrinkage=0.5)
    assert np.linalg.eigvalsh(trial_covariances(signals(5, (2, 4, 4)))).min() > 0


def test_trials_of_integers_lists_and_single_precision():
    x = np.random.default_rng(6).integers(-99, 99, (2, 3, 50), dtype=np.int8)
    expected = trial_covariances(x.astype(float))
    assert_array_equal(trial_covariances(x), expected)
    assert_array_equal(trial_covariances(x.tolist()), expected)
    single = trial_covariances(x.astype(np.float32))
    assert single.dtype == np.float64
    assert_array_equal(single, expected)


def test_input_is_not_written_to():
    x = signals(7)
    before = x.copy()
    trial_covariances(x, center=True, shrinkage="ledoit_wolf")
    assert_array_equal(x, before)


def test_it_is_a_pipeline_step():
    step = FunctionTransformer(trial_covariances, kw_args={"center": True, "shrinkage": 0.2})
    x = signals(8)
    revived = pickle.loads(pickle.dumps(step)).fit(x)
    expected = trial_covariances(x, center=True, shrinkage=0.2)
    assert_array_equal(revived.transform(x), expected)


@pytest.mark.parametrize(("bad", "text"), [(np.nan, "nan"), (-np.inf, "-inf"), (complex(2, np.nan), r"\(2\+nanj\)")])
def test_non_finite_samples_are_named(bad, text):
    x = signals(9, is_complex=isinstance(bad, complex))
    x[1, 2, 7] = bad
    x[2, 0, 0] = np.nan
    with pytest.raises(ValueError, match=rf"X\[1\].*\[2, 7\] is {text}"):
        trial_covariances(x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((4, 30)), r"X must have 3 axes.*\(4, 30\).*X\[None\]"),
        (np.ones((2, 2, 4, 30)), r"X must have 3 axes.*\(2, 2, 4, 30\)"),
        (np.ones((0, 4, 30)), r"0 sample"),
        (np.ones((2, 0, 30)), r"X must hold at least one channel.*\(2, 0, 30\)"),
        (np.full((1, 2, 3), "a"), r"X must hold numbers"),
    ],
)
def test_wrong_trials_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        trial_covariances(x)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, True, None, "lwf", 0.1j, [0.1], np.array([0.1, 0.2])])
def test_wrong_shrinkage_is_refused(bad):
    with pytest.raises(ValueError, match=r"shrinkage must be a number in \[0, 1\] or 'ledoit_wolf' or 'oas'"):
        trial_covariances(signals(10), shrinkage=bad)
    with pytest.raises(ValueError, match=r"shrinkage must be a number in \[0, 1\], got"):
        region_covariances(np.ones((1, 4, 4)), shrinkage=bad)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("strength", [0.0, 1e-6, 0.3, 1])
def test_shrinking_matrices_is_shrinking_their_trials(is_complex, strength):
    x = signals(11, is_complex=is_complex)
    before = trial_covariances(x)
    found = shrink(before, strength)
    assert_array_equal(found, trial_covariances(x, shrinkage=strength))
    assert_array_equal(before, trial_covariances(x))
    assert_array_equal(shrink(before), trial_covariances(x, shrinkage=1e-6))


def test_shrinking_repairs_an_average_reference_with_little():
    x = signals(12)
    referenced = trial_covariances(x - x.mean(axis=1, keepdims=True))
    with pytest.raises(ValueError, match=r"shrink\(X, shrinkage=1e-6\)"):
        AffineInvariant().encode(referenced)
    repaired = AffineInvariant().encode(shrink(referenced, shrinkage=1e-6))
    assert np.abs(repaired - referenced).max() < 2e-6 * np.abs(referenced).max()
    single = shrink(referenced.astype(np.float32), shrinkage=1e-3)
    assert AffineInvariant().encode(single).dtype == np.float64


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, "ledoit_wolf", None, True])
def test_shrink_refuses_what_is_no_share(bad):
    with pytest.raises(ValueError, match=r"shrinkage must be a number in \[0, 1\], got"):
        shrink(np.eye(2)[None], shrinkage=bad)
    with pytest.raises(ValueError, match=r"X\[1\] contains NaN"):
        shrink([np.eye(2), np.full((2, 2), np.nan)])


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize(
    "shrunk",
    [
        lambda x: trial_covariances(x, shrinkage=0.1),
        lambda x: trial_covariances(x, shrinkage="ledoit_wolf"),
        lambda x: shrink(trial_covariances(x), shrinkage=1e-6),
        lambda x: region_covariances(x.real, lambda image: np.broadcast_to(image.T, (4, 30, 4)), shrinkage=0.1),
    ],
    ids=["share", "ledoit_wolf", "matrices", "regions"],
)
def test_shrinkage_that_mixes_units_warns(is_complex, shrunk):
    x = signals(13, is_complex=is_complex)
    shrunk(x)  # one unit
    x[:, 2] *= 1e-8
    with pytest.warns(UserWarning, match=r"mixes the units of the channels. Channels . and . differ by [789] orders"):
        shrunk(x)
    trial_covariances(x)  # nothing is mixed
    trial_covariances(x, shrinkage=1e-20)
