"""How sure a classifier is of its labels, by several criteria, and how sure it is of samples that were held out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rplvq.arrays import by_block
from rplvq.inspection._novelty import Limits, Seen, prototype_labels, quantile
from rplvq.protocols import Array

CriterionName = Literal["auto", "combined", "posterior", "relative_distance", "distance"]
"""The keys of :data:`CRITERIA` as a type, so that editors complete them."""
CRITERIA = {
    "auto": ("predict_proba",),
    "combined": ("predict_proba", "transform"),
    "posterior": ("predict_proba",),
    "relative_distance": ("transform",),
    "distance": ("transform",),
}
"""Methods of the estimator that each criterion needs; "auto" also takes distances where there are any."""
FAR = ("combined", "distance")
"""Criteria that need the limits of distances."""
CERTAIN = 1e-12
"""A probability counts as this far from 1, so that its odds are finite."""
LEVEL = 0.2
"""Quantile by which the certainties of two models are compared on the samples to which they were fitted."""
FOLLOWED = 0.7
"""Power of the ratio of the certainties of two models that is taken to be one of scale, and not of overfitting."""


def see(model: Any, X: Any, criterion: CriterionName, routed: Any, weights: Array | None = None) -> Seen:
    """Return what a model says of samples, whose weights (N,) the search for a threshold takes with it."""
    needed = CRITERIA[criterion]
    empty = np.empty(0)
    heavy = empty if weights is None else weights
    sure = np.ones(1)
    if "predict_proba" in needed:
        sure = np.asarray(np.max(model.predict_proba(X, **routed["predict_proba"]), axis=-1))
    if "transform" not in needed:
        return Seen(sure, empty, empty, heavy)
    labels = prototype_labels(model)
    if labels is None:
        raise ValueError(f"criterion={criterion!r} needs prototypes with labels, which {model!r} has not")
    distances = np.asarray(model.transform(X, **routed["transform"]))
    if criterion == "relative_distance":
        rows = distances.reshape(-1, distances.shape[-1])
        relative = by_block(lambda part: _relative_distance(part, np.asarray(labels)), rows)
        return Seen(relative.reshape(distances.shape[:-1]), empty, empty, heavy)
    nearest = np.asarray(labels)[distances.argmin(axis=-1)]
    return Seen(np.broadcast_to(sure, nearest.shape), distances.min(axis=-1) ** 2, nearest, heavy)


def _relative_distance(distances: Array, labels: Array) -> Array:
    """Compute ``(d- - d+) / (d- + d+)`` (M,) from distances (M, K) to prototypes with labels (K,)."""
    sqdist = distances**2
    nearest = sqdist.argmin(axis=1)
    first = sqdist.min(axis=1)
    other = np.where(labels == labels[nearest][:, None], np.inf, sqdist).min(axis=1)
    total = first + other
    return np.asarray(np.where(total > 0, (other - first) / np.where(total > 0, total, 1.0), 0.0))


def held_out_certainty(
    criterion: CriterionName, classes: Array, final: Seen, folds: Sequence[tuple[Seen, Seen]]
) -> tuple[Array, Limits | None]:
    """Return the certainty (M,) of held-out samples on the scale of the final model, and the limits of distances.

    Arguments are those of :meth:`Limits.learn`, and :class:`rplvq.RejectOption` has the formulas.
    """
    odds = len(classes) - 1 if "predict_proba" in CRITERIA[criterion] else None
    scale = quantile(_strength(final.sure, odds), LEVEL, final.weights)
    certainties = []
    for inside, outside in folds:
        own = quantile(_strength(inside.sure, odds), LEVEL, inside.weights)
        factor = (scale / own) ** FOLLOWED if min(scale, own) > 0 else 1.0
        strength = factor * _strength(outside.sure, odds)
        certainties.append(strength if odds is None else 1.0 / (1.0 + odds * np.exp(-strength)))
    certainty = np.concatenate(certainties)
    if criterion not in FAR:
        return certainty, None
    limits, relative = Limits.learn(classes, final, folds)
    return -relative if criterion == "distance" else np.minimum(certainty, limits.familiarity(relative)), limits


def _strength(sure: Array, odds: int | None) -> Array:
    """Return certainties (N,) on a scale of factors from 0, a guess: probabilities as log-odds above those of one.

    ``odds`` are those against a guess, C - 1; None if the certainties are no probabilities, which stay as they are.
    """
    if odds is None:
        return sure
    shares = np.clip(sure, 1.0 / (odds + 1), 1.0 - CERTAIN)
    return np.asarray(np.log(odds * shares / (1.0 - shares)))


def held_out_folds(hard: Array, weights: Array, groups: Array | None, cv: int) -> list[tuple[Array, Array]]:
    """Return pairs of rows (training, test) of the samples of positive weight, with groups held out as a whole."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # only here, because it takes long

    kept = np.flatnonzero(weights > 0)
    own = hard[kept]
    n_groups = 1 if groups is None else len(np.unique(groups[kept]))
    if groups is not None and n_groups > 1:
        folds = StratifiedGroupKFold(min(cv, n_groups)).split(own, own, groups[kept])
        whole = [(kept[train], kept[test]) for train, test in folds if len(test)]
        if all(len(np.unique(hard[train])) == len(np.unique(own)) for train, _ in whole):
            return whole
        warnings.warn("a fold without whole groups would lack a class: random samples are held out", stacklevel=3)
    return [(kept[train], kept[test]) for train, test in StratifiedKFold(cv).split(own, own)]
