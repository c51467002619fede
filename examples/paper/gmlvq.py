"""Generalized matrix LVQ on positive definite matrices, with projection: the paper's baseline GMLVQ.

P. Schneider, M. Biehl, B. Hammer, "Adaptive Relevance Matrices in Learning Vector Quantization", Neural
Computation 21(12), 2009, doi:10.1162/neco.2009.11-08-908. The code follows the formulas of this paper. Matrices become
vectors, and a relevance matrix weighs their entries. After each step the eigenvalues of the prototypes that are below
tau are raised to tau, as Tang et al. do for all their Euclidean methods.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from examples.paper.data import unpack_symmetric
from rplvq import ClassMeans, ProjectedEuclidean
from rplvq.arrays import check_labels, from_spectrum
from rplvq.protocols import Array

__all__ = ["Gradient", "ProjectedGMLVQ", "half_vectors", "matrices_of", "raise_eigenvalues", "sample_cost"]


def half_vectors(matrices: Array) -> Array:
    """Return upper triangles (..., n (n + 1) / 2) of matrices (..., n, n), with off-diagonal entries times sqrt(2).

    The factor makes the Euclidean norm of a vector the Frobenius norm of its matrix.

    Examples
    --------
    >>> half_vectors(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3)
    array([1.   , 2.828, 3.   ])
    """
    rows, columns = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0)))


def matrices_of(vectors: Array, n: int) -> Array:
    """Symmetric matrices (..., n, n) of the vectors (..., n (n + 1) / 2) of :func:`half_vectors`."""
    rows, columns = np.triu_indices(n)
    return unpack_symmetric(vectors / np.where(rows == columns, 1.0, np.sqrt(2.0)), n)


def raise_eigenvalues(matrices: Array, tau: float) -> Array:
    """Symmetric matrices (..., n, n) with their eigenvalues below tau raised to tau."""
    eigenvalues, eigenvectors = np.linalg.eigh(matrices)
    if eigenvalues.min() >= tau:
        return matrices
    return np.asarray(from_spectrum(np.maximum(eigenvalues, tau), eigenvectors))


class Gradient(NamedTuple):
    """Cost of one sample and its gradient.

    Parameters
    ----------
    cost : float
        f(mu).
    pair : ndarray of int of shape (2,)
        The nearest prototype of the sample's class and the nearest one of another class. Only these have a gradient.
    prototypes : ndarray of shape (2, D)
        Gradient with respect to these two prototypes.
    omega : ndarray of shape (D, D)
        Gradient with respect to Omega.
    """

    cost: float
    pair: Array
    prototypes: Array
    omega: Array


def sample_cost(x: Array, same: Array, prototypes: Array, omega: Array, sigmoid: bool) -> Gradient:
    """Return the cost f(mu) of one sample, with mu = (d_J - d_K) / (d_J + d_K), and its gradient.

    The distance is ``d = (x - w)^T Omega^T Omega (x - w)``. J is the nearest prototype of the sample's class, and K is
    the nearest one of the other classes. f is the identity or the logistic function (Schneider et al. 2009, sections 2
    and 3).

    Parameters
    ----------
    x : ndarray of shape (D,)
        Sample.
    same : ndarray of bool of shape (K,)
        Which prototypes have the class of the sample.
    prototypes : ndarray of shape (K, D)
        Prototypes.
    omega : ndarray of shape (D, D)
        Root of the relevance matrix.
    sigmoid : bool
        Whether f is the logistic function instead of the identity.

    Returns
    -------
    Gradient
    """
    difference = x - prototypes
    image = difference @ omega.T
    distance = np.einsum("kd,kd->k", image, image)
    pair = np.array([np.where(same, distance, np.inf).argmin(), np.where(same, np.inf, distance).argmin()])
    near, far = distance[pair]
    total = max(near + far, np.finfo(float).tiny)
    cost, slope = (near - far) / total, 1.0
    if sigmoid:
        cost = 1.0 / (1.0 + np.exp(-cost))
        slope = cost * (1.0 - cost)
    by_distance = 2.0 * slope / total**2 * np.array([far, -near])
    weighted = by_distance[:, None] * image[pair]
    return Gradient(float(cost), pair, -2.0 * weighted @ omega, 2.0 * weighted.T @ difference[pair])


class ProjectedGMLVQ(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Generalized matrix LVQ whose prototypes are positive definite matrices.

    Training is stochastic gradient descent on the cost of :func:`sample_cost` with one sample per step. After each
    step Omega is scaled to ``trace(Omega^T Omega) = 1``, and the eigenvalues of the moved prototypes are raised to tau.
    Both step sizes fall as ``0.01^(t / T)`` in epoch t of T.

    Parameters
    ----------
    prototypes_per_class : int, default=1
        Number of prototypes per class. They start at the arithmetic mean of the class, slightly perturbed.
    cost : {"sigmoid", "identity"}, default="sigmoid"
        The function f.
    step_size : float, default=0.1
        Step size of the prototypes, in units of the mean squared distance of the samples to their class mean, so that
        it does not depend on the units of the data. A prototype moves by about this share of its way to a sample.
    relevance_step : float, default=0.01
        Step size of Omega.
    max_epochs : int, default=100
        Number of sweeps over the data.
    tau : float, default=1e-4
        Floor of the eigenvalues, in the units of the matrices.
    random_state : int, RandomState or None, default=None
        Seed of the initial prototypes and the sweeps.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels, sorted.
    prototypes_ : ndarray of shape (K, n, n)
        Prototypes.
    prototype_labels_ : ndarray of shape (K,)
        Label of each prototype.
    omega_ : ndarray of shape (D, D)
        Root of the relevance matrix, D = n (n + 1) / 2.
    cost_ : ndarray of shape (max_epochs,)
        Mean cost of the samples during each epoch, while the prototypes move.

    Examples
    --------
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> bool(ProjectedGMLVQ(max_epochs=5, random_state=0).fit(X, y).score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        prototypes_per_class: int = 1,
        *,
        cost: str = "sigmoid",
        step_size: float = 0.1,
        relevance_step: float = 0.01,
        max_epochs: int = 100,
        tau: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.cost = cost
        self.step_size = step_size
        self.relevance_step = relevance_step
        self.max_epochs = max_epochs
        self.tau = tau
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn prototypes and relevances.

        Parameters
        ----------
        X : array-like of shape (N, n, n)
            Symmetric positive definite matrices.
        y : array-like of shape (N,)
            Labels.

        Returns
        -------
        self : ProjectedGMLVQ

        Raises
        ------
        ValueError
            If the data or a parameter are invalid, or if y contains soft labels or one class only.
        """
        if self.cost not in ("sigmoid", "identity"):
            raise ValueError(f"cost must be 'sigmoid' or 'identity', got {self.cost!r}")
        manifold = ProjectedEuclidean(tau=self.tau)
        matrices = manifold.encode(X)
        classes, targets = check_labels(y, len(matrices))
        if targets.ndim > 1:
            raise ValueError(f"y must be labels of shape (N,), got soft labels of shape {targets.shape}")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        start, labels = ClassMeans(self.prototypes_per_class)(manifold, matrices, targets, len(classes), rng)
        self.classes_, self.prototype_labels_ = classes, classes[labels]
        self._n = matrices.shape[-1]
        self._train(half_vectors(matrices), targets, half_vectors(start), labels, rng)
        self.prototypes_ = matrices_of(self._vectors, self._n)
        return self

    def predict(self, X: Any) -> Array:
        """Return the label (N,) of the nearest prototype for samples (N, n, n)."""
        check_is_fitted(self)
        vectors = half_vectors(ProjectedEuclidean(tau=self.tau).encode(X)) @ self.omega_.T
        prototypes = self._vectors @ self.omega_.T
        distance = np.sum(prototypes**2, axis=1) - 2.0 * vectors @ prototypes.T
        return np.asarray(self.prototype_labels_[distance.argmin(axis=1)])

    def _train(
        self, vectors: Array, targets: Array, prototypes: Array, labels: Array, rng: np.random.Generator
    ) -> None:
        size = vectors.shape[1]
        omega = np.eye(size) / np.sqrt(size)
        own = prototypes[np.searchsorted(labels, targets)]
        scale = float(np.mean(np.sum((vectors - own) ** 2, axis=1)))
        costs = np.zeros(self.max_epochs)
        for epoch in range(self.max_epochs):
            decay = 0.01 ** ((epoch + 1) / self.max_epochs)
            for index in rng.permutation(len(vectors)):
                gradient = sample_cost(
                    vectors[index], labels == targets[index], prototypes, omega, self.cost == "sigmoid"
                )
                costs[epoch] += gradient.cost / len(vectors)
                moved = prototypes[gradient.pair] - decay * self.step_size * scale * gradient.prototypes
                prototypes[gradient.pair] = self._project(moved)
                omega = omega - decay * self.relevance_step * gradient.omega
                omega /= np.linalg.norm(omega)
        self._vectors, self.omega_, self.cost_ = prototypes, omega, costs

    def _project(self, vectors: Array) -> Array:
        return half_vectors(raise_eigenvalues(matrices_of(vectors, self._n), self.tau))
