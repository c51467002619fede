"""Decides under ``compiled="auto"`` whether the steps of a fit run compiled. All steps of a fit share one decision.

:func:`rplvq.lanes.pays` compares the seconds that compiled steps save with those that compiling takes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs

from rplvq.lanes import pays
from rplvq.training.compiled._blocks import LAPACK_OVERHEAD, lane_width, relative_time


@attrs.define
class Decision:
    """The decision of one fit. The first step that could run compiled makes it, and all later steps share it.

    ``n_visits`` is the planned number of visits: each sample is visited once per epoch.
    """

    n_visits: float
    verbose: int = 0
    is_compiled: bool | None = None


_current: ContextVar[Decision | None] = ContextVar("rplvq_decision", default=None)


@contextmanager
def one_decision(decision: Decision) -> Iterator[None]:
    """Let all steps inside this block share a decision; inside another such block, they share that of the outer one."""
    token = None if _current.get() else _current.set(decision)
    try:
        yield
    finally:
        if token is not None:
            _current.reset(token)


def runs_compiled(kernel: str, n: int, count: int, is_complex: bool, n_visits: int, size: int = 1) -> bool:
    """Whether steps run compiled, each of which decomposes ``count`` matrices of size n by the kernel of this name.

    Each step takes ``size`` samples. ``n_visits`` is the planned number of visits, and is only used outside of a block
    of :func:`one_decision`.
    """
    decision = _current.get() or Decision(n_visits)
    if decision.is_compiled is None:
        seconds = decision.n_visits / size * saved_seconds(n, count, is_complex)
        kind = kernel, 1 + is_complex, lane_width(n, count, is_complex)
        decision.is_compiled = pays(kind, seconds, decision.verbose)
    return decision.is_compiled


def saved_seconds(n: int, count: int, is_complex: bool) -> float:
    """Return the estimated seconds that one step for ``count`` prototypes saves if it runs compiled and not plain."""
    plain = 3e-5 + count * (1.5e-6 + 9.5e-8 * n * n) * (2 if is_complex else 1)
    return plain * max(0.0, 1 - relative_time(n, count, is_complex) / (LAPACK_OVERHEAD * count))
