"""In which order training visits the samples: a function of the data as a set, the weights and the seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rplvq.protocols import Array

__all__ = ["blocks", "visits"]

BLOCK_ROWS = 4096


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
