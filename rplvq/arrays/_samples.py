"""The data record: encoded samples with their targets and weights, and an order that depends on their values only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np

from rplvq.arrays._blocks import subset
from rplvq.arrays._labels import hard_targets
from rplvq.parts import library_part
from rplvq.protocols import Array

__all__ = ["Samples", "canonical_order", "repeats"]


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


def canonical_order(codes: Array, targets: Array, sample_weight: Array | None = None) -> Array:
    """Return an order (N,) of the samples that depends on their values only, not on how they were passed.

    A fit that permutes this order is repeatable by its seed whatever the order of its input, and an integer sample
    weight is the same as repeating the sample.
    """
    return _order_and_runs(targets, codes, *([] if sample_weight is None else [sample_weight]))[0]


def repeats(codes: Array, targets: Array) -> Array:
    """Number the samples so that equal samples with equal targets have the same number, and others do not; (N,).

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
