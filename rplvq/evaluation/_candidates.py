"""The classifiers that a comparison takes: by metric and cost, by object, and baselines of other libraries."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from rplvq.costs import CostName
from rplvq.estimators import RiemannianLVQ, resolve_cost, resolve_manifold
from rplvq.manifolds import MetricName
from rplvq.parts import MANIFOLD_METHODS, require_methods, what_lacks
from rplvq.protocols import AnyManifold, Cost, Schedule

METRICS = ("affine_invariant", "log_euclidean")
BaselineName = Literal["mdm", "tangent_space"]  # the names of BASELINES as a type, so that editors complete them
BASELINES: tuple[BaselineName, ...] = ("mdm", "tangent_space")


def default_estimators(
    metrics: Iterable[MetricName | str | AnyManifold] = METRICS,
    costs: Iterable[CostName | Cost] = ("rslvq",),
    *,
    prototypes_per_class: int | Mapping[object, int] = 1,
    max_epochs: int = 20,
    sigma2: float | Schedule | Literal["auto"] = "auto",
    random_state: int | np.random.RandomState | None = None,
) -> dict[str, RiemannianLVQ]:
    """Return the classifiers that :func:`compare` takes by default: each metric with each cost, and its class means.

    They are not fitted. Their names are ``"<metric> <cost>"`` for each cost, then ``"<metric> MDM"``.

    Parameters
    ----------
    metrics : iterable of str or Manifold, default=("affine_invariant", "log_euclidean")
        Metrics, as the parameter ``metric`` of :class:`rplvq.RiemannianLVQ`; ValueError names one that is not known.
    costs : iterable of str or Cost, default=("rslvq",)
        Costs, as its parameter ``cost``.
    prototypes_per_class : int or dict, default=1
        Number of prototypes per class of the trained classifiers; the class means are one per class.
    max_epochs : int, default=20
        Number of sweeps of the trained classifiers; the paper chooses among 20, 50 and 100.
    sigma2 : float, Schedule or "auto", default="auto"
        Variance of all trained classifiers. A number seldom suits several metrics.
    random_state : int, RandomState or None, default=None
        Seed of each estimator.

    Examples
    --------
    >>> from rplvq.evaluation import default_estimators
    >>> list(default_estimators(["riemann", "euclid"]))
    ['riemann rslvq', 'riemann MDM', 'euclid rslvq', 'euclid MDM']
    """
    costs = _parts(costs, "costs")
    named = []
    trained: Any = {"sigma2": sigma2, "prototypes_per_class": prototypes_per_class, "max_epochs": max_epochs}
    for metric in _parts(metrics, "metrics"):
        for cost in costs:
            model = RiemannianLVQ(metric, cost, random_state=random_state, **trained)
            named.append((f"{short_name(metric)} {short_name(cost)}", model))
        named.append((f"{short_name(metric)} MDM", RiemannianLVQ(metric, max_epochs=0, random_state=random_state)))
    return unique_names(named)


def _parts(values: Any, argument: str) -> list[Any]:
    """Return metrics or costs as a list; ValueError names the first that is not known."""
    parts = [values] if isinstance(values, str) else list(values)
    for index, part in enumerate(parts):
        try:
            (resolve_manifold if argument == "metrics" else resolve_cost)(part)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{argument}[{index}]: {error}") from error
    return parts


def baseline_estimators(names: BaselineName | Iterable[BaselineName] = BASELINES) -> dict[str, BaseEstimator]:
    """Return unfitted classifiers of pyRiemann by their names in tables; raise ImportError without the extra ``paper``.

    Parameters
    ----------
    names : iterable of str, default=("mdm", "tangent_space")
        "mdm" is pyRiemann's minimum distance to mean under the affine-invariant metric. "tangent_space" is logistic
        regression on the tangent vectors at the Riemannian mean of the training samples. ValueError names another one.

    Examples
    --------
    >>> from rplvq.evaluation import baseline_estimators
    >>> list(baseline_estimators(["mdm"]))
    ['pyRiemann MDM']
    """
    names = [names] if isinstance(names, str) else list(names)
    if unknown := [name for name in names if name not in BASELINES]:
        raise ValueError(f"baselines must be of {', '.join(BASELINES)}, got {unknown[0]!r}")
    try:
        from pyriemann.classification import MDM, TSClassifier
    except ImportError as error:
        what = f"the baselines {' and '.join(map(repr, names))} need pyRiemann"
        raise ImportError(f'{what}: pip install ".[paper]" in the folder of rplvq') from error
    from sklearn.linear_model import LogisticRegression

    tangent = TSClassifier("riemann", clf=LogisticRegression(max_iter=1000))
    made = {"mdm": ("pyRiemann MDM", MDM("riemann")), "tangent_space": ("tangent space + logistic regression", tangent)}
    return dict(made[name] for name in names)


def short_name(part: object) -> str:
    """Return the name of a part: a string as it is, or the class of an object."""
    return part if isinstance(part, str) else type(part).__name__


def unique_names(named: Sequence[tuple[str, BaseEstimator]]) -> dict[str, BaseEstimator]:
    """Turn (name, estimator) pairs into a mapping; a name that occurs more than once gets a number."""
    names = [name for name, _ in named]
    return {
        f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name: estimator
        for i, (name, estimator) in enumerate(named)
    }


def named_estimators(estimators: object) -> dict[str, BaseEstimator]:
    """Turn a mapping of estimators, or a sequence of estimators and of metrics, into a mapping by name."""
    if not isinstance(estimators, (Mapping, list, tuple)):
        what = "a mapping name -> estimator, a list of estimators and metrics, or None"
        raise ValueError(f"estimators must be {what}, got {estimators!r}")
    if isinstance(estimators, Mapping):
        named = dict(estimators)
    else:
        named = unique_names([pair for index, entry in enumerate(estimators) for pair in _named(index, entry)])
    if not named:
        raise ValueError("estimators is empty: give at least one, or None for the default")
    for name, estimator in named.items():
        if not isinstance(name, str):
            raise ValueError(f"estimators has the name {name!r}: names must be strings")
        require_methods(f"estimators[{name!r}]", estimator, ("fit", "predict", "get_params"), "a classifier")
    return named


def _named(index: int, entry: BaseEstimator | str | AnyManifold) -> list[tuple[str, BaseEstimator]]:
    """Return the names and estimators for an estimator or a metric of a sequence."""
    if not isinstance(entry, str) and what_lacks(entry, MANIFOLD_METHODS):
        return [(type(entry).__name__, entry)]
    try:
        return list(default_estimators([entry]).items())
    except ValueError as error:
        raise ValueError(f"estimators[{index}]={entry!r} is no metric: {error}") from error
