"""From what users pass to the parts that train: samples are checked on the workers, joined and, if needed, mixed.

A part is what one worker visits between two averages. It depends on the partitions, not on their order or workers.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs
import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed

from rplvq.arrays import (
    Samples,
    by_block,
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
from rplvq.protocols import AnyManifold, Array, ArrayLike
from rplvq.selection import split_classes

ClassWeight: TypeAlias = Mapping[object, float] | Literal["balanced"] | None
Facts: TypeAlias = tuple[bytes, Array, Array, bool]
UNEVEN = 0.1  # total variation of a part's class shares from those of all above which blocks are mixed
HEAVY = 100  # weights with a larger mean do not count samples, and are scaled as by rplvq.arrays.distinct


def encoded_blocks(
    X: da.Array, y: da.Array | ArrayLike, sample_weight: Any, groups: Any, manifold: AnyManifold, *, persist: bool
) -> tuple[Array, Partitions]:
    """Return the classes (C,), and checked and encoded blocks of X; a ValueError names the first bad index in all X."""
    sizes = np.array(X.chunks[0])
    full = np.flatnonzero(sizes)  # filters leave chunks without any sample
    starts = (np.cumsum(sizes) - sizes)[full].tolist()
    sizes = sizes[full]
    n_samples = int(sizes.sum())
    classes, known, labels = _distinct_labels(y, sizes, n_samples)
    names = None
    if isinstance(groups, da.Array):
        names = np.unique(np.concatenate(_distinct(groups, sizes, "groups")))
    elif groups is not None:
        groups = number_groups(collected(groups), n_samples)
        names = np.unique(groups)
    is_lazy = isinstance(sample_weight, da.Array)
    weights = sample_weight if is_lazy else check_weights(collected(sample_weight), n_samples)
    others = (_cut(weights, sizes, "sample_weight"), _cut(groups, sizes, "groups"))
    make = dask.delayed(_block, pure=False)
    points = X.to_delayed().ravel()
    blocks = [
        make(points[number], *own, manifold, known, names, (number, start))
        for number, start, *own in zip(full.tolist(), starts, labels, *others, strict=True)
    ]
    return classes, partitions_of(blocks, persist=persist)


def _cut(values: da.Array | Array | None, sizes: Array, name: str) -> list[Delayed | None]:
    """Cut values (N, ...) like the samples into blocks of these sizes; None stays None in each."""
    if values is None:
        return [None] * len(sizes)
    if not isinstance(values, da.Array):
        return [dask.delayed(part, traverse=False) for part in np.split(values, np.cumsum(sizes)[:-1])]
    require_known(values, name)
    if values.ndim == 0 or len(values) != sizes.sum():
        count = values.shape[0] if values.ndim else 1
        noun = "labels" if name == "y" else "entries"
        raise ValueError(f"{name} has {count} {noun} for {sizes.sum()} samples of X")
    whole = dict.fromkeys(range(1, values.ndim), -1)
    return list(values.rechunk({0: tuple(sizes.tolist()), **whole}).to_delayed().ravel())


def _distinct_labels(y: da.Array | ArrayLike, sizes: Array, n_samples: int) -> tuple[Array, Array, list[Delayed]]:
    """Return the classes (C,), and labels or, if they are checked here, class indices, with the classes in blocks."""
    if not isinstance(y, da.Array):
        classes, targets = check_labels(collected(y), n_samples)
        return classes, np.arange(len(classes)), _cut(targets, sizes, "y")
    if y.ndim > 2:
        check_labels(np.broadcast_to(0.0, y.shape), n_samples)  # raises
    if y.ndim == 2 and y.shape[1] > 1:  # class probabilities
        return np.arange(y.shape[1]), np.arange(y.shape[1]), _cut(y, sizes, "y")
    distinct = np.concatenate(_distinct(y, sizes, "y"))
    classes, _ = check_labels(distinct, len(distinct))
    return classes, classes, _cut(y, sizes, "y")


def _distinct(values: da.Array, sizes: Array, name: str) -> list[Array]:
    """Return the distinct values of each block; ValueError names a block whose values have another type."""
    call = dask.delayed(_values_of, pure=False)
    starts = (np.cumsum(sizes) - sizes).tolist()
    parts = enumerate(_cut(values, sizes, name))
    by_part = list(dask.compute(*[call(part, name, (p, starts[p])) for p, part in parts]))
    for start, size, own in zip(starts, sizes, by_part, strict=True):
        if not same_type(own, by_part[0]):
            one = f"{name}[:{sizes[0]}] holds {by_part[0].tolist()[0]!r}"
            other = f"{name}[{start}:{start + size}] holds {own.tolist()[0]!r}"
            raise ValueError(f"{name} has mixed types: {one}, {other}")
    return by_part


def _values_of(values: Array, name: str, place: tuple[int, int]) -> Array:
    try:
        return np.unique(one_type(values, name))
    except ValueError as error:
        raise _placed(error, place) from None


def _placed(error: ValueError, place: tuple[int, int]) -> ValueError:
    """Return an error with indices of the whole array; the block has this number and begins at this index."""
    number, start = place
    where = f" (in partition {number}, which begins at index {start})"
    if isinstance(error, PointError):
        return PointError(error.index + start, error.reason + where, error.name)
    return ValueError(re.sub(r"(?<=\w\[)\d+", lambda index: str(int(index[0]) + start), str(error)) + where)


def _block(
    points: Array, labels: Array, weights: Array | None, groups: Array | None, manifold: AnyManifold, classes: Array,
    names: Any, place: tuple[int, int],
) -> Samples:  # fmt: skip
    """Check and encode one block at a ``place`` as above: its samples of positive weight, sorted by their values."""
    try:
        codes = encoded(manifold, points)
        _, targets = check_labels(labels, len(codes), classes)
        if weights is not None:  # a block may have only samples of weight 0
            weights = check_weights(np.append(weights, 1.0), len(codes) + 1)[:-1]  # type: ignore[index]
    except ValueError as error:
        raise _placed(error, place) from None
    order = canonical_order(codes, targets)
    if weights is not None:
        order = order[weights[order] > 0]
    return Samples(codes, targets, weights, None if groups is None else np.searchsorted(names, groups)).at(order)


def parts_of_blocks(
    blocks: Partitions, class_weight: ClassWeight, classes: Array, fewest: int | None
) -> tuple[Partitions, Array]:
    """Return the parts, in an order that depends on their samples only, and the summed weight (C,) of each class.

    Blocks are joined until a part has the ``fewest`` samples that it may have, and mixed if their classes are uneven:
    a part then gets every so many-th sample of each block. With None each block is a part.
    """
    of_blocks = blocks.map(_facts_of, len(classes))
    if not of_blocks:
        raise ValueError("sample_weight is zero for every sample")
    # By digest, so that the parts depend on no order in which partitions come.
    order = sorted(range(len(of_blocks)), key=lambda p: of_blocks[p][0])
    lazy = [blocks.blocks[p] for p in order]
    sizes = blocks.sizes[order]
    facts = [of_blocks[p] for p in order]
    by_class = np.array([one[1] for one in facts])  # (number of blocks, C)
    factor = _factor_of(facts, len(blocks), class_weight, classes)
    places = np.arange(len(lazy))
    if fewest is not None:  # successive blocks, so that all parts have about as many samples
        places = ((np.cumsum(sizes) - sizes / 2) * max(sizes.sum() // fewest, 1) / sizes.sum()).astype(int)
    groups = [np.flatnonzero(places == part) for part in np.unique(places)]
    pieces = [[lazy[p] for p in group] for group in groups]
    own = np.array([by_class[group].sum(axis=0) for group in groups])
    uneven = np.abs(own / own.sum(axis=1, keepdims=True) - own.sum(axis=0) / own.sum()).sum(axis=1) / 2
    if fewest is not None and (uneven > UNEVEN).any():
        count = len(pieces)
        # Blocks begin at parts that their digests name. Otherwise the first parts would get all remainders.
        firsts = [int.from_bytes(one[0][:6]) for one in facts]
        cut = list(enumerate(lazy))
        pieces = [[block.at(slice((q + firsts[p]) % count, None, count)) for p, block in cut] for q in range(count)]
    make = dask.delayed(_part, pure=False)
    return partitions_of([make(one, factor) for one in pieces], persist=blocks.persist), own.sum(axis=0) * factor


def _facts_of(block: Samples, n_classes: int) -> Facts:
    """Return the digest, the summed and the largest weight (C,) of each class, and whether labels are probabilities."""
    weights = block.filled_weights
    heaviest = np.zeros(n_classes)
    np.maximum.at(heaviest, block.classes, weights)
    summed = np.bincount(block.classes, weights, minlength=n_classes)
    return digest(block), summed, heaviest, block.targets.ndim == 2


def _factor_of(facts: Sequence[Facts], n_samples: int, class_weight: ClassWeight, classes: Array) -> Array:
    """Return the factor (C,) by which the weights of each class are multiplied; the largest scaled mean is 1."""
    _, by_class, heaviest, is_soft = zip(*facts, strict=True)
    sums = np.sum(by_class, axis=0)
    # One sample stands for each class, because the sums of weights are known already.
    targets = np.zeros((1, len(classes))) if is_soft[0] else np.arange(len(classes))
    weighed = np.asarray(weigh_classes(class_weight, classes, targets, sums, in_stream=False))
    factor = weighed / np.where(sums > 0, sums, 1.0)
    mean = weighed.sum() / n_samples
    is_heavy = mean > HEAVY or (factor * np.max(heaviest, axis=0)).max() < 1
    return np.asarray(factor / mean if is_heavy else factor)


def _part(pieces: Sequence[Samples], factor: Array) -> Samples:
    """Return the distinct samples of several pieces in canonical order; the weights of each class get a factor (C,)."""
    whole = joined(pieces)
    if whole.weights is not None or (factor != 1).any():
        whole = attrs.evolve(whole, weights=whole.filled_weights * factor[whole.classes])
        if not whole.filled_weights.any():
            return whole.at(slice(0, 0))
    ordered = whole.canonical()
    return attrs.evolve(ordered, codes=ordered.codes[:])


def reencoded(part: Samples, manifold: AnyManifold) -> Samples:
    """Encode the codes of a part, as a manifold with a reference demands."""
    return attrs.evolve(part, codes=by_block(manifold.encode, part.codes))


def held_out(
    parts: Partitions, labels: Array, fraction: float, rng: np.random.Generator
) -> tuple[Partitions, Partitions]:
    """Return the samples that train, and those held out: some of every class in each part, or whole groups.

    ``labels`` (K,) are those of prototypes. A group counts as one sample of each of its classes.
    """
    seed = int(rng.integers(2**31))
    groups = None
    named = [pairs for pairs in parts.map(_groups_with_classes) if pairs is not None]
    if named:
        names, classes = np.unique(np.concatenate(named), axis=0).T
        kept, held = split_classes(Samples(names[:, None], classes, None, names), labels, rng, fraction)
        groups = np.setdiff1d(names[held], names[kept])
    each = [(np.random.default_rng([seed, p]),) for p in range(len(parts.blocks))]
    training, rest = (parts.made(_half, which, labels, fraction, groups, each=each) for which in (0, 1))
    sizes = sum((one[1] for one in rest.map(_facts_of, labels.max() + 1)), np.zeros(labels.max() + 1))
    if not sizes.all():
        raise ValueError(f"early_stopping: class index {np.argmin(sizes)} has too few samples or groups: turn it off")
    return training, rest


def _half(
    part: Samples, which: int, labels: Array, fraction: float, groups: Array | None, rng: np.random.Generator
) -> Samples:
    if groups is not None:
        return part.at(np.isin(np.asarray(part.groups), groups) == bool(which))
    return part.at(split_classes(part, labels, copy.deepcopy(rng), fraction)[which])


def _groups_with_classes(part: Samples) -> Array | None:
    return None if part.groups is None else np.unique(np.stack([part.groups, part.classes], axis=1), axis=0)
