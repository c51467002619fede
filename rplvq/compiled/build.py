"""Compiles the kernels, once, where numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any, NamedTuple

from rplvq.compiled import rotations, steps
from rplvq.compiled.lapack import through_lapack
from rplvq.compiled.weigh import weigh

__all__ = ["PLAIN", "Kernels", "compiled_kernels"]


class Kernels(NamedTuple):
    """What is compiled: two ways to step through a block, and the spectra of a batch of pairs."""

    through_lapack: Callable[..., int]
    through_lanes: Callable[..., int]
    batch_spectra: Callable[..., None]


PLAIN = Kernels(through_lapack, steps.through_lanes, rotations.batch_spectra)
"""The same functions, not compiled: slow, for tests."""


@lru_cache(maxsize=1)
def compiled_kernels() -> Kernels | None:
    """Return the compiled kernels, or None where numba is not installed.

    Each is compiled at its first call for a type of samples, and kept on disk beside this package, or in numba's cache
    folder where that is not writable; where neither is, each process compiles anew, for a few seconds. Numba notices a
    change of the kernel's own file only: delete the ``__pycache__`` folder after changing a function that it calls.
    """
    if find_spec("numba") is None:
        return None
    import numba

    import_module("rplvq.compiled.registers")

    # NumPy's error model only drops checks before divisions. No fastmath, not even fused multiply-adds as the compiler
    # likes: they differ between the process that compiles and those that load its code from disk, and so do the bits.
    def compiled(function: Any, *inner: Any, **options: Any) -> Any:
        """Compile a copy that calls the compiled ``inner`` functions; the module's own stay plain Python."""
        names = {**function.__globals__, **{each.__name__: each for each in inner}}
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
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
        compiled(through_lapack, scored),
        compiled(steps.through_lanes, root, orthogonalise, scored, *parts),
        compiled(rotations.batch_spectra, orthogonalise),
    )
