"""The factor of energies, such as squared distances, with which their softmax describes the true classes best."""

import numpy as np

from rplvq.arrays._samples import block_slices
from rplvq.protocols import Array

MOST_STEPS = 60
"""Largest number of steps. Newton's method needs about five, and halving a bracket needs fewer than this."""
FLAT = 1e-7
"""The search ends where a factor larger by e would change the mean loss by less than this."""
TEMPORARIES = 6
"""Number of temporary arrays of the size of the energies."""


def best_factor(
    energies: Array,
    targets: Array,
    weights: Array,
    start: float,
    bounds: tuple[float, float],
    offsets: Array | float = 0.0,
) -> tuple[Array, Array]:
    """Return the factors (S,) that minimise the mean negative log-posterior of the true classes, and the means (S,).

    The posterior is the softmax of ``offsets - factor * energies``. The mean of its negative logarithm is convex in the
    factor, so that Newton's method within a shrinking bracket finds the only minimum.

    Parameters
    ----------
    energies : ndarray of shape (S, M, C)
        S sets of energies of M samples for C classes.
    targets : ndarray of shape (M,) or (M, C)
        Class indices or probabilities of the classes.
    weights : ndarray of shape (M,)
        Multiplicity of each sample.
    start : float
        Factor with which the search begins.
    bounds : tuple of float
        Smallest and largest factor, both positive.
    offsets : ndarray of shape (C,), default=0
        Logarithms of the classes' prior probabilities, which the factor does not scale.

    Examples
    --------
    >>> energies = np.array([[[0.0, 2.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    >>> factor, loss = best_factor(energies, np.array([0, 1, 1, 1]), np.ones(4), 1.0, (0.01, 100.0))
    >>> factor.round(2), loss.round(2)
    (array([1.05]), array([0.52]))
    """
    shares = weights / weights.sum()
    low = np.full(len(energies), bounds[0])
    high = np.full(len(energies), bounds[1])
    factor = np.full(len(energies), start)
    loss = np.zeros(len(energies))
    for _ in range(MOST_STEPS):
        loss, slope, curvature = _derivatives(energies, targets, shares, factor, offsets)
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


def _derivatives(
    energies: Array, targets: Array, shares: Array, factor: Array, offsets: Array | float
) -> tuple[Array, Array, Array]:
    """Return the mean negative log-posterior (S,), and its first and second derivative by the factor (S,)."""
    n_sets, n_samples, n_classes = energies.shape
    sums = np.zeros((3, n_sets))
    for rows in block_slices(n_samples, TEMPORARIES * 8 * n_sets * n_classes):
        truth = targets[rows] if targets.ndim == 2 else np.eye(n_classes)[targets[rows]]
        beyond = energies[:, rows] - (truth * energies[:, rows]).sum(axis=-1, keepdims=True)
        logits = offsets - factor[:, None, None] * beyond
        top = logits.max(axis=-1, keepdims=True)
        parts = np.exp(logits - top)
        totals = parts.sum(axis=-1)
        losses = top[..., 0] + np.log(totals) - (truth * offsets).sum(axis=-1)
        parts *= beyond
        means = parts.sum(axis=-1) / totals
        parts *= beyond
        variances = parts.sum(axis=-1) / totals - means**2
        sums += np.stack([losses, -means, variances]) @ shares[rows]
    return sums[0], sums[1], sums[2]
