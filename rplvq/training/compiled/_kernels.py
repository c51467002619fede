"""Compiles the kernels if numba can be used, and decides whether the steps of a fit run compiled.

All steps of a fit share one decision. :func:`rplvq.lanes.pays` compares the seconds that compiled steps save with those
that compiling takes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import attrs
import numpy as np

from rplvq.costs import terms_of
from rplvq.lanes import Kind, cholesky_lanes, compiled_rotations, compiler, load_kernels, pays, rescale, verbosity
from rplvq.parts import kernel_of
from rplvq.protocols import AnyManifold, Array, Cost
from rplvq.training.compiled import _costs as costs
from rplvq.training.compiled import _flat as flat
from rplvq.training.compiled import _lanes as lanes
from rplvq.training.compiled import _projected as projected
from rplvq.training.compiled import _steps as steps
from rplvq.training.compiled import _wasserstein as wasserstein
from rplvq.training.compiled._costs import Rules

SHARES = {4: (0.019, 0.025), 8: (0.018, 0.024)}
"""Measured time of a compiled step per lane and n, relative to LAPACK: by width, for real and complex matrices."""
LAPACK_OVERHEAD = 1.1
"""Measured time of a step in NumPy, relative to its decompositions alone."""
CONSTANT = (-1.0, 0.0, 0.0)
"""What follows the step size in the pace of steps that do not adapt."""
PACES = ("distance_over_gradients",)
"""Names of the step rules that kernels know."""


def rules_of(
    manifold: AnyManifold, cost: Cost, targets: Array, labels: Array, sigma2: float, caps: tuple[float, float],
    pace: tuple[float, ...],
) -> Rules | None:  # fmt: skip
    """Return the rules of compiled steps with these parts on single samples, or None if a part has no kernel.

    ``targets`` are those of a block, and ``pace`` is explained in :class:`Rules`.
    """
    n_classes = int(labels.max()) + 1
    if kernel_of(manifold, "connect", "move") is None or not len(targets):
        return None
    soft = targets.ndim == 2
    are_known = targets.shape[1] == n_classes if soft else 0 <= targets.min() <= targets.max() < n_classes
    if not are_known:  # the plain path refuses them, or takes a class without prototypes in its own way
        return None
    terms = terms_of(cost, labels, sigma2, soft)
    if terms is None:
        return None
    work = np.empty(len(labels)), np.empty((2, n_classes))
    return Rules(np.ascontiguousarray(labels, dtype=np.intp), *terms, np.array(caps), np.array(pace), *work)


def lane_width(n: int, count: int, is_complex: bool) -> int:
    """Return the vector width with which ``count`` matrices of size n are rotated fastest."""
    # Empty lanes take as much time as full ones, so narrow vectors can be faster for few matrices.
    return min(SHARES, key=lambda width: _cost(width, n, count, is_complex))


def is_worthwhile(n: int, count: int, is_complex: bool, times: float = 1.0) -> bool:
    """Whether rotations decompose ``count`` matrices of size n faster than LAPACK, which takes ``times`` that long."""
    return relative_time(n, count, is_complex) < times * LAPACK_OVERHEAD * count


def relative_time(n: int, count: int, is_complex: bool) -> float:
    """Return the time of the rotations of ``count`` matrices of size n, in units of LAPACK's time for one matrix."""
    return _cost(lane_width(n, count, is_complex), n, count, is_complex)


def _cost(width: int, n: int, count: int, is_complex: bool) -> float:
    """Return the time of the rotations, in units of LAPACK's time for one matrix."""
    return -(-count // width) * width * SHARES[width][is_complex] * max(n, 5)  # the share stops falling there


@attrs.define
class Decision:
    """Whether one fit runs compiled steps; the first step that could decides, and all later ones share the decision."""

    n_visits: float  # planned; each sample is visited once per epoch
    verbose: int = 0
    is_compiled: bool | None = None  # None before the decision


_current: ContextVar[Decision | None] = ContextVar("rplvq_decision", default=None)


@contextmanager
def one_decision(decision: Decision) -> Iterator[None]:
    """Let all steps inside this block share a decision; inside another such block, they share that of the outer one."""
    if _current.get():
        yield
        return
    tokens = _current.set(decision), verbosity.set(decision.verbose)
    try:
        yield
    finally:
        _current.reset(tokens[0])
        verbosity.reset(tokens[1])


def runs_compiled(kind: Kind, saved: float, n_visits: int) -> bool:
    """Whether steps run compiled by a kernel with which each of ``n_visits`` steps saves ``saved`` seconds."""
    decision = _current.get() or Decision(n_visits)  # the fit counts its visits, else a block does
    if decision.is_compiled is None:
        decision.is_compiled = pays(kind, decision.n_visits * saved)
    return decision.is_compiled


def saved_seconds(n: int, count: int, is_complex: bool) -> float:
    """Return the estimated seconds that one step for ``count`` prototypes saves if it runs compiled and not plain."""
    per_prototype = 1.5e-6 + 9.5e-8 * n * n
    if is_complex:
        per_prototype *= 2
    plain = 3e-5 + count * per_prototype
    return plain * max(0.0, 1 - relative_time(n, count, is_complex) / (LAPACK_OVERHEAD * count))


class Kernels(NamedTuple):
    """The compiled functions that take all steps of a block of samples, by metric."""

    run_steps: Callable[..., int]
    run_flat: Callable[..., int]
    run_learned: Callable[..., int]
    run_projected: Callable[..., int]
    run_wasserstein: Callable[..., tuple[int, int]]


PLAIN = Kernels(steps.run_steps, flat.run_flat, flat.run_learned, projected.run_projected, wasserstein.run_wasserstein)
"""The same functions in plain Python, which is slow; tests use them."""


@lru_cache(maxsize=1)
def compiled_kernels() -> Kernels | None:
    """Return the compiled kernels, or None if numba cannot be used; :func:`rplvq.lanes.load_kernels` stores them."""
    return load_kernels(_build, Path(__file__).parent)


def _build(source: str, *, cache: bool) -> Kernels:
    """Return kernels that are compiled when they are called, and stored under the hash of the source if ``cache``."""
    compiled = compiler(source)
    orthogonalise = compiled_rotations(compiled)
    parts = (steps.cholesky, steps.whiten, steps.log_spectra, steps.column_scales)
    terms = (costs.add_mixture, costs.add_margin, costs.paced)
    weigh = compiled(costs.weigh, *(compiled(function) for function in terms))
    small = (lanes.copy_block, lanes.spread, lanes.square_difference, lanes.follow, lanes.trace, lanes.add_to_diagonal)
    matrix = [compiled(each, forceinline=True) for each in (*small, rescale)]
    # Beside the loops of these two, a call costs nothing.
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
    flats = [compiled(each) for each in (flat.flat_product, flat.differences_to)]
    learning = [compiled(each) for each in (flat.pull_row, flat.learning_rate)]
    inner = (
        (steps.run_steps, orthogonalise, compiled(steps.move, *matrix), *(compiled(function) for function in parts)),
        (flat.run_flat, *flats),
        (flat.run_learned, *flats, *learning),
        (projected.run_projected, *matrix, compiled(projected.raise_eigenvalues, orthogonalise, *matrix)),
        (wasserstein.run_wasserstein, *matrix, *turned),
    )
    return Kernels(*(compiled(run, weigh, *others, cache=cache) for run, *others in inner))
