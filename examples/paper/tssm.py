"""Baselines on trial covariances, put together from pyRiemann and scikit-learn: tangent space, submanifold, CSP.

All end in linear discriminant analysis with the Ledoit-Wolf estimate of its shrinkage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyriemann.spatialfilters import CSP
from pyriemann.tangentspace import TangentSpace
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

__all__ = ["csp_lda", "tangent_space_lda", "tssm_lda"]


def shrinkage_lda() -> LinearDiscriminantAnalysis:
    """Linear discriminant analysis with automatic shrinkage of the covariance within classes."""
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def tangent_space_lda() -> Pipeline:
    """TSLDA: logarithms at the Riemannian mean of the training data, then LDA.

    A. Barachant, S. Bonnet, M. Congedo, C. Jutten, "Multiclass Brain-Computer Interface Classification by
    Riemannian Geometry", IEEE Trans. Biomed. Eng. 59(4), 2012, doi:10.1109/TBME.2011.2172210.
    """
    return Pipeline([("tangent", TangentSpace(metric="riemann")), ("lda", shrinkage_lda())])


def tssm_lda(dimensions: Sequence[int] = (6, 8, 10, 12, 14, 16, 18, 20), n_folds: int = 5) -> GridSearchCV:
    """TSSM+LDA: project to a submanifold of smaller matrices, then tangent space and LDA.

    The projection ``X -> W^T X W`` takes those directions of the approximate joint diagonalization of the
    classes' Riemannian means that tell most about the class; ``W`` holds as many as the cross-validated
    dimension says. After X. Xie, Z. L. Yu, H. Lu, Z. Gu, Y. Li, "Motor Imagery Classification Based on Bilinear
    Sub-Manifold Learning of Symmetric Positive-Definite Matrices", IEEE Trans. Neural Syst. Rehabil. Eng.
    25(6), 2017, doi:10.1109/TNSRE.2016.2587939, whose submanifold is learned differently in detail.

    Parameters
    ----------
    dimensions : sequence of int
        Sizes m of the projected matrices (m, m) to choose from.
    n_folds : int, default=5
        Stratified folds of the training data that choose.
    """
    steps = [("space", CSP(metric="riemann", log=False)), ("tangent", TangentSpace(metric="riemann"))]
    return _chosen_by_folds([*steps, ("lda", shrinkage_lda())], "space__nfilter", dimensions, n_folds)


def csp_lda(filters: Sequence[int] = (4, 6, 8, 10, 12), n_folds: int = 5) -> GridSearchCV:
    """CSP+LDA: logarithms of the variances behind common spatial patterns, then LDA.

    Several classes by joint diagonalization of their mean covariances: M. Grosse-Wentrup, M. Buss, "Multiclass
    Common Spatial Patterns and Information Theoretic Feature Extraction", IEEE Trans. Biomed. Eng. 55(8), 2008,
    doi:10.1109/TBME.2008.921154.

    Parameters
    ----------
    filters : sequence of int
        Numbers of filters to choose from.
    n_folds : int, default=5
        Stratified folds of the training data that choose.
    """
    return _chosen_by_folds(
        [("csp", CSP(metric="euclid", log=True)), ("lda", shrinkage_lda())], "csp__nfilter", filters, n_folds
    )


def _chosen_by_folds(steps: list[tuple[str, Any]], name: str, values: Sequence[int], n_folds: int) -> GridSearchCV:
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    return GridSearchCV(Pipeline(steps), {name: list(values)}, cv=folds)
