"""Checks of the labels and sample weights that users pass, and their conversion to class indices."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from rplvq.arrays._validation import first_bad
from rplvq.protocols import Array


def one_type(labels: Any, name: str) -> Array:
    """Return labels as an array of one sortable type, never of objects.

    Raise ValueError at the first label that is missing or that has another type than the first one.
    """
    array = np.asarray(labels)
    if array.dtype.kind in "mM" and (index := first_bad(np.isnat(array).ravel())) is not None:
        raise ValueError(f"{name}[{index}] is NaT: labels must not be missing (NaN)")
    if isinstance(labels, np.ndarray) and array.dtype != object:
        return array
    if array.ndim != 1 or array.dtype.kind not in "OUS":
        return array
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    first = None
    for index, value in enumerate(values):
        if (
            value is None
            or type(value).__name__ in ("NAType", "NaTType")
            or (isinstance(value, float) and value != value)
        ):
            raise ValueError(f"{name}[{index}] is {value!r}: labels must not be missing (NaN)")
        kind = next((kind for kind in (str, bytes, Number) if isinstance(value, kind)), type(value))
        if first not in (None, kind):
            raise ValueError(
                f"{name} has labels of mixed types: {name}[0] is {values[0]!r}, {name}[{index}] is {value!r}"
            )
        first = kind
    return np.array(values)


def same_type(labels: Array, classes: Array) -> bool:
    """Whether labels and known classes are both numbers, both strings, or both of one other type."""
    kinds = ["iuf" if array.dtype.kind in "iuf" else array.dtype.kind for array in (labels, classes)]
    return kinds[0] == kinds[1]


def check_labels(y: Any, n_samples: int, classes: Array | None = None, *, more: bool = False) -> tuple[Array, Array]:
    """Return the classes (C,) and the targets, class indices (N,) or class probabilities (N, C), of labels.

    ``y`` holds N labels of one sortable type, or soft labels (N, C) with C >= 2. If ``classes`` (C,) are given, a label
    that is not among them is an error; with ``more`` it is a class that appears late, if it has their type.

    Raises
    ------
    ValueError
        If lengths differ, labels are missing, of mixed types, continuous, unknown or of one class only, or
        soft labels are not probabilities.
    """
    if y is None:
        raise ValueError("RiemannianLVQ requires y to be passed, but the target y is None")
    array = one_type(y, "y")
    if array.ndim == 0 or len(array) != n_samples:
        raise ValueError(f"y has {array.size if array.ndim == 0 else len(array)} labels for {n_samples} samples of X")
    if array.ndim == 2 and array.shape[1] > 1:
        return check_soft_labels(array, classes)
    array = column_or_1d(array, warn=True)
    assert_all_finite(array, input_name="y")
    check_classification_targets(array)
    found, targets = np.unique(array, return_inverse=True)
    if classes is None:
        classes = found
    if len(classes) < 2:
        raise ValueError(f"y holds only one class, {classes.tolist()}: at least two are needed")
    unknown = ~np.isin(found, classes)
    if more and same_type(found, classes):
        found = found.astype(classes.dtype) if found.dtype.kind in "iuf" else found
        classes = np.union1d(classes, found)
    elif unknown.any():
        index = int(np.argmax(unknown[targets]))
        raise ValueError(f"y[{index}] is {array[index].item()!r}, which is not among the classes {classes.tolist()}")
    return classes, np.searchsorted(classes, found)[targets]


def check_soft_labels(array: Array, classes: Array | None = None) -> tuple[Array, Array]:
    """Check class probabilities (N, C), whose rows sum to one up to 1e-6, and scale the rows to sum to one exactly."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"soft labels y of shape {array.shape} must be numbers, got dtype {array.dtype}")
    soft = array.astype(float)
    bad = ~np.isfinite(soft) | (soft < 0)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"soft labels must be probabilities: y[{row}, {column}] is {soft[row, column]}")
    sums = soft.sum(axis=1)
    bad = np.abs(sums - 1) > 1e-6
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"soft labels must sum to one: y[{row}] sums to {sums[row]:.6g}")
    if classes is not None and len(classes) != soft.shape[1]:
        raise ValueError(f"soft labels y have {soft.shape[1]} columns for {len(classes)} classes")
    return np.arange(soft.shape[1]) if classes is None else classes, soft / sums[:, None]


def check_weights(sample_weight: Any, n_samples: int) -> Array | None:
    """Check that sample weights (N,) are finite, not negative and not all zero; None stays None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "biuf" or weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must be {n_samples} numbers, one per sample, got {weights.dtype} of shape {weights.shape}"
        )
    weights = weights.astype(float)
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        index = int(np.argmax(bad))
        raise ValueError(f"sample_weight[{index}] is {weights[index]}: weights must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight is zero for every sample")
    return weights


def check_class_sizes(targets: Array, weights: Array | None, counts: tuple[int, ...], classes: Array) -> None:
    """Raise ValueError at the first class that has fewer samples of positive weight than prototypes."""
    hard = hard_targets(targets)
    sizes = np.bincount(hard if weights is None else hard[weights > 0], minlength=len(classes))
    for size, count, label in zip(sizes, counts, classes.tolist(), strict=True):
        if size < count:
            raise ValueError(
                f"class {label!r} has {size} sample(s) of positive weight, fewer than its {count} prototype(s): "
                "lower prototypes_per_class, give the prototypes by init, or drop the class"
            )


def hard_targets(targets: Array) -> Array:
    """Return class indices (N,): targets as they are, or the likeliest class of class probabilities (N, C)."""
    return targets if targets.ndim == 1 else np.argmax(targets, axis=1)


def index_labels(labels: Any, classes: Array, argument: str) -> Array:
    """Return the indices (K,) of labels among sorted classes (C,); raise ValueError at the first unknown label."""
    wanted = np.asarray(labels)
    if wanted.ndim != 1:
        raise ValueError(f"{argument} must be a sequence of labels, got {labels!r}")
    lookup = {label: index for index, label in enumerate(classes.tolist())}
    for position, label in enumerate(wanted.tolist()):
        if label not in lookup:
            raise ValueError(f"{argument}[{position}] is {label!r}, which is not among the classes {classes.tolist()}")
    return np.array([lookup[label] for label in wanted.tolist()], dtype=int)
