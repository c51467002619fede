"""Compiles the kernels if numba is installed."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from rplvq.training.compiled import _costs as costs
from rplvq.training.compiled import _flat as flat
from rplvq.training.compiled import _lanes as lanes
from rplvq.training.compiled import _learned as learned
from rplvq.training.compiled import _projected as projected
from rplvq.training.compiled import _rotations as rotations
from rplvq.training.compiled import _steps as steps
from rplvq.training.compiled import _wasserstein as wasserstein


class Kernels(NamedTuple):
    """The compiled functions: the decompositions of a mini-batch, and all steps of a block of samples by metric."""

    run_steps: Callable[..., int]
    batch_spectra: Callable[..., None]
    run_flat: Callable[..., int]
    run_learned: Callable[..., int]
    run_projected: Callable[..., int]
    run_wasserstein: Callable[..., tuple[int, int]]


PLAIN = Kernels(
    steps.run_steps,
    rotations.batch_spectra,
    flat.run_flat,
    learned.run_learned,
    projected.run_projected,
    wasserstein.run_wasserstein,
)
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

    def remove_stored(ours: bool) -> None:
        for path in folder.glob("*.nb[ic]*"):
            if (f"_{source}-" in path.name) == ours:
                with suppress(OSError):
                    path.unlink()

    def surviving(name: str) -> Callable[..., Any]:
        def kernel(*arguments: Any) -> Any:
            try:
                return getattr(built[-1], name)(*arguments)
            except Exception:  # numba raises any exception for damaged code, before the kernel has changed anything
                remove_stored(ours=True)
                built.append(_build(source, cache=False))
                return getattr(built[-1], name)(*arguments)

        return kernel

    remove_stored(ours=False)
    return Kernels(*map(surviving, Kernels._fields))


def _build(source: str, *, cache: bool) -> Kernels:
    """Return kernels that are compiled when they are called, and stored under the hash of the source if ``cache``."""
    import numba

    import_module("rplvq.training.compiled._registers")

    # The error model "numpy" only omits checks before divisions. fastmath is off: if the compiler may choose which
    # multiply-adds to fuse, a process that compiles and one that loads the code from disk end with different bits.
    def compiled(function: Any, *inner: Any, **options: Any) -> Any:
        """Compile a copy that calls the compiled ``inner`` functions; the functions of the module stay plain Python."""
        names = {**function.__globals__, **{each.__name__: each for each in inner}}
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, f"{function.__qualname__}_{source}"
        return numba.njit(cache=cache, error_model="numpy", nogil=True, **options)(copy)

    # These are inlined, because a function that is not inlined passes vectors through memory.
    vector = (rotations.sum_squares, rotations.rotate, rotations.rescale)
    inlined = [compiled(function, forceinline=True) for function in vector]
    orthogonalise = compiled(rotations.orthogonalise, *inlined)
    parts = (steps.cholesky, steps.whiten, steps.log_spectra, steps.column_scales, steps.move)
    terms = (costs.add_mixture, costs.add_margin, costs.paced)
    weigh = compiled(costs.weigh, *(compiled(function) for function in terms))
    matrix = [compiled(each) for each in (lanes.product, lanes.adjoint_product, lanes.may_be_indefinite)]
    raised = [compiled(each, forceinline=True) for each in (projected.trace, projected.shifted, projected.line_sqdist)]
    raised.append(compiled(projected.follow_lines))
    raised.append(compiled(projected.raise_eigenvalues, orthogonalise, *matrix, *raised))
    square_difference = compiled(wasserstein.square_difference, forceinline=True)
    subtracted = compiled(lanes.subtract_column, forceinline=True)
    orthonormalised = compiled(lanes.orthonormalise, subtracted)
    lowered = compiled(lanes.lower_diagonal)
    turned = [
        compiled(wasserstein.spread),
        compiled(wasserstein.polar, orthogonalise, *matrix),
        compiled(wasserstein.may_shorten, *matrix, lowered),
        compiled(wasserstein.shortened, orthogonalise, *matrix, orthonormalised, subtracted),
        compiled(wasserstein.raise_roots, orthogonalise, *matrix, lowered),
    ]
    return Kernels(
        compiled(steps.run_steps, orthogonalise, weigh, *(compiled(function) for function in parts)),
        compiled(rotations.batch_spectra, orthogonalise),
        compiled(flat.run_flat, weigh, compiled(flat.flat_distance)),
        compiled(learned.run_learned, weigh, compiled(learned.flat_product), compiled(learned.learning_rate)),
        compiled(projected.run_projected, weigh, *matrix, *raised),
        compiled(wasserstein.run_wasserstein, weigh, square_difference, *matrix, *turned),
    )
