"""Samples in partitions on the workers: encoded and read there, so that only sums and a few samples travel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from rplvq.arrays import Samples, matrix_size, single_blas_thread
from rplvq.exceptions import PointError
from rplvq.io import digest_of
from rplvq.protocols import Array, Manifold

try:
    import dask
    import dask.array as da
except ImportError as error:  # pragma: no cover - tested in an environment of its own
    raise ImportError("rplvq.distributed needs dask: pip install '.[dask]' in the folder of rplvq") from error


@attrs.frozen(eq=False)
class Partitions:
    """Blocks of samples on the workers, in the order of the samples.

    ``blocks`` holds P objects of Dask that yield one :class:`rplvq.arrays.Samples` each; ``sizes`` (P,) are their
    numbers of samples.
    """

    blocks: Sequence[Any]
    sizes: Array

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def map(self, function: Callable[..., Any], *shared: Any, each: Sequence[Sequence[Any]] = ()) -> list[Any]:
        """Return ``function(block, *shared, *each[p])`` for each block p, evaluated where the block is.

        ``function`` must be at the top level of a module. The shared arguments are sent once to every worker, and
        ``each`` holds one tuple of further arguments per block.
        """
        return list(dask.compute(*self._lazily(function, shared, each)))

    def keep(self, function: Callable[..., Any], *shared: Any, each: Sequence[Sequence[Any]] = ()) -> list[Any]:
        """Evaluate a function as :meth:`map` does, but leave the results on the workers."""
        return list(dask.persist(*self._lazily(function, shared, each)))

    def _lazily(self, function: Callable[..., Any], shared: Sequence[Any], each: Sequence[Sequence[Any]]) -> list[Any]:
        call, common = dask.delayed(_evaluate, pure=False), [dask.delayed(value, traverse=False) for value in shared]
        own = each or [()] * len(self.blocks)
        return [call(function, block, *common, *values) for block, values in zip(self.blocks, own, strict=True)]

    def of_class(self, label: int) -> Partitions:
        """Return the samples of one class, without copying them."""
        blocks = self._lazily(_of_class, (label,), ())
        return Partitions(blocks, np.array(Partitions(blocks, self.sizes).map(len)))

    def take(self, rows: Array) -> Samples:
        """Bring a few samples here: those at global rows (M,), in this order."""
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        found = self.map(_rows_of, each=[(part,) for part in self.split(rows[order])])
        codes, targets = (np.concatenate(parts) for parts in zip(*found, strict=True))
        back = np.argsort(order, kind="stable")
        return Samples(codes[back], targets[back] if len(targets) else targets)

    def split(self, rows: Array) -> list[Array]:
        """Split sorted global rows (M,) into the rows of each partition."""
        ends = np.cumsum(self.sizes)
        parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
        return [part - start for part, start in zip(parts, ends - self.sizes, strict=True)]

    def digests(self) -> Array:
        """SHA-256 of each partition's codes and targets, shape (P, 32): a checkpoint recognises the samples by them."""
        return np.frombuffer(b"".join(self.map(_digest_of)), dtype=np.uint8).reshape(-1, 32)


def _evaluate(function: Callable[..., Any], block: Samples, *arguments: Any) -> Any:
    with single_blas_thread(matrix_size(block.codes)):
        return function(block, *arguments)


def _of_class(block: Samples, label: int) -> Samples:
    return block.subset(np.flatnonzero(block.classes == label))


def _rows_of(block: Samples, rows: Array) -> tuple[Array, Array]:
    return block.codes[rows], block.targets[rows] if len(block.targets) else block.targets


def _digest_of(block: Samples) -> bytes:
    return bytes.fromhex(digest_of([block.codes, block.targets]))


def in_blocks(X: Any) -> Any:
    """Return X as a Dask array that is cut along its first axis only; refuse unknown sizes and arrays of no samples."""
    if not isinstance(X, da.Array):
        X = np.asanyarray(X)  # a masked array stays one, because encode judges it
        X = da.from_array(X, chunks=-1 if X.dtype == object else "auto")
    if any(size != size for size in X.shape):
        raise ValueError("X has partitions of unknown size: call X.compute_chunk_sizes() first")
    if X.ndim == 0 or len(X) == 0:
        raise ValueError(f"Found array with 0 sample(s) (X has shape {X.shape}) while a minimum of 1 is required")
    return X.rechunk(dict.fromkeys(range(1, X.ndim), -1))


def collected(values: Any) -> Any:
    """Bring a collection of Dask into this process; anything else stays as it is."""
    return dask.compute(values, traverse=False)[0]


def partition(X: Any, targets: Array | None, manifold: Manifold[Any], *, persist: bool) -> Partitions:
    """Encode samples (N, ...) on the workers, and send their targets (N,) or (N, C) there, if there are any.

    Empty partitions, such as filters leave, are dropped. ``persist`` keeps the codes in the workers' memory. A
    ValueError names the first invalid sample by its index in the whole array.
    """
    X = in_blocks(X)
    ends, sizes = np.cumsum(X.chunks[0]), np.array(X.chunks[0])
    parts = [np.empty(0) if targets is None else targets[end - n : end] for n, end in zip(sizes, ends, strict=True)]
    # Targets stay on the workers in any case, so that they do not travel again with every step.
    kept = dask.persist(*[dask.delayed(part, traverse=False) for part in parts])
    make = dask.delayed(_make_block, pure=False)
    blocks: Sequence[Any] = [
        make(points, part, manifold, int(end - n))
        for points, part, n, end in zip(X.to_delayed().ravel(), kept, sizes, ends, strict=True)
        if n
    ]
    if persist:
        blocks = dask.persist(*blocks)
    found = Partitions(blocks, sizes[sizes > 0])
    found.map(len)  # raises at invalid samples before training
    return found


def _make_block(points: Array, targets: Array, manifold: Manifold[Any], start: int) -> Samples:
    try:
        with single_blas_thread(matrix_size(points)):
            return Samples(manifold.encode(points), targets)
    except PointError as error:
        raise error.shifted(start) from None
