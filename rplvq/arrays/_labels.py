"""Checks of the labels and sample weights that users pass, and their conversion to class indices."""

from collections.abc import Mapping
from numbers import Number
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from rplvq.arrays._validation import first_bad, precision_of, unmasked
from rplvq.parts import require_number
from rplvq.protocols import Array, ArrayLike, Prototypes

MISSING = ("NoneType", "NAType", "NaTType")
"""Names of the types of missing values."""
ValueT = TypeVar("ValueT")


def one_type(labels: ArrayLike, name: str, noun: str = "label") -> Array:
    """Return labels (N,) or (N, 1) as an array of this shape and one type; other shapes, as soft labels, are unchecked.

    ValueError names the first ``noun`` that is missing, has another type than the first one, or that NumPy changes.
    """
    array = np.asarray(unmasked(labels, name))
    if array.ndim == 0 or array.shape[1:] not in ((), (1,)):
        return array
    given = array if hasattr(labels, "dtype") else labels  # np.asarray(["a", 1]) holds "1"
    if array.dtype.kind in "OT" or (array.dtype.kind in "US" and given is labels):
        values = np.asarray(given, dtype=object).ravel()
        missing = np.array([type(v).__name__ in MISSING or (isinstance(v, float) and v != v) for v in values], bool)
        kinds = [next((kind for kind in (str, bytes, Number) if isinstance(v, kind)), type(v)) for v in values]
    else:
        values = array.ravel()
        kinds = []
        missing = values != values  # NaN and NaT differ from themselves
    if (row := first_bad(missing)) is not None:
        raise ValueError(f"{name}[{row}] is {values[row]}: {name} contains NaN or None, every sample needs a {noun}")
    if (other := next((i for i, kind in enumerate(kinds) if kind != kinds[0]), None)) is not None:
        raise ValueError(
            f"{name} has {noun}s of mixed types: {name}[0] is {values[0]!r}, {name}[{other}] is {values[other]!r}"
        )
    if not {*kinds} & {str, bytes, Number}:
        return array
    plain = [str.__str__(value) if isinstance(value, str) else value for value in values.tolist()]  # of an Enum
    typed = np.array(plain)
    changed = np.array([a != b for a, b in zip(typed.tolist(), plain, strict=True)], bool)
    if (row := first_bad(changed)) is not None:
        raise ValueError(f"{name}[{row}] is {plain[row]!r}, and {typed[row]!r} in an array of NumPy: rename the {noun}")
    return typed.reshape(array.shape)


def check_groups(groups: ArrayLike, n_samples: int) -> Array:
    """Return groups (N,) or (N, 1) as (N,); raise ValueError if one is missing, or the shape or a type differs."""
    array = np.asarray(groups)
    if array.shape not in ((n_samples,), (n_samples, 1)):
        raise ValueError(
            f"groups must have shape ({n_samples},), one entry per sample of X, got shape {array.shape}: "
            "for samples of one group pass np.full(len(X), name)"
        )
    return one_type(groups, "groups", "group").ravel()


def split_domains(y: ArrayLike, groups: ArrayLike | None = None) -> tuple[Array, Array]:
    """Return the labels, (N,) or (N, C), and the domains (N,) of samples. ``groups`` are the domains.

    Without groups, ``y`` must hold strings "domain/label", as ``encode_domains`` of pyRiemann makes them. They are
    split at their last "/". ValueError is raised at other labels, and at invalid groups.

    >>> split_domains(["anna/left", "day/2/left"])
    (array(['left', 'left'], dtype='<U4'), array(['anna', 'day/2'], dtype='<U5'))
    """
    labels = one_type(y, "y")
    if groups is not None:
        return labels, check_groups(groups, len(labels) if labels.ndim else 1)
    remedy = 'pass the domain of each sample as groups, or labels of the form "domain/label"'
    if labels.ndim != 1 or labels.dtype.kind != "U":
        raise ValueError(f"groups is None, and y of dtype {labels.dtype} and shape {labels.shape} names none: {remedy}")
    pairs = [label.rpartition("/")[::2] for label in labels.tolist()]  # a domain may hold slashes, too
    for index, pair in enumerate(pairs):
        if not all(pair):
            raise ValueError(f"groups is None, and y[{index}] is {labels.tolist()[index]!r}: {remedy}")
    domains, names = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(names, dtype=str), np.array(domains, dtype=str)


