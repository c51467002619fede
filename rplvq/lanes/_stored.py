"""Knows which kernels run without compiling, and decides when compiling pays.

Each kernel is compiled once per installation for each kind of matrices. Before that, callers work without compiled
code. A process compiles once the time that compiled code would have saved it so far exceeds the time of compiling. It
then loses at most about twice the time that it would lose if it knew all its work in advance. All times are estimated
from the sizes of the data and not measured, so that the bits of a result do not depend on the speed of the machine.
Compiling in another thread is no remedy: numba holds Python's lock most of the time, and the exit of a process would
have to wait for the thread.
"""

import sys
from collections import defaultdict
from contextlib import suppress
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path

Kind = tuple[str, int, int]
"""Name of a kernel, number of arrays per matrix (2 if complex), and width of vectors. Each kind is compiled apart."""

COMPILING = 4.0
"""Seconds that numba takes to be imported and to compile one kernel."""

verbosity: ContextVar[int] = ContextVar("rplvq_verbosity", default=0)
"""Above 0, a line announces that a kernel is compiled."""

_called: set[Kind] = set()
_places: dict[str, tuple[Path, str]] = {}
_saved: defaultdict[Kind, float] = defaultdict(float)
"""Seconds that compiled code would have saved in this process, by kind."""
_runs: dict[Kind, bool] = {}
"""Whether a kernel runs in this process. Stored code is looked for once, so other processes change no bits here."""


def note_place(names: tuple[str, ...], folder: Path, source: str) -> None:
    """Note the folder in which these kernels are stored, and the hash of their source in the names of the files."""
    _places.update(dict.fromkeys(names, (folder, source)))


def note_call(kind: Kind) -> None:
    """Note that a kernel has run: in this process, and by an empty file beside its stored code for later processes."""
    if kind not in _called:
        _called.add(kind)
        with suppress(OSError):
            mark_of(kind).touch()


def has_run(kind: Kind) -> bool:
    """Whether a kernel has run in this process."""
    return kind in _called


def mark_of(kind: Kind) -> Path:
    """Return the path of the empty file whose existence says that this version of numba has stored a kernel."""
    folder, source = _places[kind[0]]
    return folder / f"{'-'.join(map(str, kind))}_{source}-{version('numba')}.nbready"


def can_run_at_once(kind: Kind) -> bool:
    """Whether a kernel has run in this process, or its code is stored, so that nothing has to be compiled."""
    return has_run(kind) or (kind[0] in _places and mark_of(kind).exists())


def pays(kind: Kind, seconds: float) -> bool:
    """Whether to use a kernel for work on which it saves ``seconds``, although it may have to be compiled first."""
    if kind not in _runs:
        _runs[kind] = can_run_at_once(kind)
    if not _runs[kind]:
        _saved[kind] += seconds
        _runs[kind] = _saved[kind] > COMPILING
        if _runs[kind] and verbosity.get():
            sys.stderr.write("rplvq: compiles steps and decompositions, which takes seconds, and stores them\n")
    return _runs[kind]


def forget() -> None:
    """Forget what this process has decided; tests use it."""
    _saved.clear()
    _runs.clear()
