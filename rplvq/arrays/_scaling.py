"""The factor of energies, such as squared distances, with which their softmax describes the true classes best."""

from collections.abc import Callable
from functools import cache, partial, reduce
from typing import NamedTuple

import numpy as np

from rplvq.arrays._samples import block_slices
from rplvq.protocols import Array

MOST_STEPS = 60
"""Largest number of steps. Newton's method needs about five, and halving a bracket needs fewer than this."""
FLAT = 1e-5
"""The search ends where a factor larger by e would change the mean loss by less than this."""
TEMPORARIES = 6
"""Number of temporary arrays of the size of the energies."""


def best_factor(
    energies: Array, targets: Array, weights: Array, start: float, bounds: tuple[float, float],
    offsets: Array | float = 0.0,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the factors (S,) that minimise the mean negative log-posterior of the true classes, and the means (S,).

    The posterior of M samples is the softmax of ``offsets - factor * energies``, for S sets of energies (S, M, C) and
    the log-priors (C,) of the classes. ``targets`` are class indices (M,) or probabilities (M, C), and ``weights`` (M,)
    the multiplicities of the samples. The mean is convex in the factor, so that Newton's method, from ``start`` within
    a bracket that shrinks from the ``bounds``, finds the only minimum.

    Examples
    --------
    >>> energies = np.array([[[0.0, 2.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    >>> factor, loss = best_factor(energies, np.array([0, 1, 1, 1]), np.ones(4), 1.0, (0.01, 100.0))
    >>> factor.round(2), loss.round(2)
    (array([1.05]), array([0.52]))
    """
    shares = weights / weights.sum()
    n_sets, n_samples, n_classes = energies.shape
    parts: list[Callable[[], Part]] = [
        partial(_part, energies[:, rows], targets[rows], shares[rows], offsets)
        for rows in block_slices(n_samples, TEMPORARIES * 8 * n_sets * n_classes)
    ]
    if len(parts) == 1:  # it is computed only once, and many in every pass, because together they would take memory
        parts = [cache(parts[0])]
    low = np.full(len(energies), bounds[0])
    high = np.full(len(energies), bounds[1])
    factor = np.full(len(energies), start)
    loss = np.zeros(len(energies))
    for _ in range(MOST_STEPS):
        loss, slope, curvature = reduce(np.add, (_derivatives(part(), factor) for part in parts))
        is_flat = np.abs(slope) * factor <= FLAT
        if is_flat.all():
            break
        low = np.where(slope < 0, factor, low)
        high = np.where(slope > 0, factor, high)
        with np.errstate(all="ignore"):  # each branch is computed where the other is used, too
            # From above, a step in the logarithm of the factor does not jump far below the minimum.
            down = factor * np.exp(-slope / (factor * curvature + slope))
            newton = np.where(slope > 0, down, factor - slope / curvature)
        inside = np.where((low < newton) & (newton < high), newton, np.sqrt(low * high))
        factor = np.where(is_flat, factor, inside)
    return factor, loss


class Part(NamedTuple):
    """Some of the samples. The classes come first, because NumPy sums over a first axis several times faster."""

    beyond: Array  # (C, S, M), energies above those of the true classes
    offsets: Array  # (C, 1, 1)
    at_truth: Array  # (M,), offsets of the true classes
    shares: Array  # (M,), of the samples


def _part(energies: Array, targets: Array, shares: Array, offsets: Array | float) -> Part:
    n_samples, n_classes = energies.shape[1:]
    by_class = np.ascontiguousarray(energies.transpose(2, 0, 1))
    row = np.broadcast_to(offsets, n_classes)
    if targets.ndim == 1:
        beyond = by_class - by_class[targets, :, np.arange(n_samples)].T
        at_truth = row[targets]
    else:
        beyond = by_class - np.einsum("csm,mc->sm", by_class, targets)
        at_truth = targets @ row
    return Part(beyond, row[:, None, None], at_truth, shares)


def _derivatives(part: Part, factor: Array) -> Array:
    """Return the summed negative log-posteriors, and their first and second derivatives by the factor, (3, S)."""
    logits = part.offsets - factor[:, None] * part.beyond
    top = logits.max(axis=0)
    logits -= top  # so that no exponential overflows
    terms = np.exp(logits, out=logits)
    totals = terms.sum(axis=0)
    losses = top + np.log(totals) - part.at_truth
    terms *= part.beyond
    means = terms.sum(axis=0) / totals
    terms *= part.beyond
    variances = terms.sum(axis=0) / totals - means**2
    return np.array([losses, -means, variances]) @ part.shares
