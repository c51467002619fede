"""Rows of several domains: how much each source domain counts, and the trials of weights on held-out rows."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rplvq.arrays import take_rows
from rplvq.protocols import Array, ArrayLike

N_STANDARD_ERRORS = 2.0  # number of standard errors by which a weight must beat the first one
SMALLEST_PROBABILITY = 1e-6  # held-out losses are not larger than minus the logarithm of this


class Rows(NamedTuple):
    """Rows (M,) of the samples (N, ...) in fit, with their labels (M,), domains (M,) and weights (M,)."""

    samples: Any
    rows: Array
    y: Array
    domains: Array
    weights: Array

    @property
    def X(self) -> Any:  # noqa: N802
        """The samples of these rows, as an array, a data frame or a sparse matrix, whichever was given."""
        return take_rows(self.samples, self.rows)

    def take(self, which: Array) -> "Rows":
        """Return some of the rows."""
        return Rows(self.samples, *(part[which] for part in self[1:]))

    def joined(self, other: "Rows") -> "Rows":
        """Return these rows, then those of another."""
        return Rows(self.samples, *(np.concatenate(pair) for pair in zip(self[1:], other[1:], strict=True)))


def qualities_of(right: Mapping[object, Array | None], own: Rows, chance: float) -> dict[object, float]:
    """Return the quality of each source, from which own samples (M,) it classifies correctly; None takes the mean."""
    known = {}
    for name, answers in right.items():
        if answers is None:
            continue
        balanced = np.mean([np.average(answers[own.y == c], weights=own.weights[own.y == c]) for c in np.unique(own.y)])
        known[name] = float(max(0.0, (balanced - chance) / (1 - chance)) ** 2)
    mean = float(np.mean(list(known.values()))) if known else 1.0
    return {name: known.get(name, mean) for name in right}


def with_mean_one(qualities: Mapping[object, float]) -> dict[object, float]:
    """Return numbers scaled to mean 1, and zeros as they are."""
    mean = sum(qualities.values()) / max(len(qualities), 1)
    return {name: value / mean if mean else 0.0 for name, value in qualities.items()}


def combined(own: Rows, sources: Rows, qualities: Mapping[object, float], count: float) -> Rows:
    """Return own rows and those of the sources, which together count as ``count`` own samples.

    If ``count`` is infinite, there are no own rows, and the sources keep their weights.
    """
    if np.isinf(count):
        return sources
    weights = sources.weights * np.array([qualities.get(name, 0.0) for name in sources.domains.tolist()])
    if count == 0 or not weights.any():
        return own
    weights *= count * own.weights.mean() / weights.sum()
    return own.joined(sources._replace(weights=weights).take(weights > 0))


def balanced(probabilities: Array, shares: Array) -> Array:
    """Scale class probabilities (M, C) until their mean has the given shares (C,) of the classes."""
    scaled = probabilities.clip(SMALLEST_PROBABILITY)
    for _ in range(20):  # the iterations of Sinkhorn
        scaled = scaled * (shares * len(scaled) / scaled.sum(axis=0))
        scaled /= scaled.sum(axis=1, keepdims=True)
    return np.asarray(scaled)


def trial_columns(
    candidates: ArrayLike = (), losses: Array | None = None, errors: Any = None, weights: Array | float = 1.0
) -> dict[str, Array]:
    """Return trials as columns, from the losses (T, M) and errors (T, M) of T candidates on M weighted samples."""
    if losses is None:
        losses = errors = np.empty((0, 1))
    mean = (losses * weights).mean(axis=1)
    difference = (losses - losses[:1]) * weights
    margin = difference.std(axis=1) / np.sqrt(max(difference.shape[1] - 1, 1))
    better = difference.mean(axis=1) < -N_STANDARD_ERRORS * margin
    best = int(np.argmin(np.where(better, mean, np.inf))) if better.any() else 0
    chosen = np.arange(len(mean)) == best
    columns = (np.asarray(candidates, dtype=float), mean, margin, (errors * weights).mean(axis=1), chosen)
    return dict(zip(("weight", "loss", "margin", "error", "chosen"), columns, strict=True))
