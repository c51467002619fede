"""The function ``compare``, which scores classifiers on the same folds, and the facts of such a run."""

import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from rplvq.arrays import check_groups, single_blas_thread
from rplvq.evaluation import _cross_validation
from rplvq.evaluation._candidates import default_estimators, named_estimators
from rplvq.evaluation._comparison import Comparison
from rplvq.evaluation._questions import find_questions
from rplvq.evaluation._significance import TestName, check_test
from rplvq.manifolds import MetricName
from rplvq.parts import library_version
from rplvq.protocols import AnyManifold, Array, ArrayLike

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
MOST_CLASSES = 30  # whose sizes are listed one by one


def compare(
    X: Any,
    y: ArrayLike,
    estimators: Mapping[str, BaseEstimator] | Sequence[BaseEstimator | MetricName | str | AnyManifold] | None = None,
    *,
    metrics: Iterable[MetricName | str | AnyManifold] | None = None,
    cv: Any = 10,
    repeats: int = 1,
    scoring: _cross_validation.Scoring = ("accuracy", "kappa"),
    groups: ArrayLike | None = None,
    test: TestName = "corrected_t",
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: int | np.random.RandomState | None = None,
) -> Comparison:
    """Score classifiers by cross-validation, all on the same folds.

    The result prints as a report that ends with its conclusions, and :func:`rplvq.plotting.plot_comparison` draws it.
    ValueError is raised if an argument is invalid, or if an estimator raises ValueError; the message then begins with
    its name and the fold. Any other error of an estimator becomes the cause of a RuntimeError.

    Parameters
    ----------
    X : array-like of shape (N, n, n), or (N, ...) as the estimators take it
        Samples; a data frame or a sparse matrix is passed on as it is.
    y : array-like of shape (N,) or (N, C)
        Labels, or soft labels, by whose most probable class folds are stratified and scored.
    estimators : mapping of str to estimator, sequence of estimators and metrics, or None, default=None
        Any scikit-learn classifiers or pipelines; they are cloned. In a sequence they are named after their class, with
        a number where that is ambiguous, and a metric, such as "riemann" or a manifold, stands for the trained
        classifier and the class means under this metric. None uses :func:`default_estimators`.
    metrics : iterable of str or Manifold, optional
        Metrics for :func:`default_estimators`, in place of ``estimators``.
    cv : int, splitter or iterable of (train, test), default=10
        Number of folds, stratified by class, shuffled, and separated by any ``groups``; a splitter; or row indices.
    repeats : int, default=1
        Number of times that the samples are divided into ``cv`` folds, each time anew.
    scoring : str, callable, sequence of these, or mapping of str to these, default=("accuracy", "kappa")
        Names of scikit-learn's scorers, "kappa" for Cohen's kappa, or callables ``(estimator, X, y) -> float``.
    groups : array-like of shape (N,), optional
        Subjects or sessions that must not be split. They are passed to the splitter, and to each ``fit`` that has a
        parameter of this name, if its samples are of several groups. With scikit-learn's metadata routing, they are
        passed to the methods that request them instead, also within pipelines.
    test : {"corrected_t", "wilcoxon"}, default="corrected_t"
        The test of the differences, see :meth:`Comparison.p_values`.
    n_jobs : int or None, default=None
        Number of processes over folds and estimators, as in joblib; -1 uses all cores. Processes share the cores, so
        compare seconds (of wall time, with one thread of BLAS) with ``n_jobs=1``.
    verbose : int, default=0
        1 shows a progress bar on standard error.
    random_state : int, RandomState or None, default=None
        Seed of the folds, if ``cv`` is a number, and of one further seed per fold, which replaces every
        ``random_state`` of the estimators and their parts, so that the result depends neither on n_jobs nor on their
        order. With None the estimators keep their own.

    Examples
    --------
    >>> from rplvq.evaluation import compare
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=15, random_state=0)
    >>> result = compare(X, y, ["riemann", "logeuclid"], cv=3, random_state=0)
    >>> result.names, result.scores.shape  # estimators, metrics, folds
    (('riemann rslvq', 'riemann MDM', 'logeuclid rslvq', 'logeuclid MDM'), (4, 2, 3))
    """
    if metrics is not None and estimators is not None:
        raise ValueError("pass either estimators or metrics: metrics are those of the default estimators")
    if estimators is None:
        estimators = default_estimators() if metrics is None else default_estimators(metrics)
    named = named_estimators(estimators)
    check_test(test)
    questions = find_questions(named)
    scorers = _cross_validation.resolve_scorers(scoring)
    X, y, hard = _cross_validation.check_data(X, y)
    rng = check_random_state(random_state)
    groups = None if groups is None else check_groups(groups, len(y))
    folds, named_folds = _cross_validation.resolve_folds(cv, repeats, X, hard, groups, rng)
    # One seed per fold, so that a fold's estimators draw the same numbers whatever the order of the calls.
    seeds = [None] * len(folds)
    if random_state is not None:
        seeds = rng.randint(_cross_validation.MAX_SEED, size=len(folds)).tolist()
    calls = (
        delayed(_cross_validation.run_fold)(name, estimator, (X, y, hard, groups), f, folds[f], seeds[f], scorers)
        for f in range(len(folds))
        for name, estimator in named.items()
    )
    sizes = [(len(train), len(test)) for train, test in folds]
    progress = {"total": len(folds) * len(named), "disable": not verbose, "unit": "fit", "desc": "compare"}
    from tqdm.auto import tqdm

    # The results come in the order of the calls, whatever the number of processes.
    with single_blas_thread():
        cells = Parallel(n_jobs=n_jobs)(tqdm(calls, leave=False, **progress))
    table = np.array([cells[e :: len(named)] for e in range(len(named))])  # estimators, folds, metrics and the rest
    call = f"rplvq.compare(X, y, ..., cv={' '.join(repr(cv).split())}, repeats={repeats}, random_state={random_state})"
    return Comparison(
        list(named),
        list(scorers),
        sizes,
        table[..., :-4].swapaxes(1, 2),
        table[..., -4],
        table[..., -3],
        sigma2=table[..., -2],
        trained=table[..., -1],
        settings=[" ".join(repr(estimator).split()) for estimator in named.values()],
        questions=questions,
        about=describe_run(X, hard, sizes, named_folds, random_state, call),
        test=test,
    )


