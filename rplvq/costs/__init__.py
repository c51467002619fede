"""Costs: one file each, all of them meeting :class:`rplvq.protocols.Cost`."""

from rplvq.costs.plvq import PLVQ
from rplvq.costs.rslvq import RSLVQ

__all__ = ["PLVQ", "RSLVQ"]
