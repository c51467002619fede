"""Compiled steps: the extra ``fast``.

On a small matrix, a step spends most of its time in calls between Python and NumPy. The kernels here take the same
steps as :class:`rplvq.Trainer` on the affine-invariant manifold under RSLVQ and PLVQ, compiled by numba; results agree
up to rounding. They decompose the K whitened matrices of a sample together, by one-sided Jacobi rotations with one
matrix per lane of a vector register (:mod:`rplvq.lanes`). For small matrices this is three to eight times faster than
LAPACK. Mini-batches are decomposed in the same way, under any cost, and over threads. For matrices from about 55 x 55
on, for all other parts and without numba, training uses NumPy and LAPACK instead. A kernel that called LAPACK itself
was not faster.
"""

from rplvq.training.compiled._batches import connection, decomposes
from rplvq.training.compiled._blocks import is_known, is_worthwhile, run_block
from rplvq.training.compiled._build import PLAIN, Kernels, compiled_kernels
from rplvq.training.compiled._decision import Decision, one_decision, runs_compiled

__all__ = [
    "PLAIN", "Decision", "Kernels", "compiled_kernels", "connection", "decomposes", "is_known", "is_worthwhile",
    "one_decision", "run_block", "runs_compiled",
]  # fmt: skip
