"""Products of manifolds: objects by their whole image and their mask, with a useless factor, and EEG by bands.

"products-eth80" are the splits of ETH-80 with C = 8 and 6 prototypes per class under the Log-Euclidean metric. The
factors are the covariance matrices of the whole image, of the mask, and "noise": those of the whole images of other
samples, drawn at random. "products-eegmmi" are folds of whole runs of one subject, with four classes. "products-own"
are random matrices of three classes and three parts, where each class can be told by a part of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.signal import butter, sosfiltfilt
from sklearn.model_selection import GroupKFold

from examples.beyond.default import tangent_space
from examples.paper import eth80
from examples.paper.data import Split, is_available, load_arrays
from examples.paper.runner import Job, Record
from rplvq import AffineInvariant, GeometricDecay, LogEuclidean, Product, RiemannianLVQ, TangentSpace
from rplvq.arrays import expm, sqrtm
from rplvq.features import augmented_covariances, filter_bank_covariances, trial_covariances
from rplvq.protocols import Array

__all__ = ["BANDS", "EEG", "OBJECTS", "OWN", "jobs", "score_eeg", "score_objects", "score_own", "smoke"]

OBJECTS = {
    "whole image": ("whole",),
    "mask": ("mask",),
    "both, equal": ("whole", "mask"),
    "both, learned": ("whole", "mask"),
    "both and noise, equal": ("whole", "mask", "noise"),
    "both and noise, learned": ("whole", "mask", "noise"),
}
"""Factors by method; the relevances are learned if its name says so."""
WHOLE_BAND = (8.0, 32.0)
BANDS = ((8.0, 12.0), (12.0, 16.0), (16.0, 20.0), (20.0, 26.0), (26.0, 32.0))
EEG = (
    "one band",
    "one band, tangent space",
    "augmented",
    "augmented, tangent space",
    "filter bank, equal",
    "filter bank, learned",
)
"""Methods of the EEG recording; "tangent space" is that with logistic regression, others are rplvq's defaults."""
OWN = {"equal": None, "one set": "learned", "one set per prototype": "local"}
"""Relevances by method, for the classes with parts of their own."""
STEP = 4.8  # the first step of the paper, 0.3 for 5 x 5 matrices and 6 prototypes per class, for batches of 16


def score_objects(*, repetition: int, method: str, n_classes: int = 8, max_epochs: int = 100) -> Record:
    """Fit and score one method on one split of ETH-80.

    Returns
    -------
    dict
        accuracy on the test images, and the relevances by factor.
    """
    factors = OBJECTS[method]
    whole, mask = (eth80.split(name, n_classes, repetition) for name in eth80.DESCRIPTORS)
    rng = np.random.default_rng(repetition)
    noise = Split(rng.permutation(whole.X_train), whole.y_train, rng.permutation(whole.X_test), whole.y_test)
    found = {"whole": whole, "mask": mask, "noise": noise}
    product = _product(LogEuclidean(), len(factors), method)
    model = RiemannianLVQ(
        product,
        sigma2=0.5,
        step_size=GeometricDecay(STEP),
        prototypes_per_class=6,
        batch_size=16,
        max_epochs=max_epochs,
        random_state=repetition,
    )
    model.fit(product.pack([found[name].X_train for name in factors]), whole.y_train)
    accuracy = model.score(product.pack([found[name].X_test for name in factors]), whole.y_test)
    relevances = product.relevances_of(model.state_.prototypes).tolist()
    return {"accuracy": accuracy, "relevances": dict(zip(factors, relevances, strict=True))}


def _product(metric: Any, count: int, method: str) -> Product:
    return Product([metric] * count, relevances="learned" if method.endswith("learned") else None)


def _signals(method: str) -> tuple[Array, Array, Array]:
    """Return what a method sees of the trials of the EEG recording, their labels and their runs."""
    trials, unit, sfreq, y, run = load_arrays("eegmmi_s001_raw.npz", "trials", "unit_microvolt", "sfreq", "y", "run")
    trials, sfreq = trials * float(unit), float(sfreq)
    if method.startswith("filter bank"):
        return filter_bank_covariances(trials, sfreq, BANDS, shrinkage="ledoit_wolf"), y, run
    sections = butter(4, WHOLE_BAND, btype="bandpass", output="sos", fs=sfreq)
    filtered = sosfiltfilt(sections, trials, axis=-1)
    if method.startswith("augmented"):
        return augmented_covariances(filtered, order=4, lag=4, shrinkage="ledoit_wolf"), y, run
    return trial_covariances(filtered, shrinkage="ledoit_wolf"), y, run


