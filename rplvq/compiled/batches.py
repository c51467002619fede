"""Decompositions of mini-batches on the affine-invariant manifold: by lanes where compiled, over threads.

The result does not depend on the number of threads: the same matrices share a block whatever the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from math import gcd
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from rplvq.compiled.blocks import from_lanes, into_lanes, lane_width
from rplvq.compiled.build import Kernels, compiled_kernels
from rplvq.compiled.rotations import rounds
from rplvq.manifolds import AffineInvariant
from rplvq.manifolds.affine_invariant import EPS, AffineInvariantGeodesics, inverse_factors
from rplvq.protocols import Array, Manifold, Prototypes

__all__ = ["connection", "decomposes"]

Connect = Callable[[Prototypes, Array], Any]
ENOUGH = 100_000
"""Matrices times n^3 that occupy a thread for longer than it takes to wake it."""


def decomposes(manifold: Manifold[Any], size: int) -> bool:
    """Whether batches of ``size`` samples can be decomposed by lanes."""
    return type(manifold) is AffineInvariant and size > 1


@contextmanager
def connection(
    manifold: Manifold[Any], size: int, compiled: bool | str = "auto", n_jobs: int | None = None
) -> Iterator[Connect]:
    """Return what connects prototypes with batches of samples as ``manifold.connect`` does, but faster.

    Parameters
    ----------
    manifold : Manifold
        Any; other ones than AffineInvariant connect as they do.
    size : int
        Samples a batch; single ones are connected as the manifold does.
    compiled : {"auto", True, False}
        False leaves decompositions to LAPACK.
    n_jobs : int or None
        Threads, counted as joblib does.
    """
    if not (isinstance(manifold, AffineInvariant) and decomposes(manifold, size)):
        yield manifold.connect
        return
    kernels, n_threads = compiled_kernels() if compiled else None, effective_n_jobs(n_jobs)
    connect = manifold.connect if kernels is None else by_lanes(manifold, kernels)
    if n_threads == 1:
        yield connect
        return
    with ThreadPoolExecutor(n_threads - 1) as pool:
        yield over_threads(connect, pool, n_threads)


def over_threads(connect: Connect, pool: Executor, n_jobs: int) -> Connect:
    """Return ``connect`` that shares large batches out to the calling thread and those of a pool."""

    def shared(prototypes: Prototypes, samples: Array) -> Any:
        count, n, step = len(prototypes), samples.shape[-1], whole_blocks(len(prototypes))
        chunks = min(n_jobs, len(samples) * count * n**3 // ENOUGH, -(-len(samples) // step))
        if chunks < 2:
            return connect(prototypes, samples)
        size = -(-len(samples) // (chunks * step)) * step
        later = [
            pool.submit(connect, prototypes, samples[start : start + size]) for start in range(size, len(samples), size)
        ]
        parts = [connect(prototypes, samples[:size]), *(part.result() for part in later)]
        logs, eigenvectors = (np.concatenate([part[field] for part in parts]) for field in (1, 2))
        # Sums over all samples at once, because how NumPy rounds them depends on the shape.
        return AffineInvariantGeodesics(np.vecdot(logs, logs), logs, eigenvectors, parts[0].factors)

    return shared


def whole_blocks(count: int) -> int:
    """Return how many samples' pairs with ``count`` prototypes fill whole blocks, of every width."""
    return 8 // gcd(8, count)


def by_lanes(manifold: AffineInvariant, kernels: Kernels) -> Connect:
    """Return the manifold's ``connect`` with compiled rotations in LAPACK's place, where they are faster."""

    def connect(prototypes: Prototypes, samples: Array) -> AffineInvariantGeodesics:
        factors = inverse_factors(prototypes)
        count, n = factors.shape[:2]
        is_complex = np.result_type(factors, samples).kind == "c"
        width = lane_width(n, whole_blocks(count) * count, is_complex)
        try:
            roots = np.linalg.cholesky(samples) if width else None
        except np.linalg.LinAlgError:  # codes that encode would refuse
            roots = None
        if roots is None:
            return manifold.connect(prototypes, samples)
        pairs = (factors.reshape(count * n, n) @ roots).reshape(-1, n, n)
        squares, columns = decompose(kernels, pairs, width)
        logs = np.log(np.maximum(squares, squares.max(axis=-1, keepdims=True) * EPS))
        logs = logs.reshape(-1, count, n)
        # In C order, as parts are after they were joined: products of other orders round differently.
        vectors = np.divide(columns.swapaxes(1, 2), np.sqrt(squares)[:, None, :], order="C")
        eigenvectors = vectors.reshape(-1, count, n, n)
        return AffineInvariantGeodesics(np.vecdot(logs, logs), logs, eigenvectors, factors)

    return connect


def decompose(kernels: Kernels, matrices: Array, width: int) -> tuple[Array, Array]:
    """Squared singular values (P, n) of matrices M (P, n, n), and the columns of M V, shape (P, n, n), row by row."""
    n = matrices.shape[1]
    lanes = into_lanes(matrices.swapaxes(1, 2), width)
    squares = np.empty(len(lanes[0]) // n)
    kernels.batch_spectra(lanes, squares, 0, len(squares) // (n * width), n, rounds(n), (0.0,) * width)
    ordered = squares.reshape(-1, n, width).swapaxes(1, 2).reshape(-1, n)
    return ordered[: len(matrices)], from_lanes(lanes, len(matrices), n, width)
