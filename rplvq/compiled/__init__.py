"""Compiled sweeps, sample by sample: the extra ``fast``.

For single small matrices most of a step's time is Python and NumPy calling each other. These kernels take the same
steps as :class:`rplvq.Trainer` on the affine-invariant manifold under RSLVQ, compiled by numba; results agree to
rounding. There are two ways to decompose the K whitened matrices of a sample: LAPACK, one after the other, or Jacobi's
rotations of all of them at once, a lane each, which is several times faster for many small matrices. Everything
else, and every machine without numba, takes the plain path.
"""

from rplvq.compiled.blocks import is_known, run_block
from rplvq.compiled.build import PLAIN, Kernels, compiled_kernels

__all__ = ["PLAIN", "Kernels", "compiled_kernels", "is_known", "run_block"]
