"""Looks into one classifier: what its predictions rest on, how certain they are, and when it should give none."""

from rplvq.inspection._card import model_card
from rplvq.inspection._certainty import (
    AccuracyReject,
    Reliability,
    Watch,
    accuracy_reject_curve,
    calibrate_sigma2,
    reliability,
    watch,
)
from rplvq.inspection._criteria import CRITERIA, CriterionName
from rplvq.inspection._explain import Explanation, explain
from rplvq.inspection._rejection import RejectOption

__all__ = [
    "CRITERIA", "AccuracyReject", "CriterionName", "Explanation", "RejectOption", "Reliability", "Watch",
    "accuracy_reject_curve", "calibrate_sigma2", "explain", "model_card", "reliability", "watch",
]  # fmt: skip
