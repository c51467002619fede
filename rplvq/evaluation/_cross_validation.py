"""One cross-validation: the arguments of :func:`rplvq.evaluation.compare`, and one estimator in one fold."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import has_fit_parameter

from rplvq.arrays import as_rows, check_soft_labels, hard_targets, one_type, single_blas_thread, take_rows
from rplvq.evaluation._candidates import short_name
from rplvq.exceptions import PointError, interrupts_raised
from rplvq.parts import require_count
from rplvq.protocols import Array, ArrayLike

MAX_SEED = 2**31 - 1
METHODS = ("fit", "predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score")

Fold = tuple[Array, Array]
Scorer = Callable[..., float]
Scoring = str | Scorer | Iterable[str | Scorer] | Mapping[str, str | Scorer]


def resolve_scorers(scoring: Scoring) -> dict[str, Scorer]:
    """Turn names of scorers and callables into a mapping from names to scorers."""
    if isinstance(scoring, Mapping):
        pairs = list(scoring.items())
    else:
        parts = [scoring] if isinstance(scoring, str) or callable(scoring) else list(scoring)
        pairs = [(getattr(part, "__name__", short_name(part)), part) for part in parts]
    if not pairs:
        raise ValueError("scoring is empty: give at least one scorer")
    scorers = {name: _scorer(part) for name, part in pairs}
    if len(scorers) < len(pairs):
        raise ValueError(f"scoring has the same name twice: {[name for name, _ in pairs]}")
    return scorers


def _scorer(part: object) -> Scorer:
    # sklearn.metrics and sklearn.model_selection are imported where they are used, to keep the import of rplvq short.
    from sklearn.dummy import DummyClassifier
    from sklearn.metrics import check_scoring, cohen_kappa_score, get_scorer, make_scorer

    if part == "kappa":
        return make_scorer(cohen_kappa_score)  # type: ignore[no-any-return]
    if isinstance(part, str):
        try:
            return get_scorer(part)  # type: ignore[no-any-return]
        except ValueError as error:
            raise ValueError(f"scoring={part!r} is neither 'kappa' nor a scorer of scikit-learn") from error
    if not callable(part):
        raise ValueError(f"scoring={part!r} is neither a name nor a callable")
    return check_scoring(DummyClassifier(), scoring=part)  # type: ignore[no-any-return]


def check_data(X: Any, y: ArrayLike) -> tuple[Any, Array, Array]:
    """Return X that can be indexed, y (N,) or (N, C), and hard labels (N,) by which folds are stratified and scored."""
    X = as_rows(X)
    y = one_type(y, "y")
    if y.ndim not in (1, 2) or X.ndim == 0:
        raise ValueError(f"y must have shape (N,) or (N, C) and X shape (N, ...), got {y.shape} and {X.shape}")
    if X.shape[0] != len(y):  # sparse matrices have no len
        raise ValueError(f"y has {len(y)} labels for {X.shape[0]} samples of X")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.dtype.kind == "S":
        y = np.strings.decode(y, "latin-1")  # scikit-learn's folds and scorers take no bytes
    return X, y, hard_targets(check_soft_labels(y)[1]) if y.ndim == 2 else y


def resolve_folds(
    cv: Any, repeats: int, X: Any, y: Array, groups: Array | None, rng: np.random.RandomState
) -> tuple[list[Fold], str]:
    """Turn a number, a splitter or an iterable of splits into pairs of row indices (training, test), and name them."""
    require_count("repeats", repeats, 1)
    if isinstance(cv, (int, np.integer)):
        splitters = _stratified(int(cv), repeats, groups, rng)
        together = "" if groups is None else f", with the samples of each of {len(np.unique(groups))} groups together"
        again = "" if repeats == 1 else f", in {repeats} repetitions"
        named = f"{cv} folds stratified by class{together}{again}"
    elif not (hasattr(cv, "split") or hasattr(cv, "__iter__")) or isinstance(cv, str):
        raise ValueError(f"cv must be a number of folds, a splitter or an iterable of splits, got {cv!r}")
    elif repeats > 1:
        raise ValueError(f"repeats={repeats} needs a number of folds as cv; give the repetitions in cv={cv!r}")
    else:
        from sklearn.model_selection import check_cv

        splitters = [check_cv(cv)]
        named = " ".join(repr(cv).split()) if hasattr(cv, "split") else "splits that were given as rows"
    folds = [(_rows(a), _rows(b)) for splitter in splitters for a, b in splitter.split(X, y, groups)]
    for number, (train, test) in enumerate(folds):
        if not len(train) or not len(test):
            raise ValueError(f"cv gives {len(train)} training and {len(test)} test samples in fold {number}")
    if not folds:
        raise ValueError("cv gives no fold")
    return folds, named


def _stratified(cv: int, repeats: int, groups: Array | None, rng: np.random.RandomState) -> list[Any]:
    if isinstance(cv, bool) or cv < 2:
        raise ValueError(f"cv must be at least 2 folds, a splitter or an iterable of splits, got {cv!r}")
    if groups is not None and (count := len(np.unique(groups))) < cv:
        raise ValueError(f"cv={cv} folds need as many groups, but groups has {count}: lower cv")
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    return [kind(cv, shuffle=True, random_state=rng.randint(MAX_SEED)) for _ in range(repeats)]


def _rows(part: ArrayLike) -> Array:
    rows = np.asarray(part)
    return np.flatnonzero(rows) if rows.dtype == bool else rows  # scikit-learn allows masks, too


@contextmanager
def _errors_named(name: str, fold: int, rows: Array) -> Iterator[None]:
    """Add the names of the estimator and the fold to errors, and the row of an invalid sample in the whole data."""
    try:
        yield
    except Exception as error:
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        if isinstance(error, PointError) and error.name == "X":
            what += f" (X[{error.index}] of this part of the fold is X[{rows[error.index]}] of the data)"
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        raise kind(f"estimator {name!r} failed in fold {fold}: {what}") from error


def run_fold(
    name: str, estimator: BaseEstimator, data: tuple[Any, Array, Array, Array | None], number: int, fold: Fold,
    seed: int | None, scorers: dict[str, Scorer],
) -> list[float]:  # fmt: skip
    """Fit a clone in one fold; return its scores, its seconds, and sigma2 and whether it trained, or NaN.

    The data are X, the labels to train on, the hard labels (N,) to be scored by, and groups or None. A seed replaces
    every ``random_state``.
    """
    from sklearn.metrics import check_scoring

    X, y, hard, groups = data
    train, test = fold
    # Threads inside BLAS do not speed up small matrices, and they compete with the other processes for the cores.
    with single_blas_thread(), _errors_named(name, number, train):
        model = clone(estimator)
        if seed is not None:
            params = [key for key in model.get_params() if key.rpartition("__")[2] == "random_state"]
            model.set_params(**dict.fromkeys(params, seed))
        X_train = take_rows(X, train)
        y_train = y[train]
        metadata = _for_fit(model, groups, train)
        began = time.perf_counter()
        with interrupts_raised():
            model.fit(X_train, y_train, **metadata)
        fit_seconds = time.perf_counter() - began
    with single_blas_thread(), _errors_named(name, number, test):
        X_test = take_rows(X, test)
        for key, metadata in _requested(model, groups, test).items():
            if metadata and (method := getattr(model, key, None)):  # scorers pass no metadata to the methods they call
                setattr(model, key, update_wrapper(partial(method, **metadata), method))
        began = time.perf_counter()
        model.predict(X_test)
        predict_seconds = time.perf_counter() - began
        # One scorer for all metrics computes the predictions once.
        scores = check_scoring(model, scoring=scorers)(model, X_test, hard[test])
        sigma2 = float(model.sigma2_) if hasattr(model, "sigma2_") else np.nan
        choice = getattr(model, "choice_", None)
        trained = np.nan if choice is None else float(choice.trains)
        return [*(float(scores[metric]) for metric in scorers), fit_seconds, predict_seconds, sigma2, trained]


def _for_fit(model: BaseEstimator, groups: Array | None, rows: Array) -> Bunch | dict[str, Array]:
    """Return the groups of the samples for ``fit``, if it asks for them; one group alone says nothing.

    Without metadata routing, a method asks by a parameter named ``groups``.
    """
    if get_config()["enable_metadata_routing"]:
        return _requested(model, groups, rows).get("fit", {})
    if groups is None or len(np.unique(groups[rows])) == 1 or not has_fit_parameter(model, "groups"):
        return {}
    return {"groups": groups[rows]}


def _requested(model: BaseEstimator, groups: Array | None, rows: Array) -> Bunch | dict[str, dict[str, Array]]:
    """Return the groups of some rows for each method of a model that requests them in metadata routing."""
    if groups is None or not get_config()["enable_metadata_routing"]:
        return {}
    mapping = MethodMapping()
    for method in METHODS:
        mapping.add(caller="fit", callee=method)
    router = MetadataRouter(owner="compare").add(estimator=model, method_mapping=mapping)
    return router.route_params(params={"groups": groups[rows]}, caller="fit")["estimator"]
