"""The default classifier beside its class means, and beside tangent space with logistic regression, on the same splits.

Each job draws one split and scores all methods on it. A size is the number of training samples per class, or for the
digits in all; the other samples test. "regions" trains on the left half of the radar scene and tests on the right half,
"folds" are five folds of session 1 of BCI 2a, and "runs" are folds of whole runs of the EEG recording.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from examples.paper import eth80
from examples.paper.data import Split, coherency_matrices, is_available, load_arrays, load_bci2a
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ, TangentSpace
from rplvq.datasets import load_digits_covariances, make_syn1, make_syn2
from rplvq.features import trial_covariances
from rplvq.protocols import Array

__all__ = [
    "EPOCHS", "FILES", "SIZES", "airsar_pixels", "airsar_rows", "calibration_error", "eegmmi_runs", "jobs", "loss_of",
    "score", "smoke", "splits", "tangent_space",
]  # fmt: skip

SIZES: dict[str, tuple[Any, ...]] = {
    "syn1": (30, 60, 120, 250),
    "syn2": (30, 60, 120, 250),
    "digits": (50, 100, 200, 500, 1000),
    "bci2a": (10, 20, 72, "folds"),
    "eth80": ("full256", "mask256"),
    "airsar": (20, 100, 400, "regions"),
    "eegmmi": ("runs",),
}
"""Sizes, descriptors or ways to split, by data set."""
AT_THE_MEAN: dict[str, tuple[Any, ...]] = {
    "syn1": (120,),
    "syn2": (120,),
    "digits": (1000,),
    "bci2a": (72, "folds"),
    "eth80": ("full256", "mask256"),
    "airsar": ("regions",),
    "eegmmi": ("runs",),
}
"""The sizes for which the metrics at the mean are scored, too."""
FILES = {
    "bci2a": "bci2a_cov22.npz",
    "eth80": "eth80_cov5.npz",
    "airsar": "polsar_sf_airsar_T3.npz",
    "eegmmi": "eegmmi_s001_raw.npz",
}
EPOCHS: int = RiemannianLVQ().max_epochs
"""Number of epochs of the default."""
METRICS: dict[str, Any] = {
    "affine_invariant": "affine_invariant",
    "log_euclidean": "log_euclidean",
    "tangent": "tangent",
    "tangent, whitened": TangentSpace(whiten=True),
}
"""Metrics by the names of their records."""
BASELINE = "affine_invariant"
"""The metric beside which the baseline is scored, which has only one."""
N_TEST = {"syn": 250, "airsar": 400}
"""Number of test samples per class."""
REPETITIONS: dict[Any, int] = {72: 2, "folds": 1, "runs": 10}
"""Repetitions where only seeds or folds differ; else there are 10."""
N_REGION = 100
"""Number of pixels per class from each half of the radar scene."""


def splits(data: str, size: Any, repetition: int) -> Iterator[Split]:
    """Yield the splits of one repetition: one per subject or fold, and else a single one."""
    rng = np.random.default_rng(repetition)
    if data in ("syn1", "syn2"):
        make = make_syn1 if data == "syn1" else make_syn2
        yield _by_size(*make(n_per_class=size + N_TEST["syn"], random_state=repetition), size, rng)
    elif data == "digits":
        yield _by_size(*load_digits_covariances(), size // 10, rng)
    elif data == "eth80":
        yield eth80.split(size, 8, repetition)
    elif data == "airsar":
        yield airsar_pixels(*airsar_rows(size, rng))[0]
    elif data == "bci2a":
        for subject in range(1, 10):
            yield from _bci2a(subject, size, repetition, rng)
    else:
        X, y, run = eegmmi_runs()
        for train, test in GroupKFold(6, shuffle=True, random_state=repetition).split(X, y, run):
            yield Split(X[train], y[train], X[test], y[test])


def _by_size(X: Array, y: Array, size: int, rng: np.random.Generator) -> Split:
    """Draw ``size`` samples of each class for training; the others test."""
    train = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in np.unique(y)])
    test = np.setdiff1d(np.arange(len(y)), train)
    return Split(X[train], y[train], X[test], y[test])


def _bci2a(subject: int, size: Any, repetition: int, rng: np.random.Generator) -> Iterator[Split]:
    X, y, X_test, y_test = load_bci2a(subject)
    if size == "folds":
        for train, test in StratifiedKFold(5, shuffle=True, random_state=repetition).split(X, y):
            yield Split(X[train], y[train], X[test], y[test])
        return
    train = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in np.unique(y)])
    yield Split(X[train], y[train], X_test, y_test)


def eegmmi_runs() -> tuple[Array, Array, Array]:
    """Return the covariances (180, 22, 22) of the EEG recording, their labels and their runs."""
    trials, unit, y, run = load_arrays("eegmmi_s001_raw.npz", "trials", "unit_microvolt", "y", "run")
    return trial_covariances(trials * float(unit), shrinkage="ledoit_wolf"), y, run


def airsar_rows(size: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw pixels of each class, from anywhere or for training from the left half and for testing from the right.

    Return the flat indices of the training and of the test pixels.
    """
    (labels,) = load_arrays("polsar_sf_airsar_T3.npz", "labels")
    columns = np.arange(labels.shape[1]) < labels.shape[1] // 2
    halves = [columns, ~columns] if size == "regions" else [np.ones_like(columns)]
    n_train, rows = N_REGION if size == "regions" else size, []
    for label in range(1, 6):
        found = [rng.permutation(np.flatnonzero((labels == label) & half)) for half in halves]
        own = found[0], found[-1] if size == "regions" else found[0][n_train:]
        rows.append((own[0][:n_train], own[1][: N_TEST["airsar"]]))
    train, test = (np.concatenate(part) for part in zip(*rows, strict=True))
    return train, test


