"""Certainty: accuracy against the share of answers, and against the probability that a model gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rplvq.evaluation import AccuracyReject, Reliability
from rplvq.plotting._style import BLUE, GREY, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_accuracy_reject", "plot_reliability"]


def plot_accuracy_reject(
    curve: AccuracyReject, ax: Axes | None = None, *, label: str | None = None, color: str = BLUE
) -> Axes:
    """Draw the accuracy of the answers against the share of samples that are answered.

    Parameters
    ----------
    curve : AccuracyReject
        From :func:`rplvq.evaluation.accuracy_reject_curve`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        Name in the legend; the area under the curve is added.
    color : str, default=BLUE
        Of the line.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rplvq.plotting import plot_accuracy_reject
    >>> from rplvq.evaluation import accuracy_reject_curve
    >>> curve = accuracy_reject_curve([0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.5, 0.7])
    >>> plot_accuracy_reject(curve).get_xlabel()
    'share of samples answered'
    """
    ax = new_axes(ax)
    name = None if label is None else f"{label} (area {curve.area:.3f})"
    coverage, accuracy = np.insert(curve.coverage, 0, 0.0), np.insert(curve.accuracy, 0, curve.accuracy[0])
    ax.plot(coverage, accuracy, color=color, lw=2, label=name)
    ax.set(xlabel="share of samples answered", ylabel="accuracy of the answers", xlim=(0, 1))
    if name is not None:
        ax.legend(frameon=False)
    return tidy(ax)


def plot_reliability(
    found: Reliability, ax: Axes | None = None, *, label: str | None = None, color: str = BLUE
) -> Axes:
    """Draw the share of right predictions against their probability; on the diagonal they agree.

    Parameters
    ----------
    found : Reliability
        From :func:`rplvq.evaluation.reliability`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        Name in the legend; the expected calibration error is added.
    color : str, default=BLUE
        Of the line.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rplvq.evaluation import reliability
    >>> from rplvq.plotting import plot_reliability
    >>> plot_reliability(reliability([0, 1], [[0.9, 0.1], [0.4, 0.6]], [0, 1])).get_ylabel()
    'share of right predictions'
    """
    ax = new_axes(ax)
    name = None if label is None else f"{label} (ECE {found.ece:.3f})"
    ax.plot([0, 1], [0, 1], color=GREY, ls="--", lw=1)
    ax.plot(found.probability, found.accuracy, color=color, lw=2, marker="o", label=name)
    ax.set(xlabel="probability of the predicted class", ylabel="share of right predictions", xlim=(0, 1), ylim=(0, 1))
    if name is not None:
        ax.legend(frameon=False)
    return tidy(ax)
