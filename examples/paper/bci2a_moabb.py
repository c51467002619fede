"""BCI Competition IV 2a from its recordings, which MOABB downloads: the paper's preprocessing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.signal import butter, sosfilt

from examples.paper.data import Split
from rplvq.preprocessing import trial_covariances
from rplvq.protocols import Array

__all__ = ["filtered_trials", "load_moabb", "recording_covariances"]

MICROVOLTS = 1e6


def filtered_trials(
    recording: Array,
    cues: Iterable[int],
    rate: float,
    *,
    window: tuple[float, float] = (0.5, 2.5),
    band: tuple[float, float] = (10.0, 30.0),
    order: int = 5,
) -> Array:
    """Band-pass a recording, then cut a window after each cue.

    The Butterworth filter runs forward over the whole recording. No trial therefore depends on later signals, and no
    trial begins with the transient of the filter.

    Parameters
    ----------
    recording : ndarray of shape (n_channels, n_times)
        Signals of one run, in any unit.
    cues : iterable of int
        Position of the N cues in samples.
    rate : float
        Samples per second.
    window : (float, float), default=(0.5, 2.5)
        Beginning and end in seconds after the cue; the end is not included.
    band : (float, float), default=(10, 30)
        Hz.
    order : int, default=5
        Order of the low-pass prototype of the filter.

    Returns
    -------
    ndarray of shape (N, n_channels, n_samples)
        In the unit of the recording.

    Raises
    ------
    ValueError
        If the window of a trial exceeds the recording.
    """
    filtered = sosfilt(butter(order, band, "bandpass", fs=rate, output="sos"), recording, axis=-1)
    begin, end = (round(seconds * rate) for seconds in window)
    trials = []
    for index, cue in enumerate(cues):
        if cue + begin < 0 or cue + end > recording.shape[-1]:
            raise ValueError(
                f"cues[{index}] is at sample {cue}: its window {cue + begin} to {cue + end} leaves the recording of "
                f"{recording.shape[-1]} samples"
            )
        trials.append(filtered[:, cue + begin : cue + end])
    return np.stack(trials)


def recording_covariances(recording: Array, cues: Iterable[int], rate: float) -> Array:
    """Covariances ``E E^T / (l - 1)`` (N, n_channels, n_channels) of the paper's trials of one run."""
    return trial_covariances(filtered_trials(recording, cues, rate))


def load_moabb(subject: int) -> Split:
    """Download one subject by MOABB (``BNCI2014_001``) and compute the paper's covariances.

    This function needs a network connection and the packages moabb and mne. It was written from MOABB's documentation
    and tested only with a substitute for MOABB. Compare its output with :func:`examples.paper.data.load_bci2a` before
    you rely on it. The paper does not say whether its filter was causal; the filter here is.

    Parameters
    ----------
    subject : int
        1 to 9.

    Returns
    -------
    Split
        22 x 22 covariances in squared microvolts and labels 1 to 4 (left hand, right hand, feet, tongue). The first
        session trains, and the second one tests.

    Raises
    ------
    ImportError
        If moabb or mne is not installed.
    """
    try:
        import mne
        from moabb.datasets import BNCI2014_001
    except ImportError as error:
        raise ImportError("the recordings are read by MOABB: pip install moabb (it brings mne)") from error
    dataset = BNCI2014_001()
    sessions = dataset.get_data(subjects=[subject])[subject]
    parts = [_session(mne, dataset, list(sessions[name].values())) for name in sorted(sessions)]
    if len(parts) != 2:
        raise ValueError(f"subject {subject} has sessions {sorted(sessions)}, expected one to train and one to test")
    return Split(*parts[0], *parts[1])


def _session(mne: Any, dataset: Any, runs: list[Any]) -> tuple[Array, Array]:
    """Covariances and labels of the runs of one session."""
    X, y = [], []
    for raw in runs:
        if "stim" in raw:
            events = mne.find_events(raw, shortest_event=0, verbose="ERROR")
        else:
            events, _ = mne.events_from_annotations(raw, event_id=dataset.event_id, verbose="ERROR")
        rate = float(raw.info["sfreq"])
        # Events mark the beginning of trials. The task, and so the cue, begins at the start of the data set's interval.
        cues = events[:, 0] - raw.first_samp + round(dataset.interval[0] * rate)
        X.append(recording_covariances(raw.get_data(picks="eeg") * MICROVOLTS, cues, rate))
        y.append(events[:, 2])
    return np.concatenate(X), np.concatenate(y)
