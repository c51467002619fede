"""Kernel k-means for the paper's column KKM; no well-maintained library offers it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rplvq.protocols import Array

__all__ = ["KernelKMeans", "median_gamma"]


def median_gamma(vectors: Array, n_max: int = 1000) -> float:
    """Return the median heuristic ``gamma = 1 / (2 median ||u - v||^2)`` over pairs of vectors (N, D).

    If there are more than ``n_max`` vectors, ``n_max`` evenly spaced ones are used.

    Examples
    --------
    >>> median_gamma(np.array([[0.0], [2.0]]))
    0.125
    """
    chosen = vectors[np.linspace(0, len(vectors) - 1, min(n_max, len(vectors))).astype(int)]
    median = float(np.median(pdist(chosen, "sqeuclidean")))
    if not median > 0:
        raise ValueError(f"the median squared distance is {median:g}: give gamma a number")
    return 1.0 / (2.0 * median)


class KernelKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """k-means in the feature space of the Gaussian kernel, on vectors.

    It minimises ``sum_i ||phi(x_i) - m_c(i)||^2``, where m_c is the mean of the images in cluster c, by Lloyd's
    iterations from k-means++ seeds. Only kernel values are needed (Schoelkopf, Smola, Mueller 1998,
    doi:10.1162/089976698300017467).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    gamma : float or "median", default="median"
        gamma of the kernel; "median" is the median heuristic.
    n_init : int, default=10
        Number of restarts; the best one is kept.
    max_iter : int, default=100
        Largest number of iterations per restart.
    random_state : int, RandomState or None, default=None
        Seed.

    Attributes
    ----------
    labels_ : ndarray of int of shape (N,)
        Cluster of each sample.
    inertia_ : float
        The minimum that was found.

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> labels = KernelKMeans(2, random_state=0).fit(points).labels_
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float | str = "median",
        n_init: int = 10,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Array, y: Any = None) -> Self:
        """Cluster vectors (N, D); y is ignored. Fewer vectors than ``n_clusters`` raise ValueError."""
        if len(X) < self.n_clusters:
            raise ValueError(f"X has {len(X)} samples, fewer than n_clusters={self.n_clusters}")
        rng = check_random_state(self.random_state)
        gamma = median_gamma(X) if self.gamma == "median" else float(self.gamma)
        kernel = rbf_kernel(X, gamma=gamma)
        runs = [self._run(kernel, rng) for _ in range(self.n_init)]
        self.inertia_, self.labels_ = min(runs, key=lambda run: run[0])
        self._vectors, self._gamma = X, gamma
        return self

    def predict(self, X: Array) -> Array:
        """Return the cluster (M,) of vectors (M, D)."""
        check_is_fitted(self)
        inner = rbf_kernel(self._vectors, gamma=self._gamma)
        cross = rbf_kernel(X, self._vectors, gamma=self._gamma)
        return np.asarray(_to_centers(inner, cross, self.labels_, self.n_clusters).argmin(axis=1))

    def _run(self, kernel: Array, rng: np.random.RandomState) -> tuple[float, Array]:
        """Return inertia and clusters of one restart. The diagonal of the kernel is 1."""
        labels = (1.0 - kernel[:, self._seeds(kernel, rng)]).argmin(axis=1)
        for _ in range(self.max_iter):
            nearest = _to_centers(kernel, None, labels, self.n_clusters).argmin(axis=1)
            if np.array_equal(nearest, labels):
                break
            labels = nearest
        distance = 1.0 + _to_centers(kernel, None, labels, self.n_clusters)
        return float(distance[np.arange(len(labels)), labels].sum()), labels

    def _seeds(self, kernel: Array, rng: np.random.RandomState) -> list[int]:
        """Draw the seeds of k-means++, each with a probability proportional to its squared distance to those before."""
        seeds = [int(rng.randint(len(kernel)))]
        nearest = np.full(len(kernel), np.inf)
        for _ in range(self.n_clusters - 1):
            nearest = np.minimum(nearest, np.maximum(2.0 - 2.0 * kernel[seeds[-1]], 0.0))
            total = nearest.sum()
            shares = nearest / total if total > 0 else np.full(len(kernel), 1.0 / len(kernel))
            seeds.append(int(rng.choice(len(kernel), p=shares)))
        return seeds


def _to_centers(inner: Array, cross: Array | None, labels: Array, n_clusters: int) -> Array:
    """Return squared distances (M, n_clusters) to the means of the clusters minus k(x, x); infinite to empty clusters.

    ``inner`` (N, N) is the kernel among the clustered samples. ``cross`` (M, N) is the kernel of other samples with
    them; None stands for the clustered samples themselves.
    """
    member = (labels[:, None] == np.arange(n_clusters)).astype(float)
    count = member.sum(axis=0)
    share = member / np.maximum(count, 1.0)
    inside = inner @ share
    spread = np.einsum("nk,nk->k", share, inside)
    return np.where(count > 0, spread - 2.0 * (inside if cross is None else cross @ share), np.inf)
