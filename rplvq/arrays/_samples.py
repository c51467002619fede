"""The data record: encoded samples with their targets and weights, read in parts where they are large.

The parts have a fixed size, :data:`rplvq.arrays._blocks.BLOCK_BYTES`. A sum that runs over parts therefore rounds in
the same way whatever the budget of temporary memory is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import attrs
import numpy as np

from rplvq.arrays._blocks import block_slices
from rplvq.arrays._labels import hard_targets
from rplvq.arrays._order import canonical_order
from rplvq.exceptions import PointError
from rplvq.parts import library_part
from rplvq.protocols import Array, Manifold, Prototypes

__all__ = [
    "LazyRows",
    "Samples",
    "by_block",
    "distances",
    "encoded",
    "materialise",
    "parts_of",
    "parts_of_batch",
    "reads_parts",
    "subset",
]

COPIES = 8
"""Copies of a part that exist at the same time while it is encoded or connected to one prototype."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class LazyRows:
    """Chosen rows of an array, in a chosen order, that are copied only when they are indexed.

    ``rows[index]`` is the plain array ``source[chosen][index]``, for an integer, a slice, an array of integers or
    booleans, and for a tuple of one of these and further indices. ``numpy.asarray`` copies all rows.

    Parameters
    ----------
    source : ndarray of shape (N, ...)
        The array, which may be on disk (numpy.memmap).
    rows : ndarray of int of shape (M,)
        The chosen rows.

    Examples
    --------
    >>> chosen = LazyRows(np.array([[0.0], [1.0], [4.0]]), np.array([2, 0]))
    >>> chosen.shape, chosen[:1]
    ((2, 1), array([[4.]]))
    """

    __slots__ = ("dtype", "ndim", "rows", "shape", "source")

    def __init__(self, source: Array, rows: Array) -> None:
        self.source, self.rows = source, rows
        self.shape, self.dtype, self.ndim = (len(rows), *source.shape[1:]), source.dtype, source.ndim

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Array:
        first, further = (index[0], index[1:]) if isinstance(index, tuple) else (index, ())
        return np.asarray(self.source[(self.rows[first], *further)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Copy all rows, shape (M, ...)."""
        return np.asarray(self.source[self.rows], dtype=dtype)


def subset(codes: Array, rows: Array) -> Array:
    """Return the rows ``rows`` (M,) of an array without copying them: a :class:`LazyRows`, typed as an array."""
    if isinstance(codes, LazyRows):
        codes, rows = codes.source, codes.rows[rows]
    return cast(Array, LazyRows(codes, rows))


def reads_parts(function: FunctionT) -> FunctionT:
    """Mark a function that reads its codes only by slices or rows; it may be given :class:`LazyRows`.

    A subclass that overrides the function, and a wrapper that calls it, are not marked and get plain arrays.
    """
    function.reads_parts = True  # type: ignore[attr-defined]
    return function


def materialise(function: Callable[..., Any], codes: Array) -> Array:
    """Return codes in the form that ``function`` can read: as they are if it is marked, else one array in memory."""
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

    Examples
    --------
    >>> samples = Samples(np.array([[3.0], [1.0], [2.0]]), np.array([0, 1, 0]))
    >>> len(samples), samples.canonical().codes[:].ravel()
    (3, array([2., 3., 1.]))
    """

    codes: Array
    targets: Array
    weights: Array | None = None

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

    def subset(self, rows: Array) -> Samples:
        """Return the samples with the indices ``rows`` (M,); their codes are not copied."""
        weights = None if self.weights is None else self.weights[rows]
        return Samples(subset(self.codes, rows), self.targets[rows], weights)

    def at(self, rows: Any) -> Samples:
        """Return the samples of a slice, of indices or of a mask, with their codes copied into memory."""
        weights = None if self.weights is None else self.weights[rows]
        return Samples(self.codes[rows], self.targets[rows], weights)

    def split(self, rows: Array) -> tuple[Samples, Samples]:
        """Return the samples without those at ``rows`` (M,), and those at ``rows``."""
        return self.subset(np.setdiff1d(np.arange(len(self)), rows)), self.subset(rows)

    def canonical(self) -> Samples:
        """Return the samples in an order that depends on their values only, see :func:`canonical_order`."""
        return self.subset(canonical_order(self.codes, self.targets, self.weights))

    def of_positive_weight(self) -> Samples:
        """Return the samples that a sweep visits: those whose weight is not 0."""
        if self.weights is None or self.weights.all():
            return self
        return self.at(self.weights > 0)

    def followed_by(self, later: Samples) -> Samples:
        """Return these samples and later ones; only the later ones if their targets have another shape."""
        if self.targets.shape[1:] != later.targets.shape[1:]:
            return later
        ours = (self.codes, self.targets, self.filled_weights)
        theirs = (later.codes, later.targets, later.filled_weights)
        return Samples(*(np.concatenate(pair) for pair in zip(ours, theirs, strict=True)))

    def latest(self, at_most: int) -> Samples:
        """Return the last ``at_most`` samples."""
        return self.at(slice(max(0, len(self) - at_most), None))


def parts_of(codes: Array, n_columns: int = 0) -> list[slice]:
    """Cut samples (N, ...) into parts that fit one block, given ``n_columns`` temporary floats per sample."""
    size = int(np.prod(codes.shape[1:])) * max(codes.dtype.itemsize, 8)
    return list(block_slices(len(codes), COPIES * (size + 8 * n_columns)))


def parts_of_batch(codes: Array, size: int, n_prototypes: int) -> list[slice]:
    """Cut the first ``size`` samples into parts whose connection to K prototypes fits one block."""
    numbers = int(np.prod(codes.shape[1:])) * n_prototypes
    return list(block_slices(size, COPIES * numbers * max(codes.dtype.itemsize, 8)))


def by_block(function: Callable[..., Array], codes: Array, *others: Array, n_columns: int = 1) -> Array:
    """Return ``function(codes, *others)`` for a function that treats each sample separately, part by part.

    Parameters
    ----------
    function : callable
        Takes M samples and as many entries of the others; returns an array of shape (M, ...).
    codes : ndarray or LazyRows of shape (N, ...)
        Samples.
    *others : ndarray of shape (N, ...)
        Further values of each sample.
    n_columns : int, default=1
        Temporary floats per sample that the function needs, up to a small factor.

    Returns
    -------
    ndarray of shape (N, ...)

    Examples
    --------
    >>> by_block(lambda codes: codes.sum(axis=1), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    result: Array | None = None
    for rows in parts_of(codes, n_columns):
        found = function(codes[rows], *(values[rows] for values in others))
        if rows == slice(0, len(codes)):
            return found
        if result is None:
            result = np.empty((len(codes), *found.shape[1:]), dtype=found.dtype)
        result[rows] = found
    return np.asarray(result)


def distances(manifold: Manifold[Any], prototypes: Prototypes, codes: Array) -> Array:
    """Squared distances (N, K) of samples (N, ...) to K prototypes, computed part by part."""
    return by_block(lambda part: manifold.sqdist(prototypes, part), codes, n_columns=len(prototypes))


def encoded(manifold: Manifold[Any], points: Any) -> Array:
    """Return ``manifold.encode(points)``, computed part by part.

    If the codes are the points themselves (float64, exactly Hermitian, and a manifold whose coordinates are the
    matrices), nothing is copied, and the result is the array that was passed, which may be on disk. Otherwise the codes
    take 8 N n^2 bytes for real n x n matrices and 16 N n^2 bytes for complex ones.

    Parameters
    ----------
    manifold : Manifold
        The geometry; it must treat each point separately.
    points : array-like of shape (N, ...)
        Points.

    Returns
    -------
    ndarray of shape (N, ...)
        Codes; they must not be written to.

    Raises
    ------
    ValueError
        If a point is not on the manifold; the message names the first such index.
    """
    is_array = isinstance(points, np.ndarray) and points.ndim > 1 and points.dtype.kind in "biufc" and points.size
    if not is_array or len(parts_of(points)) == 1:
        return np.asarray(manifold.encode(points))
    kept: Array | None = None
    for rows, codes in _encoded_parts(manifold, points):
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


def _encoded_parts(manifold: Manifold[Any], points: Array) -> Iterator[tuple[slice, Array]]:
    for rows in parts_of(points):
        try:
            yield rows, np.asarray(manifold.encode(points[rows]))
        except PointError as error:
            raise error.shifted(rows.start) from None


def _is_same(codes: Array, points: Array) -> bool:
    """Whether two arrays are the same memory, read in the same way."""
    ours, theirs = codes.__array_interface__, points.__array_interface__
    same = all(ours[key] == theirs[key] for key in ("data", "typestr", "shape"))
    return same and codes.strides == points.strides
