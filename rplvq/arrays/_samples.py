"""The data record, the orders of its samples, and how large arrays are read in parts, which bounds the memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.utils import indexable

from rplvq.arrays._labels import hard_targets
from rplvq.arrays._validation import stacked, unmasked
from rplvq.exceptions import PointError
from rplvq.parts import FunctionT, library_part
from rplvq.protocols import AnyManifold, Array, ArrayLike, Prototypes

BLOCK_ROWS = 4096
"""Rows of a block of samples that one sweep gathers at once."""
MOST_VISITS = 100
"""Largest mean weight that counts samples, and largest mean number of visits of a sample in an epoch."""
BUDGET_BYTES = 1 << 25
"""Temporary memory of one chunk; every thread works on one chunk at a time."""
BLOCK_BYTES = 1 << 25
"""Temporary memory of one block of a sum. Another value changes the rounding of sums, so it must not be tuned."""
LARGE_BLOCKS = 8
"""A batch of training that fills at most this many blocks is decomposed at once."""
COPIES = 8
"""Copies of a part that exist at the same time while it is encoded or connected to one prototype."""


def canonical_order(codes: Array, targets: Array) -> Array:
    """Return an order (N,) of the samples that depends on their values only."""
    return _order_and_runs(targets, codes)[0]


def distinct(
    codes: Array, targets: Array, sample_weight: Array | None = None, *, shares: bool = False
) -> tuple[Array, Array | None]:
    """Return indices (M,) of the distinct samples of positive weight, in canonical order, and their weights.

    The weight of a sample is the sum over all that equal it, scaled by :func:`as_counts`; None stands for ones. An
    integer weight is then the same as repetitions of the sample.
    """
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    # Weights of equal samples are added in ascending order, so that their sum does not depend on the input order.
    ascending = np.argsort(weights, kind="stable")[np.count_nonzero(weights == 0) :]
    order, run = _order_and_runs(targets, codes, rows=ascending)
    begins = np.flatnonzero(run == np.arange(len(run)))
    counts = as_counts(np.add.reduceat(weights[order], begins), shares=shares)
    is_plain = (counts == 1).all()
    return order[begins], None if is_plain else counts


def as_counts(weights: Array, *, shares: bool = False) -> Array:
    """Scale weights (N,) that are no counts of samples, so that they do not make an epoch long.

    A mean above 100 is scaled to 100. If the weights may be ``shares``, it is scaled to 1, and so are weights that are
    all below 1.
    """
    if weights.mean() <= MOST_VISITS and not (shares and weights.max() < 1):
        return weights
    relative = weights / weights.max()  # equal weights become equal integers, without rounding
    mean = 1 if shares else MOST_VISITS
    return np.asarray(relative * (mean / relative.mean()))


def repeats(codes: Array, targets: Array) -> Array:
    """Return numbers (N,) of the distinct pairs of sample and target: equal samples with equal targets share one."""
    order, run = _order_and_runs(targets, codes)
    result = np.empty_like(run)
    result[order] = run
    return result


def visits(n_samples: int, sample_weight: Array | None) -> tuple[Array, Array | None]:
    """Return the sample indices (M,) that one sweep visits, and the weight (M,) of each visit.

    A sample of weight w is visited ceil(w) times with weight w / ceil(w) each; a sample of weight 0 is not visited.
    Weights with a mean above 100 are scaled first, see :func:`as_counts`.

    Examples
    --------
    >>> visits(3, np.array([1.0, 0.0, 2.5]))
    (array([0, 2, 2, 2]), array([1.        , 0.83333333, 0.83333333, 0.83333333]))
    """
    if sample_weight is None:
        return np.arange(n_samples), None
    counts = as_counts(sample_weight)
    times = np.ceil(counts * (1 - 1e-12)).astype(int)  # 2 + rounding, as a scaled weight may be, is 2
    rows = np.repeat(np.arange(n_samples), times)
    return rows, (counts / np.maximum(times, 1))[rows]


def blocks(
    rows: Array, weights: Array | None, batch_size: int | None, rng: np.random.Generator
) -> Iterator[tuple[Array, Array | None, int]]:
    """Cut a random permutation of the visits into blocks of whole batches.

    Yield the sample indices (M,) of each block, the weights (M,) of its visits and the length of its batches.
    """
    # One gathering of the samples per block makes small batches cheap slices, and bounds the memory of the copy.
    order = rng.permutation(len(rows))
    rows = rows[order]
    weights = None if weights is None else weights[order]
    size = len(rows) if batch_size is None else min(batch_size, len(rows))
    length = size * max(1, BLOCK_ROWS // size)
    for start in range(0, len(rows), length):
        stop = start + length
        yield rows[start:stop], None if weights is None else weights[start:stop], size


def _order_and_runs(*arrays: Array, rows: Array | None = None) -> tuple[Array, Array]:
    """Sort the samples that arrays (N, ...) describe, or those at ``rows``, in whose order equal samples stay.

    Return their order (M,) and the place where each run of equal samples begins, for each place (M,).
    """
    order = np.arange(len(arrays[0])) if rows is None else rows.copy()
    # places whose samples agree in the numbers read so far
    run = np.zeros_like(order)
    tied = np.arange(len(order))
    for read in _numbers(*arrays):
        places = order[tied]
        runs = run[tied]
        values = read(places)
        inner = np.lexsort((values, runs))  # stable
        order[tied] = places[inner]
        values = values[inner]
        begins = np.ones(len(tied), dtype=bool)  # runs stay where they are, and ascend
        begins[1:] = (runs[1:] != runs[:-1]) | (values[1:] != values[:-1])
        run[tied] = tied[np.maximum.accumulate(np.where(begins, np.arange(len(tied)), 0))]  # begin of the own run
        tied = tied[~(begins & np.append(begins[1:], True))]  # a run of one sample is told apart
        if not len(tied):
            break
    return order, run


def _numbers(*arrays: Array) -> Iterator[Callable[[Array], Array]]:
    """Yield one reader, of rows (M,) to real numbers (M,), per number of a sample; few readers tell most apart."""

    def reader(values: Array, place: tuple[int, ...], part: str) -> Callable[[Array], Array]:
        return lambda rows: np.asarray(getattr(values[(rows, *place)], part))

    for values in arrays:
        for place in np.ndindex(values.shape[1:]):
            yield reader(values, place, "real")
            if np.iscomplexobj(values):
                yield reader(values, place, "imag")


def row_slices(n_rows: int, bytes_per_row: int, at_most: int | None = None) -> list[slice]:
    """Cut rows 0..n_rows into slices of at most ``at_most`` rows whose temporary memory fits the budget."""
    length = max(1, BUDGET_BYTES // max(1, bytes_per_row))
    if at_most is not None:
        length = max(1, min(length, at_most))
    return _slices(n_rows, length)


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

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
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


def materialise(function: Callable[..., object], codes: Array) -> Array:
    """Return codes as a function needs them: unchanged if :func:`reads_parts` marks it, else as one array in memory."""
    return codes if getattr(function, "reads_parts", False) else np.asarray(codes)


@library_part
@attrs.frozen(eq=False)
class Samples:
    """Encoded samples with what is known about each of them.

    Examples
    --------
    >>> samples = Samples(np.array([[3.0], [1.0], [2.0]]), np.array([0, 1, 0]))
    >>> len(samples), samples.canonical().codes[:].ravel()
    (3, array([2., 3., 1.]))
    """

    codes: Array
    """Encoded samples (N, ...): an array, perhaps on disk, or LazyRows."""
    targets: Array
    """Class indices (N,) or class probabilities (N, C). Streams store labels, because new classes change indices."""
    weights: Array | None = None
    """Multiplicity of each sample, shape (N,): weight w counts as w copies. None means 1 for all."""
    groups: Array | None = None
    """Number of the group of each sample, shape (N,), such as its session. Samples are held out by whole groups."""

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

    def at(self, rows: slice | Array) -> Samples:
        """Return the samples of a slice, of indices or of a mask, with their codes copied into memory."""
        return self._rows(self.codes[rows], rows)

    def _rows(self, codes: Array, rows: slice | Array) -> Samples:
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
            np.minimum.at(first, numbers[there], self.groups[there])  # whatever the order of the input
            groups = first[numbers[rows]]
        return Samples(subset(self.codes, rows), self.targets[rows], weights, groups)

    def followed_by(self, later: Samples) -> Samples:
        """Return these samples and later ones; only the later ones if their targets have another shape."""
        if self.targets.shape[1:] != later.targets.shape[1:]:  # one of them are class probabilities
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
        part = function(codes[rows], *(values[rows] for values in others))
        if result is None:
            result = np.empty((len(codes), *part.shape[1:]), dtype=part.dtype)
        result[rows] = part
    return np.asarray(result)


def distances(manifold: AnyManifold, prototypes: Prototypes, codes: Array) -> Array:
    """Return the squared distances (N, K) of samples (N, ...) to K prototypes, computed part by part."""
    return by_block(lambda part: manifold.sqdist(prototypes, part), codes, n_columns=len(prototypes))


def encoded(manifold: AnyManifold, points: ArrayLike) -> Array:
    """Return ``manifold.encode(points)`` (N, ...), computed part by part; the result must not be written to.

    Where the codes are the points themselves (float64, exactly Hermitian, and a manifold whose coordinates are the
    matrices), nothing is copied, and the result is the array that was passed, which may be on disk. ValueError names
    the first point that is not on the manifold.
    """
    given = unmasked(stacked(points))
    is_array = isinstance(given, np.ndarray) and given.ndim > 1 and given.dtype.kind in "biufc" and given.size
    if not is_array or len(parts_of(given)) == 1:
        return np.asarray(manifold.encode(given))
    kept: Array | None = None
    for rows in parts_of(given):
        try:
            codes = np.asarray(manifold.encode(given[rows]))
        except PointError as error:
            raise error.shifted(rows.start) from None
        if kept is None and _is_same(codes, given[rows]):  # nothing was copied so far
            continue
        if kept is None:
            dtype = np.result_type(codes, given) if rows.start else codes.dtype
            kept = np.empty((len(given), *codes.shape[1:]), dtype=dtype)
            if rows.start:
                kept[: rows.start] = given[: rows.start]
        if codes.dtype != kept.dtype:  # some parts of a complex array are real
            kept = kept.astype(np.result_type(kept, codes), copy=False)
        kept[rows] = codes
    return np.asarray(given) if kept is None else kept


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
