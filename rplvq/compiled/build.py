"""Compiles the kernels, once, where numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from types import FunctionType
from typing import Any, NamedTuple

from rplvq.compiled import complex_lanes, lanes
from rplvq.compiled.complex_lanes import through_complex_lanes
from rplvq.compiled.lanes import through_lanes
from rplvq.compiled.lapack import through_lapack
from rplvq.compiled.weigh import weigh

__all__ = ["PLAIN", "Kernels", "compiled_kernels"]

Kernel = Callable[..., int]


class Kernels(NamedTuple):
    """The ways to step through a block; all take the same arguments but for the layout of the factors."""

    lapack: Kernel
    lanes: Kernel
    complex_lanes: Kernel


PLAIN = Kernels(through_lapack, through_lanes, through_complex_lanes)
"""The same functions, not compiled: slow, for tests."""


@lru_cache(maxsize=1)
def compiled_kernels() -> Kernels | None:
    """Return the compiled kernels, or None where numba is not installed.

    Each is compiled at its first call for a type of samples, and kept on disk beside this package, or in numba's cache
    folder where that is not writable. Numba notices a change of the kernel's own file only: delete the ``__pycache__``
    folder after changing a function that it calls.
    """
    if find_spec("numba") is None:
        return None
    import numba

    # NumPy's error model only drops checks before divisions. No fastmath, not even fused multiply-adds: which of them
    # are fused differs between the process that compiles and those that load its code from disk, and so do the bits.
    def compiled(function: Any, **inner: Any) -> Any:
        names = {**function.__globals__, **inner}
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        return numba.njit(cache=True, error_model="numpy")(copy)

    scored = {"weigh": compiled(weigh)}
    turned = {"turn_rows": compiled(complex_lanes.turn_rows)}
    spectra = {"spectra": compiled(lanes.spectra)}
    real = {name: compiled(getattr(lanes, name)) for name in ("whiten_lanes", "diagonalise")}
    hermitian = {
        "whiten_complex": compiled(complex_lanes.whiten_complex),
        "diagonalise_complex": compiled(complex_lanes.diagonalise_complex, **turned),
    }
    return Kernels(
        compiled(through_lapack, **scored),
        compiled(through_lanes, **scored, **spectra, **real),
        compiled(through_complex_lanes, **scored, **spectra, **hermitian),
    )
