"""Covariances by band of frequencies, and of delayed copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rplvq import AffineInvariant, Product, RiemannianLVQ
from rplvq.features import augmented_covariances, filter_bank_covariances, trial_covariances

SFREQ, BANDS = 100.0, [(8, 12), (16, 24), (30, 40)]
TRIALS = 1e-5 * np.random.default_rng(0).standard_normal((6, 3, 400))


@pytest.mark.parametrize("zero_phase", [True, False])
def test_a_bank_has_the_covariances_of_filtered_trials(zero_phase):
    found = filter_bank_covariances(TRIALS, SFREQ, BANDS, order=3, zero_phase=zero_phase, shrinkage="oas")
    assert found.shape == (6, 3, 3, 3)
    for index, (low, high) in enumerate(BANDS):
        b, a = scipy.signal.butter(3, [low / 50, high / 50], "bandpass")
        if zero_phase:
            # The same odd reflection at both ends as for second-order sections, whose default length differs.
            length = 3 * (2 * 3 + 1)
            filtered = scipy.signal.filtfilt(b, a, TRIALS, padtype="odd", padlen=length)
        else:
            filtered = scipy.signal.lfilter(b, a, TRIALS)
        assert_allclose(found[:, index], trial_covariances(filtered, shrinkage="oas"), rtol=1e-6, atol=1e-18)


def test_a_causal_filter_sees_no_later_samples():
    longer = np.concatenate([TRIALS, 1e3 * TRIALS], axis=2)
    both = [
        scipy.signal.sosfilt(scipy.signal.butter(4, (8, 12), "bandpass", output="sos", fs=SFREQ), t)
        for t in (TRIALS, longer)
    ]
    wanted = trial_covariances(both[1][..., :400])
    assert_allclose(filter_bank_covariances(TRIALS, SFREQ, [(8, 12)], zero_phase=False)[:, 0], wanted, rtol=1e-12)


def test_power_is_found_in_its_band():
    time = np.arange(400) / SFREQ
    trials = np.sin(2 * np.pi * np.array([10.0, 20.0, 35.0])[:, None, None] * time)
    power = filter_bank_covariances(trials, SFREQ, BANDS)[..., 0, 0]
    assert (power.argmax(axis=1) == [0, 1, 2]).all()
    assert_allclose(np.diag(power), 0.5, rtol=0.05)


def test_complex_trials_are_filtered_part_by_part():
    trials = TRIALS + 1j * TRIALS[::-1]
    found = filter_bank_covariances(trials, SFREQ, BANDS)
    assert found.dtype == complex
    ones = filter_bank_covariances(TRIALS, SFREQ, BANDS)
    assert_allclose(np.trace(found, axis1=2, axis2=3).real, np.trace(ones + ones[::-1], axis1=2, axis2=3), rtol=1e-9)


@pytest.mark.parametrize(("order", "lag"), [(1, 3), (2, 1), (4, 7)])
def test_augmented_covariances_are_lagged_products(order, lag):
    found = augmented_covariances(TRIALS, order, lag)
    assert found.shape == (6, 3 * order, 3 * order)
    length = 400 - (order - 1) * lag
    for p, q in np.ndindex(order, order):
        first, second = (TRIALS[..., k * lag : k * lag + length] for k in (p, q))
        block = found[:, 3 * p : 3 * p + 3, 3 * q : 3 * q + 3]
        assert_allclose(block, np.einsum("bit,bjt->bij", first, second) / (length - 1), rtol=1e-10, atol=1e-20)
    if order == 1:
        assert_allclose(found, trial_covariances(TRIALS))


def test_both_are_steps_of_a_pipeline_and_products_name_the_band():
    y = np.repeat(["left", "right"], 3)
    step = FunctionTransformer(filter_bank_covariances, kw_args={"sfreq": SFREQ, "bands": BANDS})
    model = make_pipeline(step, RiemannianLVQ(Product([AffineInvariant()] * 3), max_epochs=2, random_state=0))
    assert clone(model).fit(TRIALS, y).predict(TRIALS).shape == (6,)
    flat = TRIALS.copy()
    flat[4, 1] = 0
    with pytest.raises(ValueError, match=r"X\[4\] has a factor 0 that is singular"):
        model.fit(flat, y)
    steps = FunctionTransformer(augmented_covariances, kw_args={"order": 2, "lag": 5})
    assert make_pipeline(steps, RiemannianLVQ(max_epochs=0)).fit(TRIALS, y).predict(TRIALS).shape == (6,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bands": []}, "bands must hold at least one pair"),
        ({"bands": [(8, 12), (12, 8)]}, r"bands\[1\] must be \(low, high\) with 0 < low < high < 50 Hz, got \(12, 8\)"),
        ({"bands": [(8, 50)]}, r"bands\[0\] must be"),
        ({"bands": [8]}, r"bands\[0\] must be"),
        ({"sfreq": 0.0}, "sfreq must be a positive finite number"),
        ({"sfreq": "160"}, "sfreq must be a positive finite number, got '160'"),
        ({"order": 0}, "order must be an integer of at least 1"),
        ({"trials": TRIALS[..., :10]}, "trials of 10 samples are too short"),
        ({"trials": np.full((1, 2, 400), np.nan)}, r"X\[0\] contains NaN"),
        ({"trials": TRIALS[0]}, "must have 3 axes"),
        ({"shrinkage": 2}, "shrinkage must be"),
    ],
)
def test_invalid_arguments_of_a_bank_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        filter_bank_covariances(**({"trials": TRIALS, "sfreq": SFREQ, "bands": BANDS} | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": 0}, "order must be an integer of at least 1"),
        ({"lag": 0}, "lag must be an integer of at least 1"),
        ({"lag": 200}, "trials of 400 samples are too short for order=4 and lag=200"),
        ({"trials": [[1.0]]}, "must have 3 axes"),
    ],
)
def test_invalid_arguments_of_augmentation_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        augmented_covariances(**({"trials": TRIALS, "order": 4} | change))
