"""In which order training visits the samples: a function of the data as a set, the weights and the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rplvq.protocols import Array

__all__ = ["blocks", "canonical_order", "repeats", "visits"]

BLOCK_ROWS = 4096


def canonical_order(codes: Array, targets: Array, sample_weight: Array | None = None) -> Array:
    """Order of the samples (N,) that depends on their values only, not on how they were passed.

    Permuting such an order makes a fit repeatable by seed whatever the order of its input, and makes an
    integer sample weight the same as repeating the sample.
    """
    return _order_and_runs(targets, codes, *([] if sample_weight is None else [sample_weight]))[0]


def repeats(codes: Array, targets: Array) -> Array:
    """Give equal samples (N,) of equal targets the same number, and different ones different numbers.

    Examples
    --------
    >>> repeats(np.array([[2.0], [1.0], [2.0], [2.0]]), np.array([0, 0, 0, 1]))
    array([1, 0, 1, 3])
    """
    order, run = _order_and_runs(targets, codes)
    result = np.empty_like(run)
    result[order] = run
    return result


def _order_and_runs(*arrays: Array) -> tuple[Array, Array]:
    """Sorted order (N,) of the samples that arrays (N, ...) describe, and where the run of equal ones begins (N,)."""
    order, run = np.arange(len(arrays[0])), np.zeros(len(arrays[0]), dtype=int)
    tied = order.copy()  # places whose samples agree in the numbers read so far with those of other places
    for read in _numbers(*arrays):
        rows, runs = order[tied], run[tied]
        values = read(rows)
        inner = np.lexsort((values, runs))  # stable
        order[tied], values = rows[inner], values[inner]
        begins = np.ones(len(tied), dtype=bool)  # runs stay where they are, and ascend
        begins[1:] = (runs[1:] != runs[:-1]) | (values[1:] != values[:-1])
        run[tied] = tied[np.maximum.accumulate(np.where(begins, np.arange(len(tied)), 0))]
        tied = tied[~(begins & np.append(begins[1:], True))]
        if not len(tied):
            break
    return order, run


def _numbers(*arrays: Array) -> Iterator[Callable[[Array], Array]]:
    """Readers of the numbers of a sample, one after the other: each takes rows (M,) and returns reals (M,).

    Few are needed to tell samples apart, and no copy of all the numbers.
    """

    def reader(values: Array, place: tuple[int, ...], part: str) -> Callable[[Array], Array]:
        return lambda rows: np.asarray(getattr(values[(rows, *place)], part))

    for values in arrays:
        for place in np.ndindex(values.shape[1:]):
            for part in ("real", "imag") if np.iscomplexobj(values) else ("real",):
                yield reader(values, place, part)


def visits(n_samples: int, sample_weight: Array | None) -> tuple[Array, Array | None]:
    """Sample indices of one sweep, and the weight of each visit.

    A sample of weight w is visited ceil(w) times with weight w / ceil(w) each; weight 0 is never visited.

    Examples
    --------
    >>> visits(3, np.array([1.0, 0.0, 2.5]))
    (array([0, 2, 2, 2]), array([1.        , 0.83333333, 0.83333333, 0.83333333]))
    """
    if sample_weight is None:
        return np.arange(n_samples), None
    times = np.ceil(sample_weight).astype(int)
    rows = np.repeat(np.arange(n_samples), times)
    return rows, (sample_weight / np.maximum(times, 1))[rows]


def blocks(
    rows: Array, weights: Array | None, batch_size: int | None, rng: np.random.Generator
) -> Iterator[tuple[Array, Array | None, int]]:
    """Cut one random permutation of the visits into blocks of whole batches.

    Gathering a block of samples at once makes small batches cheap slices, and bounds the copy's memory.

    Yields
    ------
    rows : ndarray of int of shape (M,)
        Sample indices of a block.
    weights : ndarray of shape (M,) or None
        Weight of each visit.
    batch_size : int
        Length of the batches into which the block is to be cut.
    """
    order = rng.permutation(len(rows))
    rows, weights = rows[order], None if weights is None else weights[order]
    size = len(rows) if batch_size is None else min(batch_size, len(rows))
    length = size * max(1, BLOCK_ROWS // size)
    for start in range(0, len(rows), length):
        stop = start + length
        yield rows[start:stop], None if weights is None else weights[start:stop], size
