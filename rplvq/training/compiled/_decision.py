"""Decides under ``compiled="auto"`` whether the steps of a fit are worth the seconds that compiling takes.

Compiling happens once per installation for each kind of matrices. Until then a fit runs plain, unless the time that
compiled steps would have saved so far in this process exceeds the time of compiling: a process then loses at most about
twice what it would lose if it knew the future. All times are estimates by the numbers of steps, never measured, so that
the bits of a fit do not depend on how fast the machine was. A thread that compiles beside the plain steps was rejected:
numba holds Python's lock most of the time, and the exit of a process would have to wait for it.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs

from rplvq.training.compiled._blocks import LAPACK_OVERHEAD, lane_width, relative_time
from rplvq.training.compiled._build import can_run_at_once

COMPILING = 4.0
"""Seconds that numba takes to be imported and to compile one kernel."""


@attrs.define
class Decision:
    """The decision of one fit, which all its steps share, from the first step on that could run compiled.

    ``n_visits`` is the number of visits of samples that are planned.
    """

    n_visits: float
    verbose: int = 0
    is_compiled: bool | None = None


_current: ContextVar[Decision | None] = ContextVar("rplvq_decision", default=None)
_saved: defaultdict[tuple[str, int, int], float] = defaultdict(float)
"""Seconds that compiled steps would have saved in this process, by kind."""
_runs: dict[tuple[str, int, int], bool] = {}
"""Whether a kernel runs in this process. Stored code is looked for once, so that no other process changes bits here."""


@contextmanager
def one_decision(decision: Decision) -> Iterator[None]:
    """Let all steps inside share a decision; that of an outer block has precedence."""
    token = None if _current.get() else _current.set(decision)
    try:
        yield
    finally:
        if token is not None:
            _current.reset(token)


def runs_compiled(kernel: str, n: int, count: int, is_complex: bool, n_visits: int, size: int = 1) -> bool:
    """Whether steps run compiled that decompose ``count`` matrices of size n by a kernel at a time.

    Each step takes ``size`` samples. ``n_visits`` is the number of visits that are planned, outside of a block of
    :func:`one_decision`.
    """
    decision = _current.get() or Decision(n_visits)
    if decision.is_compiled is None:
        width = lane_width(n, count, is_complex)
        kind = kernel, 1 + is_complex, width
        if kind not in _runs:
            _runs[kind] = can_run_at_once(*kind)
        if not _runs[kind]:
            _saved[kind] += decision.n_visits / size * saved_seconds(n, count, is_complex)
            _runs[kind] = _saved[kind] > COMPILING
            if _runs[kind] and decision.verbose:
                sys.stderr.write("rplvq: compiles the training steps, which takes seconds, and stores them\n")
        decision.is_compiled = _runs[kind]
    return decision.is_compiled


def saved_seconds(n: int, count: int, is_complex: bool) -> float:
    """Estimate what one step for ``count`` prototypes saves if it runs compiled, from measurements of plain steps."""
    plain = 3e-5 + count * (1.5e-6 + 9.5e-8 * n * n) * (2 if is_complex else 1)
    return plain * max(0.0, 1 - relative_time(n, count, is_complex) / (LAPACK_OVERHEAD * count))


def forget() -> None:
    """Forget what this process has decided; tests use it."""
    _saved.clear()
    _runs.clear()
