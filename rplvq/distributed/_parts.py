"""From what users pass to the parts that train: samples are checked on the workers, joined and, if needed, mixed.

A part is the samples that one worker visits between two averages. Parts depend on the partitions and not on their
order, nor on the number of workers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import dask
import dask.array as da
import numpy as np

from rplvq.arrays import (
    Samples,
    canonical_order,
    check_labels,
    check_weights,
    encoded,
    number_groups,
    one_type,
    same_type,
    weigh_classes,
)
from rplvq.distributed._partitions import Partitions, collected, digest, joined, partitions_of, require_known
from rplvq.exceptions import PointError
from rplvq.protocols import Array, Manifold
from rplvq.selection import split_classes

MOST_PARTS = 64
"""An array of NumPy is cut into at most so many blocks."""
FEWEST = 25_000
"""Blocks are joined to parts of at least so many samples."""
FEWEST_EACH = 100
"""And of at least so many per prototype."""
HEAVY = 100
"""Weights with a mean above this do not count samples."""
UNEVEN = 0.1
"""Blocks are mixed if the class shares of a part differ by more than this from those of all (total variation)."""


class Facts(NamedTuple):
    """What this process knows of one block."""

    size: int
    by_class: Array  # (C,), summed weights
    heaviest: Array  # (C,), largest weights
    is_soft: bool  # whether its labels are class probabilities
    digest: bytes


def fewest_samples(batch_size: int, n_prototypes: int, rounds: int) -> int:
    """Return the least number of samples of a part: with several rounds per epoch, smaller parts do."""
    return max(FEWEST // rounds, FEWEST_EACH * n_prototypes, batch_size)


def block_rows(X: Any, rounds: int) -> int:
    """Return into how many rows per block an array of NumPy is cut."""
    n_samples = np.shape(X)[0] if np.ndim(X) else 1
    return max(-(-n_samples // MOST_PARTS), min(FEWEST // rounds, n_samples), 1)


def encoded_blocks(
    X: Any, y: Any, sample_weight: Any, groups: Any, manifold: Manifold[Any], *, persist: bool
) -> tuple[Array, Partitions]:
    """Return the classes (C,), and the checked and encoded samples in the blocks of X, a Dask array of known size.

    What is an array of Dask stays on the workers, and only its distinct values come here. A ValueError names the first
    bad sample of a block by its index in the whole array and by its block.
    """
    sizes = np.array(X.chunks[0])
    full, n_samples = np.flatnonzero(sizes), int(sizes.sum())
    starts = (np.cumsum(sizes) - sizes)[full].tolist()
    sizes = sizes[full]
    classes, known, labels = _distinct_labels(y, sizes, n_samples)
    names, group_parts = _distinct_groups(groups, sizes, n_samples)
    if isinstance(sample_weight, da.Array):
        weights = _cut(sample_weight, sizes, "sample_weight")
    else:
        weights = _cut(check_weights(collected(sample_weight), n_samples), sizes, "sample_weight")
    make, points = dask.delayed(_block, pure=False), X.to_delayed().ravel()
    blocks = [
        make(points[p], *own, manifold, known, names, (int(p), start))
        for p, start, *own in zip(full, starts, labels, weights, group_parts, strict=True)
    ]
    return classes, partitions_of(blocks, persist=persist)


def _cut(values: Any, sizes: Array, name: str) -> list[Any]:
    """Cut values (N, ...) like the samples into blocks of these sizes; None stays None in each."""
    if values is None:
        return [None] * len(sizes)
    if not isinstance(values, da.Array):
        return [dask.delayed(part, traverse=False) for part in np.split(values, np.cumsum(sizes)[:-1])]
    require_known(values, name)
    if values.ndim == 0 or len(values) != sizes.sum():
        noun = "labels" if name == "y" else "entries"
        raise ValueError(f"{name} has {values.shape[0] if values.ndim else 1} {noun} for {sizes.sum()} samples of X")
    whole = dict.fromkeys(range(1, values.ndim), -1)
    return list(values.rechunk({0: tuple(sizes.tolist()), **whole}).to_delayed().ravel())


def _distinct_labels(y: Any, sizes: Array, n_samples: int) -> tuple[Array, Array, list[Any]]:
    """Return the classes (C,), and labels of each block with the classes that these stand for.

    Labels that are no array of Dask are checked here; class indices are sent in their place.
    """
    if not isinstance(y, da.Array):
        classes, targets = check_labels(collected(y), n_samples)
        return classes, np.arange(len(classes)), _cut(targets, sizes, "y")
    parts = _cut(y, sizes, "y")
    if y.ndim == 2 and y.shape[1] > 1:  # class probabilities
        return np.arange(y.shape[1]), np.arange(y.shape[1]), parts
    found = _distinct(parts, sizes, "y")
    classes, _ = check_labels(np.concatenate(found), sum(map(len, found)))
    return classes, classes, parts


def _distinct_groups(groups: Any, sizes: Array, n_samples: int) -> tuple[Array | None, list[Any]]:
    """Return the sorted names of all groups, and the groups of each block; None if there are none."""
    if not isinstance(groups, da.Array):
        numbers = number_groups(collected(groups), n_samples)
        return None if numbers is None else np.unique(numbers), _cut(numbers, sizes, "groups")
    parts = _cut(groups, sizes, "groups")
    return np.unique(np.concatenate(_distinct(parts, sizes, "groups"))), parts


def _distinct(parts: Sequence[Any], sizes: Array, name: str) -> list[Array]:
    """Return the distinct values of each block; ValueError names a block whose values have another type."""
    call, starts = dask.delayed(_values_of, pure=False), (np.cumsum(sizes) - sizes).tolist()
    found = list(dask.compute(*[call(part, name, start) for part, start in zip(parts, starts, strict=True)]))
    for start, values in zip(starts, found, strict=True):
        if not same_type(values, found[0]):
            raise ValueError(f"{name} has mixed types: {name}[0] is {found[0][0]!r}, {name}[{start}] is {values[0]!r}")
    return found


def _values_of(values: Any, name: str, start: int) -> Array:
    try:
        return np.unique(one_type(values, name))
    except ValueError as error:
        raise ValueError(f"in the block that begins at {name}[{start}]: {error}") from None


def _block(
    points: Array, labels: Array, weights: Any, groups: Any, manifold: Manifold[Any], classes: Array, names: Any,
    place: tuple[int, int],
) -> Samples:  # fmt: skip
    """Check and encode one block, whose number and first index in the whole array are ``place``.

    Samples of weight 0 are left out, and the others are sorted by their values.
    """
    number, start = place
    try:
        codes = encoded(manifold, points)
        _, targets = check_labels(labels, len(codes), classes)
        if weights is not None:  # a block may have only samples of weight 0
            weights = check_weights(np.append(weights, 1.0), len(codes) + 1)[:-1]
        indices = None if groups is None else np.searchsorted(names, groups)
    except PointError as error:
        where = f"{error.reason} (sample {error.index} of partition {number})"
        raise PointError(error.index + start, where, error.name) from None
    except ValueError as error:
        raise ValueError(f"in partition {number}, which begins at X[{start}]: {error}") from None
    order = canonical_order(codes, targets)
    if weights is not None:
        order = order[weights[order] > 0]
    return Samples(codes, targets, weights, indices).at(order)


def parts_of_blocks(
    blocks: Partitions, class_weight: Any, classes: Array, fewest: int | None
) -> tuple[Partitions, Array]:
    """Return the parts, in an order that depends on their samples only, and the summed weight (C,) of each class.

    Blocks are joined until a part has enough samples, and mixed if their classes are uneven: every part then gets each
    so many-th sample of every block. If ``fewest``, the least number of samples, is None, each block is a part.
    """
    found = blocks.map(_facts_of, len(classes))
    order = sorted(range(len(found)), key=lambda p: found[p].digest)
    facts, lazy = [found[p] for p in order], [blocks.blocks[p] for p in order]
    factor, by_class = _factor_of(facts, class_weight, classes), np.array([one.by_class for one in facts])
    groups = [np.array([p]) for p in range(len(facts))]
    if fewest is not None:
        groups = _joined_blocks(blocks.sizes[order], max(int(blocks.sizes.sum() // fewest), 1))
    pieces, count = [[lazy[p] for p in group] for group in groups], len(groups)
    if fewest is not None and count > 1 and _is_uneven(np.array([by_class[group].sum(axis=0) for group in groups])):
        cut, offsets = dask.delayed(_piece, pure=False), [int.from_bytes(one.digest[:6]) for one in facts]
        pieces = [[cut(lazy[p], (q + offsets[p]) % count, count) for p in range(len(lazy))] for q in range(count)]
    make = dask.delayed(_part, pure=False)
    parts = partitions_of([make(own, factor) for own in pieces], persist=blocks.persist)
    places = np.array(sorted(range(len(parts.sizes)), key=parts.map(digest).__getitem__))
    ordered = attrs.evolve(parts, blocks=[parts.blocks[p] for p in places], sizes=parts.sizes[places])
    return ordered, by_class.sum(axis=0) * factor


def _facts_of(block: Samples, n_classes: int) -> Facts:
    hard, weights = block.classes, block.filled_weights
    heaviest = np.zeros(n_classes)
    np.maximum.at(heaviest, hard, weights)
    by_class = np.bincount(hard, weights, minlength=n_classes)
    return Facts(len(block), by_class, heaviest, block.targets.ndim == 2, digest(block))


def _factor_of(facts: Sequence[Facts], class_weight: Any, classes: Array) -> Array:
    """Return the factor (C,) by which the weights of each class are multiplied.

    As :func:`rplvq.arrays.distinct` does for one array, weights whose mean is above 100 or that are all below 1 are
    scaled to the mean 1.
    """
    by_class = np.sum([one.by_class for one in facts], axis=0)
    targets = np.zeros((1, len(classes))) if facts[0].is_soft else np.arange(len(classes))
    weighed = weigh_classes(class_weight, classes, targets, by_class, in_stream=False)
    if weighed is None or not weighed.any():
        raise ValueError("sample_weight is zero for every sample")
    factor = np.asarray(weighed / np.where(by_class > 0, by_class, 1.0))
    mean = weighed.sum() / sum(one.size for one in facts)
    heaviest = (factor * np.max([one.heaviest for one in facts], axis=0)).max()
    return factor / mean if mean > HEAVY or heaviest < 1 else factor


def _joined_blocks(sizes: Array, n_parts: int) -> list[Array]:
    """Divide P blocks of these sizes into at most ``n_parts`` groups of successive ones with about equal sums."""
    middles = np.cumsum(sizes) - sizes / 2
    group = (middles * n_parts / sizes.sum()).astype(int)
    return [np.flatnonzero(group == one) for one in np.unique(group)]


def _is_uneven(by_class: Array) -> bool:
    """Whether the class shares of a part differ much from those of all, given the weights (P, C) of their classes."""
    shares, whole = by_class / by_class.sum(axis=1, keepdims=True), by_class.sum(axis=0) / by_class.sum()
    return bool((np.abs(shares - whole).sum(axis=1) / 2 > UNEVEN).any())


def _part(pieces: Sequence[Samples], factor: Array) -> Samples:
    """Return the distinct samples of several pieces in canonical order; the weights of each class get a factor (C,)."""
    whole = joined(pieces)
    if whole.weights is not None or (factor != 1).any():
        whole = attrs.evolve(whole, weights=whole.filled_weights * factor[whole.classes])
        if not whole.filled_weights.any():
            return whole.at(slice(0, 0))
    found = whole.canonical()
    return attrs.evolve(found, codes=found.codes[:])


def _piece(block: Samples, first: int, step: int) -> Samples:
    return block.at(slice(first, None, step))


def held_out(
    parts: Partitions, labels: Array, fraction: float, rng: np.random.Generator
) -> tuple[Partitions, Partitions]:
    """Return the samples that train and those that are held out for early stopping, some of every class.

    They are drawn in each part by :func:`rplvq.selection.split_classes`; ``labels`` (K,) are the classes of the
    prototypes. If the samples have groups, whole groups are held out.
    """
    seed, groups, missing = int(rng.integers(2**31)), _held_groups(parts, labels, fraction, rng), []
    each = [(np.random.default_rng([seed, p]),) for p in range(len(parts.blocks))]
    kept, held = (parts.made(_half, which, labels, fraction, groups, each=each) for which in (0, 1))
    if len(held.blocks):
        missing = np.flatnonzero(sum(held.map(_class_sizes, int(labels.max()) + 1)) == 0).tolist()
    if missing or not len(held.blocks):
        raise ValueError(
            f"early_stopping: class index {(missing or [0])[0]} has too few distinct samples or groups, so that none "
            "can be held out. Turn early_stopping off"
        )
    return kept, held


def _half(
    part: Samples, which: int, labels: Array, fraction: float, groups: Array | None, rng: np.random.Generator
) -> Samples:
    if groups is not None:
        return part.at(np.isin(part.groups, groups) == bool(which))
    return part.at(split_classes(part, labels, copy.deepcopy(rng), fraction)[which])


def _held_groups(parts: Partitions, labels: Array, fraction: float, rng: np.random.Generator) -> Array | None:
    """Return the groups to hold out, None if there are none. Each group counts as one sample of each of its classes."""
    found = [pairs for pairs in parts.map(_groups_with_classes) if pairs is not None]
    if not found:
        return None
    groups, classes = np.unique(np.concatenate(found), axis=0).T
    every = Samples(np.arange(len(groups))[:, None], classes, None, groups)
    kept, held = split_classes(every, labels, rng, fraction)
    whole = np.setdiff1d(groups[held], groups[kept])
    return np.asarray(whole)


def _groups_with_classes(part: Samples) -> Array | None:
    return None if part.groups is None else np.unique(np.stack([part.groups, part.classes], axis=1), axis=0)


def _class_sizes(part: Samples, n_classes: int) -> Array:
    return np.bincount(part.classes, minlength=n_classes)
