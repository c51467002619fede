"""Samples in partitions on the workers: encoded and read there, so that only sums and a few samples travel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from rplvq.arrays import Samples, check_labels, one_type
from rplvq.exceptions import PointError
from rplvq.io import digest_of
from rplvq.protocols import Array, Manifold

try:
    import dask
    import dask.array as da
except ImportError as error:  # pragma: no cover - tested in an environment of its own
    raise ImportError("rplvq.distributed needs dask: pip install 'rplvq[dask]'") from error


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
        call, common = dask.delayed(function, pure=False), [dask.delayed(value, traverse=False) for value in shared]
        own = each or [()] * len(self.blocks)
        return [call(block, *common, *values) for block, values in zip(self.blocks, own, strict=True)]

    def of_class(self, label: int) -> Partitions:
        """Return the samples of one class, without copying them."""
        blocks = self._lazily(_of_class, (label,), ())
        return Partitions(blocks, np.array(Partitions(blocks, self.sizes).map(len)))

    def only(self, part: int) -> Partitions:
        """Return one block."""
        return Partitions([self.blocks[part]], self.sizes[[part]])

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


def _of_class(block: Samples, label: int) -> Samples:
    return block.subset(np.flatnonzero(block.classes == label))


def _rows_of(block: Samples, rows: Array) -> tuple[Array, Array]:
    return block.codes[rows], block.targets[rows] if len(block.targets) else block.targets


def _digest_of(block: Samples) -> bytes:
    return bytes.fromhex(digest_of([block.codes, block.targets]))


def in_blocks(X: Any, name: str = "X") -> Any:
    """Return X as a Dask array that is cut along its first axis only; refuse unknown sizes by ValueError."""
    array = X if isinstance(X, da.Array) else da.from_array(np.asarray(X))
    if any(size != size for size in array.shape):
        raise ValueError(f"{name} has partitions of unknown size: call {name}.compute_chunk_sizes() first")
    return array.rechunk(dict.fromkeys(range(1, array.ndim), -1))


def partition(X: Any, y: Any, manifold: Manifold[Any], *, persist: bool) -> tuple[Partitions, Array]:
    """Encode samples (N, ...) and their labels, if there are any, on the workers.

    Return the partitions and the sorted classes (C,), which are empty without labels. ``persist`` keeps the codes in
    the workers' memory. A ValueError names the first invalid sample or label by its index in the whole array.
    """
    X = in_blocks(X)
    sizes = np.array(X.chunks[0])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    matrices = X.to_delayed().ravel()
    labels: Sequence[Any] = [None] * len(sizes)
    classes = np.empty(0)
    if y is not None:
        y = in_blocks(y, "y")
        if len(y) != len(X):
            raise ValueError(f"y has {len(y)} labels for {len(X)} samples of X")
        y = y.rechunk({0: X.chunks[0]})
        labels = list(y.to_delayed().ravel())
        classes = _classes(labels, starts)
    make = dask.delayed(_make_block, pure=False)
    blocks: Sequence[Any] = [
        make(matrix, label, manifold, classes, int(start))
        for matrix, label, start in zip(matrices, labels, starts, strict=True)
    ]
    if persist:
        blocks = dask.persist(*blocks)
    found = Partitions(blocks, sizes)
    found.map(len)  # raises at invalid samples before training
    return found, classes


def _classes(labels: Sequence[Any], starts: Array) -> Array:
    """Sorted classes of labels in partitions."""
    describe = dask.delayed(_labels_of, pure=False)
    found = dask.compute(*[describe(part, int(start)) for part, start in zip(labels, starts, strict=True)])
    classes, _ = check_labels(np.concatenate(found), sum(len(part) for part in found))
    return classes


def _labels_of(part: Any, start: int) -> Array:
    """Return the distinct labels of a partition; for soft labels one row per class."""
    array = one_type(part, "y")
    if array.ndim == 2 and array.shape[1] > 1:
        return np.eye(array.shape[1])
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        index = int(np.argmin(np.isfinite(array.ravel())))
        raise ValueError(f"y[{start + index}] is {array.ravel()[index]}: labels must be finite")
    return np.unique(array)


def _make_block(points: Array, labels: Any, manifold: Manifold[Any], classes: Array, start: int) -> Samples:
    try:
        codes = manifold.encode(points)
    except PointError as error:
        raise error.shifted(start) from None
    if labels is None:
        return Samples(codes, np.empty(0))
    return Samples(codes, check_labels(labels, len(codes), classes)[1])
