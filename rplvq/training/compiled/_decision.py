"""Decides under ``compiled="auto"`` whether the steps of a fit run compiled. All steps of a fit share one decision.

:func:`rplvq.lanes.pays` compares the seconds that compiled steps save with those that compiling takes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs

from rplvq.lanes import Kind, pays, verbosity
from rplvq.training.compiled._blocks import LAPACK_OVERHEAD, relative_time


@attrs.define
class Decision:
    """The decision of one fit. The first step that could run compiled makes it, and all later steps share it."""

    n_visits: float  # planned; each sample is visited once per epoch
    verbose: int = 0
    is_compiled: bool | None = None


_current: ContextVar[Decision | None] = ContextVar("rplvq_decision", default=None)


@contextmanager
def one_decision(decision: Decision) -> Iterator[None]:
    """Let all steps inside this block share a decision; inside another such block, they share that of the outer one."""
    if _current.get():
        yield
        return
    tokens = _current.set(decision), verbosity.set(decision.verbose)
    try:
        yield
    finally:
        _current.reset(tokens[0])
        verbosity.reset(tokens[1])


def runs_compiled(kind: Kind, saved: float, n_visits: int) -> bool:
    """Whether steps run compiled by a kernel with which each saves ``saved`` seconds.

    The planned ``n_visits`` count only outside of a block of :func:`one_decision`.
    """
    decision = _current.get() or Decision(n_visits)
    if decision.is_compiled is None:
        decision.is_compiled = pays(kind, decision.n_visits * saved)
    return decision.is_compiled


def saved_seconds(n: int, count: int, is_complex: bool) -> float:
    """Return the estimated seconds that one step for ``count`` prototypes saves if it runs compiled and not plain."""
    plain = 3e-5 + count * (1.5e-6 + 9.5e-8 * n * n) * (2 if is_complex else 1)
    return plain * max(0.0, 1 - relative_time(n, count, is_complex) / (LAPACK_OVERHEAD * count))
