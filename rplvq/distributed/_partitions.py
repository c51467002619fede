"""Samples in partitions on the workers: encoded there, visited there; only sums and few samples travel."""

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

__all__ = ["Partitions", "in_blocks", "partition", "rows_of_class"]


@attrs.frozen(eq=False)
class Partitions:
    """Blocks on the workers, in the order of the samples.

    Parameters
    ----------
    blocks : sequence of dask.delayed.Delayed
        One :class:`rplvq.arrays.Samples` each.
    sizes : ndarray of int of shape (P,)
        Their numbers of samples.
    """

    blocks: Sequence[Any]
    sizes: Array

    def __len__(self) -> int:
        return int(self.sizes.sum())

    @property
    def starts(self) -> Array:
        """Index of the first sample of each partition, and of the end, shape (P + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def map(self, function: Callable[..., Any], *shared: Any, each: Sequence[Sequence[Any]] = ()) -> list[Any]:
        """Evaluate ``function(block, *shared, *each[p])`` where the blocks are; results in their order.

        Parameters
        ----------
        function : callable
            At the top level of a module.
        *shared : object
            The same for all blocks; sent once to every worker.
        each : sequence of P tuples, optional
            Arguments of each block's own.
        """
        return list(dask.compute(*self.lazily(function, *shared, each=each)))

    def lazily(self, function: Callable[..., Any], *shared: Any, each: Sequence[Sequence[Any]] = ()) -> list[Any]:
        """As :meth:`map`, but return what Dask will compute."""
        call, common = dask.delayed(function, pure=False), [dask.delayed(value, traverse=False) for value in shared]
        own = each or [()] * len(self.blocks)
        return [call(block, *common, *values) for block, values in zip(self.blocks, own, strict=True)]

    def take(self, rows: Array) -> Samples:
        """Bring a few samples here: those at global rows (M,), in this order."""
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        found = self.map(_rows_of, each=[(part,) for part in self.split(rows[order])])
        codes, targets = (np.concatenate(parts) for parts in zip(*found, strict=True))
        back = np.argsort(order, kind="stable")
        return Samples(codes[back], targets[back] if len(targets) else targets)

    def digests(self) -> Array:
        """SHA-256 of each partition's codes and targets, shape (P, 32): what a checkpoint knows the samples by."""
        return np.frombuffer(b"".join(self.map(_digest_of)), dtype=np.uint8).reshape(-1, 32)

    def split(self, rows: Array) -> list[Array]:
        """Split sorted global rows (M,) into rows of each partition."""
        starts = self.starts
        cuts = np.searchsorted(rows, starts[1:-1])
        return [part - start for part, start in zip(np.split(rows, cuts), starts, strict=False)]


def rows_of_class(block: Samples, label: int | None) -> Array:
    """Return the rows of one class, or all rows if ``label`` is None."""
    return np.arange(len(block)) if label is None else np.flatnonzero(block.classes == label)


def _rows_of(block: Samples, rows: Array) -> tuple[Array, Array]:
    return block.codes[rows], block.targets[rows] if len(block.targets) else block.targets


def _digest_of(block: Samples) -> bytes:
    return bytes.fromhex(digest_of([block.codes, block.targets]))


def in_blocks(X: Any, name: str = "X") -> Any:
    """Return X as a Dask array that is cut along its first axis only, with known sizes.

    Raises
    ------
    ValueError
        If it has unknown sizes.
    """
    array = X if isinstance(X, da.Array) else da.from_array(np.asarray(X))
    if any(size != size for size in array.shape):
        raise ValueError(f"{name} has partitions of unknown size: call {name}.compute_chunk_sizes() first")
    return array.rechunk(dict.fromkeys(range(1, array.ndim), -1))


def partition(X: Any, y: Any, manifold: Manifold[Any], *, persist: bool) -> tuple[Partitions, Array]:
    """Encode samples and labels on the workers; nothing but classes and sizes comes back.

    Parameters
    ----------
    X : dask.array.Array of shape (N, ...)
        Samples.
    y : array of shape (N,) or (N, C), or None
        Labels, of Dask or of NumPy, or none.
    manifold : Manifold
        Encodes the samples.
    persist : bool
        Whether the codes stay in the workers' memory.

    Returns
    -------
    partitions : Partitions
    classes : ndarray of shape (C,)
        Sorted labels; empty without y.

    Raises
    ------
    ValueError
        At the first sample or label that is invalid, with its index in the whole array.
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
    found.map(_is_whole)  # so that invalid samples are told before training
    return found, classes


def _is_whole(block: Samples) -> bool:
    return len(block.codes) > 0


def _classes(labels: Sequence[Any], starts: Array) -> Array:
    """Sorted classes of labels in partitions."""
    describe = dask.delayed(_labels_of, pure=False)
    found = dask.compute(*[describe(part, int(start)) for part, start in zip(labels, starts, strict=True)])
    classes, _ = check_labels(np.concatenate(found), sum(len(part) for part in found))
    return classes


def _labels_of(part: Any, start: int) -> Array:
    """Distinct labels of a partition; two rows that stand for all classes of soft labels."""
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
