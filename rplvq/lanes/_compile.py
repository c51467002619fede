"""Compiles functions if numba can be used, stores their machine code, and decides when compiling pays.

Each kernel is compiled once per installation for each kind of matrices. A process compiles once the time that compiled
code would have saved it so far exceeds the time of compiling. Until then, callers work without compiled code. All times
are estimated from the sizes of the data and not measured, so that the bits of a result do not depend on the speed of
the machine. Compiling in another thread is no remedy, because numba holds Python's lock most of the time.
"""

import hashlib
import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from rplvq.exceptions import interrupts_deferred
from rplvq.lanes import _eigenvalues as eigenvalues
from rplvq.lanes import _logs as logs
from rplvq.lanes import _rotations as rotations

FOLDER = Path(__file__).parent
Kind = tuple[str, int, int]
"""Name of a kernel, number of arrays per matrix (2 if complex), and width of vectors. Each kind is compiled apart."""

COMPILING = 4.0
"""Seconds that numba takes to be imported and to compile one kernel."""

verbosity: ContextVar[int] = ContextVar("rplvq_verbosity", default=0)
"""Above 0, a line announces that a kernel is compiled."""

_called: set[Kind] = set()  # kernels that have run in this process
_places: dict[str, tuple[Path, str]] = {}  # where the code of a kernel is stored, and the hash of its source
_saved: defaultdict[Kind, float] = defaultdict(float)
"""Seconds that compiled code would have saved in this process, by kind."""
_runs: dict[Kind, bool] = {}
"""Whether a kernel runs in this process. Stored code is looked for once, so other processes change no bits here."""


class LaneKernels(NamedTuple):
    """The compiled functions that need no metric: decompositions, logarithms and inverses of many matrices."""

    batch_spectra: Callable[..., None]
    batch_logs: Callable[..., None]
    batch_inverses: Callable[..., None]
    batch_eigenvalues: Callable[..., None]


PLAIN_LANES = LaneKernels(rotations.batch_spectra, logs.batch_logs, logs.batch_inverses, eigenvalues.batch_eigenvalues)
"""The same functions in plain Python, which is slow; tests use them."""
KernelsT = TypeVar("KernelsT", bound=NamedTuple)
Compiled = Callable[..., Any]
"""A function that numba has compiled."""


