"""How Recenter reads samples by group."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import validate_data

from rplvq.arrays import check_groups, encoded, one_type, same_type, stacked
from rplvq.manifolds import AffineInvariant
from rplvq.protocols import Array


class Groups(NamedTuple):
    """The groups of samples: their names (G,), sorted, and for each the rows of its samples in their order."""

    names: Array
    rows: list[Array]

    def items(self) -> Iterator[tuple[Any, Array]]:
        """Yield the name and the rows of each group."""
        return zip(self.names.tolist(), self.rows, strict=True)


def read(estimator: Any, X: Any, groups: Any, *, reset: bool = False) -> tuple[Array, Groups]:
    """Return checked matrices (N, n, n) and their groups; without groups all samples are the group None.

    ``reset`` is True in fit, which sets ``n_features_in_``; otherwise the size of X is compared with it.
    """
    X = stacked(X)
    codes = encoded(AffineInvariant(), X)
    found = _groups_of(groups, len(codes))
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    return codes, found


def _groups_of(groups: Any, n_samples: int) -> Groups:
    if groups is None:
        return Groups(np.array([None], dtype=object), [np.arange(n_samples)])
    array = check_groups(groups, n_samples)
    if array.dtype.kind == "M":
        array = array.astype("datetime64[us]")  # so that the same date in another unit is the same group
    names, index = np.unique(array, return_inverse=True)
    return Groups(names, [np.flatnonzero(index == g) for g in range(len(names))])


def require_groups(groups: Any, known: Array) -> None:
    """Raise ValueError if fit was given groups, (G,), and transform is given none, or those of another type."""
    if known.tolist() == [None]:
        return
    if groups is None:
        raise ValueError(
            f"groups is None, but fit was given groups, {known.tolist()}: pass groups, "
            "with a new name for a new session"
        )
    if not same_type(names := one_type(groups, "groups", "group"), known):
        raise ValueError(
            f"groups[0] is {names.ravel().tolist()[0]!r}, but fit was given groups of another type, {known.tolist()}"
        )
