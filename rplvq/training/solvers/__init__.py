"""Deterministic training: the cost of all samples, minimised by solvers of pymanopt over the product of the prototypes.

Stochastic descent reaches about the same accuracy in less time (see the page "Beyond the paper"). Solvers are for those
who want a minimum of the cost itself, for example to compare costs or metrics without the noise of the step size.
"""

from rplvq.training.solvers._minimize import SOLVERS, minimize

__all__ = ["SOLVERS", "minimize"]
