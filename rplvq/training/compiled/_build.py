"""Compiles the kernels if numba can be used."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rplvq.lanes import cholesky_lanes, compiled_rotations, compiler, load_kernels
from rplvq.training.compiled import _costs as costs
from rplvq.training.compiled import _flat as flat
from rplvq.training.compiled import _lanes as lanes
from rplvq.training.compiled import _learned as learned
from rplvq.training.compiled import _projected as projected
from rplvq.training.compiled import _steps as steps
from rplvq.training.compiled import _wasserstein as wasserstein


class Kernels(NamedTuple):
    """The compiled functions that take all steps of a block of samples, by metric."""

    run_steps: Callable[..., int]
    run_flat: Callable[..., int]
    run_learned: Callable[..., int]
    run_projected: Callable[..., int]
    run_wasserstein: Callable[..., tuple[int, int]]


PLAIN = Kernels(
    steps.run_steps, flat.run_flat, learned.run_learned, projected.run_projected, wasserstein.run_wasserstein
)
"""The same functions in plain Python, which is slow; tests use them."""


@lru_cache(maxsize=1)
def compiled_kernels() -> Kernels | None:
    """Return the compiled kernels, or None if numba cannot be used; :func:`rplvq.lanes.load_kernels` stores them."""
    found: Kernels | None = load_kernels(_build, Path(__file__).parent)
    return found


def _build(source: str, *, cache: bool) -> Kernels:
    """Return kernels that are compiled when they are called, and stored under the hash of the source if ``cache``."""
    compiled = compiler(source)
    orthogonalise = compiled_rotations(compiled)
    parts = (steps.cholesky, steps.whiten, steps.log_spectra, steps.column_scales)
    terms = (costs.add_mixture, costs.add_margin, costs.paced)
    weigh = compiled(costs.weigh, *(compiled(function) for function in terms))
    small = (lanes.copy_block, lanes.spread, lanes.square_difference, lanes.follow, lanes.trace, lanes.add_to_diagonal)
    matrix = [compiled(each, forceinline=True) for each in small]
    matrix += [compiled(each) for each in (lanes.product, lanes.adjoint_product)]
    matrix.append(compiled(lanes.may_be_indefinite, compiled(cholesky_lanes)))
    subtracted = compiled(lanes.subtract_column, forceinline=True)
    orthonormalised = compiled(lanes.orthonormalise, subtracted)
    turned = [
        compiled(wasserstein.polar, orthogonalise, *matrix),
        compiled(wasserstein.may_shorten, *matrix),
        compiled(wasserstein.shortened, orthogonalise, *matrix, orthonormalised, subtracted),
        compiled(wasserstein.raise_roots, orthogonalise, *matrix),
    ]
    learning = [compiled(each) for each in (learned.flat_product, learned.pull_row, learned.learning_rate)]
    inner = (
        (steps.run_steps, orthogonalise, compiled(steps.move, *matrix), *(compiled(function) for function in parts)),
        (flat.run_flat, compiled(flat.flat_distance)),
        (learned.run_learned, *learning),
        (projected.run_projected, *matrix, compiled(projected.raise_eigenvalues, orthogonalise, *matrix)),
        (wasserstein.run_wasserstein, *matrix, *turned),
    )
    return Kernels(*(compiled(run, weigh, *others, cache=cache) for run, *others in inner))
