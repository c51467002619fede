"""Choose settings one after another, which is affordable where the paper tries all combinations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Choice", "coordinate_search", "without_sigma2"]


class Choice(NamedTuple):
    """The result of a search: the best settings by name, their score, and one row of values and score per trial."""

    chosen: dict[str, Any]
    score: float
    tried: list[list[Any]]


def coordinate_search(
    score: Callable[..., float], grid: Mapping[str, Sequence[Any]], start: Mapping[str, Any]
) -> Choice:
    """Maximize a score over one parameter after another, with the others at their best values so far.

    Parameters
    ----------
    score : callable
        ``score(**settings)`` returns the value to maximize. It is called once per combination of settings.
    grid : mapping of str to sequence
        Values of each parameter, in the order of the search.
    start : mapping of str to value
        Where the search begins. Each value must be in the grid.

    Returns
    -------
    Choice
        Among equal scores the earlier settings are kept.

    Raises
    ------
    ValueError
        If a value of ``start`` is not in the grid.

    Examples
    --------
    >>> found = coordinate_search(lambda a, b: a * b, {"a": [1, 2], "b": [3, 4]}, {"a": 1, "b": 3})
    >>> found.chosen, found.score, len(found.tried)
    ({'a': 2, 'b': 4}, 8, 3)
    """
    for name, values in grid.items():
        if start[name] not in values:
            raise ValueError(f"start has {name}={start[name]!r}, which is not in its grid {list(values)}")
    best = {name: start[name] for name in grid}
    best_score = score(**best)
    tried = [[*best.values(), best_score]]
    for name, values in grid.items():
        fixed = dict(best)
        for value in values:
            if value == fixed[name]:
                continue
            candidate = fixed | {name: value}
            reached = score(**candidate)
            tried.append([*candidate.values(), reached])
            if reached > best_score:
                best, best_score = candidate, reached
    return Choice(best, best_score, tried)


def without_sigma2(search: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a search, such as ``grid`` and ``start``, for a method that has no sigma2 to choose."""
    return {
        key: {name: value for name, value in part.items() if name != "sigma2"} if isinstance(part, Mapping) else part
        for key, part in search.items()
    }
