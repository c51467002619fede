"""Measures how good and how certain classifiers are. Nothing here trains in a way of its own: it calls estimators."""

from rplvq.evaluation._certainty import (
    AccuracyReject,
    Reliability,
    accuracy_reject_curve,
    calibrate_sigma2,
    reliability,
)
from rplvq.evaluation._compare import METRICS, compare, default_estimators
from rplvq.evaluation._comparison import Comparison
from rplvq.evaluation._rejection import RejectOption
from rplvq.evaluation._report import mean_and_deviation
from rplvq.evaluation._significance import corrected_t_p_value, holm, wilcoxon_p_value

__all__ = [
    "METRICS", "AccuracyReject", "Comparison", "RejectOption", "Reliability", "accuracy_reject_curve",
    "calibrate_sigma2", "compare", "corrected_t_p_value", "default_estimators", "holm", "mean_and_deviation",
    "reliability", "wilcoxon_p_value",
]  # fmt: skip
