"""Pictures of comparisons and of training; matplotlib is only imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rplvq.protocols import Array
from rplvq.tables import mean_and_deviation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rplvq.comparison import Comparison

__all__ = ["plot_comparison", "plot_history", "save_comparison"]

# Okabe and Ito's colours, which people with any colour vision tell apart.
BLUE, ORANGE, GREEN, INK, GREY = "#0072B2", "#D55E00", "#009E73", "#222222", "#6B6B6B"

ROW_HEIGHT, FRAME_HEIGHT, WIDTH = 0.55, 1.3, 8.0  # inches

AXIS_LABELS = {
    "accuracy": "accuracy (share of test samples)",
    "balanced_accuracy": "balanced accuracy (mean share over classes)",
    "kappa": "Cohen's kappa (0 chance, 1 perfect)",
}


def _new_figure(width: float, height: float, n_rows: int = 1) -> tuple[Figure, Any]:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('plotting needs matplotlib: pip install "rplvq[plot]"') from error
    return plt.subplots(n_rows, figsize=(width, height), sharex=True, layout="constrained")


def plot_comparison(comparison: Comparison, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the scores of every fold, a row an estimator, the best at the top.

    A dot is a fold, at the same height within each row, so that a fold can be followed from row to row. The
    diamond is the mean, the bar one standard deviation to each side. On the right stand both as numbers, and
    the Holm-corrected Wilcoxon p-value of the difference to the best.

    Parameters
    ----------
    comparison : Comparison
        From :func:`rplvq.compare`.
    metric : str, optional
        One of its metrics; the first by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the metric was not scored.
    ImportError
        If matplotlib is missing.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from rplvq.compare import compare, default_estimators
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=15, random_state=0)
    >>> models = default_estimators(["affine_invariant", "log_euclidean"], max_epochs=1)
    >>> ax = plot_comparison(compare(X, y, models, cv=3, random_state=0))
    >>> ax.get_xlabel()
    'accuracy (share of test samples)'
    """
    metric = comparison.metrics[0] if metric is None else metric
    scores = comparison.of(metric)
    order = np.argsort(-scores.mean(axis=1), kind="stable")
    if ax is None:
        _, ax = _new_figure(WIDTH, FRAME_HEIGHT + ROW_HEIGHT * len(order))
    n_folds = scores.shape[1]
    offsets = np.linspace(-0.22, 0.22, n_folds) if n_folds > 1 else np.zeros(1)
    for row, e in enumerate(order):
        ax.scatter(scores[e], row + offsets, s=22, color=BLUE, alpha=0.55, linewidths=0, zorder=2)
        deviation = scores[e].std(ddof=1) if n_folds > 1 else 0.0
        ax.errorbar(
            scores[e].mean(), row, xerr=deviation, fmt="D", ms=6, color=INK, mec="white", elinewidth=1.5, zorder=3
        )
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_yticks(range(len(order)), [comparison.names[e] for e in order])
    ax.set_xlabel(AXIS_LABELS.get(metric, metric))
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    _write_numbers(ax, comparison, metric, order)
    return ax


def _write_numbers(ax: Axes, comparison: Comparison, metric: str, order: Array) -> None:
    """Write mean, deviation and p-value of each row to the right of the axes."""
    rows, testable = comparison.rows, len(comparison.folds) > 1 and len(order) > 1
    p_values = comparison.p_values(metric) if testable else {}
    best = comparison.names[order[0]]
    key = f"dot: one of {len(comparison.folds)} folds; diamond and bar: mean ± std"
    if testable:
        key += "; p: Wilcoxon against the best, Holm-corrected"
    ax.set_title(key, fontsize="small", color=GREY)
    labels = []
    for e in order:
        name = comparison.names[e]
        text = mean_and_deviation(rows[e], metric, "±", digits=3)
        if testable:
            p = p_values.get((best, name), p_values.get((name, best)))
            text += "   best" if p is None else "   p < 0.001" if p < 0.001 else f"   p = {p:.3f}"
        labels.append(text)
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(len(order)), labels)
    right.tick_params(length=0, colors=INK)
    right.spines["right"].set_visible(False)


def save_comparison(comparison: Comparison, path: str | PathLike[str], metric: str | None = None) -> None:
    """Draw :func:`plot_comparison` into an image file, without a display.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plotting needs matplotlib: pip install "rplvq[plot]"') from error
    figure = Figure(figsize=(WIDTH, FRAME_HEIGHT + ROW_HEIGHT * len(comparison.names)), layout="constrained")
    plot_comparison(comparison, metric, figure.subplots())
    figure.savefig(path, dpi=150)


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
        return np.asarray(_new_figure(7.0, 6.5, n_rows=3)[1])
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
