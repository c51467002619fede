"""Compiles the kernels, once, where numba is installed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from rplvq.training.compiled import _rotations as rotations
from rplvq.training.compiled import _steps as steps
from rplvq.training.compiled._weigh import weigh

__all__ = ["PLAIN", "Kernels", "compiled_kernels"]


class Kernels(NamedTuple):
    """What is compiled: the way through a block, step by step, and the spectra of a batch of pairs."""

    through_lanes: Callable[..., int]
    batch_spectra: Callable[..., None]


PLAIN = Kernels(steps.through_lanes, rotations.batch_spectra)
"""The same functions, not compiled: slow, for tests."""


def source_hash(folder: Path = Path(__file__).parent) -> str:
    """Return a hash of the source of all kernels: numba itself notices a change of a kernel's own file only."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def compiled_kernels() -> Kernels | None:
    """Return the compiled kernels, or None where numba is not installed.

    Each kernel is compiled at its first call for a type of samples. The result is stored beside this package, or in
    numba's cache folder if the package's folder is not writable; if neither is, every process compiles anew, for a few
    seconds. The name under which it is stored contains a hash of the source of all kernels, so that code that was
    compiled from another source is never loaded.
    """
    if find_spec("numba") is None:
        return None
    import numba

    import_module("rplvq.training.compiled._registers")

    source = source_hash()

    # NumPy's error model only drops checks before divisions. No fastmath, not even fused multiply-adds as the compiler
    # likes: they differ between the process that compiles and those that load its code from disk, and so do the bits.
    def compiled(function: Any, *inner: Any, **options: Any) -> Any:
        """Compile a copy that calls the compiled ``inner`` functions; the module's own stay plain Python."""
        names = {**function.__globals__, **{each.__name__: each for each in inner}}
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, f"{function.__qualname__}_{source}"
        options = {"error_model": "numpy", "nogil": True, **options}
        try:
            return numba.njit(cache=True, **options)(copy)
        except RuntimeError:  # no folder can be written to
            return numba.njit(**options)(copy)

    # Vectors passed to a function that is not inlined go through memory.
    turned = [compiled(function, forceinline=True) for function in (rotations.sum_squares, rotations.turn)]
    orthogonalise = compiled(rotations.orthogonalise, *turned)
    scored = compiled(weigh)
    parts = [compiled(function) for function in (steps.whiten_lanes, steps.follow_lanes, steps.spectra, steps.rescale)]
    root = compiled(steps.cholesky)
    return Kernels(
        compiled(steps.through_lanes, root, orthogonalise, scored, *parts),
        compiled(rotations.batch_spectra, orthogonalise),
    )
