"""Paired tests and Holm's correction, against hand values, SciPy and enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rplvq.evaluation import corrected_t_interval, corrected_t_p_value, holm, wilcoxon_p_value


def enumerated_p_value(differences):
    """Two-sided p of the signed-rank sum over all assignments of signs."""
    nonzero = np.asarray(differences)[np.asarray(differences) != 0]
    ranks = stats.rankdata(np.abs(nonzero))
    sums = np.array([ranks @ np.array(signs) for signs in product([0, 1], repeat=len(ranks))])
    seen = ranks @ (nonzero > 0)
    return min(1.0, 2 * min(np.mean(sums <= seen + 1e-9), np.mean(sums >= seen - 1e-9)))


def test_holm_hand_values():
    # Sorted: .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, made monotone: .02 .03 .06 .06.
    assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


def test_holm_never_exceeds_one_and_keeps_order():
    assert_allclose(holm([0.9, 0.6, 0.2]), [1.0, 1.0, 0.6])
    raw = np.random.default_rng(0).uniform(size=40)
    adjusted = holm(raw)
    assert np.all(adjusted >= raw)
    assert np.all(np.diff(adjusted[np.argsort(raw)]) >= 0)
    assert_allclose(adjusted.min(), min(1.0, 40 * raw.min()))


def test_holm_of_none_one_and_nan():
    assert holm([]).shape == (0,)
    assert_array_equal(holm([0.04]), [0.04])
    assert_array_equal(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])


@pytest.mark.parametrize("bad", [[0.1, 1.2], [-0.1], [[0.1]]])
def test_holm_refuses_what_is_no_p_value(bad):
    with pytest.raises(ValueError, match="p_values must be"):
        holm(bad)


@pytest.mark.parametrize("n", [2, 5, 10, 30])
def test_wilcoxon_agrees_with_scipy(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(0.3, 1.0, n), rng.normal(0.0, 1.0, n)
    assert_allclose(wilcoxon_p_value(a, b), stats.wilcoxon(a, b).pvalue, rtol=1e-12)
    assert_allclose(wilcoxon_p_value(a, b), wilcoxon_p_value(b, a), rtol=1e-12)


def test_wilcoxon_agrees_with_enumeration_where_no_ranks_tie():
    differences = np.array([0.3, -0.1, 0.45, 0.0, 0.2, 0.6, -0.05])
    assert_allclose(wilcoxon_p_value(differences, np.zeros(7)), enumerated_p_value(differences), rtol=1e-12)


def test_wilcoxon_of_ten_folds_that_all_agree_is_the_least_possible():
    assert_allclose(wilcoxon_p_value(np.arange(1, 11) / 10, np.zeros(10)), 2 / 2**10)


def test_wilcoxon_of_identical_scores_is_one():
    assert wilcoxon_p_value([0.5] * 8, [0.5] * 8) == 1.0
    assert wilcoxon_p_value([0.0, 0.0], [0.0, 0.0]) == 1.0


def test_wilcoxon_leaves_out_folds_without_a_difference():
    a, b = [0.9, 0.8, 0.95, 0.85, 0.7], [0.8, 0.6, 0.92, 0.81, 0.69]
    assert wilcoxon_p_value([*a, 0.5, 0.4], [*b, 0.5, 0.4]) == wilcoxon_p_value(a, b)


def test_wilcoxon_does_not_let_rounding_break_ties_or_make_differences():
    exact = wilcoxon_p_value([3, 2, 5, 1, 0], [2, 3, 2, 0, 0])
    # 0.1 + 0.2 != 0.3, 0.95 - 0.9 != 0.85 - 0.8
    rounded = wilcoxon_p_value([0.95, 0.8, 0.75, 0.05, 0.1 + 0.2], [0.9, 0.85, 0.6, 0.0, 0.3])
    assert exact == rounded
    assert wilcoxon_p_value([0.1 + 0.2, 0.7], [0.3, 0.7]) == 1.0


def test_corrected_t_agrees_with_its_formula_and_the_ordinary_test():
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.1, 0.1, 10), rng.normal(0.0, 0.1, 10)
    d = a - b
    t = d.mean() / np.sqrt((1 / 10 + 1 / 9) * d.var(ddof=1))
    assert_allclose(corrected_t_p_value(a, b, 1 / 9), 2 * stats.t(9).sf(abs(t)), rtol=1e-9)
    assert_allclose(corrected_t_p_value(a, b, 1e-12), stats.ttest_rel(a, b).pvalue, rtol=1e-9)
    assert corrected_t_p_value(a, b, 1 / 9) > stats.ttest_rel(a, b).pvalue


def test_corrected_t_without_variance():
    assert corrected_t_p_value([0.5, 0.7], [0.5, 0.7], 0.25) == 1.0
    assert corrected_t_p_value([0.75, 1.0], [0.5, 0.75], 0.25) == 0.0


def test_a_missing_score_leaves_p_missing():
    assert np.isnan(wilcoxon_p_value([0.5, np.nan, 0.2], [0.1, 0.2, 0.1]))
    assert np.isnan(corrected_t_p_value([0.5, np.nan, 0.2], [0.1, 0.2, 0.1], 0.5))


@pytest.mark.parametrize("p_value", [wilcoxon_p_value, lambda a, b: corrected_t_p_value(a, b, 0.1)])
def test_scores_must_be_paired(p_value):
    with pytest.raises(ValueError, match="paired"):
        p_value([0.1, 0.2], [0.1])
    with pytest.raises(ValueError, match="at least 2 folds, got 1"):
        p_value([0.1], [0.2])


def test_corrected_t_refuses_a_wrong_ratio():
    with pytest.raises(ValueError, match="test_to_train must be positive, got 0"):
        corrected_t_p_value([0.1, 0.2], [0.2, 0.4], 0)


def test_the_interval_agrees_with_its_formula_and_with_the_test():
    rng = np.random.default_rng(5)
    for _ in range(40):
        a, b = rng.normal(0.1, 0.1, 8), rng.normal(0.0, 0.1, 8)
        d, ratio = a - b, rng.uniform(0.05, 1.0)
        half = stats.t.isf(0.025, 7) * np.sqrt((1 / 8 + ratio) * np.sum((d - d.mean()) ** 2) / 7)
        low, high = corrected_t_interval(a, b, ratio)
        assert_allclose([low, high], [d.mean() - half, d.mean() + half], rtol=1e-9)
        p = corrected_t_p_value(a, b, ratio)
        assert (low > 0 or high < 0) == (p < 0.05)
        edge = corrected_t_interval(a, b, ratio, confidence=1 - p)  # one of its bounds is 0
        assert_allclose(min(np.abs(edge)), 0, atol=1e-9)


def coverage(n_folds, ratio, confidence, n_runs=3000):
    """Share of intervals that contain the true mean of differences that are correlated as Nadeau and Bengio assume.

    They assume the correlation r of two folds with ``r / (1 - r) = n_test / n_train``. A part that all folds share has
    the variance ratio, and the part of each fold has the variance 1.
    """
    rng = np.random.default_rng(0)
    shared = np.sqrt(ratio) * rng.standard_normal((n_runs, 1))
    differences = 0.3 + shared + rng.standard_normal((n_runs, n_folds))
    zeros = np.zeros(n_folds)
    bounds = [corrected_t_interval(row, zeros, ratio, confidence=confidence) for row in differences]
    return np.mean([low <= 0.3 <= high for low, high in bounds])


@pytest.mark.parametrize(("n_folds", "ratio"), [(10, 1 / 9), (10, 0.25), (20, 0.25), (3, 0.5)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_contain_the_truth_at_their_rate(n_folds, ratio, confidence):
    error = np.sqrt(confidence * (1 - confidence) / 3000)
    assert abs(coverage(n_folds, ratio, confidence) - confidence) < 3.5 * error


def test_the_ordinary_interval_would_contain_the_truth_too_seldom():
    """The simulation can fail: without the correction it does."""
    rng = np.random.default_rng(0)
    differences = 0.3 + 0.5 * rng.standard_normal((2000, 1)) + rng.standard_normal((2000, 20))
    bounds = [corrected_t_interval(row, np.zeros(20), 1e-12) for row in differences]
    assert np.mean([low <= 0.3 <= high for low, high in bounds]) < 0.7


def test_the_interval_of_equal_differences_is_a_point():
    assert_allclose(corrected_t_interval([0.75, 1.0], [0.5, 0.75], 0.25), [0.25, 0.25])
    assert np.isnan(corrected_t_interval([0.5, np.nan], [0.1, 0.2], 0.5)).all()


def test_the_interval_refuses_wrong_arguments():
    with pytest.raises(ValueError, match=r"confidence must be between 0 and 1, got 1\.5"):
        corrected_t_interval([0.1, 0.2], [0.2, 0.4], 0.5, confidence=1.5)
    with pytest.raises(ValueError, match="test_to_train must be positive"):
        corrected_t_interval([0.1, 0.2], [0.2, 0.4], -1)
