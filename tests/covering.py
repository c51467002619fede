"""Few cases in place of all combinations of settings: every pair of settings occurs in one of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import combinations, product
from operator import itemgetter
from typing import Any

FACTOR = itemgetter(0)
"""Number of the factor of a setting; settings themselves need no order."""


def pairs_of(case: Iterable[Any]) -> set[Any]:
    """All pairs of settings that occur in a case, which is one setting per factor."""
    return set(combinations(enumerate(case), 2))


def covering(*factors: Iterable[Hashable]) -> list[tuple[Any, ...]]:
    """Few cases in which every pair of settings of two factors occurs, found by a greedy search without chance."""
    levels = [tuple(settings) for settings in factors]
    missing = {
        ((i, a), (j, b)): None for i, j in combinations(range(len(levels)), 2) for a, b in product(levels[i], levels[j])
    }
    cases: list[tuple[Any, ...]] = []
    while missing:
        first, second = next(iter(missing))
        case = dict([first, second])
        for k, settings in enumerate(levels):
            if k not in case:
                covered = [
                    sum(tuple(sorted([(k, s), pair], key=FACTOR)) in missing for pair in case.items()) for s in settings
                ]
                # Ties take turns, so that no setting is left with the first one of the others only.
                best = [s for s, count in zip(settings, covered, strict=True) if count == max(covered)]
                case[k] = best[len(cases) % len(best)]
        cases.append(tuple(case[k] for k in range(len(levels))))
        for pair in pairs_of(cases[-1]):
            missing.pop(pair, None)
    return cases
