"""Many samples in parts: encoded, chosen and looked at without a copy of all of them.

Parts have a size of their own, :data:`rplvq.chunks.BLOCK_BYTES`: where a sum runs over parts, its rounding is then the
same whatever the budget of temporary memory is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from rplvq.chunks import block_slices
from rplvq.linalg import PointError
from rplvq.protocols import Array, Manifold, Prototypes

__all__ = ["Samples", "adds_up", "as_asked", "by_block", "distances", "encoded", "parts_of", "subset"]

NEEDED = 8
"""How many times a part is held while it is encoded or connected to one prototype."""


class Samples:
    """Chosen samples of an array, in a chosen order, copied where they are asked for and not before.

    ``samples[index]`` is the plain array ``source[rows][index]``, for an integer, a slice, integers or booleans, and
    for a tuple of one of these and further indices; ``numpy.asarray`` copies all of them.

    Parameters
    ----------
    source : ndarray of shape (N, ...)
        The array, perhaps on disk (numpy.memmap).
    rows : ndarray of int of shape (M,)
        Which of its samples.

    Examples
    --------
    >>> chosen = Samples(np.array([[0.0], [1.0], [4.0]]), np.array([2, 0]))
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
        """Copy all samples, shape (M, ...)."""
        return np.asarray(self.source[self.rows], dtype=dtype)


def subset(codes: Array, rows: Array) -> Array:
    """Return chosen samples, by ``rows`` (M,) of int, without a copy: :class:`Samples`.

    The type is that of the array for which they stand.
    """
    if isinstance(codes, Samples):
        codes, rows = codes.source, codes.rows[rows]
    return cast(Array, Samples(codes, rows))


def as_asked(part: Any, codes: Array) -> Array:
    """Return codes as a part wants them: as they are if its class says ``takes_parts``, else as an array of all.

    Only what the class says itself counts: one that extends or wraps it may do with the codes what arrays alone can.
    """
    return codes if vars(type(part)).get("takes_parts", False) else np.asarray(codes)


def parts_of(codes: Array, n_columns: int = 0) -> list[slice]:
    """Cut samples (N, ...) into parts that fit a block, for work that makes ``n_columns`` numbers of each beside."""
    size = int(np.prod(codes.shape[1:])) * max(codes.dtype.itemsize, 8)
    return list(block_slices(len(codes), NEEDED * (size + 8 * n_columns)))


def by_block(function: Callable[..., Array], codes: Array, *others: Array, n_columns: int = 1) -> Array:
    """Return ``function(codes, *others)`` for a function that treats each sample by itself, part by part.

    Parameters
    ----------
    function : callable
        Takes M samples and as many entries of the others; returns an array of shape (M, ...).
    codes : ndarray of shape (N, ...), or Samples
        Samples.
    *others : ndarray of shape (N, ...)
        What belongs to each.
    n_columns : int, default=1
        Numbers that the function makes of each sample on the way, up to a small factor.

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


def distances(manifold: Manifold[Any], prototypes: Prototypes, codes: Array, n_prototypes: int) -> Array:
    """Squared distances (N, K) of samples (N, ...) to K prototypes, part by part."""
    return by_block(lambda part: manifold.sqdist(prototypes, part), codes, n_columns=n_prototypes)


def adds_up(manifold: Manifold[Any]) -> bool:
    """Whether the tangents of several parts of the samples add up: ``pull`` and ``exp`` are the halves of ``move``."""
    return hasattr(manifold, "pull") and hasattr(manifold, "exp")


def encoded(manifold: Manifold[Any], points: Any) -> Array:
    """Return ``manifold.encode(points)``, part by part.

    Where the codes are the points themselves (float64, exactly Hermitian, under a manifold whose coordinates are the
    matrices), nothing is copied: the result is the array that was passed, perhaps on disk. Else the codes are kept:
    8 N n^2 bytes for real n x n matrices, 16 N n^2 for complex ones.

    Parameters
    ----------
    manifold : Manifold
        The geometry; it treats each point by itself.
    points : array-like of shape (N, ...)
        Points.

    Returns
    -------
    ndarray of shape (N, ...)
        Codes; not to be written to.

    Raises
    ------
    ValueError
        At a point that is not on the manifold, with its index: the first of the first part that holds one.
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
