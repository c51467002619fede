"""The data record, and how large arrays are read in parts, which bounds the memory beside the data themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import attrs
import numpy as np
from scipy import sparse
from sklearn.utils import indexable

from rplvq.arrays._labels import hard_targets
from rplvq.arrays._order import distinct, repeats, visits
from rplvq.arrays._validation import stacked, unmasked
from rplvq.exceptions import PointError
from rplvq.parts import library_part
from rplvq.protocols import Array, Manifold, Prototypes

BUDGET_BYTES = 1 << 25
"""Temporary memory of one chunk; every thread works on one chunk at a time."""
BLOCK_BYTES = 1 << 25
"""Temporary memory of one block of a sum. Another value changes the rounding of sums, so it must not be tuned."""
LARGE_BLOCKS = 8
"""A batch of training that fills at most this many blocks is decomposed at once."""
COPIES = 8
"""Copies of a part that exist at the same time while it is encoded or connected to one prototype."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def row_slices(n_rows: int, bytes_per_row: int, at_most: int | None = None) -> list[slice]:
    """Cut rows 0..n_rows into slices of at most ``at_most`` rows whose temporary memory fits the budget."""
    length = max(1, BUDGET_BYTES // max(1, bytes_per_row))
    return _slices(n_rows, length if at_most is None else max(1, min(length, at_most)))


def block_slices(n_rows: int, bytes_per_row: int) -> list[slice]:
    """Cut rows 0..n_rows into the blocks over which sums run, of the same sizes whatever the budget is."""
    return _slices(n_rows, max(1, BLOCK_BYTES // max(1, bytes_per_row)))


def _slices(n_rows: int, length: int) -> list[slice]:
    return [slice(start, min(start + length, n_rows)) for start in range(0, n_rows, length)]


class LazyRows:
    """Chosen rows (M,) of an array (N, ...), perhaps on disk, that are copied only when they are indexed.

    ``LazyRows(source, rows)[index]`` is the plain array ``source[rows][index]``, for an integer, a slice, an array of
    integers or booleans, and for a tuple of one of these and further indices. ``numpy.asarray`` copies all rows.
    """

    __slots__ = ("dtype", "ndim", "rows", "shape", "source")

    def __init__(self, source: Array, rows: Array) -> None:
        self.source = source
        self.rows = rows
        self.shape = (len(rows), *source.shape[1:])
        self.dtype = source.dtype
        self.ndim = source.ndim

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Array:
        first, further = (index[0], index[1:]) if isinstance(index, tuple) else (index, ())
        return np.asarray(self.source[(self.rows[first], *further)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Copy all rows, shape (M, ...)."""
        return np.asarray(self.source[self.rows], dtype=dtype)


def evenly_spaced_rows(count: int, at_most: int) -> Array:
    """Return the sorted indices of at most so many of ``count`` rows, at equal intervals; they are distinct."""
    return np.linspace(0, count - 1, min(count, at_most)).astype(int)


def subset(codes: Array, rows: Array) -> Array:
    """Return the rows ``rows`` (M,) of an array without copying them: a :class:`LazyRows`, typed as an array."""
    if isinstance(codes, LazyRows):
        rows = codes.rows[rows]
        codes = codes.source
    return cast(Array, LazyRows(codes, rows))


def reads_parts(function: FunctionT) -> FunctionT:
    """Mark a function that indexes its codes only by slices or rows, so that it may be given :class:`LazyRows`.

    A subclass that overrides the function, and a wrapper that calls it, are not marked and get plain arrays.
    """
    function.reads_parts = True  # type: ignore[attr-defined]
    return function


def materialise(function: Callable[..., Any], codes: Array) -> Array:
    """Return codes as a function needs them: unchanged if :func:`reads_parts` marks it, else as one array in memory."""
    return codes if getattr(function, "reads_parts", False) else np.asarray(codes)


@library_part
@attrs.frozen(eq=False)
class Samples:
    """Encoded samples with what is known about each of them.

    Parameters
    ----------
    codes : ndarray or LazyRows of shape (N, ...)
        Encoded samples, perhaps on disk.
    targets : ndarray of shape (N,) or (N, C)
        Class indices or class probabilities. A stream stores labels instead of indices, because indices change when a
        new class appears.
    weights : ndarray of shape (N,), optional
        Multiplicity of each sample: weight w counts as w copies. None means 1 for all.
    groups : ndarray of int of shape (N,), optional
        Group of each sample, such as its session. Samples are held out by whole groups.

    Examples
    --------
    >>> samples = Samples(np.array([[3.0], [1.0], [2.0]]), np.array([0, 1, 0]))
    >>> len(samples), samples.canonical().codes[:].ravel()
    (3, array([2., 3., 1.]))
    """

    codes: Array
    targets: Array
    weights: Array | None = None
    groups: Array | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def classes(self) -> Array:
        """Class index of each sample, shape (N,); for class probabilities the likeliest class."""
        return hard_targets(self.targets)

    @property
    def total_weight(self) -> float:
        """Sum of the weights, N without weights."""
        return float(len(self)) if self.weights is None else float(self.weights.sum())

    @property
    def filled_weights(self) -> Array:
        """Weight of each sample, shape (N,), with ones where no weights were given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def n_visits(self) -> int:
        """Number of visits of samples in one epoch, see :func:`visits`."""
        return len(visits(len(self), self.weights)[0])

    def subset(self, rows: Array) -> Samples:
        """Return the samples with the indices ``rows`` (M,); their codes are not copied."""
        return self._rows(subset(self.codes, rows), rows)

    def at(self, rows: Any) -> Samples:
        """Return the samples of a slice, of indices or of a mask, with their codes copied into memory."""
        return self._rows(self.codes[rows], rows)

    def _rows(self, codes: Array, rows: Any) -> Samples:
        weights, groups = (None if own is None else own[rows] for own in (self.weights, self.groups))
        return Samples(codes, self.targets[rows], weights, groups)

    def canonical(self, *, shares: bool = False) -> Samples:
        """Return the distinct samples with their weights, in an order that depends on values only: :func:`distinct`.

        A sample that is in several groups is returned in the first of them.
        """
        rows, weights = distinct(self.codes, self.targets, self.weights, shares=shares)
        groups = None
        if self.groups is not None:
            numbers = repeats(self.codes, self.targets)
            there = self.filled_weights > 0
            first = np.full(len(self), np.iinfo(self.groups.dtype).max)
            np.minimum.at(first, numbers[there], self.groups[there])
            groups = first[numbers[rows]]
        return Samples(subset(self.codes, rows), self.targets[rows], weights, groups)

    def followed_by(self, later: Samples) -> Samples:
        """Return these samples and later ones; only the later ones if their targets have another shape."""
        if self.targets.shape[1:] != later.targets.shape[1:]:
            return later
        ours = [self.codes, self.targets, self.filled_weights]
        theirs = [later.codes, later.targets, later.filled_weights]
        if self.groups is not None and later.groups is not None:
            ours.append(self.groups)
            theirs.append(later.groups)
        return Samples(*(np.concatenate(pair) for pair in zip(ours, theirs, strict=True)))

    def latest(self, at_most: int) -> Samples:
        """Return the last ``at_most`` samples."""
        return self.at(slice(max(0, len(self) - at_most), None))


def parts_of(codes: Array, n_columns: int = 0) -> list[slice]:
    """Cut samples (N, ...) into parts that fit one block, given ``n_columns`` temporary floats per sample."""
    size = math.prod(codes.shape[1:]) * max(codes.dtype.itemsize, 8)
    return block_slices(len(codes), COPIES * (size + 8 * n_columns))


def parts_of_batch(codes: Array, size: int, n_prototypes: int) -> list[slice]:
    """Cut the first ``size`` samples into parts whose connection to K prototypes fits one block."""
    numbers = math.prod(codes.shape[1:]) * n_prototypes
    return block_slices(size, COPIES * numbers * max(codes.dtype.itemsize, 8))


def by_block(function: Callable[..., Array], codes: Array, *others: Array, n_columns: int = 1) -> Array:
    """Return ``function(codes, *others)`` (N, ...), computed part by part, of a function that works row by row.

    ``codes`` and all ``others`` are (N, ...); ``n_columns`` is the number of temporary floats that a row needs.
    """
    parts = parts_of(codes, n_columns)
    if len(parts) == 1:
        return function(codes[:], *(values[:] for values in others))
    result: Array | None = None
    for rows in parts:
        found = function(codes[rows], *(values[rows] for values in others))
        if result is None:
            result = np.empty((len(codes), *found.shape[1:]), dtype=found.dtype)
        result[rows] = found
    return np.asarray(result)


def distances(manifold: Manifold[Any], prototypes: Prototypes, codes: Array) -> Array:
    """Return the squared distances (N, K) of samples (N, ...) to K prototypes, computed part by part."""
    return by_block(lambda part: manifold.sqdist(prototypes, part), codes, n_columns=len(prototypes))


def encoded(manifold: Manifold[Any], points: Any) -> Array:
    """Return ``manifold.encode(points)`` (N, ...), computed part by part; the result must not be written to.

    Where the codes are the points themselves (float64, exactly Hermitian, and a manifold whose coordinates are the
    matrices), nothing is copied, and the result is the array that was passed, which may be on disk. ValueError names
    the first point that is not on the manifold.
    """
    points = unmasked(stacked(points))
    is_array = isinstance(points, np.ndarray) and points.ndim > 1 and points.dtype.kind in "biufc" and points.size
    if not is_array or len(parts_of(points)) == 1:
        return np.asarray(manifold.encode(points))
    kept: Array | None = None
    for rows in parts_of(points):
        try:
            codes = np.asarray(manifold.encode(points[rows]))
        except PointError as error:
            raise error.shifted(rows.start) from None
        if kept is None and _is_same(codes, points[rows]):
            continue
        if kept is None:
            dtype = np.result_type(codes, points) if rows.start else codes.dtype
            kept = np.empty((len(points), *codes.shape[1:]), dtype=dtype)
            if rows.start:
                kept[: rows.start] = points[: rows.start]
        if codes.dtype != kept.dtype:  # some parts of a complex array are real
            kept = kept.astype(np.result_type(kept, codes), copy=False)
        kept[rows] = codes
    return np.asarray(points) if kept is None else kept


def _is_same(codes: Array, points: Array) -> bool:
    """Whether two arrays have the same address, type, shape and strides, so that no copy was made."""
    ours = codes.__array_interface__
    theirs = points.__array_interface__
    same = all(ours[key] == theirs[key] for key in ("data", "typestr", "shape"))
    return same and codes.strides == points.strides


def as_rows(X: Any) -> Any:
    """Return samples as a data frame, a sparse matrix in rows, or an array, of which :func:`take_rows` takes some."""
    return indexable(X)[0] if hasattr(X, "iloc") or sparse.issparse(X) else np.atleast_1d(unmasked(X))


def take_rows(X: Any, rows: Array) -> Any:
    """Return some rows of what :func:`as_rows` returned."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