def source_hash(*folders: Path) -> str:
    """Return a hash of all source in some folders; numba itself only notices changes in the file of each kernel."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def load_kernels(build: Callable[..., KernelsT], *folders: Path) -> KernelsT | None:
    """Return the kernels that ``build(source, cache=...)`` returns, a named tuple, or None if numba cannot be used.

    ``folders`` hold the source of the kernels. The first argument of a kernel holds the real and imaginary parts of
    matrices, and the last one is ``like``. A kernel is compiled when it is first called with arguments of new types.
    numba stores the machine code in the folder of this package, or in its own cache folder, under names that contain a
    hash of the source of all kernels: code of another source is removed. What cannot be loaded is compiled again.
    """
    if not can_compile():
        return None
    source = source_hash(FOLDER, *folders)
    with interrupts_deferred():  # after Ctrl-C in numba, the process could not use it again
        try:
            built = [build(source, cache=True)]  # a list, so that kernels can be built again below
        except RuntimeError:  # no folder is writable
            built = [build(source, cache=False)]
    first = built[0]
    stored = first[0].stats.cache_path
    folder = Path(stored or os.devnull)  # where nothing can be stored, no mark can be either
    note_place(first._fields, folder, source)

    def remove_stored(ours: bool) -> None:
        for path in folder.glob("*.nb*"):
            if (f"_{source}-" in path.name) == ours:
                with suppress(OSError):
                    path.unlink()

    def surviving(name: str) -> Callable[..., object]:
        def kernel(*arguments: Any) -> object:
            try:
                first = arguments[0]
                kind = (name, len(first) if isinstance(first, tuple) else 1, len(arguments[-1]))
                compiling = nullcontext() if kind in _called else interrupts_deferred()
                with compiling:
                    result = getattr(built[-1], name)(*arguments)
                    note_call(kind)
                return result
            except Exception:  # numba raises any exception for damaged code, before the kernel has changed anything
                remove_stored(ours=True)
                with interrupts_deferred():
                    built.append(build(source, cache=False))
                    return getattr(built[-1], name)(*arguments)

        return kernel

    remove_stored(ours=False)  # that of older sources
    return first._replace(**{name: surviving(name) for name in first._fields})


@lru_cache(maxsize=1)
def can_compile() -> bool:
    """Whether numba is installed, compiles (NUMBA_DISABLE_JIT is not set), and has all that is used of it."""
    if find_spec("numba") is None:
        return False
    try:
        with interrupts_deferred():
            is_disabled = bool(import_module("numba").config.DISABLE_JIT)
            is_disabled or import_module("rplvq.lanes._registers")
    except Exception as error:  # numba often refuses a newer NumPy, and the plain steps do the same
        why = f"numba is installed but cannot be used, so steps are not compiled: {type(error).__name__}: {error}"
        warnings.warn(why, RuntimeWarning, stacklevel=2)
        return False
    return not is_disabled


def compiler(source: str) -> Callable[..., Compiled]:
    """Return a function that compiles other functions, and appends ``source`` to their names.

    With the option ``cache`` it compiles a kernel, which Python calls, else a function that compiled functions call.
    """
    import numba

    registers = import_module("rplvq.lanes._registers")
    # numba inserts these operations directly, without compiling a function around each of them.
    operations = {name: getattr(registers, name) for name in ("load", "store", "fill", "any_positive")}

    # The error model "numpy" only omits checks before divisions. fastmath is off: if the compiler may choose which
    # multiply-adds to fuse, a process that compiles and one that loads the code from disk end with different bits.
    def compiled(function: FunctionType, *inner: Compiled, **options: Any) -> Compiled:
        """Compile a copy of a function that calls the compiled ``inner`` functions; the original stays plain Python."""
        names = {**function.__globals__, **operations, **{each.__name__: each for each in inner}}
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__module__ = function.__module__
        copy.__qualname__ = f"{function.__qualname__}_{source}"  # numba stores code under this name
        if "cache" not in options:
            options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
        kernel: Compiled = numba.njit(error_model="numpy", nogil=True, **options)(copy)
        return kernel

    return compiled


def compiled_rotations(compiled: Callable[..., Compiled]) -> Compiled:
    """Return the compiled :func:`rplvq.lanes.orthogonalise`, for functions that call it."""
    # These functions are inlined, because calls that are not inlined pass vectors through memory.
    vector = (rotations.sum_squares, rotations.multiply, rotations.angle, rotations.turn, rotations.rescale)
    inlined = [compiled(function, forceinline=True) for function in vector]
    inlined += [compiled(function, *inlined, forceinline=True) for function in (rotations.measure, rotations.rotate)]
    return compiled(rotations.orthogonalise, *inlined)


@lru_cache(maxsize=1)
def lane_kernels() -> LaneKernels | None:
    """Return the compiled kernels of this package, or None if numba cannot be used."""
    return load_kernels(_build)


def _build(source: str, *, cache: bool) -> LaneKernels:
    compiled = compiler(source)
    orthogonalise = compiled_rotations(compiled)
    parts = [compiled(part) for part in (logs.cholesky_lanes, logs.combine)]
    order = compiled(rotations.find_order)
    inverted = [compiled(part) for part in (logs.invert_lower, logs.add_gram)]
    inlined = [compiled(part, forceinline=True) for part in (rotations.sum_squares, rotations.rescale)]
    inlined += [compiled(part, forceinline=True) for part in (eigenvalues.reflector, eigenvalues.reflect)]
    product = compiled(eigenvalues.multiply_lower)
    reduced = compiled(eigenvalues.tridiagonalise, *inlined, product)
    step = compiled(eigenvalues.ql_step, forceinline=True)
    return LaneKernels(
        compiled(rotations.batch_spectra, orthogonalise, order, compiled(rotations.swap), cache=cache),
        compiled(logs.batch_logs, orthogonalise, order, *parts, cache=cache),
        compiled(logs.batch_inverses, parts[0], *inverted, cache=cache),
        compiled(eigenvalues.batch_eigenvalues, inlined[1], reduced, step, cache=cache),
    )


def note_place(names: tuple[str, ...], folder: Path, source: str) -> None:
    """Note the folder in which these kernels are stored, and the hash of their source in the names of the files."""
    _places.update(dict.fromkeys(names, (folder, source)))


def note_call(kind: Kind) -> None:
    """Note that a kernel has run: in this process, and by an empty file beside its stored code for later processes."""
    if kind not in _called:
        _called.add(kind)
        with suppress(OSError):
            mark_of(kind).touch()


def mark_of(kind: Kind) -> Path:
    """Return the path of the empty file whose existence says that this version of numba has stored a kernel."""
    folder, source = _places[kind[0]]
    return folder / f"{'-'.join(map(str, kind))}_{source}-{version('numba')}.nbready"


def can_run_at_once(kind: Kind) -> bool:
    """Whether a kernel has run in this process, or its code is stored, so that nothing has to be compiled."""
    return kind in _called or (kind[0] in _places and mark_of(kind).exists())


def pays(kind: Kind, seconds: float) -> bool:
    """Add ``seconds`` to what a kernel would have saved in this process; return whether to use it.

    It is used if nothing has to be compiled, or as soon as the sum pays for compiling; the answer then stays.
    """
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
