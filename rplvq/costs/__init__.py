"""Costs: one file each, all of them meeting :class:`rplvq.protocols.Cost`; they add and scale."""

from rplvq.costs._algebra import ScaledCost, SummedCost, restrict_to_classes
from rplvq.costs._calibration import calibrated_loss
from rplvq.costs._glvq import GLVQ
from rplvq.costs._mixture import as_soft, class_groups, class_log_proba, log_proba_of
from rplvq.costs._normaliser import FlatGaussian, RiemannianGaussian
from rplvq.costs._plvq import PLVQ
from rplvq.costs._representability import Representability
from rplvq.costs._rslvq import RSLVQ
from rplvq.costs._spread import SpreadRSLVQ

__all__ = [
    "GLVQ",
    "PLVQ",
    "RSLVQ",
    "FlatGaussian",
    "Representability",
    "RiemannianGaussian",
    "ScaledCost",
    "SpreadRSLVQ",
    "SummedCost",
    "as_soft",
    "calibrated_loss",
    "class_groups",
    "class_log_proba",
    "log_proba_of",
    "restrict_to_classes",
]
