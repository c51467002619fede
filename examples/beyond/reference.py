"""What an average reference costs: covariances of full rank beside those that have lost one direction.

The data are BCI 2a and one subject of eegmmi, with all frequencies or with those from 8 to 30 Hz. On BCI 2a a
repetition draws a fifth of the trials of session 1 of each subject for testing. On eegmmi it deals folds of two whole
runs. All inputs are scored on the same splits:

- "full rank" has the reference of the recording;
- "common subspace" are average-referenced trials in a pipeline with :class:`rplvq.CommonSubspace`;
- "Helmert" are the same trials in a fixed basis of the directions that are left;
- "random" has the reference of the recording, and one random direction of each repetition is dropped.

The classifiers are the default, the class means, and logistic regression in the tangent space.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import helmert, qr
from scipy.signal import butter, sosfiltfilt
from sklearn.model_selection import GroupKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline

from examples.beyond.default import FILES, tangent_space
from examples.paper.data import is_available, load_arrays, load_bci2a
from examples.paper.runner import Job, Record
from rplvq import CommonSubspace, RiemannianLVQ, TrialCovariances
from rplvq.protocols import Array

__all__ = ["CLASSIFIERS", "INPUTS", "TITLES", "inputs", "jobs", "score", "smoke"]

INPUTS = ("full rank", "common subspace", "Helmert", "random")
CLASSIFIERS = ("default", "class means", "TS + LR")
TITLES = {
    "bci2a": "BCI 2a",
    "four": "eegmmi, four classes",
    "four-band": "eegmmi, four classes, 8 to 30 Hz",
    "fists-band": "eegmmi, two fists, 8 to 30 Hz",
}
"""Titles of the data sets by name."""
SUBJECTS = range(1, 10)
BAND = (8.0, 30.0)
"""Frequencies in Hz."""
REPETITIONS = 10


def inputs(covariances: Array, referenced: Array, repetition: int) -> dict[str, Array]:
    """Return the input matrices (N, n, n) or (N, n - 1, n - 1) by name.

    Parameters
    ----------
    covariances, referenced : ndarray of shape (N, n, n)
        Covariances with the reference of the recording and with the average reference.
    repetition : int
        Seed of the random direction.
    """
    n = covariances.shape[-1]
    fixed = helmert(n)
    normal = np.random.default_rng(repetition).normal(size=(n, 1))
    others = qr(normal)[0][:, 1:].T  # an orthonormal basis of what is orthogonal to the random direction
    return {
        "full rank": covariances,
        "common subspace": referenced,
        "Helmert": fixed @ referenced @ fixed.T,
        "random": others @ covariances @ others.T,
    }


@cache
def _eegmmi(data: str) -> tuple[Array, Array, Array, Array]:
    """Return covariances with both references, labels and runs of the trials."""
    X, unit, rate, y, run = load_arrays("eegmmi_s001_raw.npz", "trials", "unit_microvolt", "sfreq", "y", "run")
    trials = X * float(unit)
    if data.endswith("band"):
        trials = sosfiltfilt(butter(4, BAND, "bandpass", fs=float(rate), output="sos"), trials)
    covariances = TrialCovariances().fit_transform(trials)
    referenced = TrialCovariances().fit_transform(trials - trials.mean(axis=1, keepdims=True))
    rows = np.char.endswith(y, "fist") if data.startswith("fists") else np.ones(len(y), bool)
    return covariances[rows], referenced[rows], y[rows], run[rows]


def parts(data: str, repetition: int, subjects: int) -> Iterator[tuple[Array, Array, Array, Array, Array, Array]]:
    """Yield both covariances, labels and units (N,) of trials, and the indices of those that train and test.

    A unit is a subject or a run.
    """
    if data == "bci2a":
        for subject in SUBJECTS[:subjects]:
            X, y, *_ = load_bci2a(subject)
            average = np.eye(X.shape[-1]) - 1 / X.shape[-1]
            splitter = StratifiedShuffleSplit(1, test_size=0.2, random_state=repetition)
            train, test = next(splitter.split(X, y))
            yield X, average @ X @ average, y, np.full(len(y), subject), train, test
        return
    covariances, referenced, y, run = _eegmmi(data)
    folds = GroupKFold(len(np.unique(run)) // 2, shuffle=True, random_state=repetition)
    for train, test in folds.split(covariances, y, run):
        yield covariances, referenced, y, run, train, test


def classifier(name: str, is_referenced: bool, seed: int) -> Any:
    """Return a classifier that is not fitted, in a pipeline if it needs the common subspace."""
    models = {
        "default": RiemannianLVQ(random_state=seed),
        "class means": RiemannianLVQ(max_epochs=0),
        "TS + LR": tangent_space(),
    }
    return make_pipeline(CommonSubspace(), models[name]) if is_referenced else models[name]


def score(*, repetition: int, method: str, data: str, subjects: int = len(SUBJECTS)) -> Record:
    """Score the classifiers on the inputs of one repetition; ``method`` has no effect.

    Returns
    -------
    dict
        For each classifier and input, as "default, full rank", the accuracies of the subjects or runs.
    """
    del method
    hits: dict[str, dict[int, list[float]]] = {}
    for covariances, referenced, y, units, train, test in parts(data, repetition, subjects):
        for name, X in inputs(covariances, referenced, repetition).items():
            for kind in CLASSIFIERS:
                model = classifier(kind, name == "common subspace", repetition).fit(X[train], y[train])
                of_units = hits.setdefault(f"{kind}, {name}", {})
                for unit, is_right in zip(units[test], model.predict(X[test]) == y[test], strict=True):
                    of_units.setdefault(int(unit), []).append(float(is_right))
    return {way: [float(np.mean(found[unit])) for unit in sorted(found)] for way, found in hits.items()}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, the first repetition of each data set first; ``quick`` has one, of one subject."""
    return [
        Job(f"reference-{data}", "all", repetition, {"data": data} | ({"subjects": 1} if quick else {}), score)
        for repetition in range(1 if quick else REPETITIONS)
        for data in TITLES
        if is_available(FILES["bci2a" if data == "bci2a" else "eegmmi"])
    ]


def smoke() -> list[Job]:
    """Return jobs of seconds: two fists."""
    return [Job("reference-fists-band", "all", 0, {"data": "fists-band"}, score)]
