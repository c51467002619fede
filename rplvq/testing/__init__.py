"""Checks for parts of your own: each fails with a sentence that says what is wrong, and where.

They use only the methods of :mod:`rplvq.protocols`, so that any manifold, cost, schedule or initializer can be checked.
"""

from rplvq.testing._cost import check_cost
from rplvq.testing._initializer import check_initializer
from rplvq.testing._manifold import check_manifold
from rplvq.testing._schedule import check_schedule

__all__ = ["check_cost", "check_initializer", "check_manifold", "check_schedule"]
