"""Costs see squared distances and labels, never a point. Each meets :class:`rplvq.protocols.Cost`; sums are costs."""

from collections.abc import Callable
from typing import Literal

from rplvq.costs._algebra import Combinable, ScaledCost, SummedCost
from rplvq.costs._glvq import GLVQ
from rplvq.costs._mixture import (
    MARGIN,
    MIXTURE,
    Terms,
    as_soft,
    calibrated_loss,
    class_groups,
    described_by,
    evaluate,
    largest_slope,
    log_proba_of,
    priors_of,
    restrict_to_classes,
    sample_losses,
    smoothed,
    term,
    terms_of,
)
from rplvq.costs._normaliser import FlatGaussian, RiemannianGaussian, likeliest_variance
from rplvq.costs._representability import Representability
from rplvq.costs._rslvq import PLVQ, RSLVQ
from rplvq.costs._spread import SpreadRSLVQ
from rplvq.protocols import Cost

__all__ = [
    "COSTS", "GLVQ", "MARGIN", "MIXTURE", "PLVQ", "RSLVQ", "Combinable", "CostName", "FlatGaussian", "Representability",
    "RiemannianGaussian", "ScaledCost", "SpreadRSLVQ", "SummedCost", "Terms", "as_soft", "calibrated_loss",
    "class_groups", "described_by", "evaluate", "largest_slope", "likeliest_variance", "log_proba_of", "priors_of",
    "restrict_to_classes", "sample_losses", "smoothed", "term", "terms_of",
]  # fmt: skip

CostName = Literal["rslvq", "plvq", "glvq"]
"""The keys of :data:`COSTS` as a type, so that editors complete them."""
COSTS: dict[str, Callable[[], Cost]] = {"rslvq": RSLVQ, "plvq": PLVQ, "glvq": GLVQ}
"""Costs by name."""


def __dir__() -> list[str]:
    """List what users call, which is what completion shows; the other names are for rooms of the library."""
    return [
        "COSTS", "GLVQ", "PLVQ", "RSLVQ", "Combinable", "FlatGaussian", "Representability", "RiemannianGaussian",
        "ScaledCost", "SpreadRSLVQ", "SummedCost", "Terms", "as_soft", "calibrated_loss", "class_groups",
        "described_by", "likeliest_variance", "log_proba_of", "restrict_to_classes", "terms_of",
    ]  # fmt: skip
