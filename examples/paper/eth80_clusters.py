"""Why our columns KM and KKM on ETH-80 are lower than the published ones: descriptors, units, numbers of clusters.

The published columns come from Jayasumana et al. 2015. This experiment changes one thing at a time: whole images or the
objects alone, features in the units of pixels and grey levels or of variance one, as many clusters as classes or more.
The Log-Euclidean metric depends on the units of the features; the affine-invariant one does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from examples.paper.eth80 import GAMMA_FACTORS, split
from examples.paper.kernel_kmeans import median_gamma
from examples.paper.kernels import clustering_accuracy, le_kernel_kmeans, le_kmeans, log_vectors, majority_labels
from examples.paper.runner import Job, Record
from rplvq.protocols import Array

__all__ = ["cluster_reading", "jobs", "smoke", "unit_variances"]


def unit_variances(X: Array) -> Array:
    """Scale the features of covariances (N, n, n) so that each has the variance 1 on average.

    Examples
    --------
    >>> unit_variances(np.array([[[4.0, 1.0], [1.0, 1.0]]]))
    array([[[1. , 0.5],
            [0.5, 1. ]]])
    """
    scale = 1.0 / np.sqrt(np.diagonal(X, axis1=1, axis2=2).mean(axis=0))
    return np.asarray(X * np.outer(scale, scale))


def cluster_reading(
    *,
    repetition: int,
    method: str,
    descriptor: str,
    n_classes: int,
    n_clusters: int,
    scaled: bool,
    gamma_factors: Sequence[float] = (),
) -> Record:
    """Cluster the test images of a split under one reading.

    Parameters
    ----------
    method : str
        The name of the row, which has no effect.
    n_clusters : int
        Number of clusters. The best assignment of clusters to classes is one to one if there are as many of both.
    scaled : bool
        Whether features are scaled by :func:`unit_variances`.
    gamma_factors : sequence of float, optional
        With values, kernel k-means is run with each of these factors on the median heuristic of gamma.

    Returns
    -------
    dict
        accuracy (one-to-one assignment) and purity (each cluster has the class of most of its images). With several
        gammas, those of the gamma with the highest value on these same images, which is an upper bound.
    """
    del method
    data = split(descriptor, n_classes, repetition)
    X, y = (unit_variances(data.X_test) if scaled else data.X_test), data.y_test
    if gamma_factors:
        median = median_gamma(log_vectors(X))
        models = [le_kernel_kmeans(n_clusters, median * factor, repetition, 5) for factor in gamma_factors]
    else:
        models = [le_kmeans(n_clusters, repetition)]
    found = [model.fit(X)[-1].labels_ for model in models]
    accuracies = [clustering_accuracy(y, labels) for labels in found]
    purities = [float(np.mean(majority_labels(labels, y, n_clusters)[labels] == y)) for labels in found]
    return {"accuracy": max(accuracies), "purity": max(purities)}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs; ``quick`` has one split of three classes."""
    return list(_readings(range(1 if quick else 5), 3 if quick else 8))


def smoke() -> list[Job]:
    """Return jobs of seconds: the readings of three classes on one split."""
    return list(_readings(range(1), 3))


def _readings(repetitions: range, n_classes: int) -> Iterator[Job]:
    for repetition, descriptor, scaled in product(repetitions, ("full256", "mask256"), (False, True)):
        where = "whole images" if descriptor == "full256" else "objects alone"
        place = f"{where}, {'unit variances' if scaled else 'raw units'}"
        settings: Record = {"descriptor": descriptor, "n_classes": n_classes, "scaled": scaled}
        for times in (1, 2, 4):
            count = {"n_clusters": times * n_classes}
            yield Job(
                "eth80-clusters", f"k-means, {place}, {times} C clusters", repetition, settings | count, cluster_reading
            )
        kernel = {"n_clusters": n_classes, "gamma_factors": GAMMA_FACTORS}
        yield Job(
            "eth80-clusters", f"kernel k-means, {place}, best gamma", repetition, settings | kernel, cluster_reading
        )
