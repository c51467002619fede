"""Turns short names and foreign objects into parts. No other file of this package asks for the class of a part.

Each ``resolve_`` function raises ValueError if a parameter has an invalid value.
"""

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, Literal

import attrs
import numpy as np
from sklearn.base import BaseEstimator

from rplvq.arrays import by_label, index_labels, one_type
from rplvq.capabilities import PerClass, provides
from rplvq.costs import COSTS
from rplvq.initializers import ClassKMeans, ClassMeans, DiscriminantMeans, GivenPrototypes
from rplvq.manifolds import MANIFOLDS, EuclideanVectors, FromPymanopt, is_from_pymanopt
from rplvq.parts import MANIFOLD_METHODS, by_plain_name, plain_name, require_methods
from rplvq.protocols import AnyManifold, Array, Cost, Initializer
from rplvq.schedules import AdaptiveStep, is_auto
from rplvq.selection import HeldOut
from rplvq.training import EarlyStopping

InitName = Literal["mean", "kmeans", "discriminant"]
"""The keys of :data:`INITIALIZERS` as a type, so that editors complete them."""
INITIALIZERS: dict[str, Callable[[tuple[int, ...]], Initializer]] = {
    "mean": ClassMeans,
    "kmeans": ClassKMeans,
    "discriminant": DiscriminantMeans,
}


def resolve_manifold(value: str | AnyManifold) -> AnyManifold:
    """Turn a name, a Manifold or a pymanopt manifold into a Manifold."""
    if isinstance(value, str):
        return by_plain_name(value, MANIFOLDS, "metric")()
    if is_from_pymanopt(value):
        return FromPymanopt(value)
    require_methods("metric", value, MANIFOLD_METHODS, "a Manifold")
    return value


def manifold_of(model: BaseEstimator) -> AnyManifold:
    """Return the Manifold that the parameter ``metric`` of an estimator stands for."""
    return resolve_manifold(model.metric)


def resolve_cost(value: str | Cost) -> Cost:
    """Turn a name or a Cost into a Cost."""
    if isinstance(value, str):
        return by_plain_name(value, COSTS, "cost")()
    require_methods("cost", value, ("__call__",), "a Cost")
    return value


def resolve_counts(value: object, classes: Array) -> tuple[int, ...]:
    """Return the number of prototypes of each class, from one number or a mapping by the labels ``classes`` (C,).

    Labels that are no class are ignored, because a fold may lack a class, unless an entry for a class is missing.
    """
    if isinstance(value, Mapping):
        value = by_label(value, "prototypes_per_class")
        missing = [label for label in classes.tolist() if label not in value]
        if missing:
            index_labels(list(value), classes, "prototypes_per_class")
            raise ValueError(f"prototypes_per_class has no entry for class {missing[0]!r}")
        counts = [value[label] for label in classes.tolist()]
    else:
        counts = [value] * len(classes)
    for count, label in zip(counts, classes.tolist(), strict=True):
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            wanted = "must be an integer above 0 ('auto' is for RiemannianLVQ.fit only)"
            raise ValueError(f"prototypes_per_class {wanted}, got {count!r} for class {label!r}")
    return tuple(int(count) for count in counts)


def chooses_counts(model: BaseEstimator) -> bool:
    """Whether held-out samples choose the number of prototypes per class."""
    value = model.prototypes_per_class
    return isinstance(value, str) and value == "auto"


def first_counts(model: BaseEstimator, classes: Array) -> tuple[int, ...]:
    """Return the number of prototypes of each class with which an estimator begins: 1 if it is to be chosen.

    A number of the initializer itself comes first.
    """
    own = model.init.per_class if provides(model.init, PerClass) else None
    if isinstance(own, Integral):
        return (int(own),) * len(classes)
    return resolve_counts(1 if chooses_counts(model) else model.prototypes_per_class, classes)


def with_two_per_class(initializer: Any, n_classes: int) -> Initializer:
    """Return an initializer that places two prototypes in each class; ValueError if this one has no such number."""
    if not attrs.has(type(initializer)) or getattr(initializer, "per_class", None) != (1,) * n_classes:
        raise ValueError(
            f"prototypes_per_class='auto' needs an initializer that leaves the number open, as init='mean' does, got "
            f"{initializer!r}"
        )
    return attrs.evolve(initializer, per_class=(2,) * n_classes)  # type: ignore[no-any-return]


def resolve_initializer(value: Any, counts: tuple[int, ...], classes: Array) -> Initializer:
    """Turn a name, an Initializer or (prototypes, labels) into an Initializer; ``counts`` replace its missing ones."""
    if isinstance(value, str):
        return by_plain_name(value, INITIALIZERS, "init")(counts)
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(f"init must be (prototypes, labels), got {len(value)} items")
        prototypes = value[0]
        labels = one_type(value[1], "init labels")
        known = np.isin(labels, classes)
        if not known.all() and np.isin(classes, labels).all():  # this fold lacks a class
            prototypes = np.asarray(prototypes)[known]
            labels = labels[known]
        return GivenPrototypes(prototypes, index_labels(labels, classes, "init labels"))
    require_methods("init", value, ("__call__",), "an Initializer")
    own = value.per_class if attrs.has(type(value)) and provides(value, PerClass) else counts
    if own is None or (isinstance(own, Integral) and {*counts} != {own}):  # a stream may begin with fewer
        return attrs.evolve(value, per_class=counts)  # type: ignore[no-any-return]
    return value  # type: ignore[no-any-return]


def resolve_sigma2_rule(value: object) -> HeldOut | None:
    """Return the rule by which held-out samples choose sigma2, or None if ``value`` needs no training."""
    if is_auto(value):
        return HeldOut()
    return value if isinstance(value, HeldOut) else None


def resolve_step_size(value: object) -> Any:
    """Turn "adaptive" into an AdaptiveStep; anything else is for the trainer."""
    return AdaptiveStep() if isinstance(value, str) and value == "adaptive" else value


def resolve_early_stopping(value: object) -> EarlyStopping | None:
    """Turn False, True or an EarlyStopping into an EarlyStopping or None."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return EarlyStopping() if value else None
    if not isinstance(value, EarlyStopping):
        raise ValueError(f"early_stopping must be True, False or an EarlyStopping, got {value!r}")
    return value


def by_posterior(decision: object) -> bool:
    """Whether a value of the parameter ``decision`` means the most probable class instead of the nearest prototype."""
    if decision not in ("nearest", "posterior"):
        raise ValueError(f"decision must be 'nearest' or 'posterior', got {decision!r}")
    return bool(decision == "posterior")


def takes_vectors(model: BaseEstimator) -> bool:
    """Whether the metric of an estimator is one of vectors instead of matrices."""
    value = model.metric
    return isinstance(value, EuclideanVectors) or (isinstance(value, str) and plain_name(value) == "euclidean_vectors")
