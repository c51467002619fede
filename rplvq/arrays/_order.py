"""The canonical order of samples, which depends on their values only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rplvq.protocols import Array

__all__ = ["canonical_order", "repeats"]


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
