"""In which order training visits the samples: a function of the data as a set, the weights and the seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rplvq.protocols import Array

__all__ = ["blocks", "canonical_order", "visits"]

BLOCK_ROWS = 4096


def canonical_order(codes: Array, targets: Array, sample_weight: Array | None = None) -> Array:
    """Order of the samples (N,) that depends on their values only, not on how they were passed.

    Permuting such an order makes a fit repeatable by seed whatever the order of its input, and makes an
    integer sample weight the same as repeating the sample.
    """
    columns = [targets, codes] if sample_weight is None else [targets, codes, sample_weight]
    flat = [np.ascontiguousarray(values).reshape(len(codes), -1) for values in columns]
    reals = [values.view(float) if np.iscomplexobj(values) else values for values in flat]
    rows = np.hstack(reals).astype(float) + 0.0  # no negative zeros
    # Floats as big-endian integers of the same order, so that comparing bytes compares numbers: the order then
    # does not depend on the unit of the data either.
    bits = rows.view(np.int64)
    ordered = (bits ^ ((bits >> 63) & np.int64(2**63 - 1))).view(np.uint64) ^ np.uint64(1 << 63)
    keys = ordered.astype(">u8").view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))
    return np.argsort(keys[:, 0], kind="stable")


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
