"""Measures how good and how certain classifiers are. Nothing here trains in a way of its own: it calls estimators."""

from rplvq.evaluation._candidates import BASELINES, METRICS, baseline_estimators, default_estimators
from rplvq.evaluation._certainty import (
    AccuracyReject,
    Reliability,
    accuracy_reject_curve,
    calibrate_sigma2,
    reliability,
)
from rplvq.evaluation._compare import compare
from rplvq.evaluation._comparison import Comparison
from rplvq.evaluation._differences import TESTS
from rplvq.evaluation._explain import Explanation, explain
from rplvq.evaluation._questions import Question
from rplvq.evaluation._rejection import RejectOption
from rplvq.evaluation._report import mean_and_deviation
from rplvq.evaluation._significance import corrected_t_interval, corrected_t_p_value, holm, wilcoxon_p_value

__all__ = [
    "BASELINES", "METRICS", "TESTS", "AccuracyReject", "Comparison", "Explanation", "Question", "RejectOption",
    "Reliability", "accuracy_reject_curve", "baseline_estimators", "calibrate_sigma2", "compare",
    "corrected_t_interval", "corrected_t_p_value", "default_estimators", "explain", "holm", "mean_and_deviation",
    "reliability", "wilcoxon_p_value",
]  # fmt: skip