def by_label(settings: Mapping[Any, ValueT], name: str) -> dict[Any, ValueT]:
    """Return the settings with their keys as :func:`one_type` makes labels, because an Enum has another hash."""
    keys = one_type(list(settings), name).tolist() if settings else []
    return dict(zip(keys, settings.values(), strict=True))


def number_groups(groups: ArrayLike | None, n_samples: int) -> Array | None:
    """Return the index (N,) of each sample's group among the sorted groups, which are checked; None stays None."""
    return None if groups is None else np.unique(check_groups(groups, n_samples), return_inverse=True)[1]


def same_type(labels: Array, classes: Array) -> bool:
    """Whether labels and known classes are both numbers, both strings, or both of one other type."""
    kinds = ["biuf" if array.dtype.kind in "biuf" else array.dtype.kind for array in (labels, classes)]
    return kinds[0] == kinds[1]


def check_labels(
    y: ArrayLike, n_samples: int, classes: Array | None = None, *, more: bool = False
) -> tuple[Array, Array]:
    """Return the classes (C,) and the targets, class indices (N,) or class probabilities (N, C), of labels.

    ``y`` holds N labels of one sortable type, or soft labels (N, C) with C >= 2. If ``classes`` (C,) are given, a label
    that is not among them is an error; with ``more`` it is a class that appears late, if it has their type. ValueError
    names what else is wrong with the labels.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    array = one_type(y, "y")
    if array.ndim == 0 or len(array) != n_samples:
        raise ValueError(f"y has {array.size if array.ndim == 0 else len(array)} labels for {n_samples} samples of X")
    if array.ndim == 2 and array.shape[1] > 1:
        return check_soft_labels(array, classes)
    array = column_or_1d(array, warn=True)
    assert_all_finite(array, input_name="y")
    if array.dtype == object and len(array):
        value = array[0]
        raise ValueError(f"y[0] is {value!r}, a {type(value).__name__}: labels are numbers, text, bytes or datetime64")
    if array.dtype.kind != "S":  # scikit-learn knows no bytes
        check_classification_targets(array)
    names, targets = np.unique(array, return_inverse=True)
    if classes is None:
        classes = names
    if len(classes) < 2:
        raise ValueError(f"y holds only one class, {classes.tolist()}: at least two are needed")
    unknown = ~np.isin(names, classes)
    if more and same_type(names, classes):
        with np.errstate(all="ignore"):  # 2.0 is the class 2, but 300 does not fit into uint8
            same = names.astype(classes.dtype)
        fits = np.array_equal(same, names)
        classes = np.union1d(classes, same if fits else names)
    elif unknown.any():
        index = int(np.argmax(unknown[targets]))
        raise ValueError(f"y[{index}] is {array.tolist()[index]!r}, which is not among the classes {classes.tolist()}")
    return classes, np.searchsorted(classes, names)[targets]


def check_soft_labels(array: Array, classes: Array | None = None) -> tuple[Array, Array]:
    """Check class probabilities (N, C), and scale the rows to sum to one exactly.

    They must do so up to 1e-6, or up to the rounding of C numbers if ``array`` is coarser, such as float16.
    """
    if array.dtype.kind not in "biuf":
        raise ValueError(f"soft labels y of shape {array.shape} must be numbers, got dtype {array.dtype}")
    soft = array.astype(float)
    bad = ~np.isfinite(soft) | (soft < 0)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"soft labels must be probabilities: y[{row}, {column}] is {soft[row, column]}")
    sums = soft.sum(axis=1)
    if (index := first_bad(np.abs(sums - 1) > max(1e-6, array.shape[1] * precision_of(array)))) is not None:
        raise ValueError(f"soft labels must sum to one: y[{index}] sums to {sums[index]:.9g}")
    if classes is not None and len(classes) != soft.shape[1]:
        raise ValueError(f"soft labels y have {soft.shape[1]} columns for {len(classes)} classes")
    if classes is None:
        classes = np.arange(soft.shape[1])
    return classes, soft / sums[:, None]


def check_prototypes(answer: object, shape: tuple[int, ...], n_classes: int) -> tuple[Prototypes, Array]:
    """Return what an initializer answers: K prototypes, codes of this ``shape``, and their class indices (K,).

    ValueError is raised unless it is a pair of finite prototypes and of integers that contain each class index.
    """
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise ValueError(f"init must return (prototypes, labels), got {answer!r:.200}")
    prototypes = np.asarray(answer[0]) if isinstance(answer[0], (list, tuple)) else answer[0]
    codes = np.asarray(prototypes)
    labels = np.asarray(answer[1])
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(f"init labels must be integers of shape (K,), got shape {labels.shape} of {labels.dtype}")
    if codes.shape[:1] != labels.shape:
        raise ValueError(f"init has {len(codes) if codes.ndim else 'no'} prototypes and {len(labels)} labels")
    if codes.shape[1:] != shape:
        raise ValueError(f"init prototypes have shape {codes.shape[1:]}, the samples {shape}")
    if (row := first_bad((labels < 0) | (labels >= n_classes))) is not None:
        raise ValueError(f"init labels[{row}] is {labels[row]}, not among class indices 0..{n_classes - 1}")
    missing = np.setdiff1d(np.arange(n_classes), labels)
    if len(missing):
        raise ValueError(f"init has no prototype for class index {missing[0]} of 0..{n_classes - 1}")
    if (row := first_bad(~np.isfinite(codes).reshape(len(codes), -1).all(axis=1))) is not None:
        raise ValueError(f"init prototypes[{row}] has entries that are not finite")
    return prototypes, labels


def check_weights(sample_weight: ArrayLike | None, n_samples: int) -> Array | None:
    """Check that sample weights (N,) are finite, not negative and not all zero; None stays None."""
    if sample_weight is None:
        return None
    weights = np.asarray(unmasked(sample_weight, "sample_weight"))
    if weights.dtype.kind not in "biuf" or weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must be {n_samples} numbers, one per sample, got {weights.dtype} of shape {weights.shape}"
        )
    weights = weights.astype(float)
    if (index := first_bad(~((weights >= 0) & (weights <= 1e300)))) is not None:  # so that sums of weights are finite
        raise ValueError(
            f"sample_weight[{index}] is {weights[index]}: weights must be finite, not negative and at most 1e300"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every sample")
    return weights


def weigh_classes(
    class_weight: Any, classes: Array, targets: Array, weights: Array | None, *, in_stream: bool, is_open: bool = False
) -> Array | None:
    """Multiply sample weights (N,) by the weight of each sample's class; None for both stays None.

    "balanced" weights are ``n / (n_classes n_c)`` for a class with n_c of n samples, where a sample of weight w counts
    as w samples. Of a mapping from labels to numbers, a class that is missing has weight 1. ValueError is raised at
    another form or value, at class probabilities, if a key is no class while a class is missing (unless the stream
    ``is_open`` for late classes), and if a stream is to be balanced.
    """
    if class_weight is None:
        return weights
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (balanced or isinstance(class_weight, Mapping)):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict of label to number, got {class_weight!r}")
    if targets.ndim == 2:
        raise ValueError(
            f"class_weight={class_weight!r} needs one class per sample, and y holds soft labels: pass sample_weight"
        )
    if balanced and in_stream:
        raise ValueError(
            "class_weight='balanced' is not supported by partial_fit, because a batch does not tell how frequent each "
            "class is: pass a dict, which compute_class_weight of sklearn.utils.class_weight gives for known labels"
        )
    given = np.ones(len(targets)) if weights is None else weights
    if balanced:
        sizes = np.bincount(targets, given, minlength=len(classes))
        by_class = sizes.sum() / (np.count_nonzero(sizes) * np.where(sizes > 0, sizes, np.inf))  # 0 without samples
    else:
        by_class = _weights_by_label(class_weight, classes.tolist(), is_open=is_open)
    return np.asarray(given * by_class[targets])


def _weights_by_label(class_weight: Mapping[Any, float], labels: list[object], *, is_open: bool) -> Array:
    """Return the weight (C,) of each label; raise ValueError at an invalid value, or at a key that seems mistyped."""
    class_weight = by_label(class_weight, "class_weight")
    for label, value in class_weight.items():
        require_number(f"class_weight[{label!r}]", value, closed=True, finite=True)
    extra = [label for label in class_weight if label not in labels]
    missing = [label for label in labels if label not in class_weight]
    if extra and missing and not is_open:
        raise ValueError(
            f"class_weight has the key {extra[0]!r}, which is not among the classes {labels}, but none for "
            f"{missing[0]!r}"
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])


def check_class_sizes(targets: Array, weights: Array | None, counts: tuple[int, ...], classes: Array) -> None:
    """Raise ValueError at the first class that has fewer samples of positive weight than prototypes."""
    hard = hard_targets(targets)
    has = "has" if targets.ndim == 1 else "is the likeliest class of"
    # A sample of weight w is w copies: equal samples have been merged into one by now.
    copies = None if weights is None else np.ceil(weights)
    sizes = np.bincount(hard, copies, minlength=len(classes))
    for size, count, label in zip(sizes, counts, classes.tolist(), strict=True):
        if size < count:
            raise ValueError(
                f"class {label!r} {has} {size:.0f} sample(s) of positive weight, fewer than its {count} prototype(s): "
                "lower prototypes_per_class, give the prototypes by init, or drop the class"
            )


def hard_targets(targets: Array) -> Array:
    """Return class indices (N,): targets as they are, or the likeliest class of class probabilities (N, C)."""
    return targets if targets.ndim == 1 else np.argmax(targets, axis=1)


def index_labels(labels: ArrayLike, classes: Array, argument: str) -> Array:
    """Return the indices (K,) of labels among sorted classes (C,); raise ValueError at the first unknown label."""
    wanted = one_type(labels, argument)
    if wanted.ndim != 1:
        raise ValueError(f"{argument} must be a sequence of labels, got {labels!r}")
    lookup = {label: index for index, label in enumerate(classes.tolist())}
    for position, label in enumerate(wanted.tolist()):
        if label not in lookup:
            raise ValueError(f"{argument}[{position}] is {label!r}, which is not among the classes {classes.tolist()}")
    return np.array([lookup[label] for label in wanted.tolist()], dtype=int)


def are_right(predicted: Array, y: ArrayLike, classes: Array, name: str = "y") -> Array:
    """Return whether predictions (N,) equal the labels ``y``, which are given as to fit, soft ones included."""
    truth = one_type(y, name)
    if truth.ndim == 2 and truth.shape[1] > 1:
        truth = classes[hard_targets(check_soft_labels(truth, classes)[1])]
    if truth.size != len(predicted):
        raise ValueError(f"{name} has {truth.size} labels for {len(predicted)} samples of X")
    truth = truth.ravel()
    if not same_type(truth, predicted):
        first = truth.tolist()[0]
        other = predicted.tolist()[0]
        raise ValueError(f"{name}[0] is {first!r} and its prediction is {other!r}: they are of different types")
    return np.asarray(truth == predicted)


def accuracy(predicted: Array, y: Any, classes: Array, sample_weight: ArrayLike | None = None) -> float:
    """Return the weighted share of right predictions, (N,) or those of an image (rows, columns)."""
    if predicted.ndim > 1:
        y = _flat(y, predicted.shape, "y")
        sample_weight = _flat(sample_weight, predicted.shape, "sample_weight")
        predicted = predicted.ravel()
    right = are_right(predicted, y, classes)
    return float(np.average(right, weights=check_weights(sample_weight, len(right))))


def _flat(values: ArrayLike | None, image: tuple[int, ...], name: str) -> Array | None:
    """Return values of the pixels of an image (rows, columns) as one batch (rows * columns,), and None as it is."""
    if values is None:
        return None
    if np.shape(values) != image:
        raise ValueError(f"{name} must have the shape {image} of the image X, got shape {np.shape(values)}")
    return np.ravel(unmasked(values, name))
