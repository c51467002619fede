"""Compiled steps: the extra ``fast``.

On a small matrix, a step spends most of its time in calls between Python and NumPy. The kernels here take the same
steps as :class:`rplvq.Trainer` on single samples, up to rounding. A metric names its kernel, and a cost describes
itself by terms; other parts take the plain path.

Under the affine-invariant metric the K whitened matrices of a sample are decomposed together, in the lanes of vector
registers (:mod:`rplvq.lanes`). For small matrices this is three to eight times faster than LAPACK, and from about
55 x 55 on it is slower. A kernel that called LAPACK itself was not faster.
"""

from rplvq.training.compiled._batches import Connect, connection, decomposes
from rplvq.training.compiled._kernels import (
    CONSTANT,
    PLAIN,
    Decision,
    Kernels,
    compiled_kernels,
    is_worthwhile,
    one_decision,
    rules_of,
    runs_compiled,
)
from rplvq.training.compiled._runs import CompiledSteps, compiled_steps, run_block

__all__ = [
    "CONSTANT", "PLAIN", "CompiledSteps", "Connect", "Decision", "Kernels", "compiled_kernels", "compiled_steps",
    "connection", "decomposes", "is_worthwhile", "one_decision", "rules_of", "run_block", "runs_compiled",
]  # fmt: skip
