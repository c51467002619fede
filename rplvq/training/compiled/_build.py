"""Compiles the kernels if numba is installed."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rplvq.lanes import compiled_rotations, compiler, load_kernels
from rplvq.training.compiled import _steps as steps


class Kernels(NamedTuple):
    """The compiled function that takes all steps of a block of samples."""

    run_steps: Callable[..., int]


PLAIN = Kernels(steps.run_steps)
"""The same function in plain Python, which is slow; tests use it."""


@lru_cache(maxsize=1)
def compiled_kernels() -> Kernels | None:
    """Return the compiled kernels, or None if numba is not installed; :func:`rplvq.lanes.load_kernels` stores them."""
    found: Kernels | None = load_kernels(_build, Path(__file__).parent)
    return found


def _build(source: str, *, cache: bool) -> Kernels:
    """Return kernels that are compiled when they are called, and stored under the hash of the source if ``cache``."""
    compiled = compiler(source)
    orthogonalise = compiled_rotations(compiled)
    parts = (steps.cholesky, steps.whiten, steps.log_spectra, steps.capped_weights, steps.column_scales, steps.move)
    inner = [compiled(function) for function in parts]
    return Kernels(compiled(steps.run_steps, orthogonalise, *inner, cache=cache))
