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
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

from rplvq import AffineInvariant
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
    """Bilinear projection ``X -> W X W^T`` to smaller positive definite matrices in which the classes stay separated.

    The rows of W approximately diagonalize the Riemannian means M_c of all classes together (Pham's algorithm). On
    diagonal matrices the affine-invariant distance is the distance of the logarithms of the diagonals. Therefore
    the rows with the largest variance of ``log (W M_c W^T)_jj`` over the classes are kept.

    Parameters
    ----------
    n_components : int, default=10
        Size m of the projected matrices.

    Attributes
    ----------
    components_ : ndarray of shape (m, n)
        W. The first row separates the means best.
    separation_ : ndarray of shape (n,)
        These variances in descending order.
    """

    def __init__(self, n_components: int = 10) -> None:
        self.n_components = n_components

    def fit(self, X: Array, y: Array) -> Self:
        """Find the subspace for matrices (N, n, n) with labels (N,)."""
        if not 1 <= self.n_components <= X.shape[-1]:
            raise ValueError(f"n_components must be 1 to {X.shape[-1]}, the matrices' size, got {self.n_components!r}")
        manifold = AffineInvariant()
        codes = manifold.encode(X)
        means = np.stack([riemannian_mean(manifold, codes[y == label]).code for label in np.unique(y)])
        directions, diagonal = ajd_pham(means)
        separation = np.log(np.diagonal(diagonal, axis1=1, axis2=2)).var(axis=0)
        order = np.argsort(-separation, kind="stable")
        self.separation_ = separation[order]
        self.components_ = directions[order[: self.n_components]]
        return self

    def transform(self, X: Array) -> Array:
        """Project matrices (N, n, n) to (N, m, m)."""
        return np.asarray(self.components_ @ X @ self.components_.T)


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
    steps = [("space", DiscriminativeSubspace()), ("tangent", TangentSpace(metric="riemann"))]
    return _chosen_by_folds([*steps, ("lda", shrinkage_lda())], "space__n_components", dimensions, n_folds)


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
