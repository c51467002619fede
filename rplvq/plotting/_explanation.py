"""Pictures of explanations: the shares of the margin as bars, and what they belong to on a head or as a map."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rplvq.inspection import Explanation
from rplvq.parts import require_count
from rplvq.plotting._style import BLUE, ORANGE, Axes, part_of_matplotlib
from rplvq.protocols import Array

BARS = 8  # number of shares that get a bar of their own; the sum of the others is one more bar
MAX_NAMES = 22  # largest number of names that fit beside a map or a pattern
FEW_NAMES = 12  # largest number of names that fit there in a font of the usual size


def plot_explanation(
    explanation: Explanation,
    ax: Axes | Sequence[Axes] | None = None,
    *,
    positions: object = None,
    names: Sequence[str] | None = None,
    n_components: int = 3,
) -> Array:
    r"""Draw the signed shares of the margin as bars, and the components, or the map of entries, to which they belong.

    Blue bars speak for the explained class and orange ones against it; the last one is the sum of all others. Patterns
    show where the power of a component comes from. They have no sign: the largest entry is drawn as positive real.

    Parameters
    ----------
    explanation : Explanation
        One entry of the list that :func:`rplvq.explain` returns.
    ax : sequence of matplotlib Axes, optional
        The first is for the bars, and the others are for the drawings; a new figure by default.
    positions : mne.Info, or array-like of shape (n, 2), optional
        Positions of the channels. With an Info (which needs MNE-Python) components are drawn on a head, with plain
        positions, as seen from above with the nose up, on their plane, and otherwise as bars by channel.
    names : sequence of n str, optional
        Names of channels, features or factors; by default those of the Info, or numbers.
    n_components : int, default=3
        Number of components with the largest absolute shares that a new figure draws.

    Returns
    -------
    ndarray of matplotlib Axes
        The bars, and one Axes per component or one for the map. Titles show powers in units of the own prototype's.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ, explain
    >>> from rplvq.plotting import plot_explanation
    >>> X = np.array([np.diag([1.0, 1.0]), np.diag([3.0, 1.0])])
    >>> model = RiemannianLVQ(max_epochs=0).fit(X, ["rest", "move"])
    >>> plot_explanation(explain(model, X)[0], names=["C3", "C4"])[0].get_title()
    'rest, not move\nmargin +1.21'
    """
    require_count("n_components", n_components, 0)
    n = len(explanation.channels)
    named = names is not None
    names = _names(names, positions, n)
    patterns = explanation.patterns
    is_map = explanation.shares.ndim == 2
    n_drawn = min(n_components, n) if patterns is not None else int(is_map)
    axes = _new_axes(n_drawn) if ax is None else np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    _bars(axes[0], explanation, names)
    for panel, index in zip(axes[1:], explanation.order.tolist(), strict=False):
        if patterns is not None:
            _component(panel, patterns[:, index], positions, names, named)
            values = [np.asarray(part)[index] for part in (explanation.powers, explanation.ratios)]
            power, ratio = (f"{value:.0f}" if 1e3 <= value < 1e6 else f"{value:.3g}" for value in values)
            title = f"pattern of component {index}: {explanation.shares[index]:+.2f}"
            panel.set_title(f"{title}\npower {power} (own 1, other {ratio})", fontsize="medium")
        elif is_map:
            _map(panel, explanation.shares, names)
            break
    return axes


def _names(names: Sequence[str] | None, positions: Any, n: int) -> list[str]:
    """Return n names; raise ValueError if names or positions are not those of n channels."""
    names = getattr(positions, "ch_names", None) if names is None else names
    if names is not None and len(names) != n:
        raise ValueError(f"names has {len(names)} entries for {n} channels")
    if positions is not None and hasattr(positions, "ch_names"):
        if len(positions.ch_names) != n:
            raise ValueError(f"positions has {len(positions.ch_names)} channels for {n} rows: pick the same channels")
    elif positions is not None and (np.shape(positions) != (n, 2) or not np.isfinite(positions).all()):
        raise ValueError(f"positions must be an Info or {n} finite pairs, got shape {np.shape(positions)}")
    return [str(index) for index in range(n)] if names is None else [str(name) for name in names]


def _new_axes(n_drawn: int) -> Array:
    """Return one Axes for the bars and one per drawing, two in each row of a new figure."""
    n_rows = 1 + n_drawn // 2
    n_columns = 1 + (n_drawn > 0)
    figure = part_of_matplotlib("pyplot").figure(figsize=(3.6 * n_columns, 3.0 * n_rows), layout="constrained")
    panels = np.asarray(figure.subplots(n_rows, n_columns, squeeze=False).ravel())
    for panel in panels[1 + n_drawn :]:
        panel.set_axis_off()
    return panels[: 1 + n_drawn]


def _bars(ax: Axes, explanation: Explanation, names: list[str]) -> None:
    """Draw the largest shares and the sum of the others."""
    shares = explanation.shares
    labels = names
    if explanation.filters is not None:
        labels = [f"component {index}" for index in range(len(shares))]
    elif shares.ndim == 2:  # an entry above the diagonal and its mirror image are one bar
        rows, columns = np.triu_indices(len(shares))
        shares = shares[rows, columns] + np.where(rows == columns, 0.0, shares[columns, rows])
        labels = [names[i] if i == j else f"{names[i]}, {names[j]}" for i, j in zip(rows, columns, strict=True)]
    order = np.argsort(-np.abs(shares), kind="stable")
    values = shares[order[:BARS]].tolist()
    written = [labels[index] for index in order[:BARS]]
    if len(order) > BARS:
        values.append(shares[order[BARS:]].sum())
        written.append(f"{len(order) - BARS} others")
    places = -np.arange(len(values))
    ax.barh(places, values, color=[BLUE if value > 0 else ORANGE for value in values], height=0.7)
    ax.set_yticks(places, written)
    ax.axvline(0, color="0.3", lw=0.8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("share of the margin")
    pair = f"{explanation.label}, not {explanation.other_label}"
    ax.set_title(f"{pair}\nmargin {explanation.margin:+.2f}", fontsize="medium")


def _component(ax: Axes, column: Array, positions: object, names: list[str], named: bool) -> None:
    """Draw a pattern (n,) on a head, on the plane of the positions, or as bars."""
    largest = column[np.abs(column).argmax()]
    values = (column * (largest.conj() / np.abs(largest))).real
    limit = np.abs(values).max()
    if hasattr(positions, "ch_names"):
        try:
            viz = import_module("mne.viz")
        except ImportError as error:
            remedy = 'pip install ".[eeg]" in the folder of rplvq'
            raise ImportError(f"positions in an Info need MNE-Python: {remedy}") from error
        viz.plot_topomap(values, positions, axes=ax, show=False, vlim=(-limit, limit), extrapolate="local")
    elif positions is not None:
        x, y = np.asarray(positions, dtype=float).T
        ax.tricontourf(x, y, values, levels=np.linspace(-limit, limit, 17), cmap="RdBu_r")
        if not named:
            ax.plot(x, y, "o", color="0.2", ms=2.5)
        edge = part_of_matplotlib("patheffects").withStroke(linewidth=2, foreground="white")
        for place in zip(x, y, names, strict=True) if named else ():
            ax.text(*place, ha="center", va="center", fontsize="small", path_effects=[edge])
        for ends, bounds in ((x, ax.set_xlim), (y, ax.set_ylim)):  # room for the names
            bounds(ends.min() - 0.08 * np.ptp(ends), ends.max() + 0.08 * np.ptp(ends))
        ax.set_aspect("equal")
        ax.set_axis_off()
    else:
        ax.barh(-np.arange(len(values)), values, color="0.45")
        ax.axvline(0, color="0.3", lw=0.8)
        written, size = _labels(names)
        ax.set_yticks(-np.arange(len(written)), written, fontsize=size)
        ax.spines[["top", "right", "left"]].set_visible(False)


def _labels(names: list[str]) -> tuple[list[str], str]:
    """Return the names if there is room for them, otherwise none, and the size of their font."""
    written = names if len(names) <= MAX_NAMES else []
    return written, "small" if len(names) <= FEW_NAMES else "xx-small"


def _map(ax: Axes, shares: Array, names: list[str]) -> None:
    limit = np.abs(shares).max()
    image = ax.imshow(shares, cmap="RdBu", vmin=-limit, vmax=limit, interpolation="nearest")
    written, size = _labels(names)
    ax.set_xticks(range(len(written)), written, rotation=90, fontsize=size)
    ax.set_yticks(range(len(written)), written, fontsize=size)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label="share of the margin", shrink=0.8)
