"""Classify multivariate time series of aeon by their covariance matrices, and compare with nearest-neighbour baselines.

The data are JapaneseVowels (12 cepstral coefficients of nine speakers, 7 to 29 samples each) and BasicMotions (six
sensors, four activities), with their official training and test sets. A series that is shorter than its number of
channels has a singular covariance, so Ledoit-Wolf shrinkage is used. This module needs aeon, which the extra
``series`` installs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from examples.paper.runner import Job, Record
from rplvq import HeldOut, RiemannianLVQ
from rplvq.features import trial_covariances
from rplvq.protocols import Array

METRICS = {"affine-invariant": "affine_invariant", "Log-Euclidean": "log_euclidean", "projected Euclidean": "euclidean"}
BASELINES = {"1-NN, Euclidean distance": "euclidean", "1-NN, dynamic time warping": "dtw"}


def jobs(quick: bool) -> list[Job]:
    """Return the jobs: each metric before training (MDM) and with 1, 2 and 4 prototypes per class, and baselines."""
    found = []
    for dataset in ("vowels", "motions"):
        for name, metric in METRICS.items():
            found.append(Job(f"{dataset}", f"MDM, {name}", 0, _settings(dataset, metric, 1, 0), classify))
            for count in (1,) if quick else (1, 2, 4):
                method = f"RiemannianLVQ, {name}, {count} a class"
                settings = _settings(dataset, metric, count, 2 if quick else 50)
                found += [Job(dataset, method, seed, settings, classify) for seed in range(1 if quick else 5)]
        found += [
            Job(dataset, name, 0, {"dataset": dataset, "distance": distance}, neighbours)
            for name, distance in (list(BASELINES.items())[:1] if quick else BASELINES.items())
        ]
    return found


def _settings(dataset: str, metric: str, count: int, epochs: int) -> dict[str, Any]:
    return {"dataset": dataset, "metric": metric, "prototypes_per_class": count, "max_epochs": epochs}


@lru_cache(maxsize=4)
def load_series(dataset: str, split: str) -> tuple[Any, Array]:
    """Load series (channels, samples) of different lengths, and their labels."""
    from aeon import datasets

    loader = {"vowels": datasets.load_japanese_vowels, "motions": datasets.load_basic_motions}[dataset]
    series, labels = loader(split=split)
    return series, np.asarray(labels)


@lru_cache(maxsize=4)
def covariances(dataset: str, split: str) -> tuple[Array, Array]:
    """Return the shrunk second-moment matrices (N, n, n) of the series, and the labels (N,)."""
    series, labels = load_series(dataset, split)
    matrices = [trial_covariances(np.asarray(one)[None], shrinkage="ledoit_wolf")[0] for one in series]
    return np.stack(matrices), labels


def classify(
    *,
    repetition: int,
    method: str,  # noqa: ARG001 - every job is called with the name of its method
    dataset: str,
    metric: str,
    prototypes_per_class: int,
    max_epochs: int,
) -> Record:
    """Train on the official training set, and return the accuracy on the test set."""
    model = RiemannianLVQ(
        metric,
        sigma2=HeldOut(("auto",)),
        step_size="paper",
        prototypes_per_class=prototypes_per_class,
        init="mean" if prototypes_per_class == 1 else "kmeans",
        max_epochs=max_epochs,
        random_state=repetition,
    )
    model.fit(*covariances(dataset, "train"))
    return {"accuracy": float(model.score(*covariances(dataset, "test")))}


def neighbours(*, repetition: int, method: str, dataset: str, distance: str) -> Record:  # noqa: ARG001 - as above
    """Return the accuracy of the nearest training series. Shorter series are padded with zeros at the end."""
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    parts = [load_series(dataset, split) for split in ("train", "test")]
    longest = max(np.shape(one)[1] for series, _ in parts for one in series)
    train, test = (
        np.stack([np.pad(one, ((0, 0), (0, longest - np.shape(one)[1]))) for one in series]) for series, _ in parts
    )
    model = KNeighborsTimeSeriesClassifier(n_neighbors=1, distance=distance).fit(train, parts[0][1])
    return {"accuracy": float(np.mean(model.predict(test) == parts[1][1]))}