def _eeg_model(method: str, seed: int, max_epochs: int) -> Any:
    if method.endswith("tangent space"):
        return tangent_space()
    bank = method.startswith("filter bank")
    metric = _product(TangentSpace(), len(BANDS), method) if bank else AffineInvariant()
    # Trained steps on 88 x 88 matrices take hours, so augmented covariances are classified by their class means.
    epochs = 0 if method == "augmented" else max_epochs
    return RiemannianLVQ(metric, batch_size=16, max_epochs=epochs, random_state=seed)


def _folds(method: str, repetition: int) -> Iterator[Split]:
    X, y, run = _signals(method)
    for train, test in GroupKFold(6, shuffle=True, random_state=repetition).split(X, y, run):
        yield Split(X[train], y[train], X[test], y[test])


def score_eeg(*, repetition: int, method: str, max_epochs: int = 100) -> Record:
    """Fit and score one method on six folds of whole runs.

    Returns
    -------
    dict
        accuracy over all trials, and for filter banks the mean relevances of the bands.
    """
    right, relevances = [], []
    for split in _folds(method, repetition):
        model = _eeg_model(method, repetition, max_epochs).fit(split.X_train, split.y_train)
        right.append(model.predict(split.X_test) == split.y_test)
        if method.startswith("filter bank"):
            relevances.append(model.metric.relevances_of(model.state_.prototypes))
    extra = {"relevances": np.mean(relevances, axis=0).tolist()} if relevances else {}
    return {"accuracy": float(np.mean(np.concatenate(right))), **extra}


def own_parts(seed: int, per_class: int) -> tuple[Array, Array]:
    """Return samples (N, 3, 3, 3) and classes (N,); class c is near a center in part c, and spread out elsewhere."""

    def around_the_identity(rng: np.random.Generator, count: int, spread: float) -> Array:
        noise = rng.normal(size=(count, 3, 3))
        return expm(0.5 * spread * (noise + noise.swapaxes(1, 2)))

    roots = sqrtm(around_the_identity(np.random.default_rng(0), 3, 0.7))
    rng = np.random.default_rng([1, seed])
    y = rng.permutation(np.repeat(np.arange(3), per_class))
    X = np.stack([around_the_identity(rng, len(y), 0.8) for _ in range(3)], axis=1)
    X[np.arange(len(y)), y] = roots[y] @ around_the_identity(rng, len(y), 0.25) @ roots[y]
    return 0.5 * (X + X.swapaxes(-1, -2)), y


def score_own(*, repetition: int, method: str, max_epochs: int = 30) -> Record:
    """Fit one method to 60 samples per class, and score it on 300.

    Returns
    -------
    dict
        accuracy, and the relevances (3,), or (3, 3) with one row per class.
    """
    product = Product([LogEuclidean()] * 3, relevances=OWN[method])
    model = RiemannianLVQ(product, sigma2=1.0, step_size=0.3, max_epochs=max_epochs, random_state=repetition)
    model.fit(*own_parts(2 * repetition, 60))
    relevances = product.relevances_of(model.state_.prototypes).tolist()
    return {"accuracy": model.score(*own_parts(2 * repetition + 1, 300)), "relevances": relevances}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs, the first repetition of each first; ``quick`` has one of 3 epochs."""
    settings = {"max_epochs": 3} if quick else {}
    found = [Job("products-own", name, i, settings, score_own) for i in range(1 if quick else 6) for name in OWN]
    if is_available("eth80_cov5.npz"):
        count = 1 if quick else 20
        found += [Job("products-eth80", name, i, settings, score_objects) for i in range(count) for name in OBJECTS]
    if is_available("eegmmi_s001_raw.npz"):
        count = 1 if quick else 3
        found += [Job("products-eegmmi", name, i, settings, score_eeg) for i in range(count) for name in EEG]
    return sorted(found, key=lambda job: job.repetition)


def smoke() -> list[Job]:
    """Return jobs of seconds: three categories and two epochs."""
    names = ("both, learned", "both and noise, equal")
    return [Job("products-eth80", name, 0, {"n_classes": 3, "max_epochs": 2}, score_objects) for name in names]
