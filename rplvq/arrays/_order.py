"""Orders of the samples: the canonical one, which depends on their values only, and the order of one sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rplvq.protocols import Array

BLOCK_ROWS = 4096
"""Rows of a block of samples that one sweep gathers at once."""


def canonical_order(codes: Array, targets: Array, sample_weight: Array | None = None) -> Array:
    """Return an order (N,) of the samples that depends on their values only, not on how they were passed.

    A fit that permutes this order is repeatable by its seed whatever the order of its input, and an integer sample
    weight is the same as repeating the sample.
    """
    return _order_and_runs(targets, codes, *([] if sample_weight is None else [sample_weight]))[0]


def repeats(codes: Array, targets: Array) -> Array:
    """Return a number per sample (N,), the same number for equal samples with equal targets and for no others."""
    order, run = _order_and_runs(targets, codes)
    result = np.empty_like(run)
    result[order] = run
    return result


def visits(n_samples: int, sample_weight: Array | None) -> tuple[Array, Array | None]:
    """Return the sample indices (M,) that one sweep visits, and the weight (M,) of each visit.

    A sample of weight w is visited ceil(w) times with weight w / ceil(w) each; a sample of weight 0 is not visited.

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
    """Cut a random permutation of the visits into blocks of whole batches.

    Yield the sample indices (M,) of each block, the weights (M,) of its visits and the length of its batches.
    """
    # One gathering of the samples per block makes small batches cheap slices, and bounds the memory of the copy.
    order = rng.permutation(len(rows))
    rows, weights = rows[order], None if weights is None else weights[order]
    size = len(rows) if batch_size is None else min(batch_size, len(rows))
    length = size * max(1, BLOCK_ROWS // size)
    for start in range(0, len(rows), length):
        stop = start + length
        yield rows[start:stop], None if weights is None else weights[start:stop], size


def _order_and_runs(*arrays: Array) -> tuple[Array, Array]:
    """Sort the samples that arrays (N, ...) describe; return their order (N,) and where each run of equals begins."""
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
    """Yield one reader per number of a sample; a reader takes rows (M,) and returns real numbers (M,).

    A few numbers tell most samples apart, so the others are never read or copied.
    """

    def reader(values: Array, place: tuple[int, ...], part: str) -> Callable[[Array], Array]:
        return lambda rows: np.asarray(getattr(values[(rows, *place)], part))

    for values in arrays:
        for place in np.ndindex(values.shape[1:]):
            for part in ("real", "imag") if np.iscomplexobj(values) else ("real",):
                yield reader(values, place, part)
