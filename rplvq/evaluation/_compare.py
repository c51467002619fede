"""The function ``compare``, which scores classifiers on the same folds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from tqdm.auto import tqdm

from rplvq.arrays import check_groups
from rplvq.estimators import RiemannianLVQ
from rplvq.evaluation import _cross_validation
from rplvq.evaluation._comparison import Comparison

METRICS = ("affine_invariant", "log_euclidean", "euclidean")


def default_estimators(
    metrics: Iterable[Any] = METRICS,
    costs: Iterable[Any] = ("rslvq",),
    *,
    prototypes_per_class: Any = 1,
    max_epochs: int = 20,
    sigma2: Any = "auto",
    random_state: Any = None,
) -> dict[str, Any]:
    """Return the classifiers that :func:`compare` takes by default: each metric with each cost, and a baseline.

    Parameters
    ----------
    metrics : iterable of str or Manifold, default=("affine_invariant", "log_euclidean", "euclidean")
        Metrics, as the parameter ``manifold`` of :class:`rplvq.RiemannianLVQ`.
    costs : iterable of str or Cost, default=("rslvq",)
        Costs, as its parameter ``cost``.
    prototypes_per_class : int or dict, default=1
        Number of prototypes per class of the trained classifiers; a baseline has one per class.
    max_epochs : int, default=20
        Number of sweeps of the trained classifiers; the paper chooses among 20, 50 and 100.
    sigma2 : float, Schedule or "auto", default="auto"
        Variance of all trained classifiers. A number seldom suits all, because squared distances differ between
        metrics.
    random_state : int, RandomState or None, default=None
        Seed of each estimator.

    Returns
    -------
    dict of str to RiemannianLVQ
        Unfitted estimators: ``"<metric> <cost>"`` for each cost, then ``"<metric> MDM"``, which classifies by the
        minimum distance to the class means, without training.

    Examples
    --------
    >>> from rplvq.evaluation import default_estimators
    >>> list(default_estimators(["affine_invariant", "euclidean"]))
    ['affine_invariant rslvq', 'affine_invariant MDM', 'euclidean rslvq', 'euclidean MDM']
    """
    costs, named = list(costs), []
    trained: Any = {"sigma2": sigma2, "prototypes_per_class": prototypes_per_class, "max_epochs": max_epochs}
    for metric in metrics:
        for cost in costs:
            model = RiemannianLVQ(metric, cost, random_state=random_state, **trained)
            named.append((f"{_cross_validation.short_name(metric)} {_cross_validation.short_name(cost)}", model))
        named.append(
            (
                f"{_cross_validation.short_name(metric)} MDM",
                RiemannianLVQ(metric, max_epochs=0, random_state=random_state),
            )
        )
    return _cross_validation.unique_names(named)


def compare(
    X: Any,
    y: Any,
    estimators: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    cv: Any = 10,
    scoring: Any = ("accuracy", "kappa"),
    groups: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: Any = None,
) -> Comparison:
    """Score classifiers by cross-validation, all on the same folds.

    Parameters
    ----------
    X : array-like of shape (N, n, n), or (N, ...) as the estimators take it
        Samples; a data frame or a sparse matrix is passed on as it is.
    y : array-like of shape (N,) or (N, C)
        Labels, or soft labels. Estimators are trained on them; folds are stratified and scored by the most probable
        class.
    estimators : mapping of str to estimator, sequence of estimators, or None, default=None
        Any scikit-learn classifiers or pipelines; they are cloned. In a sequence they are named after their class, with
        a number where that is ambiguous. None uses :func:`default_estimators`.
    cv : int, splitter or iterable of (train, test), default=10
        A number of folds, stratified by class and shuffled, and separated by ``groups`` if given; a splitter as in
        scikit-learn; or row indices. With fewer than six folds, Wilcoxon's p cannot be below 0.05. The 15 pairs of the
        default estimators need ten folds because of Holm's correction.
    scoring : str, callable, sequence of these, or mapping of str to these, default=("accuracy", "kappa")
        Names of scikit-learn's scorers, "kappa" for Cohen's kappa, or callables ``(estimator, X, y) -> float``.
    groups : array-like of shape (N,), optional
        Subjects or sessions that must not be split, passed to the splitter, and to the methods of the estimators that
        request them in scikit-learn's metadata routing.
    n_jobs : int or None, default=None
        Number of processes over folds and estimators, as in joblib; -1 uses all cores.
    verbose : int, default=0
        1 shows a progress bar on standard error.
    random_state : int, RandomState or None, default=None
        Seed of the folds, if ``cv`` is a number, and of one further seed per fold, which replaces every
        ``random_state`` of the estimators and their parts. The result then depends neither on n_jobs nor on the order
        of the estimators. With None the estimators keep their own.

    Returns
    -------
    Comparison
        It prints as a table, and has ``rows``, ``p_values()``, ``to_frame()``, ``to_csv()`` and ``to_markdown()``;
        :func:`rplvq.plotting.plot_comparison` draws it.

    Raises
    ------
    ValueError
        If an argument is invalid, or if an estimator raises ValueError; the message then begins with its name and the
        fold.
    RuntimeError
        If an estimator raises any other error, which is attached as the cause.

    Notes
    -----
    Seconds are the wall time of ``fit`` on the training part and of one ``predict`` on the test part. With ``n_jobs``
    above 1 the processes share cores, caches and memory, so compare seconds with ``n_jobs=1``.

    Folds share training data, so tests of the differences are optimistic, see :meth:`Comparison.p_values`.

    Examples
    --------
    >>> from rplvq.evaluation import compare, default_estimators
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=15, random_state=0)
    >>> models = default_estimators(["affine_invariant", "log_euclidean"], max_epochs=2)
    >>> result = compare(X, y, models, cv=3, random_state=0)
    >>> result.names
    ('affine_invariant rslvq', 'affine_invariant MDM', 'log_euclidean rslvq', 'log_euclidean MDM')
    >>> result.scores.shape  # estimators, metrics, folds
    (4, 2, 3)
    """
    named = default_estimators() if estimators is None else _cross_validation.named_estimators(estimators)
    scorers = _cross_validation.resolve_scorers(scoring)
    X, y, hard = _cross_validation.check_data(X, y)
    rng = check_random_state(random_state)
    groups = None if groups is None else check_groups(groups, len(y))
    folds = _cross_validation.resolve_folds(cv, X, hard, groups, rng)
    seeds = [None] * len(folds)
    if random_state is not None:
        seeds = rng.randint(_cross_validation.MAX_SEED, size=len(folds)).tolist()
    calls = (
        delayed(_cross_validation.run_fold)(name, estimator, (X, y, hard, groups), f, folds[f], seeds[f], scorers)
        for f in range(len(folds))
        for name, estimator in named.items()
    )
    # The results come in the order of the calls, whatever the number of processes.
    progress = tqdm(calls, total=len(folds) * len(named), disable=not verbose, unit="fit", leave=False)
    cells = Parallel(n_jobs=n_jobs)(progress)
    table = np.array([cells[e :: len(named)] for e in range(len(named))])  # estimators, folds, metrics and seconds
    sizes = [(len(train), len(test)) for train, test in folds]
    return Comparison(list(named), list(scorers), sizes, table[..., :-2].swapaxes(1, 2), table[..., -2], table[..., -1])