def describe_run(
    X: Any, y: Array, folds: Sequence[tuple[int, int]], named_folds: str, seed: object, call: str
) -> dict[str, str]:
    """Return the facts of a comparison as they are printed; ``folds`` are numbers of training and test samples."""
    classes, counts = np.unique(y, return_counts=True)
    each = f"of {_range(counts.tolist())} samples"
    if len(classes) <= MOST_CLASSES:
        each = ", ".join(f"{label}: {count}" for label, count in zip(classes.tolist(), counts.tolist(), strict=True))
    sizes = [_range(values) for values in zip(*folds, strict=True)]
    return {
        "samples": f"{len(y)} of shape {tuple(X.shape[1:])}",
        "classes": f"{len(classes)} ({each})",
        "chance": f"accuracy {counts.max() / len(y):.4f} (every sample is given the largest class), kappa 0",
        "splits": f"{named_folds}; {sizes[0]} training and {sizes[1]} test samples",
        "seed": str(seed),
        "versions": versions(),
        "command": call,
    }


def _range(values: Sequence[int]) -> str:
    low = min(values)
    high = max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def versions() -> str:
    """Return the versions of rplvq, Python and the libraries that may change a result."""
    numbers = {"rplvq": library_version(), "Python": platform.python_version()}
    for name in (*LIBRARIES, *({"pyriemann"} & sys.modules.keys())):
        numbers[name] = "not installed"
        if sys.modules.get(name, sys) is not None:  # None forbids the import
            with suppress(PackageNotFoundError):
                numbers[name] = version(name)
    return ", ".join(f"{name} {number}" for name, number in numbers.items())
