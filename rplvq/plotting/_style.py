"""What all pictures share: colours, figures and the style of axes."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import unmasked
from rplvq.protocols import Array, ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # so that matplotlib is only imported for a picture

# Okabe and Ito's colours, which people with any colour vision can distinguish.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
CYCLE = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#E69F00", "#000000")
INK = "#222222"
GREY = "#6B6B6B"


def part_of_matplotlib(name: str) -> ModuleType:
    """Import a module of matplotlib; say what to install if it is missing."""
    try:
        return import_module(f"matplotlib.{name}")
    except ImportError as error:
        raise ImportError('plotting needs matplotlib: pip install ".[plot]" in the folder of rplvq') from error


def new_axes(ax: Any, width: float = 6.0, height: float = 4.2, n_rows: int = 1) -> Any:
    """Return ``ax``, or the axes, one per row, of a new figure of width x height inches."""
    if ax is not None:
        return ax
    size = (width, height)
    return part_of_matplotlib("pyplot").subplots(n_rows, figsize=size, sharex=True, layout="constrained")[1]


def class_colors(classes: Array) -> dict[object, object]:
    """Map each class (C,) to a colour: up to seven Okabe and Ito colours, otherwise matplotlib's "tab20"."""
    if len(classes) <= len(CYCLE):
        return dict(zip(classes.tolist(), CYCLE, strict=False))
    import matplotlib as mpl

    table = mpl.colormaps["tab20"].resampled(20)
    return {label: table(i % 20) for i, label in enumerate(classes.tolist())}


def with_unit(name: str, unit: str) -> str:
    """Return the label of an axis, with the unit in brackets unless it is empty."""
    return f"{name} ({unit})" if unit else name


def tidy(ax: Axes, *, legend: bool = True, **options: Any) -> Axes:
    """Draw the legend, and the grid behind the data, and remove the upper and right border."""
    if legend:
        ax.legend(frameon=False, **options)
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def labels_of(y: ArrayLike, n_samples: int) -> Array:
    """Return labels as an array; ValueError if there are not ``n_samples`` of them."""
    labels = np.asarray(unmasked(y, "y"))
    if labels.shape != (n_samples,):
        raise ValueError(f"y must hold {n_samples} labels, one per sample, got shape {labels.shape}")
    return labels


def points_of(model: BaseEstimator | tuple[ArrayLike, ArrayLike]) -> tuple[Array, Array]:
    """Return prototypes (K, n, n) and labels (K,) of a fitted classifier, or of a pair of both."""
    if not isinstance(model, tuple):
        check_is_fitted(model, "prototypes_")
        model = model.prototypes_, model.prototype_labels_
    matrices, labels = (np.asarray(part) for part in model)
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or labels.shape != matrices.shape[:1]:
        shapes = f"shapes {matrices.shape} and {labels.shape}"
        raise ValueError(f"prototypes must be matrices (K, n, n) with K labels, got {shapes}")
    return matrices, labels
