"""Compares classifiers by cross-validation. Nothing here trains in a way of its own: it calls estimators."""

from rplvq.evaluation._candidates import BASELINES, METRICS, BaselineName, baseline_estimators, default_estimators
from rplvq.evaluation._compare import compare
from rplvq.evaluation._comparison import Comparison
from rplvq.evaluation._questions import Question, p_text
from rplvq.evaluation._report import mean_and_deviation
from rplvq.evaluation._significance import (
    TESTS,
    TestName,
    corrected_t_interval,
    corrected_t_p_value,
    holm,
    wilcoxon_p_value,
)

__all__ = [
    "BASELINES", "METRICS", "TESTS", "BaselineName", "Comparison", "Question", "TestName", "baseline_estimators",
    "compare", "corrected_t_interval", "corrected_t_p_value", "default_estimators", "holm", "mean_and_deviation",
    "p_text", "wilcoxon_p_value",
]  # fmt: skip


def __dir__() -> list[str]:
    """List what users call, which is what completion shows; the other names are for rooms of the library."""
    inner = {"BASELINES", "METRICS", "TESTS", "BaselineName", "TestName", "mean_and_deviation", "p_text"}
    return sorted({*__all__} - inner)
