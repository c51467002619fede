"""Tests of paired scores, Holm's correction for many of them, and the differences of pairs of estimators."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import stats

from rplvq.protocols import Array, ArrayLike

Row: TypeAlias = dict[str, Any]  # A row of a table: names, texts and numbers by the name of the column
TestName = Literal["corrected_t", "wilcoxon"]  # the names of TESTS as a type, so that editors complete them
TESTS: dict[TestName, str] = {  # tests of differences, with their names in reports
    "corrected_t": "corrected resampled t-test of Nadeau and Bengio",
    "wilcoxon": "Wilcoxon's signed-rank test, which takes folds that share training data for independent ones",
}


def _differences(a: ArrayLike, b: ArrayLike) -> Array:
    """Return paired differences (F,) in units of the largest score, rounded so that 0.95 - 0.9 equals 0.85 - 0.8."""
    first = np.asarray(a, dtype=float)
    second = np.asarray(b, dtype=float)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"a and b must be paired scores of shape (F,), got {first.shape} and {second.shape}")
    if len(first) < 2:
        raise ValueError(f"a test needs the scores of at least 2 folds, got {len(first)}")
    size = np.max(np.abs([first, second]))
    return np.asarray(np.round((first - second) / size, 12) if size > 0 else first - second)


def wilcoxon_p_value(a: ArrayLike, b: ArrayLike) -> float:
    """Compute the two-sided p-value of Wilcoxon's signed-rank test on paired scores (1945, doi:10.2307/3001968).

    Of folds with different scores, it is exact for up to 50, and up to 13 with ties; else from the normal distribution.
    It is never below ``2^(1 - F)``, which is 0.0625 for 5 folds and 0.002 for 10, and NaN if a score is NaN.

    Parameters
    ----------
    a, b : array-like of shape (F,)
        Scores of two estimators in the same F folds, at least 2; ValueError is raised otherwise. As in Wilcoxon's
        paper, folds with equal scores are left out; if all are equal, p is 1.

    Examples
    --------
    >>> wilcoxon_p_value([0.9, 0.8, 0.95, 0.85, 0.7], [0.8, 0.6, 0.92, 0.81, 0.69])
    0.0625
    """
    differences = _differences(a, b)
    if np.isnan(differences).any():
        return math.nan
    differences = differences[differences != 0]
    return float(stats.wilcoxon(differences).pvalue) if len(differences) else 1.0


def corrected_t_p_value(a: ArrayLike, b: ArrayLike, test_to_train: float) -> float:
    """Compute the two-sided p-value of the corrected resampled t-test on paired scores.

    Scores of folds that share training data are correlated, which the ordinary t-test ignores. This test uses ``t =
    mean(d) / sqrt((1 / F + n_test / n_train) var(d))`` for the differences d, with F - 1 degrees of freedom and the
    divisor F - 1 of the variance (Nadeau and Bengio 2003, doi:10.1023/A:1024068626366, section 3). It is 1 if all
    scores are equal, 0 if they differ by the same amount in every fold, and NaN if a score is NaN.

    Parameters
    ----------
    a, b : array-like of shape (F,)
        Scores of two estimators in the same F folds, at least 2; ValueError is raised otherwise.
    test_to_train : float
        Size of the test part over that of the training part: 1 / (V - 1) for V-fold cross-validation, repeated or not.

    Examples
    --------
    >>> round(corrected_t_p_value([0.9, 0.8, 0.95, 0.85, 0.7], [0.8, 0.6, 0.92, 0.81, 0.69], 0.25), 4)
    0.2152
    """
    differences = _differences(a, b)
    mean, error = _mean_and_error(differences, test_to_train)
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean / error), len(differences) - 1))


def corrected_t_interval(
    a: ArrayLike, b: ArrayLike, test_to_train: float, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Compute the confidence interval (low, high) of the mean difference ``a - b``, by the corrected t-test.

    It is ``mean(d) +- q sqrt((1 / F + n_test / n_train) var(d))`` with the quantile q of Student's t distribution with
    F - 1 degrees of freedom. It excludes 0 exactly where :func:`corrected_t_p_value` is below ``1 - confidence``; the
    other arguments and the errors are those of that function. ``confidence``, between 0 and 1, is the probability with
    which such intervals contain the expected difference.

    Examples
    --------
    >>> low, high = corrected_t_interval([0.9, 0.8, 0.95, 0.85, 0.7], [0.8, 0.6, 0.92, 0.81, 0.69], 0.25)
    >>> round(low, 3), round(high, 3)
    (-0.067, 0.219)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    _differences(a, b)  # checks that the scores are paired
    differences = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    mean, error = _mean_and_error(differences, test_to_train)
    half = float(stats.t.ppf((1 + confidence) / 2, len(differences) - 1)) * error
    return mean - half, mean + half


def _mean_and_error(differences: Array, test_to_train: float) -> tuple[float, float]:
    """Return the mean of differences (F,), and its standard error with the correction of Nadeau and Bengio."""
    if not test_to_train > 0:
        raise ValueError(f"test_to_train must be positive, got {test_to_train!r}")
    variance = float(differences.var(ddof=1))
    return float(differences.mean()), math.sqrt((1 / len(differences) + test_to_train) * variance)


def holm(p_values: ArrayLike) -> Array:
    """Return p-values (m,), adjusted for their number by the step-down method of Holm (1979), in the same order.

    With ``p_(1) <= ... <= p_(m)``, the i-th value becomes ``max over j <= i of min(1, (m - j + 1) p_(j))``. Rejecting
    the hypotheses whose adjusted p-value is at most alpha bounds the probability of any false rejection by alpha,
    however the tests depend on each other. Of ``p_values`` (m,), a NaN stays NaN and is not counted; ValueError is
    raised at one that is not between 0 and 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    raw = np.asarray(p_values, dtype=float)
    bad = (raw < 0) | (raw > 1)
    if raw.ndim != 1 or bad.any():
        what = f"shape {raw.shape}" if raw.ndim != 1 else f"{raw[bad][0]} at {int(np.argmax(bad))}"
        raise ValueError(f"p_values must be a sequence of numbers between 0 and 1, got {what}")
    counted = np.flatnonzero(~np.isnan(raw))
    order = counted[np.argsort(raw[counted], kind="stable")]
    adjusted = raw.copy()
    adjusted[order] = np.minimum(np.maximum.accumulate(np.arange(len(order), 0, -1) * raw[order]), 1.0)
    return adjusted


def check_test(test: TestName) -> TestName:
    """Return the name of a test of differences; raise ValueError if there is no such test."""
    if test not in TESTS:
        raise ValueError(f"test must be {' or '.join(map(repr, TESTS))}, got {test!r}")
    return test


def difference_rows(
    pairs: Sequence[tuple[str, str]], scores: Mapping[str, Array], ratio: float, test: TestName, *, correct: bool = True
) -> list[Row]:
    """Return a dict per pair as :meth:`Comparison.differences`, from scores (F,) by name; ``ratio`` is test / train."""
    rows: list[Row] = []
    for first, second in pairs:
        a = scores[first]
        b = scores[second]
        p = wilcoxon_p_value(a, b) if test == "wilcoxon" else corrected_t_p_value(a, b, ratio)
        difference = float((a - b).mean())
        low, high = corrected_t_interval(a, b, ratio)
        better = "neither"
        if abs(difference) > 0:  # and no NaN
            better = "first" if difference > 0 else "second"
        names = {"first": first, "second": second, "first_mean": float(a.mean()), "second_mean": float(b.mean())}
        rows.append(names | {"difference": difference, "ci_low": low, "ci_high": high, "better": better, "p": p})
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p"] = float(p) if correct else row["p"]
    return rows
