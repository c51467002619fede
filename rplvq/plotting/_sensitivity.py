"""How much the choice of sigma2 matters: accuracy in cross-validation against its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import validation_curve

from rplvq.plotting._style import BLUE, GREY, ORANGE, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_sigma2"]


def plot_sigma2(
    estimator: Any,
    X: Any,
    y: Any,
    values: Any = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    ax: Axes | None = None,
    *,
    cv: Any = 5,
    param_name: str = "sigma2",
    scoring: Any = "accuracy",
    baseline: bool = True,
    n_jobs: int | None = None,
) -> Axes:
    """Draw training and test scores of a cross-validation against sigma2, mean and one standard deviation.

    Parameters
    ----------
    estimator : RiemannianLVQ, or a pipeline that holds one
        Not changed.
    X : array-like of shape (N, n, n)
        Samples.
    y : array-like of shape (N,)
        Labels.
    values : array-like of shape (V,), default=(0.1, 0.3, 1, 3, 10, 30)
        Values of sigma2, in squared distances, increasing.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    cv : int or splitter, default=5
        As in scikit-learn; all values meet the same folds if it is a number or seeded.
    param_name : str, default="sigma2"
        Where sigma2 is in a pipeline: "riemannianlvq__sigma2", for one. "sigma2__start" varies the start of a
        schedule.
    scoring : str or callable, default="accuracy"
        As in scikit-learn.
    baseline : bool, default=True
        Whether to draw the score before training (``max_epochs=0``), which does not depend on sigma2.
    n_jobs : int or None, default=None
        Processes.

    Returns
    -------
    matplotlib Axes
        With the lines "training", "test" and, if wanted, "before training".

    Raises
    ------
    ValueError
        If a value is not positive, or the estimator raises it.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.plotting import plot_sigma2
    >>> X, y = make_syn1(n_per_class=10, random_state=0)
    >>> ax = plot_sigma2(RiemannianLVQ(max_epochs=2, random_state=0), X, y, [1.0, 8.0], cv=2)
    >>> [line.get_label() for line in ax.lines]
    ['training', 'test', 'before training (test)']
    """
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or not len(numbers) or not (numbers > 0).all():
        raise ValueError(f"values must be positive numbers of shape (V,), got {values!r}")
    ax = new_axes(ax)
    common = {"cv": cv, "scoring": scoring, "n_jobs": n_jobs, "error_score": "raise"}
    found = validation_curve(estimator, X, y, param_name=param_name, param_range=numbers.tolist(), **common)
    for scores, color, label in zip(found, (BLUE, ORANGE), ("training", "test"), strict=True):
        mean, deviation = scores.mean(axis=1), scores.std(axis=1, ddof=1)
        ax.plot(numbers, mean, "o-", color=color, ms=4, label=label)
        ax.fill_between(numbers, mean - deviation, mean + deviation, color=color, alpha=0.15, linewidth=0)
    if baseline:
        epochs = "__".join([*param_name.split("__")[: _depth(estimator, param_name)], "max_epochs"])
        _, before = validation_curve(clone(estimator), X, y, param_name=epochs, param_range=[0], **common)
        ax.axhline(before.mean(), color=GREY, ls="--", lw=1.2, label="before training (test)")
    ax.set_xscale("log")
    ax.set_xlabel("sigma2 (squared distance)")
    ax.set_ylabel(scoring if isinstance(scoring, str) else "score")
    ax.legend(frameon=False)
    return tidy(ax)


def _depth(estimator: Any, param_name: str) -> int:
    """How many steps of ``param_name`` lead to the estimator that has max_epochs."""
    parts, known = param_name.split("__"), estimator.get_params()
    for depth in range(len(parts)):
        if "__".join([*parts[:depth], "max_epochs"]) in known:
            return depth
    raise ValueError(f"no max_epochs beside {param_name!r}: pass baseline=False for this estimator")
