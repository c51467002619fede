"""Baselines on trial covariances from parts of pyRiemann and scikit-learn: tangent space, submanifold, CSP.

All of them end in linear discriminant analysis whose shrinkage is the Ledoit-Wolf estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from pyriemann.geometry.ajd import ajd_pham
from pyriemann.spatialfilters import CSP
from pyriemann.tangentspace import TangentSpace
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline

from rplvq import AffineInvariant
from rplvq.arrays import invsqrtm, logm
from rplvq.manifolds import riemannian_mean
from rplvq.protocols import Array

__all__ = ["DiscriminativeSubspace", "csp_lda", "tangent_space_lda", "tssm_lda"]


def shrinkage_lda() -> LinearDiscriminantAnalysis:
    """Return linear discriminant analysis with automatic shrinkage of the within-class covariance."""
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def tangent_space_lda() -> Pipeline:
    """Return TSLDA: logarithms at the Riemannian mean of the training data, then LDA.

    A. Barachant, S. Bonnet, M. Congedo, C. Jutten, "Multiclass Brain-Computer Interface Classification by
    Riemannian Geometry", IEEE Trans. Biomed. Eng. 59(4), 2012, doi:10.1109/TBME.2011.2172210.
    """
    return Pipeline([("tangent", TangentSpace(metric="riemann")), ("lda", shrinkage_lda())])


class DiscriminativeSubspace(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Bilinear projection ``X -> W X W^T`` to smaller positive definite matrices.

    Parameters
    ----------
    n_components : int, default=10
        Size m of the projected matrices.
    criterion : {"means", "global", "local", "classes"}, default="means"
        How the rows of W are found. "means": they approximately diagonalize the Riemannian means M_c of all classes
        together (Pham's algorithm). On diagonal matrices the affine-invariant distance is the distance of the
        logarithms of the diagonals, so the rows with the largest variance of ``log (W M_c W^T)_jj`` over the classes
        come first. The other criteria work on the tangent matrices S_i at the Riemannian mean of all samples. "global"
        takes the directions in which their squares are largest, without labels. "local" takes those in which they are
        largest in relation to the squared differences between each sample and its nearest neighbours, without labels.
        "classes" takes those in which the class means are far apart in relation to the spread within the classes.
    n_neighbors : int, default=5
        Number of neighbours for "local".

    Attributes
    ----------
    components_ : ndarray of shape (m, n)
        W. The first row has the largest value of the criterion.
    separation_ : ndarray of shape (n,)
        These values in descending order.
    """

    def __init__(self, n_components: int = 10, criterion: str = "means", n_neighbors: int = 5) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.n_neighbors = n_neighbors

    def fit(self, X: Array, y: Array) -> Self:
        """Find the subspace for matrices (N, n, n) with labels (N,)."""
        if not 1 <= self.n_components <= X.shape[-1]:
            raise ValueError(f"n_components must be 1 to {X.shape[-1]}, the matrices' size, got {self.n_components!r}")
        if self.criterion == "means":
            directions, separation = _of_class_means(X, y)
        else:
            directions, separation = self._of_tangents(X, y)
        order = np.argsort(-separation, kind="stable")
        self.separation_ = separation[order]
        self.components_ = directions[order[: self.n_components]]
        return self

    def transform(self, X: Array) -> Array:
        """Project matrices (N, n, n) to (N, m, m)."""
        return np.asarray(self.components_ @ X @ self.components_.T)

    def _of_tangents(self, X: Array, y: Array) -> tuple[Array, Array]:
        whitener = invsqrtm(riemannian_mean(AffineInvariant(), AffineInvariant().encode(X)).code)
        tangents = logm(whitener @ X @ whitener)
        if self.criterion == "global":
            large, small = _squares(tangents), np.eye(X.shape[-1])
        elif self.criterion == "local":
            flat = tangents.reshape(len(X), -1)
            neighbors = NearestNeighbors(n_neighbors=self.n_neighbors).fit(flat).kneighbors(return_distance=False)
            large, small = (
                _squares(tangents),
                _squares((tangents[:, None] - tangents[neighbors]).reshape(-1, *X.shape[1:])),
            )
        elif self.criterion == "classes":
            means = np.stack([tangents[y == label].mean(axis=0) for label in np.unique(y)])
            own = means[np.unique(y, return_inverse=True)[1]]
            large, small = _squares(own - tangents.mean(axis=0)), _squares(tangents - own)
        else:
            raise ValueError(f"criterion must be 'means', 'global', 'local' or 'classes', got {self.criterion!r}")
        separation, vectors = eigh(large, small)
        return vectors.T @ whitener, separation


