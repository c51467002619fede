"""What Recenter, Rescale and Rotate share: samples by group, running statistics, and how scikit-learn sees them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from rplvq.arrays import check_groups, encoded, one_type, parts_of, same_type, stacked, subset
from rplvq.manifolds import AffineInvariant
from rplvq.protocols import Array


class GroupTransformer(TransformerMixin, BaseEstimator):
    """A transformer of positive definite matrices (N, n, n) that takes the group of each sample as metadata."""

    # Pipelines pass groups on to these methods without a call of set_fit_request and set_transform_request.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"groups": True}  # noqa: RUF012
    __metadata_request__transform = {"groups": True}  # noqa: RUF012

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Array:
        """Fit, then transform the same samples.

        Returns
        -------
        ndarray of shape (N, n, n)
            As from transform.
        """
        return np.asarray(self.fit(X, y, groups=groups).transform(X, groups=groups))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags


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


def require_online(online: Any, prior_weight: Any) -> None:
    """Raise ValueError unless ``online`` is a bool and ``prior_weight`` a finite number of at least 0."""
    if not isinstance(online, (bool, np.bool_)):
        raise ValueError(f"online must be True or False, got {online!r}")
    require_prior_weight(prior_weight)


def require_prior_weight(value: Any) -> None:
    """Raise ValueError unless ``prior_weight`` is a finite number of at least 0."""
    if isinstance(value, (bool, str)) or not 0 <= value < np.inf:
        raise ValueError(f"prior_weight must be a finite number of at least 0, got {value!r}")


def require_max_iter(value: Any) -> None:
    """Raise ValueError unless ``max_iter`` is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"max_iter must be a positive integer, got {value!r}")


Advance = Callable[[Any, float, Array], Any]
"""``advance(statistic, share, sample)`` returns a running statistic after one more sample (n, n) with this share."""
Action = Callable[[Any], Callable[[Array], Array]]
"""``action(statistic)`` returns the function that transforms samples (..., n, n) of a group with this statistic."""


def transformed(
    estimator: Any,
    X: Any,
    groups: Any,
    statistics: Iterable[Any],
    measure: Callable[[Array, Any], Any],
    action: Action,
    advance: Advance | None = None,
    like: Sequence[Array] = (),
) -> Array:
    """Return samples (N, n, n), each transformed by the statistic of its group.

    Parameters
    ----------
    estimator : GroupTransformer
        Fitted.
    X, groups
        As for ``transform``.
    statistics : iterable of length G
        Those of the groups in fit.
    measure : callable
        ``measure(samples, name)`` returns the statistic of a group that fit did not meet, from its samples (M, n, n).
    action : callable
        See :data:`Action`.
    advance : callable, optional
        See :data:`Advance`. With it and ``online``, a group that fit did not meet, or that partial_fit has met since,
        is transformed in the order of its samples, each by the running statistic before it.
    like : sequence of ndarray
        Arrays that determine the type of the result, beside the samples.
    """
    codes, found = read(estimator, X, groups)
    require_groups(groups, estimator.groups_)
    known = dict(zip(estimator.groups_.tolist(), statistics, strict=True))
    result = np.empty(codes.shape, dtype=np.result_type(codes, *like))
    for name, rows in found.items():
        members = subset(codes, rows)
        if advance is not None and estimator.online and (name not in known or name in estimator.running_):
            before = _running(estimator, known, name, members, advance)
            for row, code, (statistic, _) in zip(rows, members, before, strict=False):
                result[row] = action(statistic)(code)
            continue
        act = action(known[name] if name in known else measure(members, name))
        for part in parts_of(members):
            result[rows[part]] = act(members[part])
    return result


def run_on(
    estimator: Any, X: Any, groups: Any, statistics: Iterable[Any], advance: Advance
) -> dict[Any, tuple[Any, int]]:
    """Return the running statistics of a fitted estimator after the next samples of each group, in their order.

    ``statistics`` (G,) are those of the groups in fit.

    Raises
    ------
    ValueError
        If ``online`` was False in fit, or if no groups are given after a fit with groups.
    """
    if not (estimator.online and hasattr(estimator, "running_")):
        raise ValueError("partial_fit needs a fit with online=True: without it groups have no running statistic")
    codes, found = read(estimator, X, groups)
    require_groups(groups, estimator.groups_)
    known = dict(zip(estimator.groups_.tolist(), statistics, strict=True))
    running = dict(estimator.running_)
    for name, rows in found.items():
        running[name] = deque(_running(estimator, known, name, subset(codes, rows), advance), maxlen=1).pop()
    return running


def _running(
    estimator: Any, known: dict[Any, Any], name: Any, codes: Iterable[Array], advance: Advance
) -> Iterator[tuple[Any, int]]:
    """Yield the running statistic of a group and its number of samples, before each of ``codes`` and after the last.

    A group in fit goes on from its statistic ``known[name]`` there. A new group begins at ``start_``, which counts as
    ``prior_weight`` samples.
    """
    prior = 0.0 if name in known else estimator.prior_weight
    if name in estimator.running_:
        statistic, count = estimator.running_[name]
    elif name in known:
        statistic, count = known[name], int(estimator.sizes_[list(known).index(name)])
    else:
        statistic, count = estimator.start_, 0
    yield statistic, count
    for code in codes:
        count += 1
        statistic = advance(statistic, 1.0 / (prior + count), code)
        yield statistic, count
