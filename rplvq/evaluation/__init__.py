"""Measures how good and how certain classifiers are. Nothing here trains in a way of its own: it calls estimators."""

from rplvq.evaluation._candidates import BASELINES, METRICS, BaselineName, baseline_estimators, default_estimators
from rplvq.evaluation._certainty import (
    AccuracyReject,
    Reliability,
    accuracy_reject_curve,
    calibrate_sigma2,
    reliability,
)
from rplvq.evaluation._compare import compare
from rplvq.evaluation._comparison import Comparison
from rplvq.evaluation._differences import TESTS, TestName
from rplvq.evaluation._explain import Explanation, explain
from rplvq.evaluation._questions import Question
from rplvq.evaluation._rejection import CRITERIA, CriterionName, RejectOption
from rplvq.evaluation._report import mean_and_deviation
from rplvq.evaluation._significance import corrected_t_interval, corrected_t_p_value, holm, wilcoxon_p_value

__all__ = [
    "BASELINES", "CRITERIA", "METRICS", "TESTS", "AccuracyReject", "BaselineName", "Comparison", "CriterionName",
    "Explanation", "Question", "RejectOption", "Reliability", "TestName", "accuracy_reject_curve",
    "baseline_estimators", "calibrate_sigma2", "compare", "corrected_t_interval", "corrected_t_p_value",
    "default_estimators", "explain", "holm", "mean_and_deviation", "reliability", "wilcoxon_p_value",
]  # fmt: skip


def __dir__() -> list[str]:
    """List what users call, which is what completion shows; the other names are for rooms of the library."""
    return [
        "AccuracyReject", "Comparison", "Explanation", "Question", "RejectOption", "Reliability",
        "accuracy_reject_curve", "baseline_estimators", "calibrate_sigma2", "compare", "corrected_t_interval",
        "corrected_t_p_value", "default_estimators", "explain", "holm", "reliability", "wilcoxon_p_value",
    ]  # fmt: skip