def _squares(matrices: Array) -> Array:
    """Return the mean square of symmetric matrices (N, n, n)."""
    return np.asarray((matrices @ matrices).mean(axis=0))


def _of_class_means(X: Array, y: Array) -> tuple[Array, Array]:
    manifold = AffineInvariant()
    codes = manifold.encode(X)
    means = np.stack([riemannian_mean(manifold, codes[y == label]).code for label in np.unique(y)])
    directions, diagonal = ajd_pham(means)
    return directions, np.log(np.diagonal(diagonal, axis1=1, axis2=2)).var(axis=0)


def submanifold_lda(n_components: int, criterion: str = "means", shrinkage: str | None = "auto") -> Pipeline:
    """Return :class:`DiscriminativeSubspace` of a given size, then tangent space and LDA."""
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage)
    space = DiscriminativeSubspace(n_components, criterion)
    return Pipeline([("space", space), ("tangent", TangentSpace(metric="riemann")), ("lda", lda)])


def tssm_lda(dimensions: Sequence[int] = (6, 10, 14, 18), n_folds: int = 5) -> GridSearchCV:
    """Return TSSM+LDA: a projection to a submanifold of smaller matrices, then tangent space and LDA.

    The submanifold is :class:`DiscriminativeSubspace`, and cross-validation chooses its dimension. It follows X. Xie,
    Z. L. Yu, H. Lu, Z. Gu, Y. Li, "Motor Imagery Classification Based on Bilinear Sub-Manifold Learning of
    Symmetric Positive-Definite Matrices", IEEE Trans. Neural Syst. Rehabil. Eng. 25(6), 2017,
    doi:10.1109/TNSRE.2016.2587939, who learn the submanifold differently.

    Parameters
    ----------
    dimensions : sequence of int
        Sizes m of the projected matrices (m, m) to choose from.
    n_folds : int, default=5
        Number of stratified folds of the training data for this choice.
    """
    return _chosen_by_folds(submanifold_lda(10).steps, "space__n_components", dimensions, n_folds)


def csp_lda(filters: Sequence[int] = (4, 6, 8, 10, 12), n_folds: int = 5) -> GridSearchCV:
    """Return CSP+LDA: logarithms of the variances after common spatial patterns, then LDA.

    Several classes are handled by joint diagonalization of their mean covariances: M. Grosse-Wentrup, M. Buss,
    "Multiclass Common Spatial Patterns and Information Theoretic Feature Extraction", IEEE Trans. Biomed. Eng. 55(8),
    2008, doi:10.1109/TBME.2008.921154.

    Parameters
    ----------
    filters : sequence of int
        Numbers of filters to choose from.
    n_folds : int, default=5
        Number of stratified folds of the training data for this choice.
    """
    return _chosen_by_folds(
        [("csp", CSP(metric="euclid", log=True)), ("lda", shrinkage_lda())], "csp__nfilter", filters, n_folds
    )


def _chosen_by_folds(steps: list[tuple[str, Any]], name: str, values: Sequence[int], n_folds: int) -> GridSearchCV:
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    return GridSearchCV(Pipeline(steps), {name: list(values)}, cv=folds)
