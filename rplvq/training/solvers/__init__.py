"""Deterministic training: pymanopt's solvers minimise the cost of all samples.

Stochastic descent reaches about the same accuracy in less time (see the page "Beyond the paper"). Use a solver if you
need a minimum of the cost itself, for example to compare costs or metrics without the noise of the step size.
"""

from rplvq.training.solvers._minimize import SOLVERS, SolverName, minimize

__all__ = ["SOLVERS", "SolverName", "minimize"]
