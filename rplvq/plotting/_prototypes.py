"""Pictures of prototypes and of the samples around them."""

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator

from rplvq.arrays import unmasked
from rplvq.plotting._style import INK, Axes, class_colors, labels_of, new_axes, points_of, tidy, with_unit
from rplvq.protocols import Array, ArrayLike

MAX_NAMES = 12  # largest number of channels whose names fit beside a tile


def plot_prototypes(
    model: BaseEstimator, ax: Axes | None = None, *, channels: Sequence[str] | None = None, unit: str = ""
) -> Axes:
    """Draw prototypes as tiles of one picture, with one column per class and one colour scale.

    The colour scale of real entries is centred at zero. Of complex matrices the absolute values are drawn.

    Parameters
    ----------
    model : RiemannianLVQ, or (prototypes, labels) of shapes (K, n, n) and (K,)
        What to draw.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    channels : sequence of n str, optional
        Names of the rows, written at the left if there are at most 12.
    unit : str, default=""
        Unit of the entries, for the colour bar, such as "uV^2".

    Examples
    --------
    >>> from rplvq.plotting import plot_prototypes
    >>> ax = plot_prototypes((np.array([np.eye(3), 2 * np.eye(3)]), ["rest", "move"]))
    >>> [text.get_text() for text in ax.texts]
    ['move', 'rest']
    """
    matrices, labels = points_of(model)
    n = matrices.shape[1]
    if channels is not None and len(channels) != n:
        raise ValueError(f"channels has {len(channels)} names for {n} rows")
    signed = not np.iscomplexobj(matrices)
    tiles, columns, depth = _mosaic(matrices if signed else np.abs(matrices), labels)
    ax = new_axes(ax, max(4.0, 1.7 * len(columns) + 1.6), 1.7 * depth + 1.0)
    limit = np.nanmax(np.abs(tiles))
    colors = {"cmap": "RdBu_r", "vmin": -limit} if signed else {"cmap": "viridis", "vmin": 0}
    image = ax.imshow(tiles, vmax=limit, interpolation="nearest", **colors)
    for column, label in enumerate(columns.tolist()):
        ax.text(column * (n + 1) + (n - 1) / 2, -0.6, str(label), ha="center", va="bottom")
    named = channels is not None and n <= MAX_NAMES
    ax.set_xticks([])
    ax.set_yticks(np.arange(n) if named else [], channels if named else [])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    name = with_unit("entry" if signed else "absolute value of the entry", unit)
    ax.figure.colorbar(image, ax=ax, label=name, shrink=0.8)
    return ax


def _mosaic(matrices: Array, labels: Array) -> tuple[Array, Array, int]:
    """Return the tiles as one array with NaN between them, the classes (C,) of the columns, and the number of rows."""
    n = matrices.shape[1]
    columns, which = np.unique(labels, return_inverse=True)
    depth = int(np.bincount(which).max())
    tiles = np.full((depth, n + 1, len(columns), n + 1), np.nan)  # a line of NaN below and beside each tile
    for column in range(len(columns)):
        own = matrices[which == column]
        tiles[: len(own), :n, column, :n] = own
    return tiles.reshape(depth * (n + 1), -1)[:-1, :-1], columns, depth


