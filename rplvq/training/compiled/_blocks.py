"""Decides where compiled steps run, and prepares their arrays: whole blocks of samples, and the layout in lanes."""

from typing import Any

import numpy as np

from rplvq.costs import terms_of
from rplvq.parts import kernel_of
from rplvq.protocols import Array
from rplvq.training.compiled._costs import Rules

SHARES = {4: (0.019, 0.025), 8: (0.018, 0.024)}
"""Measured time of a compiled step per lane and n, relative to LAPACK: by width, for real and complex matrices."""
LAPACK_OVERHEAD = 1.1
"""Measured time of a step in NumPy, relative to its decompositions alone."""
CONSTANT = (-1.0, 0.0, 0.0)
"""What follows the step size in the pace of steps that do not adapt."""
PACES = ("distance_over_gradients",)
"""Names of the step rules that kernels know."""


def rules_of(
    manifold: Any,
    cost: Any,
    targets: Array,
    labels: Array,
    sigma2: float,
    caps: tuple[float, float],
    pace: tuple[float, ...],
) -> Rules | None:
    """Return the rules of compiled steps with these parts on single samples, or None if a part has no kernel.

    ``targets`` are those of a block, and ``pace`` is explained in :class:`Rules`.
    """
    n_classes = int(labels.max()) + 1
    if kernel_of(manifold, "connect", "move") is None or not len(targets):
        return None
    soft = targets.ndim == 2
    if targets.shape[1] != n_classes if soft else not 0 <= targets.min() <= targets.max() < n_classes:
        return None  # the plain path refuses them, or takes a class without prototypes in its own way
    terms = terms_of(cost, labels, sigma2, soft)
    if terms is None:
        return None
    work = np.empty(len(labels)), np.empty((2, n_classes))
    return Rules(np.ascontiguousarray(labels, dtype=np.intp), *terms, np.array(caps), np.array(pace), *work)


def lane_width(n: int, count: int, is_complex: bool) -> int:
    """Return the vector width with which ``count`` matrices of size n are rotated fastest.

    Empty lanes take as much time as full ones, so narrow vectors can be faster for few matrices.
    """
    return min(SHARES, key=lambda width: _cost(width, n, count, is_complex))


def is_worthwhile(n: int, count: int, is_complex: bool, times: float = 1.0) -> bool:
    """Whether rotations decompose ``count`` matrices of size n faster than LAPACK, which takes ``times`` that long."""
    return relative_time(n, count, is_complex) < times * LAPACK_OVERHEAD * count


def relative_time(n: int, count: int, is_complex: bool) -> float:
    """Return the time of the rotations of ``count`` matrices of size n, in units of LAPACK's time for one matrix."""
    return _cost(lane_width(n, count, is_complex), n, count, is_complex)


def _cost(width: int, n: int, count: int, is_complex: bool) -> float:
    """Return the time of the rotations, in units of LAPACK's time for one matrix."""
    return -(-count // width) * width * SHARES[width][is_complex] * max(n, 5)
