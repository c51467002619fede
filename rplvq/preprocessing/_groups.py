"""How Recenter reads samples by group."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from rplvq.arrays import check_groups, encoded, one_type, same_type, stacked
from rplvq.manifolds import AffineInvariant
from rplvq.protocols import Array


def read(estimator: Any, X: Any, groups: Any, *, reset: bool = False) -> tuple[Array, Array, dict[Any, Array]]:
    """Return checked matrices (N, n, n), the sorted names (G,) of their groups, and the rows of each group by name.

    Without groups all samples are the group None. ``reset`` is True in fit, which sets ``n_features_in_``; otherwise
    the size of X is compared with it.
    """
    X = stacked(X)
    codes = encoded(AffineInvariant(), X)
    names = np.array([None], dtype=object)
    index = np.zeros(len(codes), dtype=int)
    if groups is not None:
        array = check_groups(groups, len(codes))
        if array.dtype.kind == "M":
            array = array.astype("datetime64[us]")  # so that the same date in another unit is the same group
        names, index = np.unique(array, return_inverse=True)
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    return codes, names, {name: np.flatnonzero(index == g) for g, name in enumerate(names.tolist())}


def require_groups(groups: Any, known: Array) -> None:
    """Raise ValueError if fit was given groups, (G,), and transform is given none, or those of another type."""
    if known.tolist() == [None]:
        return
    if groups is None:
        remedy = "pass groups, with a new name for a new session"
        raise ValueError(f"groups is None, but fit was given groups, {known.tolist()}: {remedy}")
    if not same_type(names := one_type(groups, "groups", "group"), known):
        first = names.ravel().tolist()[0]
        raise ValueError(f"groups[0] is {first!r}, but fit was given groups of another type, {known.tolist()}")
