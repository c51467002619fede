"""Takes compiled steps on a block of samples, where they are wanted, available and faster for these parts.

One function per kernel prepares its arrays and reads them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from rplvq.arrays import Samples
from rplvq.capabilities import Compilable, provides
from rplvq.costs import as_soft
from rplvq.lanes import Parts, aligned, from_lanes, into_lanes
from rplvq.manifolds import (
    EPS,
    LONGEST,
    LOWEST_SHARE,
    BuresWasserstein,
    InverseFactors,
    LearnedLogEuclidean,
    MetricPrototypes,
    ProjectedEuclidean,
    coordinates,
    from_coordinates,
    inverse_factors,
)
from rplvq.parts import kernel_of
from rplvq.protocols import AnyManifold, Array, Cost, Prototypes
from rplvq.training._state import Meter, State
from rplvq.training.compiled._batches import decomposes
from rplvq.training.compiled._costs import Block, Rules
from rplvq.training.compiled._kernels import (
    CONSTANT,
    PACES,
    Kernels,
    compiled_kernels,
    is_worthwhile,
    lane_width,
    rules_of,
    runs_compiled,
    saved_seconds,
)
from rplvq.training.compiled._lanes import Work

STEPS = 20
"""Number of samples whose steps change a large Omega of a learned metric together, see :func:`learn_in_span`."""
EIGHT = (0.0,) * 8
"""Gives vectors of coordinates their width."""


Runner = Callable[[Kernels, Any, Prototypes, Array, Block, Rules], tuple[Prototypes, int]]
"""Moves prototypes by one step per sample with these codes (M, ...); returns them and the number of weights cut."""
SAVED = 4e-5
"""Seconds that a compiled step saves on a metric without rotations, from measurements of plain steps."""


def run_block(
    kernels: Kernels, manifold: AnyManifold, prototypes: Prototypes, samples: Samples, rules: Rules
) -> tuple[Prototypes, Array, Array, int]:
    """Take one compiled step per sample of a block of M samples.

    Returns moved prototypes, squared distances (M, K) and losses (M,) before each step, and the number of weights cut.
    """
    codes = np.asarray(samples.codes)
    targets = np.ascontiguousarray(as_soft(samples.targets, rules.classes.shape[1]), dtype=float)
    multiplicity = np.ascontiguousarray(samples.filled_weights, dtype=float)
    block = Block(targets, multiplicity, np.empty((len(codes), len(rules.labels))), np.empty(len(codes)))
    run = RUNS[kernel_of(manifold, "connect", "move") or ""].function  # rules exist only for such a manifold
    moved, n_capped = run(kernels, manifold, prototypes, codes, block, rules)
    return moved, block.sqdist, block.loss, int(n_capped)


def flat_copy(codes: Array, dtype: DTypeLike) -> Array:
    """Return a flat copy (N m,) of codes (N, ...), complex ones as pairs of real numbers."""
    return np.array(codes, dtype=dtype, order="C").view(float).ravel()  # a copy, because kernels write into it


def run_flat(
    kernels: Kernels, _: object, prototypes: Prototypes, codes: Array, block: Block, rules: Rules
) -> tuple[Prototypes, int]:
    """Move prototypes (K, ...) along straight lines."""
    start = np.asarray(prototypes)
    dtype = np.result_type(start, codes)
    moved = flat_copy(start, dtype)
    n_capped = kernels.run_flat(moved, flat_copy(codes, dtype), block, rules, EIGHT)
    return moved.view(dtype).reshape(start.shape), n_capped


def run_learned(
    kernels: Kernels, manifold: LearnedLogEuclidean, prototypes: Prototypes, codes: Array, block: Block, rules: Rules
) -> tuple[Prototypes, int]:
    """Move logarithms (K, n, n) along straight lines, and the metric with them."""
    omega = manifold.connect(prototypes, codes[:1]).omega.copy()
    ends = np.ascontiguousarray(coordinates(codes, omega.shape[1]))
    moved = np.ascontiguousarray(coordinates(np.asarray(prototypes), omega.shape[1]))
    is_large = len(omega) >= 3 * (len(moved) + STEPS)  # for smaller ones the basis costs as much time as it saves
    learn = learn_in_span if is_large else learn_metric
    size = STEPS if is_large else len(ends)
    total = 0
    for first in range(0, len(ends), size):
        rows = slice(first, first + size)
        part = Block(*(array[rows] for array in block))
        total += learn(kernels, float(manifold.rate), moved, omega, ends[rows], part, rules)
        if manifold.rate:
            omega *= np.sqrt(omega.shape[1] / np.vdot(omega, omega))  # so that tr Q = m again
    return MetricPrototypes(from_coordinates(moved, codes.shape[-1]), omega), total


def learn_metric(
    kernels: Kernels, rate: float, moved: Array, omega: Array, ends: Array, part: Block, rules: Rules, rest: float = 0.0
) -> int:
    """Move prototypes (K, m) and omega (r, m) in place by one step per sample (M, m); return the number of weights cut.

    Omega is left unscaled. ``rest`` is the sum of the squares of what the caller left out of it.
    """
    vectors = moved.ravel(), omega.ravel(), rate, LONGEST, rest, ends.ravel()
    return int(kernels.run_learned(*vectors, part, rules, EIGHT))


def learn_in_span(
    kernels: Kernels, rate: float, moved: Array, omega: Array, ends: Array, part: Block, rules: Rules
) -> int:
    """Do what :func:`learn_metric` does with a large Omega and few samples, in less time.

    All changes lie in the span of the samples and the first prototypes. The kernel works with the few coordinates in an
    orthonormal basis of it, and Omega itself is read and changed once for all steps.
    """
    center = moved.mean(axis=0)
    basis, axes = np.linalg.qr((np.concatenate([moved, ends]) - center).T)
    vectors = np.ascontiguousarray(axes.T)
    start = vectors[: len(moved)]
    within = omega @ basis
    before = within.copy()
    rest = float(np.vdot(omega, omega) - np.vdot(within, within))
    n_capped = learn_metric(kernels, rate, start, within, vectors[len(moved) :], part, rules, rest)
    moved[:] = start @ basis.T + center
    omega += (within - before) @ basis.T
    return n_capped


class Laid(NamedTuple):
    """Matrices in lanes, and what kernels need to work with them."""

    lanes: Parts
    codes: Array  # (M, n, n)
    n_matrices: int
    n: int
    width: int

    @property
    def like(self) -> tuple[float, ...]:
        """A tuple of zeros, whose length tells a kernel how many numbers its vectors hold."""
        return (0.0,) * self.width

    @property
    def work(self) -> Work:
        """Memory for kernels to work in."""
        rotating = self.n * self.width
        return Work(self.empty(1), self.empty(1), aligned(rotating), aligned(5 * rotating))

    def empty(self, blocks: int | None = None) -> Parts:
        """Return arrays for so many blocks of matrices to work in; by default as many as there are."""
        size = self.n * self.n * self.width
        return tuple(aligned(len(part) if blocks is None else blocks * size) for part in self.lanes)

    def matrices(self) -> Array:
        """Return the matrices, shape (K, n, n)."""
        return from_lanes(self.lanes, self.n_matrices, self.n, self.width)


def laid(matrices: Array, codes: Array, *, transposed: bool = True) -> Laid:
    """Lay out matrices (K, n, n), by rows or ``transposed`` by columns, beside samples (M, n, n) of the same type."""
    dtype = np.result_type(matrices, codes)
    count, n = matrices.shape[:2]
    width = lane_width(n, count, dtype.kind == "c")
    if transposed:
        matrices = matrices.swapaxes(1, 2)
    matrices = np.array(matrices, dtype=dtype, order="C")
    lanes = into_lanes(matrices, width)
    samples = np.ascontiguousarray(codes.astype(dtype, copy=False))
    return Laid(lanes, samples, count, n, width)


def run_affine_invariant(
    kernels: Kernels, _: object, prototypes: Prototypes, codes: Array, block: Block, rules: Rules
) -> tuple[Prototypes, int]:
    """Move inverse factors (K, n, n) along geodesics."""
    at = laid(inverse_factors(prototypes), codes, transposed=False)
    lower = tuple(np.zeros((at.n, at.n)) for _ in at.lanes)
    work = at.work._replace(columns=at.empty())
    n_capped = kernels.run_steps(at.lanes, at.codes, block, rules, float(EPS), lower, work, at.like)
    return InverseFactors(at.matrices()), n_capped


def run_projected(
    kernels: Kernels, manifold: ProjectedEuclidean, prototypes: Prototypes, codes: Array, block: Block, rules: Rules
) -> tuple[Prototypes, int]:
    """Move matrices (K, n, n) along straight lines, and raise eigenvalues below the floor."""
    at = laid(np.asarray(prototypes), codes)
    basis = into_lanes(np.broadcast_to(np.eye(at.n, dtype=at.codes.dtype), (at.n_matrices, at.n, at.n)), at.width)
    floor = float(manifold.floor(at.n)), float(manifold.relative)
    n_capped = kernels.run_projected(at.lanes, basis, at.codes, block, rules, *floor, at.empty(1), at.work, at.like)
    return at.matrices().swapaxes(1, 2), n_capped


def run_wasserstein(
    kernels: Kernels, manifold: BuresWasserstein, prototypes: Prototypes, codes: Array, block: Block, rules: Rules
) -> tuple[Prototypes, int]:
    """Move roots (K, n, n); a step with a weight above 1 is that of the manifold."""
    roots = np.asarray(prototypes)
    first = 0
    total = 0
    weights = np.empty(len(rules.labels))
    limits = 1.0 - manifold.min_stretch, LOWEST_SHARE
    while first < len(codes):  # a step that the kernel leaves to the manifold ends its run
        at = laid(roots, codes)
        work = at.empty(), at.empty(), at.empty(), at.work, at.like
        first, n_capped = kernels.run_wasserstein(at.lanes, at.codes, first, block, rules, *limits, weights, *work)
        roots = at.matrices().swapaxes(1, 2)
        total += n_capped
        if first < len(codes):
            roots = manifold.move(manifold.connect(roots, at.codes[first : first + 1]), weights[None])
            first += 1
    return roots, total


class Run(NamedTuple):
    """A kernel, the function that runs it on a block, and how the time that it saves is estimated."""

    kernel: str
    function: Runner
    rotating: float | None = None
    """Time that rotations save over NumPy and LAPACK, relative to the affine-invariant kernel; None without them."""


RUNS = {
    "affine_invariant": Run("run_steps", run_affine_invariant, rotating=1.0),
    "bures_wasserstein": Run("run_wasserstein", run_wasserstein, rotating=1.5),
    "flat": Run("run_flat", run_flat),
    "learned_log_euclidean": Run("run_learned", run_learned),
    "projected_euclidean": Run("run_projected", run_projected, rotating=1.0),
}
"""The kernels by the names with which manifolds mark their methods."""


def is_due(manifold: AnyManifold, samples: Array, n_prototypes: int) -> bool:
    """Whether to take compiled steps: they are faster than those of NumPy and LAPACK, and compiling pays."""
    run = RUNS[kernel_of(manifold, "connect", "move") or ""]
    if run.rotating is None:
        return runs_compiled((run.kernel, 1, len(EIGHT)), SAVED, len(samples))
    shape = samples.shape[-1], n_prototypes, np.iscomplexobj(samples)
    kind = run.kernel, 1 + shape[2], lane_width(*shape)  # complex matrices are two arrays
    saved = run.rotating * saved_seconds(*shape)
    return is_worthwhile(*shape, run.rotating) and runs_compiled(kind, saved, len(samples))


class CompiledSteps(NamedTuple):
    """Compiled steps for the parts of one fit: kernels, and the rules by which they weigh and pace the steps."""

    kernels: Kernels
    rules: Rules
    manifold: AnyManifold
    n_epochs: int  # number of epochs planned, at least 1

    def take(self, state: State, samples: Samples, meter: Meter) -> tuple[State, int]:
        """Take one step per sample of a block; return the new state and the number of weights cut.

        Losses and errors before each step are added to ``meter``. A step rule interrupts the steps to measure.
        """
        rule: Any = state.step_schedule  # a StepRule if there is a memory
        total = 0
        start = 0
        while start < len(samples):
            memory = state.memory
            stop = len(samples)
            if memory is not None:
                self.rules.pace[:], until = rule.pace(memory, state.epoch, self.n_epochs)  # until it has to measure
                stop = min(stop, start + until)
            part = samples if stop - start == len(samples) else samples.at(slice(start, stop))
            moved, sqdist, loss, n_capped = run_block(self.kernels, self.manifold, state.prototypes, part, self.rules)
            state = state._replace(prototypes=moved)
            if memory is not None:
                memory, step_size = rule.after(memory, self.rules.pace, stop - start)
                state = state._replace(memory=rule.observe(memory, self.manifold, moved), step_size=step_size)
            meter.add(sqdist, loss, part)
            total += n_capped
            start = stop
        return state, total


def compiled_steps(
    manifold: AnyManifold, cost: Cost, state: State, samples: Samples, size: int,
    caps: tuple[float | None, float], n_epochs: int,
) -> CompiledSteps | None:  # fmt: skip
    """Return compiled steps for a block of samples if they are wanted, available and faster for these parts; else None.

    Steps take ``size`` samples each. ``caps`` are the cap on the weight of a pair, which may be None, and the longest
    step. ``n_epochs`` epochs are planned, at least 1. ValueError is raised if compiled steps are demanded
    (``compiled=True``), and these parts have none.
    """
    want = manifold.compiled if provides(manifold, Compilable) else "auto"
    paces = state.memory is None or kernel_of(state.step_schedule, "update", "observe") in PACES
    rules = None
    if want is not False and size == 1 and paces:
        max_weight, max_length = caps
        limits = (np.inf if max_weight is None else max_weight, max_length)
        pace = (state.step_size, *CONSTANT)
        rules = rules_of(manifold, cost, samples.targets, state.labels, state.sigma2, limits, pace)
    known = rules is not None or (want is not False and decomposes(manifold, size))
    kernels = compiled_kernels() if known else None
    if want is True and kernels is None:
        unusable = "numba is not installed: pip install '.[fast]' in the folder of rplvq, or cannot be used"
        why = unusable if known else "no kernel knows these parts"
        raise ValueError(
            f"compiled=True, but {why} ({manifold!r}, {cost!r}, {state.step_schedule!r}, batches of {size})"
        )
    if rules is None or kernels is None:
        return None
    if want is True or is_due(manifold, samples.codes, len(state.labels)):
        return CompiledSteps(kernels, rules, manifold, n_epochs)
    return None