def plot_ellipses(
    model: BaseEstimator,
    ax: Axes | None = None,
    *,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    channels: tuple[int, int] = (0, 1),
    names: tuple[str, str] | None = None,
    unit: str = "",
) -> Axes:
    """Draw the ellipses ``v^T C^-1 v = 1`` of the covariance C of two channels: prototypes thick, samples thin.

    C is the block of the matrix that belongs to the two channels. Of Hermitian matrices the real part is drawn.

    Parameters
    ----------
    model, ax
        As for :func:`plot_prototypes`.
    X, y : array-like of shape (N, n, n), and (N,), optional
        Samples, at most some dozens, for thin lines behind, and their labels, for the colours; grey by default.
    channels : (int, int), default=(0, 1)
        The two rows of the matrices.
    names : (str, str), optional
        Names of the channels; "channel 0" and so on by default.
    unit : str, default=""
        Unit of the signals, whose standard deviations the axes show.

    Examples
    --------
    >>> from rplvq.plotting import plot_ellipses
    >>> ax = plot_ellipses((np.array([np.diag([4.0, 1.0])]), ["a"]), unit="mV")
    >>> ax.get_xlabel(), float(ax.lines[0].get_xdata().max().round(6))
    ('channel 0 (mV)', 2.0)
    """
    matrices, labels = points_of(model)
    if not all(0 <= channel < matrices.shape[1] for channel in channels):
        raise ValueError(f"channels={channels} must be two rows of matrices with {matrices.shape[1]}")
    ax = new_axes(ax, 5.0, 4.6)
    colors = class_colors(np.unique(labels))
    if X is not None:
        curves = _ellipses(np.asarray(unmasked(X)), channels)
        own = [None] * len(curves) if y is None else labels_of(y, len(curves)).tolist()
        for curve, label in zip(curves, own, strict=True):
            ax.plot(*curve, color=colors.get(label, "0.6"), lw=0.6, alpha=0.4, zorder=1)
    names_left = {label: str(label) for label in colors}
    for curve, label in zip(_ellipses(matrices, channels), labels.tolist(), strict=True):
        ax.plot(*curve, color=colors[label], lw=2.5, zorder=2, label=names_left.pop(label, None))
    first, second = names or (f"channel {channels[0]}", f"channel {channels[1]}")
    ax.set(xlabel=with_unit(first, unit), ylabel=with_unit(second, unit))
    ax.set_aspect("equal", adjustable="datalim")
    return tidy(ax)


def _ellipses(matrices: Array, channels: tuple[int, int]) -> Array:
    """Return points (N, 2, 101) of the ellipses: the unit circle mapped by the square root of each block."""
    eigenvalues, eigenvectors = np.linalg.eigh(np.real(matrices[:, channels][:, :, channels]))
    angles = np.linspace(0, 2 * np.pi, 101)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return np.asarray((eigenvectors * np.sqrt(eigenvalues)[:, None, :]) @ circle)


def plot_distances(model: BaseEstimator, X: ArrayLike, y: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """Draw samples in the plane that shows most of the variance of their distances to the prototypes.

    The K distances of each sample, ``model.transform(X)``, are projected onto their first two principal components, and
    so are the distances of the prototypes to each other. Misclassified samples are crosses.

    Parameters
    ----------
    model : RiemannianLVQ
        A fitted model.
    X, y : array-like of shape (N, n, n), and (N,)
        Samples and their labels; by default the predicted labels give the colours.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.plotting import plot_distances
    >>> X, y = make_syn1(n_per_class=10, random_state=0)
    >>> ax = plot_distances(RiemannianLVQ(max_epochs=2, random_state=0).fit(X, y), X, y)
    >>> ax.get_xlabel().startswith("first principal component")
    True
    """
    distances = model.transform(X)
    predicted = model.predict(X)
    labels = predicted if y is None else labels_of(y, len(predicted))
    ax = new_axes(ax, 5.6, 4.6)
    center = distances.mean(axis=0)
    plane = np.zeros((2, distances.shape[1]))
    _, lengths, axes = np.linalg.svd(distances - center, full_matrices=False)
    plane[: len(axes)] = axes[:2]  # the second coordinate is zero if K is 1
    samples, prototypes = ((part - center) @ plane.T for part in (distances, model.transform(model.prototypes_)))
    colors = class_colors(np.asarray(model.classes_))
    for label, color in colors.items():
        own = labels == label
        right = samples[own & (predicted == labels)]
        wrong = samples[own & (predicted != labels)]
        mine = prototypes[np.asarray(model.prototype_labels_) == label]
        ax.scatter(right[:, 0], right[:, 1], s=14, color=color, alpha=0.6, linewidths=0, label=str(label))
        ax.scatter(wrong[:, 0], wrong[:, 1], s=26, color=color, marker="x", linewidths=1.2)
        ax.scatter(mine[:, 0], mine[:, 1], s=110, color=color, marker="D", edgecolors=INK, linewidths=1.5, zorder=3)
    shares = [*(100 * lengths**2 / np.sum(lengths**2)), 0.0]
    first = f"first principal component of the distances ({shares[0]:.0f} %)"
    ax.set(xlabel=first, ylabel=f"second ({shares[1]:.0f} %)")
    ax.set_title("dot: sample; cross: misclassified; diamond: prototype", fontsize="small")
    return tidy(ax, title="class", fontsize="small")
