"""BCI Competition IV 2a from its recordings, which MOABB downloads: the paper's preprocessing.

``python -m examples.paper.bci2a_moabb data/bci2a_cov22.npz`` writes the file that the examples and experiments read.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.signal import butter, sosfilt

from examples.paper.data import N_CHANNELS, Split
from rplvq.features import trial_covariances
from rplvq.protocols import Array

__all__ = ["arrays_of", "filtered_trials", "load_moabb", "recording_covariances", "write"]

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

    This function needs a network connection and the packages moabb and mne. It was run with MOABB 1.7 on simulated
    recordings in the format of the real ones, and not on these. The paper does not say whether its filter was causal;
    the filter here is, so covariances can differ from those that the paper's authors published.

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


def arrays_of(subject: int, split: Split) -> dict[str, Array]:
    """Return the arrays of one subject by their names in bci2a_cov22.npz: ``sk_cov``, ``sk_y`` and ``sk_test``.

    ``sk_cov`` (N, 253) holds the upper triangles of all covariances, row by row, and ``sk_test`` (N,) is True for
    those of the second session.
    """
    X, y = (np.concatenate(parts) for parts in ((split.X_train, split.X_test), (split.y_train, split.y_test)))
    rows, columns = np.triu_indices(N_CHANNELS)
    test = np.arange(len(y)) >= len(split.y_train)
    return {f"s{subject}_cov": X[:, rows, columns], f"s{subject}_y": y.astype(np.int64), f"s{subject}_test": test}


def write(path: pathlib.Path) -> None:
    """Download all nine subjects, and write their covariances as a new file that ``load_bci2a`` reads."""
    if path.exists():
        raise SystemExit(f"{path} exists: remove it first, or give another name")
    arrays: dict[str, Array] = {}
    for subject in range(1, 10):
        arrays |= arrays_of(subject, load_moabb(subject))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def _session(mne: Any, dataset: Any, runs: list[Any]) -> tuple[Array, Array]:
    """Covariances and labels of the runs of one session."""
    X, y = [], []
    for raw in runs:
        events = mne.find_events(raw, shortest_event=0, verbose="ERROR")
        rate = float(raw.info["sfreq"])
        # Events mark the beginning of trials. The task, and so the cue, begins at the start of the data set's interval.
        cues = events[:, 0] - raw.first_samp + round(dataset.interval[0] * rate)
        X.append(recording_covariances(raw.get_data(picks="eeg") * MICROVOLTS, cues, rate))
        y.append(events[:, 2])
    return np.concatenate(X), np.concatenate(y)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=write.__doc__)
    parser.add_argument("path", type=pathlib.Path)
    write(parser.parse_args().path)
