"""Orders of the samples: the canonical one, which depends on their values only, and the order of one sweep."""

from collections.abc import Callable, Iterator

import numpy as np

from rplvq.protocols import Array

BLOCK_ROWS = 4096
"""Rows of a block of samples that one sweep gathers at once."""
MOST_VISITS = 100
"""Largest mean weight that counts samples, and largest mean number of visits of a sample in an epoch."""


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
    return order[begins], None if (counts == 1).all() else counts


def as_counts(weights: Array, *, shares: bool = False) -> Array:
    """Scale weights (N,) that are no counts of samples, so that they do not make an epoch long.

    A mean above 100 is scaled to 100. If the weights may be ``shares``, it is scaled to 1, and so are weights that are
    all below 1.
    """
    if weights.mean() <= MOST_VISITS and not (shares and weights.max() < 1):
        return weights
    relative = weights / weights.max()  # equal weights become equal integers, without rounding
    return np.asarray(relative * ((1 if shares else MOST_VISITS) / relative.mean()))


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
        found = order[tied]
        runs = run[tied]
        values = read(found)
        inner = np.lexsort((values, runs))  # stable
        order[tied] = found[inner]
        values = values[inner]
        begins = np.ones(len(tied), dtype=bool)  # runs stay where they are, and ascend
        begins[1:] = (runs[1:] != runs[:-1]) | (values[1:] != values[:-1])
        run[tied] = tied[np.maximum.accumulate(np.where(begins, np.arange(len(tied)), 0))]
        tied = tied[~(begins & np.append(begins[1:], True))]
        if not len(tied):
            break
    return order, run


def _numbers(*arrays: Array) -> Iterator[Callable[[Array], Array]]:
    """Yield one reader, of rows (M,) to real numbers (M,), per number of a sample; few readers tell most apart."""

    def reader(values: Array, place: tuple[int, ...], part: str) -> Callable[[Array], Array]:
        return lambda rows: np.asarray(getattr(values[(rows, *place)], part))

    for values in arrays:
        for place in np.ndindex(values.shape[1:]):
            for part in ("real", "imag") if np.iscomplexobj(values) else ("real",):
                yield reader(values, place, part)
