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


def turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a pair in the opposite order."""
    return dict(row) | {
        "first": row["second"],
        "second": row["first"],
        "first_mean": row["second_mean"],
        "second_mean": row["first_mean"],
        "difference": -row["difference"],
        "ci_low": -row["ci_high"],
        "ci_high": -row["ci_low"],
        "better": {"first": "second", "second": "first"}.get(row["better"], "neither"),
    }