def airsar_pixels(train: Array, test: Array) -> tuple[Split, int]:
    """Return the radar pixels with these flat indices, and the width of the scene."""
    planes, names, labels = load_arrays("polsar_sf_airsar_T3.npz", "planes", "plane_names", "labels")
    y = labels.ravel()
    return Split(_pixels(planes, names, train), y[train], _pixels(planes, names, test), y[test]), labels.shape[1]


def _pixels(planes: Array, names: Array, rows: Array) -> Array:
    """Return the coherency matrices (N, 3, 3) of pixels, given their flat indices."""
    return coherency_matrices(planes.reshape(len(planes), -1)[:, rows].astype(float), names)


def calibration_error(proba: Array, right: Array, n_bins: int = 10) -> float:
    """Return the expected calibration error: the mean of ``|accuracy - confidence|`` over bins of equal width."""
    confidence = proba.max(axis=1)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(np.sum(right[bins == b] - confidence[bins == b])) for b in range(n_bins)]
    return float(sum(gaps) / len(right))


def as_real(vectors: Array) -> Array:
    """Return complex vectors (N, d) as real ones (N, 2d), and real ones as they are."""
    return np.hstack([vectors.real, vectors.imag]) if np.iscomplexobj(vectors) else vectors


def tangent_space() -> Any:
    """Return logistic regression in the tangent space at the Riemannian mean, from pyRiemann and scikit-learn."""
    from pyriemann.tangentspace import TangentSpace

    return make_pipeline(TangentSpace(), FunctionTransformer(as_real), LogisticRegression(max_iter=1000))


def loss_of(model: Any, split: Split, proba: Array) -> float:
    """Return the log-loss of probabilities (M, C) of the test samples."""
    return float(log_loss(split.y_test, np.clip(proba, 1e-15, 1), labels=model.classes_))


def methods(metric: Any, seed: int) -> dict[str, Any]:
    """Return the classifiers by name."""
    return {
        "class means": RiemannianLVQ(metric, max_epochs=0),
        "default": RiemannianLVQ(metric, random_state=seed),
        "tangent space": tangent_space(),
    }


def score(*, repetition: int, method: str, data: str, size: Any, max_epochs: int = EPOCHS) -> Record:
    """Score all methods under the metric named ``method``; every value is a mean over the splits of the repetition.

    Returns
    -------
    dict
        For each method accuracy, log_loss, ece, fit_seconds and predict_seconds, and the share of splits that trained.
    """
    found: dict[str, list[list[float]]] = {}
    trained = []
    for split in splits(data, size, repetition):
        for name, model in methods(METRICS[method], repetition).items():
            if name == "tangent space" and method != BASELINE:
                continue
            if name == "default":
                model.set_params(max_epochs=max_epochs)
            began = time.perf_counter()
            model.fit(split.X_train, split.y_train)
            fitted = time.perf_counter()
            proba, predicted = model.predict_proba(split.X_test), model.predict(split.X_test)
            right = predicted == split.y_test
            seconds = [fitted - began, time.perf_counter() - fitted]
            loss = loss_of(model, split, proba)
            found.setdefault(name, []).append([right.mean(), loss, calibration_error(proba, right), *seconds])
            if name == "default":
                trained.append(model.n_epochs_ > 0)
    columns = ("accuracy", "log_loss", "ece", "fit_seconds", "predict_seconds")
    means = {name: dict(zip(columns, np.mean(rows, axis=0).tolist(), strict=True)) for name, rows in found.items()}
    return {**means, "trained": float(np.mean(trained))}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, the first repetition of each first; ``quick`` has one of 3 epochs."""
    found = []
    for data, sizes in SIZES.items():
        if data in FILES and not is_available(FILES[data]):
            continue
        for size, metric in product(sizes, METRICS):
            if metric.startswith("tangent") and size not in AT_THE_MEAN[data]:
                continue
            n_repetitions = 1 if quick else REPETITIONS.get(size, 10)
            settings = {"data": data, "size": size} | ({"max_epochs": 3} if quick else {})
            found += [Job(f"default-{data}-{size}", metric, i, settings, score) for i in range(n_repetitions)]
    return sorted(found, key=lambda job: job.repetition)


def smoke() -> list[Job]:
    """Return jobs of seconds: few digits, few epochs."""
    settings = {"data": "digits", "size": 50, "max_epochs": 3}
    return [Job("default-digits-50", name, 0, settings, score) for name in (BASELINE, "tangent, whitened")]
