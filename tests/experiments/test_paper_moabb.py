"""From raw recordings to the covariances of BCI IV 2a: filter, trials, and a substitute for MOABB's data set."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from examples.paper.bci2a_moabb import arrays_of, filtered_trials, load_moabb, recording_covariances, write
from examples.paper.data import Split, load_bci2a
from rplvq import RiemannianLVQ

RATE = 250.0


def test_the_band_passes_and_the_rest_does_not():
    times = np.arange(int(8 * RATE)) / RATE
    recording = np.array([np.sin(2 * np.pi * frequency * times) for frequency in (20.0, 5.0, 50.0)])
    power = recording_covariances(recording + 1e-3 * _noise(recording.shape), [500, 1000], RATE)
    inside, *outside = np.diagonal(power, axis1=1, axis2=2).mean(axis=0)
    assert inside == pytest.approx(0.5, rel=0.02)  # the mean square of a sine
    assert max(outside) < 1e-3


def test_a_trial_is_the_window_after_its_cue():
    recording = _noise((3, 2000))
    wide = filtered_trials(recording, [0], RATE, window=(0.0, 8.0))[0]
    trials = filtered_trials(recording, [250, 1000], RATE)
    assert trials.shape == (2, 3, 500)
    np.testing.assert_array_equal(trials[1], wide[:, 1125:1625])


def test_a_trial_does_not_see_its_future():
    recording = _noise((2, 2000))
    changed = recording.copy()
    changed[:, 1625:] = 0.0
    np.testing.assert_array_equal(*(filtered_trials(signals, [1000], RATE) for signals in (recording, changed)))


def test_a_window_outside_the_recording_is_refused():
    with pytest.raises(ValueError, match=r"cues\[1\] is at sample 1600"):
        filtered_trials(_noise((2, 2000)), [0, 1600], RATE)


def test_covariances_divide_by_the_samples_less_one():
    recording = _noise((2, 2000))
    trial = filtered_trials(recording, [700], RATE)[0]
    np.testing.assert_allclose(recording_covariances(recording, [700], RATE)[0], trial @ trial.T / 499)


class Recording:
    """A raw recording of mne, with the methods that the loader calls."""

    def __init__(self, seed):
        self.signals, self.info, self.first_samp = _noise((22, 6000), seed), {"sfreq": RATE}, 100

    def get_data(self, picks):
        assert picks == "eeg"
        return self.signals / 1e6


EVENTS = np.array([[350, 0, 3], [2350, 0, 1]])


@pytest.fixture
def moabb(monkeypatch):
    """A substitute for moabb and mne: two sessions of two runs, with events at the beginning of trials."""
    runs = {name: {str(run): Recording(10 * i + run) for run in range(2)} for i, name in enumerate("BA")}

    class BNCI2014001:
        interval = (2, 6)

        def get_data(self, subjects):
            return {subjects[0]: runs}

    mne = types.ModuleType("mne")
    mne.find_events = lambda raw, **_: EVENTS
    datasets = types.ModuleType("moabb.datasets")
    datasets.BNCI2014_001 = BNCI2014001
    for name, module in (("mne", mne), ("moabb", types.ModuleType("moabb")), ("moabb.datasets", datasets)):
        monkeypatch.setitem(sys.modules, name, module)
    return runs


def test_the_loader_cuts_half_a_second_after_the_cue_two_seconds_into_the_trial(moabb):
    split = load_moabb(1)
    assert split.X_train.shape == split.X_test.shape == (4, 22, 22)
    assert split.y_train.tolist() == [3, 1, 3, 1]
    expected = recording_covariances(moabb["A"]["1"].signals, [350 - 100 + 500, 2350 - 100 + 500], RATE)
    np.testing.assert_allclose(split.X_train[2:], expected, rtol=1e-9)
    RiemannianLVQ(max_epochs=0).fit(split.X_train, split.y_train)


def test_the_written_file_is_read_as_the_published_one(moabb, tmp_path, monkeypatch):
    write(tmp_path / "data" / "bci2a_cov22.npz")
    monkeypatch.setenv("RPLVQ_DATA", str(tmp_path / "data"))
    for subject in (1, 9):
        for read, loaded in zip(load_bci2a(subject), load_moabb(subject), strict=True):
            np.testing.assert_array_equal(read, loaded)
    with pytest.raises(SystemExit, match="exists: remove it first"):
        write(tmp_path / "data" / "bci2a_cov22.npz")


def test_arrays_have_the_names_types_and_order_of_the_published_file(real_data):
    trials = np.random.default_rng(0).normal(size=(576, 22, 50))
    X, y = trials @ trials.swapaxes(1, 2), np.tile(np.int32([1, 2, 3, 4]), 144)
    with np.load(real_data("bci2a_cov22.npz")) as published:
        arrays = {}
        for subject in range(1, 10):
            arrays |= arrays_of(subject, Split(X[:288], y[:288], X[288:], y[288:]))
        assert {name: (array.shape, array.dtype) for name, array in arrays.items()} == {
            name: (published[name].shape, published[name].dtype) for name in published.files
        }
        np.testing.assert_array_equal(arrays["s3_test"], published["s3_test"])


def test_without_moabb_the_loader_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "moabb", None)
    monkeypatch.setitem(sys.modules, "mne", None)
    with pytest.raises(ImportError, match="pip install moabb"):
        load_moabb(1)


def _noise(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)
