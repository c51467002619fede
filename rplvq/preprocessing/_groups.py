"""How Recenter reads samples by group."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from rplvq.arrays import check_groups, encoded, one_type, same_type, stacked
from rplvq.manifolds import AffineInvariant
from rplvq.protocols import Array


def read(estimator: Any, X: Any, groups: Any, known: Array | None = None) -> tuple[Array, Array, dict[Any, Array]]:
    """Return checked matrices (N, n, n), the sorted names (G,) of their groups, and the rows of each group by name.

    Without groups all samples are the group None. The size and the type of the groups are compared with those in fit,
    whose groups are ``known``; fit itself passes None, and sets ``n_features_in_``.
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
    validate_data(estimator, X, skip_check_array=True, reset=known is None)
    if known is not None and known.tolist() != [None]:
        if groups is None:
            remedy = "pass groups, with a new name for a new session"
            raise ValueError(f"groups is None, but fit was given groups, {known.tolist()}: {remedy}")
        if not same_type(given := one_type(groups, "groups", "group"), known):
            first = given.ravel().tolist()[0]
            raise ValueError(f"groups[0] is {first!r}, but fit was given groups of another type, {known.tolist()}")
    return codes, names, {name: np.flatnonzero(index == g) for g, name in enumerate(names.tolist())}
