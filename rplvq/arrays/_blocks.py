"""How much is worked on at a time: the one place that bounds memory beside the data themselves."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BLOCK_BYTES", "BUDGET_BYTES", "LARGE_BLOCKS", "block_slices", "row_slices"]

BUDGET_BYTES = 1 << 25
"""Temporary memory of one chunk; every thread has one."""
BLOCK_BYTES = 1 << 25
"""Temporary memory of a part of a sum over samples. It sets how such sums round, so it is no budget to tune."""
LARGE_BLOCKS = 8
"""Blocks that a batch of training may fill and still be decomposed at once."""


def row_slices(n_rows: int, bytes_per_row: int, at_most: int | None = None) -> Iterator[slice]:
    """Cut rows 0..n_rows into slices whose temporaries fit the budget.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    bytes_per_row : int
        Temporary memory that a row needs.
    at_most : int, optional
        Bound on the rows of a slice, whatever they need.

    Yields
    ------
    slice
        Of at least one row.

    Examples
    --------
    >>> list(row_slices(5, BUDGET_BYTES // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    length = max(1, BUDGET_BYTES // max(1, bytes_per_row))
    return _slices(n_rows, length if at_most is None else max(1, min(length, at_most)))


def block_slices(n_rows: int, bytes_per_row: int) -> Iterator[slice]:
    """Cut rows 0..n_rows into the parts over which sums run: of the same sizes whatever the budget is.

    Parameters
    ----------
    n_rows, bytes_per_row : int
        As for :func:`row_slices`.

    Yields
    ------
    slice
        Of at least one row.
    """
    return _slices(n_rows, max(1, BLOCK_BYTES // max(1, bytes_per_row)))


def _slices(n_rows: int, length: int) -> Iterator[slice]:
    for start in range(0, n_rows, length):
        yield slice(start, min(start + length, n_rows))
