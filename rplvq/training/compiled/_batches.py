"""Decomposes mini-batches on the affine-invariant manifold over threads, whose number does not change the result."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import attrs
import numpy as np
from joblib import effective_n_jobs

from rplvq.arrays import single_blas_thread
from rplvq.manifolds import AffineInvariant, AffineInvariantGeodesics, decompose, inverse_factors
from rplvq.parts import kernel_of
from rplvq.protocols import AnyManifold, Array, Geodesics, Prototypes

ResultT = TypeVar("ResultT")
Connect = Callable[[Prototypes, Array], Geodesics]
ENOUGH = 100_000
"""Number of matrices times n^3 for which a thread works longer than it takes to wake it."""


def decomposes(manifold: AnyManifold, size: int) -> bool:
    """Whether batches of ``size`` samples on this manifold can be decomposed over threads."""
    return kernel_of(manifold, "connect", "move") == "affine_invariant" and size > 1


@contextmanager
def connection(manifold: Any, size: int, n_jobs: int | None = None) -> Iterator[Connect]:
    """Give what replaces ``manifold.connect`` for batches of ``size`` samples: over threads, counted as in joblib."""
    n_threads = effective_n_jobs(n_jobs) if decomposes(manifold, size) else 1
    if n_threads == 1:
        yield manifold.connect
        return
    with ThreadPoolExecutor(n_threads - 1) as pool:
        yield partial(over_threads, manifold, Split(pool, n_threads))


@attrs.frozen
class Split:
    """Splits work between the calling thread and the threads of a pool."""

    pool: Executor
    n_threads: int

    def __call__(self, call: Callable[[int, int], ResultT], total: int, work: float) -> list[ResultT]:
        """Return ``call(start, stop)`` for consecutive parts of ``range(total)``, one part for little ``work``."""
        count = min(self.n_threads, total, int(work // ENOUGH))
        if count < 2:
            return [call(0, total)]
        bounds = [total * i // count for i in range(count + 1)]
        later = [self.pool.submit(single_blas_thread()(call), *part) for part in pairwise(bounds[1:])]
        return [call(0, bounds[1]), *(part.result() for part in later)]


def over_threads(
    manifold: AffineInvariant, split: Split, prototypes: Prototypes, samples: Array
) -> AffineInvariantGeodesics:
    """Connect as the manifold does, bit for bit, over threads."""
    factors = inverse_factors(prototypes)
    kernels = manifold.rotations(factors, samples)

    def part(start: int, stop: int) -> tuple[Array, Array]:
        return decompose(factors, samples[start:stop], kernels)

    parts = split(part, len(samples), len(samples) * factors.size * samples.shape[-1])
    logs, eigenvectors = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    # The sums are taken over all samples at once, because their rounding in NumPy depends on the shape.
    return AffineInvariantGeodesics(np.vecdot(logs, logs), logs, eigenvectors, factors)
