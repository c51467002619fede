"""Compiles the kernels if numba is installed."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from rplvq.training.compiled import _rotations as rotations
from rplvq.training.compiled import _steps as steps


class Kernels(NamedTuple):
    """The two compiled functions: all steps of a block of samples, and the decompositions of a mini-batch."""

    run_steps: Callable[..., int]
    batch_spectra: Callable[..., None]


PLAIN = Kernels(steps.run_steps, rotations.batch_spectra)
"""The same functions in plain Python, which is slow; tests use them."""


def source_hash(folder: Path = Path(__file__).parent) -> str:
    """Return a hash of the source of all kernels, because numba only notices changes of the file of each kernel."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def compiled_kernels() -> Kernels | None:
    """Return the compiled kernels, or None if numba is not installed.

    A kernel is compiled when it is first called with samples of a type. numba stores the machine code in the folder of
    this package or, if that is not writable, in its own cache folder. If neither is writable, every process compiles
    again, which takes a few seconds. The stored name contains a hash of the source of all kernels, so that machine code
    of another source is never loaded; it is removed. Code that cannot be loaded or stored is compiled in memory.
    """
    if find_spec("numba") is None:
        return None
    source = source_hash()
    try:
        built = [_build(source, cache=True)]
    except RuntimeError:  # no folder is writable
        built = [_build(source, cache=False)]
    stored = built[0].run_steps.stats.cache_path  # type: ignore[attr-defined]
    folder = Path(stored or os.devnull)
    _folders[:] = [folder]

    def remove_stored(ours: bool) -> None:
        for path in folder.glob("*.nb*"):
            if (f"_{source}-" in path.name) == ours:
                with suppress(OSError):
                    path.unlink()

    def surviving(name: str) -> Callable[..., Any]:
        def kernel(*arguments: Any) -> Any:
            try:
                result = getattr(built[-1], name)(*arguments)
                note_call(folder, source, (name, len(arguments[0]), len(arguments[-1])))
                return result
            except Exception:  # numba raises any exception for damaged code, before the kernel has changed anything
                remove_stored(ours=True)
                built.append(_build(source, cache=False))
                return getattr(built[-1], name)(*arguments)

        return kernel

    remove_stored(ours=False)
    return Kernels(*map(surviving, Kernels._fields))


Kind = tuple[str, int, int]
"""The name of a kernel, the number of arrays of a matrix (2 if complex), and the width of vectors: compiled apart."""
_called: set[Kind] = set()
_folders: list[Path] = []


def note_call(folder: Path, source: str, kind: Kind) -> None:
    """Note that a kernel has run: in this process, and beside its stored code for later ones."""
    if kind not in _called:
        _called.add(kind)
        with suppress(OSError):
            mark_of(folder, source, kind).touch()


def mark_of(folder: Path, source: str, kind: Kind) -> Path:
    """Return the empty file that says that the code of a kernel is stored, for this version of numba."""
    return folder / f"{'-'.join(map(str, kind))}_{source}-{version('numba')}.nbready"


def can_run_at_once(kernel: str, n_parts: int, width: int) -> bool:
    """Whether a kernel has run in this process, or its code is stored, so that nothing has to be compiled."""
    kind = kernel, n_parts, width
    return kind in _called or any(mark_of(folder, source_hash(), kind).exists() for folder in _folders)


def _build(source: str, *, cache: bool) -> Kernels:
    """Return kernels that are compiled when they are called, and stored under the hash of the source if ``cache``."""
    import numba

    registers = import_module("rplvq.training.compiled._registers")
    # The operations that numba can insert without compiling a function around each.
    operations = {name: getattr(registers, name) for name in ("load", "store", "fill", "any_positive")}

    # The error model "numpy" only omits checks before divisions. fastmath is off: if the compiler may choose which
    # multiply-adds to fuse, a process that compiles and one that loads the code from disk end with different bits.
    def compiled(function: Any, *inner: Any, **options: Any) -> Any:
        """Compile a copy that calls the compiled ``inner`` functions; the functions of the module stay plain Python."""
        names = {**function.__globals__, **operations, **{each.__name__: each for each in inner}}
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, f"{function.__qualname__}_{source}"
        return numba.njit(error_model="numpy", nogil=True, **options)(copy)

    def part(function: Any, *inner: Any, **options: Any) -> Any:
        """Compile a function that only kernels call: it is stored as a part of them, and Python cannot call it."""
        return compiled(function, *inner, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)

    # These are inlined, because a function that is not inlined passes vectors through memory.
    vector = (rotations.sum_squares, rotations.rotate, rotations.rescale)
    inlined = [part(function, forceinline=True) for function in vector]
    orthogonalise = part(rotations.orthogonalise, *inlined)
    parts = (steps.cholesky, steps.whiten, steps.log_spectra, steps.capped_weights, steps.column_scales, steps.move)
    return Kernels(
        compiled(steps.run_steps, orthogonalise, *(part(function) for function in parts), cache=cache),
        compiled(rotations.batch_spectra, orthogonalise, cache=cache),
    )
