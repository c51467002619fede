"""The picture of a training run: cost, errors and schedules by epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rplvq.plotting._style import BLUE, GREEN, INK, ORANGE, new_figure
from rplvq.protocols import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_history"]


def plot_history(history: Any, ax: Any = None) -> Array:
    """Draw a training run: the cost, the errors, and the schedules of sigma2 and the step size, by epoch.

    Parameters
    ----------
    history : RiemannianLVQ or mapping of str to array-like of shape (T,)
        A fitted classifier, or its ``history_``: columns epoch, cost, training_error, sigma2 and step_size, and
        validation_cost and validation_error where there are any.
    ax : matplotlib Axes, sequence of three, or None, default=None
        One is divided into three panels; None makes a new figure.

    Returns
    -------
    ndarray of matplotlib Axes of shape (3,)
        Cost, error, schedules, from top to bottom.

    Raises
    ------
    ValueError
        If the history is empty or lacks a column, or ``ax`` is not one Axes of a grid, or three.
    NotFittedError
        If the classifier is not fitted.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=10, random_state=0)
    >>> axes = plot_history(RiemannianLVQ(max_epochs=3, random_state=0).fit(X, y))
    >>> [axis.get_ylabel() for axis in axes]
    ['cost (sum over samples)', 'error (share of samples)', 'schedule']
    """
    columns = _columns(history)
    epochs = columns["epoch"]
    panels = _three_panels(ax)
    cost, error, schedule = panels
    _lines(cost, epochs, columns, {"cost": ("training", BLUE), "validation_cost": ("validation (its own sum)", ORANGE)})
    _lines(error, epochs, columns, {"training_error": ("training", BLUE), "validation_error": ("validation", ORANGE)})
    _lines(schedule, epochs, columns, {"sigma2": ("sigma2", INK), "step_size": ("step size", GREEN)})
    cost.set_ylabel("cost (sum over samples)")
    error.set_ylabel("error (share of samples)")
    error.set_ylim(bottom=0)
    schedule.set_ylabel("schedule")
    schedule.set_yscale("log")
    schedule.set_xlabel("epoch")
    return panels


def _columns(history: Any) -> dict[str, Array]:
    if not isinstance(history, Mapping):
        check_is_fitted(history, "history_")
        history = history.history_
    columns = {str(name): np.asarray(values) for name, values in history.items()}
    if not columns or not len(next(iter(columns.values()))):
        raise ValueError("history is empty: no epoch was trained")
    missing = [name for name in ("epoch", "cost", "training_error", "sigma2", "step_size") if name not in columns]
    if missing:
        raise ValueError(f"history lacks the column {missing[0]!r}; it has {sorted(columns)}")
    return columns


def _three_panels(ax: Any) -> Array:
    if ax is None:
        return np.asarray(new_figure(7.0, 6.5, n_rows=3)[1])
    if hasattr(ax, "__len__"):
        if len(ax) != 3:
            raise ValueError(f"ax must be one Axes or three, got {len(ax)}")
        return np.asarray(ax)
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError("ax must belong to a grid of subplots to be divided; or pass three Axes")
    ax.set_axis_off()
    grid = spec.subgridspec(3, 1)
    top = ax.figure.add_subplot(grid[0])
    panels = np.array([top, *(ax.figure.add_subplot(grid[row], sharex=top) for row in (1, 2))])
    for panel in panels[:2]:
        panel.tick_params(axis="x", labelbottom=False)
    return panels


def _lines(ax: Axes, epochs: Array, columns: Mapping[str, Array], wanted: Mapping[str, tuple[str, str]]) -> None:
    drawn = [(columns[name], label, color) for name, (label, color) in wanted.items() if name in columns]
    marker = "o" if len(epochs) == 1 else None
    for values, label, color in drawn:
        ax.plot(epochs, values, color=color, marker=marker, label=label, lw=1.8)
    ax.legend(frameon=False)
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params(axis="x", integer=True)
