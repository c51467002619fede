"""How far samples are from everything that a model of prototypes knows, relative to the limit of each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.parts import library_part
from rplvq.protocols import Array

ORDINARY = 0.95
"""Share of the held-out samples that are within the limit of their class."""
SAME: Any = attrs.cmp_using(eq=np.array_equal)


class Seen(NamedTuple):
    """What a model says of N samples."""

    sure: Array  # (N,), certainty between classes
    sqdist: Array  # (N,), squared distances to the nearest prototypes; empty if no criterion asks for them
    labels: Array  # (N,), classes of these prototypes
    weights: Array  # (N,), of the samples


def prototype_labels(model: Any) -> Array | None:
    """Return the labels (K,) of the prototypes of a model, or of the last step or best estimator in it, or None."""
    if hasattr(model, "steps"):
        return prototype_labels(model.steps[-1][1])
    if hasattr(model, "best_estimator_"):
        return prototype_labels(model.best_estimator_)
    return getattr(model, "prototype_labels_", None)


def quantile(values: Array, share: float, weights: Array) -> float:
    """Return the smallest of the values (N,) up to which samples have at least this share of the weights (N,)."""
    return float(np.quantile(values, round(share, 12), weights=weights, method="inverted_cdf"))


@library_part
@attrs.frozen
class Limits:
    """The squared distance to the nearest prototype beyond which samples of each class are unusual.

    Parameters
    ----------
    classes : ndarray of shape (C,)
        Labels, sorted.
    sqdist : ndarray of shape (C,)
        The limit of each class: 95 % of the held-out samples were nearer.
    other : float
        The limit of a class that came later.
    """

    classes: Array = attrs.field(eq=SAME)
    sqdist: Array = attrs.field(eq=SAME)
    other: float = attrs.field(converter=float)

    @classmethod
    def learn(cls, classes: Array, final: Seen, folds: Sequence[tuple[Seen, Seen]]) -> tuple[Limits, Array]:
        """Return the limits of a model, and the squared distances (M,) of held-out samples in units of them.

        ``final`` are the samples to which the model was fitted; each fold has those to which a similar model was
        fitted, and those held out from it. The limit of a class is ``m r q``: the median m of the squared distances of
        its samples in ``final``, the median r of the ratios of its held-out distances to the median of their own model,
        and the quantile q of what remains in all classes, because a class may have few samples.
        """

        def at(labels: Array) -> Array:
            return np.searchsorted(classes, labels)

        ratios = [held.sqdist / _medians(classes, inside)[at(held.labels)] for inside, held in folds]
        labels, weights = (np.concatenate([held[i] for _, held in folds]) for i in (2, 3))
        ratio = np.concatenate(ratios)
        typical = _medians(classes, Seen(ratio, ratio, labels, weights))
        beyond = ratio / typical[at(labels)]
        far = quantile(beyond, ORDINARY, weights)
        limits = far * typical * _medians(classes, final)
        other = quantile(ratio, ORDINARY, weights)
        return cls(classes, limits, other * quantile(final.sqdist, 0.5, final.weights)), beyond / far

    def relative(self, sqdist: Array, labels: Array) -> Array:
        """Return squared distances (...) to prototypes of classes (...) in units of the limits of these classes."""
        places = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        return np.asarray(sqdist / np.where(self.classes[places] == labels, self.sqdist[places], self.other))

    def familiarity(self, relative: Array) -> Array:
        """Return how well samples are known: 1 up to the limit l, and ``(l / d)^log2(C)`` at a larger distance d.

        With C classes it is ``1 / C``, which is a guess, at twice the limit: it is comparable with a probability.
        """
        return np.asarray(np.maximum(relative, 1.0) ** (-0.5 * np.log2(len(self.classes))))


def _medians(classes: Array, near: Seen) -> Array:
    """Return the median squared distance (C,) for each class, and that of all samples where a class has none."""
    medians = np.full(len(classes), quantile(near.sqdist, 0.5, near.weights))
    for place, label in enumerate(classes):
        own = near.labels == label
        if own.any():
            medians[place] = quantile(near.sqdist[own], 0.5, near.weights[own])
    return np.asarray(np.maximum(medians, np.finfo(float).tiny))  # samples that are prototypes have the distance 0
