"""Compiled steps: the extra ``fast``.

A step on a single small matrix spends most of its time in calls between Python and NumPy. These kernels take the same
steps as :class:`rplvq.Trainer` on the affine-invariant manifold under RSLVQ, compiled by numba, and the results agree
up to rounding. They decompose the K whitened matrices of a sample by one-sided Jacobi rotations of several matrices at
once, one lane of a vector register each. This is up to six times faster than LAPACK for small matrices. Mini-batches
are decomposed in the same way, under any cost, and over threads. Matrices from about 30 x 30 on, all other parts, and
machines without numba take the plain path. A kernel that called LAPACK itself was tried, and removed because it was no
faster than the plain path.
"""

from rplvq.training.compiled._batches import connection, decomposes
from rplvq.training.compiled._blocks import is_known, is_worthwhile, run_block
from rplvq.training.compiled._build import PLAIN, Kernels, compiled_kernels

__all__ = ["PLAIN", "Kernels", "compiled_kernels", "connection", "decomposes", "is_known", "is_worthwhile", "run_block"]
