"""Trials of a file as a data set of MOABB: one subject of PhysionetMI, imagined and executed movements."""

from __future__ import annotations

from typing import Any

import mne
import numpy as np
from moabb.datasets.base import BaseDataset

from examples.paper.data import load_arrays

__all__ = ["LocalTrials"]

FILE = "eegmmi_s001_raw.npz"
CLASSES = {"left fist": "left_hand", "right fist": "right_hand", "both fists": "hands", "both feet": "feet"}


class LocalTrials(BaseDataset):  # type: ignore[misc]
    """The trials of subject S001 at 22 channels; each kind of movement is a session, and its runs are runs.

    The trials of a run, four seconds each, are put one after another. MOABB's filter of a run therefore passes the
    edges between them.
    """

    def __init__(self) -> None:
        (sfreq,) = load_arrays(FILE, "sfreq")
        n_samples = load_arrays(FILE, "trials")[0].shape[2]
        super().__init__(
            subjects=[1],
            sessions_per_subject=2,
            events={name: number for number, name in enumerate(CLASSES.values(), 1)},
            code="LocalTrials",
            interval=[0, (n_samples - 1) / float(sfreq)],
            paradigm="imagery",
        )

    def _get_single_subject_data(self, subject: int) -> dict[str, dict[str, Any]]:
        names = ("trials", "unit_microvolt", "sfreq", "channels", "y", "run", "kind")
        trials, unit, sfreq, channels, y, runs, kinds = load_arrays(FILE, *names)
        volts = trials * float(unit) * 1e-6
        info = mne.create_info([*map(str, channels), "stim"], float(sfreq), ["eeg"] * len(channels) + ["stim"])
        found: dict[str, dict[str, Any]] = {}
        for number, kind in enumerate(np.unique(kinds)):
            session = found.setdefault(f"{number}{kind}", {})
            for index, run in enumerate(np.unique(runs[kinds == kind])):
                rows = np.flatnonzero((kinds == kind) & (runs == run))
                session[str(index)] = _recording(volts[rows], [self.event_id[CLASSES[str(y[k])]] for k in rows], info)
        return found

    def data_path(self, subject: int, *args: Any, **kwargs: Any) -> list[str]:
        """Return the name of the file."""
        return [FILE]


def _recording(trials: Any, events: list[int], info: Any) -> Any:
    """Return a recording of trials (N, n_channels, n_samples) that follow each other, with the events at their starts.

    Before the first and after the last trial they are mirrored, as an event at the first sample is none for MNE.
    """
    signal = np.concatenate([trials[0, :, ::-1], *trials, trials[-1, :, ::-1]], axis=1)
    marks = np.zeros((1, signal.shape[1]))
    marks[0, trials.shape[2] * np.arange(1, len(trials) + 1)] = events
    return mne.io.RawArray(np.concatenate([signal, marks]), info, verbose="ERROR")
