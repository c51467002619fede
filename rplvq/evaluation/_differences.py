"""The differences of pairs of estimators: p-values, confidence intervals and signs."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rplvq.evaluation._significance import corrected_t_interval, corrected_t_p_value, holm, wilcoxon_p_value
from rplvq.protocols import Array

Pair = tuple[str, str]
TestName = Literal["corrected_t", "wilcoxon"]
"""The names of :data:`TESTS` as a type, so that editors complete them."""
TESTS = ("corrected_t", "wilcoxon")


def check_test(test: TestName) -> TestName:
    """Return the name of a test of differences; raise ValueError if there is no such test."""
    if test not in TESTS:
        raise ValueError(f"test must be {' or '.join(map(repr, TESTS))}, got {test!r}")
    return test


def p_values_of(
    pairs: Sequence[Pair], scores: Mapping[str, Array], ratio: float, test: TestName, *, correct: bool = True
) -> list[float]:
    """Return the p-value of each pair, given scores (F,) by name, and test samples over training samples."""
    raw = [
        wilcoxon_p_value(scores[first], scores[second])
        if check_test(test) == "wilcoxon"
        else corrected_t_p_value(scores[first], scores[second], ratio)
        for first, second in pairs
    ]
    return [float(p) for p in holm(raw)] if correct else raw


def difference_rows(pairs: Sequence[Pair], scores: Mapping[str, Array], ratio: float, test: TestName) -> list[Any]:
    """Return one dict per pair of names, as :meth:`Comparison.differences` describes them."""
    rows = []
    for (first, second), p in zip(pairs, p_values_of(pairs, scores, ratio, test), strict=True):
        a = scores[first]
        b = scores[second]
        difference = float((a - b).mean())
        low, high = corrected_t_interval(a, b, ratio)
        better = "neither"
        if abs(difference) > 0:  # and no NaN
            better = "first" if difference > 0 else "second"
        names = {"first": first, "second": second, "first_mean": float(a.mean()), "second_mean": float(b.mean())}
        rows.append(names | {"difference": difference, "ci_low": low, "ci_high": high, "better": better, "p": p})
    return rows
