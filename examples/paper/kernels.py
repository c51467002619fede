r"""Log-Euclidean kernel methods and clusterings: the paper's columns KM and KKM, and a kernel SVM.

S. Jayasumana, R. Hartley, M. Salzmann, H. Li, M. Harandi, "Kernel Methods on Riemannian Manifolds with Gaussian
RBF Kernels", IEEE TPAMI 37(12), 2015, doi:10.1109/TPAMI.2015.2414422. They show that the Gaussian kernel of the
Log-Euclidean distance, ``k(X, Y) = exp(-gamma ||log X - log Y||_F^2)``, is positive definite for every gamma > 0.

All methods here work on the vectors of the matrix logarithms, where the Log-Euclidean distance is Euclidean. Except
for kernel k-means, they are therefore methods of scikit-learn.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from examples.paper.gmlvq import half_vectors
from examples.paper.kernel_kmeans import KernelKMeans, median_gamma
from rplvq import LogEuclidean
from rplvq.protocols import Array

__all__ = [
    "LogEuclideanSVC",
    "clustering_accuracy",
    "le_kernel_kmeans",
    "le_kmeans",
    "log_vectors",
    "majority_labels",
    "tuned_le_svc",
]


def log_vectors(X: Any) -> Array:
    """Return vectors (N, n (n + 1) / 2) of the logarithms of SPD matrices (N, n, n), which have the same norm.

    Examples
    --------
    >>> log_vectors([np.diag([np.e, 1.0])])
    array([[1., 0., 0.]])
    """
    return half_vectors(LogEuclidean().encode(X))


class LogEuclideanSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Support vector machine with the Log-Euclidean Gaussian kernel.

    Parameters
    ----------
    C : float, default=10
        Penalty of the support vector machine.
    gamma : float or "median", default="median"
        gamma of the kernel; "median" is the median heuristic.
    gamma_factor : float, default=1
        Factor on gamma, which cross-validation can choose.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels, sorted.
    gamma_ : float
        gamma as used, with the factor.

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
        """Learn from SPD matrices (N, n, n) and labels (N,). Invalid ones raise ValueError."""
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


def tuned_le_svc(random_state: int = 0, n_splits: int = 3) -> GridSearchCV:
    """Return a Log-Euclidean SVM whose C and gamma are chosen by stratified cross-validation on the training data."""
    grid = {"C": [1.0, 10.0, 100.0], "gamma_factor": [1.0, 4.0, 16.0, 64.0]}
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    return GridSearchCV(LogEuclideanSVC(), grid, cv=folds)


def le_kmeans(n_clusters: int, random_state: int = 0) -> Pipeline:
    """Return k-means under the Log-Euclidean metric: that of scikit-learn on the log-vectors, with 20 restarts."""
    kmeans = KMeans(n_clusters, n_init=20, random_state=random_state)
    return make_pipeline(FunctionTransformer(log_vectors), kmeans)


def le_kernel_kmeans(
    n_clusters: int, gamma: float | str = "median", random_state: int = 0, n_init: int = 20
) -> Pipeline:
    """Return kernel k-means with the Log-Euclidean Gaussian kernel and ``n_init`` restarts."""
    kmeans = KernelKMeans(n_clusters, gamma=gamma, n_init=n_init, random_state=random_state)
    return make_pipeline(FunctionTransformer(log_vectors), kmeans)


def clustering_accuracy(y: Array, clusters: Array) -> float:
    """Return the share of samples that are in the cluster of their class, if each class is assigned one cluster.

    The one-to-one assignment is the best one for these samples (the Hungarian method). Because it uses the labels, this
    is the accuracy of a clustering and not that of a classifier.

    Parameters
    ----------
    y : ndarray of shape (N,)
        Labels.
    clusters : ndarray of shape (N,)
        Cluster of each sample, as arbitrary numbers.

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
    """Return the most frequent label (n_clusters,) in each cluster; an empty cluster gets that of all samples.

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
