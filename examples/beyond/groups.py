"""The default classifier whose trials hold out random samples or whole groups, on test samples of other groups.

- "airsar": pixels of the left half of the radar scene train, and those of the right half test; groups are the cells of
  a grid of 128 x 128 pixels.
- "eegmmi": folds of whole runs of the EEG recording; groups are runs.
- "bci2a": session 1 trains, session 2 tests; groups are the six runs of session 1. Values are means over nine subjects.
- "full256" and "mask256": the images of six of the ten objects of each category of ETH-80 train, and those of the other
  four test; groups are objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from sklearn.model_selection import GroupKFold

from examples.beyond.default import (
    EPOCHS,
    airsar_pixels,
    airsar_rows,
    calibration_error,
    eegmmi_runs,
    loss_of,
    tangent_space,
)
from examples.paper.data import Split, is_available, load_arrays, load_bci2a
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ
from rplvq.protocols import Array

__all__ = ["METHODS", "REPETITIONS", "jobs", "score", "smoke", "splits"]

METHODS = ("class means", "by samples", "by groups", "tangent space")
REPETITIONS = {"airsar": 10, "eegmmi": 10, "bci2a": 1, "full256": 3, "mask256": 3}
FILES = {
    "airsar": "polsar_sf_airsar_T3.npz",
    "eegmmi": "eegmmi_s001_raw.npz",
    "bci2a": "bci2a_cov22.npz",
    "full256": "eth80_cov5.npz",
    "mask256": "eth80_cov5.npz",
}
RUN = 48
"""Number of trials in one run of BCI 2a."""
CELL = 128
"""Width and height of a cell of the radar scene, in pixels."""
N_TEST_OBJECTS = 4
"""Number of objects per category of ETH-80 that test."""


def splits(data: str, repetition: int) -> Iterator[tuple[Split, Array]]:
    """Yield the splits of one repetition, each with the groups of its training samples."""
    rng = np.random.default_rng(repetition)
    if data == "airsar":
        train, test = airsar_rows("regions", rng)
        split, width = airsar_pixels(train, test)
        yield split, train // width // CELL * width + train % width // CELL
    elif data == "eegmmi":
        X, y, run = eegmmi_runs()
        for train, test in GroupKFold(6, shuffle=True, random_state=repetition).split(X, y, run):
            yield Split(X[train], y[train], X[test], y[test]), run[train]
    elif data == "bci2a":
        for subject in range(1, 10):
            split = load_bci2a(subject)
            yield split, np.arange(len(split.y_train)) // RUN
    else:
        X, y, number = load_arrays("eth80_cov5.npz", data, "y", "object")
        objects = y * (number.max() + 1) + number
        drawn = [rng.permutation(np.unique(objects[y == label]))[:N_TEST_OBJECTS] for label in np.unique(y)]
        test = np.isin(objects, drawn)
        yield Split(X[~test], y[~test], X[test], y[test]), objects[~test]


def score(*, repetition: int, method: str, data: str, max_epochs: int = EPOCHS) -> Record:
    """Score all methods; every value is a mean over the splits of the repetition.

    Returns
    -------
    dict
        For each method accuracy, log_loss, ece, and the share of splits that trained; and "behind", by how much the
        accuracy by groups is below that of the tangent space, with the standard error over test samples.
    """
    del method
    found: dict[str, list[list[float]]] = {name: [] for name in METHODS}
    behind: list[Array] = []
    for split, groups in splits(data, repetition):
        hits = {}
        for name in METHODS:
            given = {"groups": groups} if name == "by groups" else {}
            model = tangent_space()
            if name != "tangent space":
                n_epochs = 0 if name == "class means" else max_epochs
                model = RiemannianLVQ(max_epochs=n_epochs, random_state=repetition)
            model.fit(split.X_train, split.y_train, **given)
            proba, right = model.predict_proba(split.X_test), model.predict(split.X_test) == split.y_test
            loss = loss_of(model, split, proba)
            trained = float(getattr(model, "n_epochs_", 1) > 0)
            found[name].append([right.mean(), loss, calibration_error(proba, right), trained])
            hits[name] = right.astype(float)
        behind.append(hits["tangent space"] - hits["by groups"])
    columns, differences = ("accuracy", "log_loss", "ece", "trained"), np.concatenate(behind)
    means = {name: dict(zip(columns, np.mean(rows, axis=0).tolist(), strict=True)) for name, rows in found.items()}
    error = float(differences.std() / np.sqrt(len(differences)))
    return {**means, "behind": {"difference": float(differences.mean()), "standard_error": error}}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, the first repetition of each first; ``quick`` has one of 3 epochs."""
    data = [name for name in REPETITIONS if is_available(FILES[name])]
    settings = {"max_epochs": 3} if quick else {}
    found = [
        Job(f"groups-{name}", "affine-invariant", i, {"data": name, **settings}, score)
        for i, name in product(range(1 if quick else 10), data)
    ]
    return [job for job in found if job.repetition < REPETITIONS[job.settings["data"]]]


def smoke() -> list[Job]:
    """Return a job of seconds, if the radar scene is there."""
    settings = {"data": "airsar", "max_epochs": 3}
    return [Job("groups-airsar", "affine-invariant", 0, settings, score)] if is_available(FILES["airsar"]) else []
