"""Pictures of evaluations: comparisons, and the certainty of predictions."""

import io
import textwrap
from os import PathLike
from pathlib import PurePath

import numpy as np

from rplvq.evaluation import Comparison, mean_and_deviation, p_text
from rplvq.inspection import AccuracyReject
from rplvq.io import replace_file, require_writable
from rplvq.plotting._style import BLUE, GREY, INK, Axes, new_axes, part_of_matplotlib, tidy
from rplvq.protocols import Array

ROW_HEIGHT = 0.55  # inches, as the next three
FRAME_HEIGHT = 1.3
LINE_HEIGHT = 0.13
WIDTH = 8.0
LINE_LENGTH = 170  # characters of the smallest text in a line
TESTS = {"corrected_t": "corrected resampled t-test", "wilcoxon": "Wilcoxon's test"}

AXIS_LABELS = {
    "accuracy": "accuracy (share of test samples)",
    "balanced_accuracy": "balanced accuracy (mean share over classes)",
    "kappa": "Cohen's kappa (0 chance, 1 perfect)",
}


def plot_comparison(comparison: Comparison, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the scores of all folds, one row per estimator, with the best one at the top.

    A dot is a fold. Each fold has the same height within all rows, so that it can be followed from row to row. The
    diamond is the mean, and the bar one standard deviation to each side. On the right are both as numbers, and the
    p-value of the difference to the best, by the test of the comparison with Holm's correction, if it tests this pair.

    Parameters
    ----------
    comparison, metric : Comparison, and str, optional
        From :func:`rplvq.evaluation.compare`, and one of its metrics; the first by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from rplvq.evaluation import Comparison
    >>> seconds, scores = np.ones((2, 3)), [[[0.9, 0.8, 1.0]], [[0.7, 0.7, 0.85]]]
    >>> result = Comparison(["a", "b"], ["accuracy"], [(20, 10)] * 3, scores, seconds, seconds)
    >>> plot_comparison(result).get_xlabel()
    'accuracy (share of test samples)'
    """
    metric = comparison.metrics[0] if metric is None else metric
    scores = comparison.of(metric)
    order = np.argsort(-scores.mean(axis=1), kind="stable")
    ax = new_axes(ax, WIDTH, FRAME_HEIGHT + ROW_HEIGHT * len(order))
    n_folds = scores.shape[1]
    # A fold has the same height in each row, so that the eye can follow it.
    offsets = np.linspace(-0.22, 0.22, n_folds) if n_folds > 1 else np.zeros(1)
    for row, e in enumerate(order):
        ax.scatter(scores[e], row + offsets, s=22, color=BLUE, alpha=0.55, linewidths=0, zorder=2)
        mean = scores[e].mean()
        deviation = scores[e].std(ddof=1) if n_folds > 1 else 0.0
        ax.errorbar(mean, row, xerr=deviation, fmt="D", ms=6, color=INK, mec="white", elinewidth=1.5, zorder=3)
    ax.set_yticks(range(len(order)), [comparison.names[e] for e in order])
    ax.set(xlabel=AXIS_LABELS.get(metric, metric), ylim=(len(order) - 0.5, -0.5), axisbelow=True)
    ax.grid(axis="x", color="0.9")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    _write_numbers(ax, comparison, metric, order)
    return ax


def _write_numbers(ax: Axes, comparison: Comparison, metric: str, order: Array) -> None:
    """Write mean, deviation and p-value of each row to the right of the axes."""
    rows = comparison.rows
    best = comparison.names[order[0]]
    notes: dict[str, str] = {}
    title = f"dot: one of {len(comparison.folds)} folds; diamond and bar: mean ± std"
    if len(comparison.folds) > 1 and len(order) > 1:
        title += f"; p: {TESTS[comparison.test]} against the best, Holm-corrected"
        for pair, p in comparison.p_values(metric).items():
            notes |= {name: f"   {p_text(p, 'p')}" for name in pair if best in pair}
        notes[best] = "   best"
    ax.set_title(title, fontsize="small", color=GREY)
    labels = [mean_and_deviation(rows[e], metric, "±", 3) + notes.get(comparison.names[e], "") for e in order]
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(len(order)), labels)
    right.tick_params(length=0, colors=INK)
    right.spines["right"].set_visible(False)


def save_comparison(comparison: Comparison, path: str | PathLike[str], metric: str | None = None) -> None:
    """Write the picture of :func:`plot_comparison` to an image file, with facts and conclusions below it.

    Parameters
    ----------
    comparison, metric
        As for :func:`plot_comparison`.
    path : path-like
        File to write; its suffix determines the format, such as .png, .svg or .pdf. No display is needed.

    Examples
    --------
    >>> import os, tempfile
    >>> from rplvq.evaluation import Comparison
    >>> seconds, scores = np.ones((2, 3)), [[[0.9, 0.8, 1.0]], [[0.7, 0.7, 0.85]]]
    >>> result = Comparison(["a", "b"], ["accuracy"], [(20, 10)] * 3, scores, seconds, seconds)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_comparison(result, os.path.join(folder, "picture.png"))
    ...     os.listdir(folder)
    ['picture.png']
    """
    module = part_of_matplotlib("figure")
    require_writable(path)
    facts = [line for fact in _facts(comparison, metric) for line in textwrap.wrap(fact, LINE_LENGTH)]
    height = FRAME_HEIGHT + ROW_HEIGHT * len(comparison.names) + LINE_HEIGHT * len(facts)
    figure = module.Figure(figsize=(WIDTH, height), layout="constrained")
    plot_comparison(comparison, metric, figure.subplots())
    if facts:
        lines = "\n".join(facts).replace("$", r"\$")  # a pair of dollars would begin a formula
        figure.supxlabel(lines, x=0.01, ha="left", color=GREY, fontsize="xx-small")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format=PurePath(path).suffix[1:] or None)
    replace_file(path, picture.getvalue())


def _facts(comparison: Comparison, metric: str | None) -> list[str]:
    """Return what is known about the run and each estimator, and the conclusions, in one text each."""
    if not comparison.about:
        return []
    facts = [f"{name}: {value}" for name, value in comparison.about.items()]
    for row in comparison.rows if comparison.settings else ():
        sigma2 = "" if np.isnan(row["sigma2"]) else f", mean sigma2 {row['sigma2']:.3g}"
        facts.append(f"{row['estimator']}: {row['settings']}{sigma2}")
    return facts + comparison.conclusions(metric)


def plot_accuracy_reject(
    curve: AccuracyReject, ax: Axes | None = None, *, label: str | None = None, color: str = BLUE
) -> Axes:
    """Draw the accuracy of the most certain predictions against their share of all samples.

    Parameters
    ----------
    curve : AccuracyReject
        From :func:`rplvq.inspection.accuracy_reject_curve`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        Name in the legend, to which the area under the curve is added.
    color : str, default=BLUE
        Color of the line.

    Examples
    --------
    >>> from rplvq.plotting import plot_accuracy_reject
    >>> from rplvq.inspection import accuracy_reject_curve
    >>> curve = accuracy_reject_curve([0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.5, 0.7])
    >>> plot_accuracy_reject(curve).get_xlabel()
    'share of samples answered'
    """
    ax = new_axes(ax)
    name = None if label is None else f"{label} (area {curve.area:.3f})"
    coverage = np.insert(curve.coverage, 0, 0.0)
    accuracy = np.insert(curve.accuracy, 0, curve.accuracy[0])
    ax.plot(coverage, accuracy, color=color, lw=2, label=name)
    ax.set(xlabel="share of samples answered", ylabel="accuracy of the answers", xlim=(0, 1))
    return tidy(ax, legend=name is not None)
