r"""Log-Euclidean kernel methods and clusterings: the paper's columns KM and KKM, and a kernel SVM.

S. Jayasumana, R. Hartley, M. Salzmann, H. Li, M. Harandi, "Kernel Methods on Riemannian Manifolds with Gaussian
RBF Kernels", IEEE TPAMI 37(12), 2015, doi:10.1109/TPAMI.2015.2414422: the Gaussian kernel of the Log-Euclidean
distance, ``k(X, Y) = exp(-gamma ||log X - log Y||_F^2)``, is positive definite for every gamma > 0.

All methods here work on the vectors of the matrix logarithms, where the Log-Euclidean distance is Euclidean,
so scikit-learn does the rest but for kernel k-means, which it does not have.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.metrics import confusion_matrix
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from examples.paper.gmlvq import half_vectors
from rplvq import LogEuclidean
from rplvq.protocols import Array

__all__ = [
    "KernelKMeans",
    "LogEuclideanSVC",
    "clustering_accuracy",
    "le_kernel_kmeans",
    "le_kmeans",
    "log_vectors",
    "majority_labels",
    "median_gamma",
    "tuned_le_svc",
]


def log_vectors(X: Any) -> Array:
    """Vectors (N, n (n + 1) / 2) of the logarithms of SPD matrices (N, n, n), with their Frobenius norm.

    Examples
    --------
    >>> log_vectors([np.diag([np.e, 1.0])])
    array([[1., 0., 0.]])
    """
    return half_vectors(LogEuclidean().encode(X))


def median_gamma(vectors: Array, n_max: int = 1000) -> float:
    """Return the median heuristic ``gamma = 1 / (2 median ||u - v||^2)`` over pairs of vectors (N, D).

    Of more than ``n_max`` vectors, evenly spaced ones are taken.

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


class LogEuclideanSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Support vector machine with the Log-Euclidean Gaussian kernel.

    Parameters
    ----------
    C : float, default=10
        Penalty.
    gamma : float or "median", default="median"
        Of the kernel, or the median heuristic.
    gamma_factor : float, default=1
        Multiplies gamma: what cross-validation searches.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels, sorted.
    gamma_ : float
        Value used.

    Examples
    --------
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> LogEuclideanSVC().fit(X, y).score(X, y)
    1.0
    """

    def __init__(self, C: float = 10.0, *, gamma: float | str = "median", gamma_factor: float = 1.0) -> None:
        self.C = C
        self.gamma = gamma
        self.gamma_factor = gamma_factor

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from SPD matrices (N, n, n) and labels (N,); raise ValueError at invalid ones."""
        vectors = log_vectors(X)
        gamma = median_gamma(vectors) if self.gamma == "median" else float(self.gamma)
        self.gamma_ = gamma * self.gamma_factor
        self._svc = SVC(C=self.C, gamma=self.gamma_).fit(vectors, y)
        self.classes_ = self._svc.classes_
        return self

    def predict(self, X: Any) -> Array:
        """Labels (N,) of SPD matrices (N, n, n)."""
        check_is_fitted(self)
        return np.asarray(self._svc.predict(log_vectors(X)))

    def decision_function(self, X: Any) -> Array:
        """Scores (N, C), or (N,) for two classes, of SPD matrices (N, n, n)."""
        check_is_fitted(self)
        return np.asarray(self._svc.decision_function(log_vectors(X)))


def tuned_le_svc(random_state: int = 0, n_splits: int = 5) -> GridSearchCV:
    """Log-Euclidean SVM whose C and gamma are chosen by stratified cross-validation on the training data."""
    grid = {"C": [1.0, 10.0, 100.0, 1000.0], "gamma_factor": [0.25, 1.0, 4.0, 16.0]}
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    return GridSearchCV(LogEuclideanSVC(), grid, cv=folds)


class KernelKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """k-means in the feature space of the Gaussian kernel, on vectors.

    Minimises ``sum_i ||phi(x_i) - m_c(i)||^2``, m_c the mean of its cluster's images, by Lloyd's iterations from
    k-means++ seeds; only kernel values are needed (Schoelkopf, Smola, Mueller 1998, doi:10.1162/089976698300017467).

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters.
    gamma : float or "median", default="median"
        Of the kernel.
    n_init : int, default=20
        Restarts, the best of which counts.
    max_iter : int, default=100
        Bound on iterations of each.
    random_state : int, RandomState or None, default=None
        Seed.

    Attributes
    ----------
    labels_ : ndarray of int of shape (N,)
        Cluster of each sample.
    inertia_ : float
        The minimum found.

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
        n_init: int = 20,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Array, y: Any = None) -> Self:
        """Cluster vectors (N, D); y is ignored. Raises ValueError if there are fewer than n_clusters."""
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
        """Cluster (M,) of vectors (M, D)."""
        check_is_fitted(self)
        inner = rbf_kernel(self._vectors, gamma=self._gamma)
        cross = rbf_kernel(X, self._vectors, gamma=self._gamma)
        return _to_centers(inner, cross, self.labels_, self.n_clusters).argmin(axis=1)

    def _run(self, kernel: Array, rng: np.random.RandomState) -> tuple[float, Array]:
        """Inertia and clusters of one restart; the kernel's diagonal is 1."""
        labels = (1.0 - kernel[:, self._seeds(kernel, rng)]).argmin(axis=1)
        for _ in range(self.max_iter):
            nearest = _to_centers(kernel, kernel, labels, self.n_clusters).argmin(axis=1)
            if np.array_equal(nearest, labels):
                break
            labels = nearest
        distance = 1.0 + _to_centers(kernel, kernel, labels, self.n_clusters)
        return float(distance[np.arange(len(labels)), labels].sum()), labels

    def _seeds(self, kernel: Array, rng: np.random.RandomState) -> list[int]:
        """k-means++: seeds (n_clusters,) drawn by their squared distance to those before."""
        seeds = [int(rng.randint(len(kernel)))]
        nearest = np.full(len(kernel), np.inf)
        for _ in range(self.n_clusters - 1):
            nearest = np.minimum(nearest, np.maximum(2.0 - 2.0 * kernel[seeds[-1]], 0.0))
            total = nearest.sum()
            shares = nearest / total if total > 0 else np.full(len(kernel), 1.0 / len(kernel))
            seeds.append(int(rng.choice(len(kernel), p=shares)))
        return seeds


def _to_centers(inner: Array, cross: Array, labels: Array, n_clusters: int) -> Array:
    """Squared distances (M, n_clusters) to the clusters' means, less k(x, x); infinite to empty clusters.

    ``inner`` (N, N) is the kernel among the clustered samples, ``cross`` (M, N) that of others with them.
    """
    member = (labels[:, None] == np.arange(n_clusters)).astype(float)
    count = member.sum(axis=0)
    share = member / np.maximum(count, 1.0)
    spread = np.einsum("nk,nk->k", share, inner @ share)
    return np.where(count > 0, spread - 2.0 * cross @ share, np.inf)


def le_kmeans(n_clusters: int, random_state: int = 0) -> Pipeline:
    """k-means under the Log-Euclidean metric: scikit-learn's, on the log-vectors, 20 restarts."""
    kmeans = KMeans(n_clusters, n_init=20, random_state=random_state)
    return make_pipeline(FunctionTransformer(log_vectors), kmeans)


def le_kernel_kmeans(n_clusters: int, gamma: float | str = "median", random_state: int = 0) -> Pipeline:
    """Kernel k-means with the Log-Euclidean Gaussian kernel, 20 restarts."""
    kmeans = KernelKMeans(n_clusters, gamma=gamma, random_state=random_state)
    return make_pipeline(FunctionTransformer(log_vectors), kmeans)


def clustering_accuracy(y: Array, clusters: Array) -> float:
    """Share of samples in the right cluster when each class is given a cluster of its own.

    The assignment is the one-to-one that is best for these samples (the Hungarian method), so the labels are
    seen: an accuracy of the clustering, not of a classifier.

    Parameters
    ----------
    y : ndarray of shape (N,)
        Labels.
    clusters : ndarray of shape (N,)
        Clusters, any numbers.

    Examples
    --------
    >>> clustering_accuracy(np.array([0, 0, 1, 1]), np.array([7, 7, 3, 7]))
    0.75
    """
    codes = [np.unique(values, return_inverse=True)[1] for values in (y, clusters)]
    table = confusion_matrix(*codes)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / len(codes[0]))


def majority_labels(clusters: Array, y: Array, n_clusters: int) -> Array:
    """Most frequent label (n_clusters,) of the samples (N,) of each cluster; of all samples for an empty one.

    Examples
    --------
    >>> majority_labels(np.array([0, 0, 0, 2]), np.array(["a", "b", "b", "a"]), 3)
    array(['b', 'a', 'a'], dtype='<U1')
    """
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.zeros((n_clusters, len(classes)))
    np.add.at(counts, (clusters, codes), 1)
    counts[counts.sum(axis=1) == 0] = np.bincount(codes)
    return np.asarray(classes[counts.argmax(axis=1)])
