"""Compiled steps: the extra ``fast``.

For single small matrices most of a step's time is Python and NumPy calling each other. These kernels take the same
steps as :class:`rplvq.Trainer` on the affine-invariant manifold under RSLVQ, compiled by numba; results agree to
rounding. There are two ways to decompose the K whitened matrices of a sample: LAPACK, one after the other, or
one-sided Jacobi rotations of several at once, a lane of a vector each, which is up to six times faster for small
matrices. Mini-batches are decomposed in the same way, under any cost, and over threads. Everything else, and every
machine without numba, takes the plain path.
"""

from rplvq.compiled.batches import connection, decomposes
from rplvq.compiled.blocks import is_known, run_block
from rplvq.compiled.build import PLAIN, Kernels, compiled_kernels

__all__ = ["PLAIN", "Kernels", "compiled_kernels", "connection", "decomposes", "is_known", "run_block"]
