"""The difference of two estimators: its confidence interval, its sign and its p-value in one row."""

from collections.abc import Mapping
from typing import Any

from rplvq.evaluation._significance import corrected_t_interval
from rplvq.protocols import Array


def difference_row(metric: str, pair: tuple[str, str], scores: Mapping[str, Array], ratio: float, p: float) -> Any:
    """Return the row of a pair of names, from the scores (F,) of each name and the ratio of test to training samples.

    :meth:`Comparison.differences` describes the entries.
    """
    first, second = pair
    a, b = scores[first], scores[second]
    difference = float((a - b).mean())
    low, high = corrected_t_interval(a, b, ratio)
    return {
        "metric": metric,
        "first": first,
        "second": second,
        "first_mean": float(a.mean()),
        "second_mean": float(b.mean()),
        "difference": difference,
        "ci_low": low,
        "ci_high": high,
        "better": "first" if difference > 0 else "second" if difference < 0 else "neither",
        "p": p,
    }
