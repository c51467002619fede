"""The parts of a comparison: what goes in, one fold, the result, its tests and tables."""

from rplvq.comparison.result import Comparison

__all__ = ["Comparison"]
