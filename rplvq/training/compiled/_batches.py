"""Decomposes mini-batches on the affine-invariant manifold over threads, with the compiled rotations if they pay.

Threads only decompose, and every matrix is decomposed on its own, so the result does not depend on their number.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
from joblib import effective_n_jobs

from rplvq.arrays import single_blas_thread
from rplvq.lanes import LaneKernels, aligned, from_lanes, into_lanes, lane_kernels
from rplvq.manifolds import EPS, AffineInvariant, AffineInvariantGeodesics, InverseFactors, inverse_factors
from rplvq.protocols import Array, Manifold, Prototypes
from rplvq.training.compiled._blocks import is_worthwhile, lane_width

Connect = Callable[[Prototypes, Array], Any]
ENOUGH = 100_000
"""Number of matrices times n^3 for which a thread works longer than it takes to wake it."""


def decomposes(manifold: Manifold[Any], size: int) -> bool:
    """Whether batches of ``size`` samples on this manifold can be decomposed over threads, compiled or by LAPACK."""
    return type(manifold) is AffineInvariant and size > 1


@contextmanager
def connection(manifold: Any, size: int, compiled: bool | str = "auto", n_jobs: int | None = None) -> Iterator[Connect]:
    """Give a faster replacement of ``manifold.connect`` for batches of ``size`` samples, if there is one.

    Manifolds other than AffineInvariant and batches of one sample get ``manifold.connect`` itself. With
    ``compiled=False`` LAPACK decomposes. ``n_jobs`` threads are counted as in joblib.
    """
    if not decomposes(manifold, size):
        yield manifold.connect
        return
    kernels, n_threads = lane_kernels() if compiled else None, effective_n_jobs(n_jobs)
    with ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else nullcontext() as pool:
        split = Split(pool, n_threads)
        yield by_lapack(manifold, split) if kernels is None else by_lanes(manifold, kernels, split)


@attrs.frozen
class Split:
    """Splits work between the calling thread and the threads of a pool."""

    pool: Executor | None
    n_threads: int

    def __call__(self, call: Callable[[int, int], Any], total: int, work: float) -> list[Any]:
        """Return the results of ``call(start, stop)`` for consecutive parts of ``range(total)``.

        ``work`` is the number of matrices times n^3; little work is not split.
        """
        count = min(self.n_threads, total, int(work // ENOUGH)) if self.pool else 1
        if self.pool is None or count < 2:
            return [call(0, total)]
        bounds = [total * i // count for i in range(count + 1)]
        later = [self.pool.submit(single_blas_thread()(call), *part) for part in pairwise(bounds[1:])]
        return [call(0, bounds[1]), *(part.result() for part in later)]


def by_lapack(manifold: AffineInvariant, split: Split) -> Connect:
    """Return a ``connect`` that equals the manifold's, bit for bit, and runs over threads."""

    def connect(prototypes: Prototypes, samples: Array) -> AffineInvariantGeodesics:
        carried = InverseFactors(inverse_factors(prototypes))

        def part(start: int, stop: int) -> AffineInvariantGeodesics:
            return manifold.connect(carried, samples[start:stop])

        parts = split(part, len(samples), len(samples) * carried.factors.size * samples.shape[-1])
        logs, eigenvectors = (np.concatenate([part[field] for part in parts]) for field in (1, 2))
        # The sums are taken over all samples at once, because their rounding in NumPy depends on the shape.
        return AffineInvariantGeodesics(np.vecdot(logs, logs), logs, eigenvectors, carried.factors)

    return connect


def by_lanes(manifold: AffineInvariant, kernels: LaneKernels, split: Split) -> Connect:
    """Return a ``connect`` that decomposes by compiled rotations where these are faster, and by LAPACK elsewhere."""
    plain = by_lapack(manifold, split)

    def connect(prototypes: Prototypes, samples: Array) -> AffineInvariantGeodesics:
        factors = inverse_factors(prototypes)
        count, n = factors.shape[:2]
        is_complex = np.result_type(factors, samples).kind == "c"
        size = n, len(samples) * count, is_complex
        pays, width = is_worthwhile(*size), lane_width(*size)
        try:
            roots = np.linalg.cholesky(samples) if pays else None
        except np.linalg.LinAlgError:  # a sample is not positive definite: encode would refuse it
            roots = None
        if roots is None:
            found: AffineInvariantGeodesics = plain(prototypes, samples)
            return found
        pairs = (factors.reshape(count * n, n) @ roots).reshape(-1, n, n)
        squares, columns = decompose(kernels, pairs, width, split)
        logs = np.log(np.maximum(squares, squares.max(axis=-1, keepdims=True) * EPS**2)).reshape(-1, count, n)
        columns /= np.sqrt(squares)[..., None]
        eigenvectors = columns.reshape(-1, count, n, n).swapaxes(2, 3)
        return AffineInvariantGeodesics(np.vecdot(logs, logs), logs, eigenvectors, factors)

    return connect


def decompose(kernels: LaneKernels, matrices: Array, width: int, split: Split) -> tuple[Array, Array]:
    """Return the squared singular values (P, n) of matrices M (P, n, n), and the columns of M V as rows (P, n, n)."""
    n = matrices.shape[1]
    lanes, like = into_lanes(matrices.swapaxes(1, 2), width), (0.0,) * width
    squares = aligned(len(lanes[0]) // n)

    def part(start: int, stop: int) -> None:
        kernels.batch_spectra(lanes, squares, start, stop, n, aligned(5 * n * width), like)

    split(part, len(squares) // (n * width), matrices.size * n)
    ordered = squares.reshape(-1, n, width).swapaxes(1, 2).reshape(-1, n)
    return ordered[: len(matrices)], from_lanes(lanes, len(matrices), n, width)
