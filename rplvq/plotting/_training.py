"""Pictures of training: one run by epoch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rplvq.plotting._style import BLUE, GREEN, GREY, INK, ORANGE, Axes, new_axes, tidy
from rplvq.protocols import Array, ArrayLike
from rplvq.selection import Choice


def plot_history(history: BaseEstimator | Mapping[str, ArrayLike], ax: Axes | Sequence[Axes] | None = None) -> Array:
    """Draw a training run: the cost, the errors, and the schedules of sigma2 and the step size, per epoch.

    After a fit that chose not to train, two panels show the held-out loss and error of each candidate of ``choice_``.

    Parameters
    ----------
    history : RiemannianLVQ or mapping of str to array-like of shape (T,)
        A fitted classifier, or its ``history_`` with the columns epoch, cost, training_error, sigma2 and step_size, and
        perhaps validation_cost and validation_error.
    ax : matplotlib Axes, sequence of three, or None, default=None
        One Axes is divided into three panels. All three are returned in an array, from top to bottom.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> model = RiemannianLVQ("euclidean_vectors", sigma2=0.5, max_epochs=3).fit([[0.0], [1.0]], ["no", "yes"])
    >>> [axis.get_ylabel() for axis in plot_history(model)]
    ['cost (sum over samples)', 'error (share of samples)', 'schedule']
    """
    columns = _columns(history)
    panels = _three_panels(ax)
    cost, error, schedule = panels
    choice = None if isinstance(history, Mapping) else history.choice_
    if choice is not None and choice.tried and not choice.trains:
        _draw_choice(choice, panels)
        return panels
    _lines(cost, columns, {"cost": ("training", BLUE), "validation_cost": ("validation (its own sum)", ORANGE)})
    _lines(error, columns, {"training_error": ("training", BLUE), "validation_error": ("validation", ORANGE)})
    _lines(schedule, columns, {"sigma2": ("sigma2", INK), "step_size": ("step size", GREEN)})
    cost.set_ylabel("cost (sum over samples)")
    error.set(ylabel="error (share of samples)", ylim=(0, None))
    schedule.set(ylabel="schedule", yscale="log", xlabel="epoch")
    return panels


def _columns(history: BaseEstimator | Mapping[str, ArrayLike]) -> dict[str, Array]:
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


def _draw_choice(choice: Choice, panels: Array) -> None:
    """Draw the candidates of a choice without training: held-out losses with standard errors, and held-out errors."""
    loss, error, note = panels
    tried = [one for one in choice.tried if np.isfinite(one.loss)]  # infinite if it was not possible
    names = [one.name for one in tried]
    colors = [GREEN if one.name == choice.chosen else GREY for one in tried]
    # The bar is the standard error of the difference to the chosen candidate, on the folds that both have.
    loss.bar(names, [one.loss for one in tried], color=colors, yerr=[one.standard_error for one in tried])
    error.bar(names, [one.error for one in tried], color=colors)
    error.tick_params(axis="x", labelbottom=True)
    loss.set_ylabel("held-out loss")
    error.set(ylabel="held-out error", ylim=(0, None))
    note.set_axis_off()
    note.text(0.5, 0.5, f"no epoch was trained: chose {choice.chosen!r}", ha="center", transform=note.transAxes)
    for panel in (loss, error):
        tidy(panel, legend=False)


def _three_panels(ax: Any) -> Array:
    if ax is None:
        return np.asarray(new_axes(None, 7.0, 6.5, n_rows=3))
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


def _lines(ax: Axes, columns: Mapping[str, Array], wanted: Mapping[str, tuple[str, str]]) -> None:
    marker = "o" if len(columns["epoch"]) == 1 else None
    for name in [name for name in wanted if name in columns]:
        label, color = wanted[name]
        ax.plot(columns["epoch"], columns[name], color=color, marker=marker, label=label, lw=1.8)
    tidy(ax).locator_params(axis="x", integer=True)
