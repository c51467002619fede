"""Samples as users pass them, of which cross-validation takes rows: arrays, data frames and sparse matrices."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import indexable

from rplvq.arrays._validation import unmasked
from rplvq.protocols import Array


def as_rows(X: Any) -> Any:
    """Return samples as a data frame, a sparse matrix in rows, or an array, of which :func:`take_rows` takes some."""
    return indexable(X)[0] if hasattr(X, "iloc") or sparse.issparse(X) else np.atleast_1d(unmasked(X))


def take_rows(X: Any, rows: Array) -> Any:
    """Return some rows of what :func:`as_rows` returned."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
