"""Costs: one file each, all of them meeting :class:`rplvq.protocols.Cost`; they add and scale."""

from rplvq.costs.algebra import ScaledCost, SummedCost
from rplvq.costs.glvq import GLVQ
from rplvq.costs.normaliser import FlatGaussian, RiemannianGaussian
from rplvq.costs.plvq import PLVQ
from rplvq.costs.representability import Representability
from rplvq.costs.rslvq import RSLVQ
from rplvq.costs.spread import SpreadRSLVQ

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
]
