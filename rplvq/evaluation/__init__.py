"""How good and how sure: comparisons, calibration, rejection."""

from rplvq.evaluation._calibration import Reliability, calibrate_sigma2, reliability
from rplvq.evaluation._compare import METRICS, compare, default_estimators
from rplvq.evaluation._rejection import AccuracyReject, RejectOption, accuracy_reject_curve
from rplvq.evaluation._result import Comparison
from rplvq.evaluation._significance import corrected_t_p_value, holm, wilcoxon_p_value
from rplvq.evaluation._tables import mean_and_deviation

__all__ = [
    "METRICS",
    "AccuracyReject",
    "Comparison",
    "RejectOption",
    "Reliability",
    "accuracy_reject_curve",
    "calibrate_sigma2",
    "compare",
    "corrected_t_p_value",
    "default_estimators",
    "holm",
    "mean_and_deviation",
    "reliability",
    "wilcoxon_p_value",
]
