"""How sure a classifier is of its labels, and how far samples are from everything that it knows."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import attrs
import numpy as np
from sklearn.base import BaseEstimator, clone

from rplvq.arrays import as_rows, by_block, take_rows
from rplvq.parts import library_part
from rplvq.protocols import Array, ArrayLike

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
Routed: TypeAlias = Mapping[str, Mapping[str, object]]  # metadata by the method that gets it
FAR = ("combined", "distance")  # criteria that need the limits of distances
CERTAIN = 1e-12  # a probability counts as this far from 1, so that its odds are finite
LEVEL = 0.2  # quantile by which the certainties of two models are compared on the samples to which they were fitted
FOLLOWED = 0.7  # power of the ratio of two models' certainties that counts as scale, not overfitting
ORDINARY = 0.95  # share of the held-out samples that are within the limit of their class
SAME = attrs.cmp_using(eq=np.array_equal)


class Seen(NamedTuple):
    """What a model says of N samples."""

    sure: Array  # (N,), certainty between classes
    sqdist: Array  # (N,), squared distances to the nearest prototypes; empty if no criterion asks for them
    labels: Array  # (N,), classes of these prototypes
    weights: Array  # (N,), of the samples


def prototype_labels(model: BaseEstimator) -> Array | None:
    """Return the labels (K,) of the prototypes of a model, or of the last step or best estimator in it, or None."""
    if hasattr(model, "steps"):
        return prototype_labels(model.steps[-1][1])
    if hasattr(model, "best_estimator_"):
        return prototype_labels(model.best_estimator_)
    return getattr(model, "prototype_labels_", None)


def quantile(values: Array, share: float, weights: Array) -> float:
    """Return the smallest of the values (N,) up to which samples have at least this share of the weights (N,)."""
    # Without rounding, a share of 1 - 0.7 would be above 0.3 and take the next value.
    return float(np.quantile(values, round(share, 12), weights=weights, method="inverted_cdf"))


@library_part
@attrs.frozen
class Limits:
    """The squared distance to the nearest prototype beyond which samples of each class are unusual."""

    classes: Array = attrs.field(eq=SAME)  # (C,), sorted labels
    sqdist: Array = attrs.field(eq=SAME)  # (C,), the limit of each class: 95 % of the held-out samples were nearer
    other: float = attrs.field(converter=float)  # the limit of a class that came later

    @classmethod
    def learn(cls, classes: Array, final: Seen, folds: Sequence[tuple[Seen, Seen]]) -> tuple[Self, Array]:
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

    def relative(self, sqdist: Array | float, labels: Array) -> Array:
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


def see(
    model: BaseEstimator, X: ArrayLike, criterion: CriterionName, routed: Routed, weights: Array | None = None
) -> Seen:
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
    """Return the certainty (M,) of held-out samples as :class:`rplvq.RejectOption` scales it, and :class:`Limits`."""
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
    """Return probabilities (N,) as log-odds above a guess, whose odds are 1 to ``odds``; without these, as they are."""
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


def learn_limits(
    option: BaseEstimator, final: BaseEstimator, criterion: CriterionName, X: ArrayLike, labels: Array, weights: Array,
    routed: Routed, held: Sequence[tuple[Array, Array]], others: Array,
) -> tuple[Limits | None, float]:  # fmt: skip
    """Return the limits of distances, if the criterion needs them, and the threshold for the coverage of an option.

    ``held`` are rows (training, test) of the samples of positive weight (N,), which alone are judged. The rows
    ``others`` take part in the fit of all folds.
    """

    def seen(model: BaseEstimator, rows: Array) -> Seen:
        return see(model, take_rows(X, rows), criterion, _of_rows(routed, rows, len(labels)), weights[rows])

    folds = []
    for train, test in held:
        rows = np.union1d(train, others)
        metadata = _of_rows(routed, rows, len(labels))["fit"]
        model = clone(option.estimator).fit(take_rows(X, rows), labels[rows], **metadata)
        folds.append((seen(model, train), seen(model, test)))
    everything = seen(final, np.flatnonzero(weights > 0))
    certainty, limits = held_out_certainty(criterion, final.classes_, everything, folds)
    # A certainty equal to the threshold is not rejected, so the quantile is one of the values.
    held_weights = np.concatenate([outside.weights for _, outside in folds])
    return limits, quantile(certainty, 1 - float(option.coverage or 1.0), held_weights)


def _of_rows(routed: Routed, rows: Array, n_samples: int) -> dict[str, dict[str, object]]:
    """Return metadata for some of all samples: the rows of what has one entry per sample, and all of anything else."""

    def part(value: Any) -> object:
        return take_rows(as_rows(value), rows) if np.shape(value)[:1] == (n_samples,) else value

    return {method: {key: part(value) for key, value in metadata.items()} for method, metadata in routed.items()}
