"""The choice of samples to hold out from each class: some for early stopping, or one fold after the other."""

import warnings
from collections.abc import Iterator

import numpy as np

from rplvq.arrays import Samples, repeats
from rplvq.protocols import Array

FOLDS = 4
"""Number of folds into which the samples are dealt."""


def split_classes(samples: Samples, labels: Array, rng: np.random.Generator, fraction: float) -> tuple[Array, Array]:
    """Draw samples to hold out from each class; return the sorted indices of the kept and of the held-out samples.

    At least one sample of a class is held out if possible. Equal samples stay together, and samples of weight 0 are in
    neither part. ``labels`` (K,) are the classes of the prototypes: each class keeps at least one more distinct sample
    than it has prototypes.

    If the samples have groups, the held-out part is whole groups with about this share of the samples, at most half. If
    no such part has samples of each class, a warning is given, and the part is drawn as without groups.
    """
    if samples.groups is not None:
        for n_folds in range(max(round(1 / fraction), 2), 1, -1):
            for kept, part in deal_groups(samples, labels, rng, n_folds):
                if len(np.unique(samples.classes[part])) == len(np.unique(labels)):
                    return kept, part
        _warn("has samples of each class")
    numbers = repeats(samples.codes, samples.targets)
    held = [
        own[: min(max(1, round(fraction * len(own))), spare)] for own, spare in _shuffled(samples, numbers, labels, rng)
    ]
    return _rows(samples, numbers, held)


def deal_folds(samples: Samples, labels: Array, rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Deal the samples of each class into folds; return the kept and the held-out indices for each fold.

    The rules are those of :func:`split_classes`, so that some samples of a small class may be held out in no fold.

    If the samples have groups, the folds are those of :func:`deal_groups`. If there are none, a warning is given, and
    the folds are dealt as without groups.
    """
    if samples.groups is not None:
        if folds := deal_groups(samples, labels, rng, FOLDS):
            return folds
        _warn("leaves enough samples of each class")
    numbers, held = repeats(samples.codes, samples.targets), [[] for _ in range(FOLDS)]  # type: ignore[var-annotated]
    first = 0
    for own, spare in _shuffled(samples, numbers, labels, rng):
        for fold, part in enumerate(np.array_split(own, FOLDS)):
            held[(first + fold) % FOLDS].append(part[:spare])
        first += len(own)  # the next class begins where this one ended, so that all folds have about the same size
    return [_rows(samples, numbers, part) for part in held]


def deal_groups(samples: Samples, labels: Array, rng: np.random.Generator, n_folds: int) -> list[tuple[Array, Array]]:
    """Deal whole groups into at most ``n_folds`` folds; return the kept and the held-out indices for each fold.

    As in :class:`sklearn.model_selection.StratifiedGroupKFold`, each group goes to the fold where it leaves the classes
    spread most evenly, the groups of the most uneven classes first. (That class is not used here, because it refuses
    classes with few samples, or warns of them.)

    Each class keeps at least one more sample than it has prototypes, or all. A group that cannot be held out for this
    reason is kept in all folds, and a fold of several such groups is left out, so that there may be no folds.
    """
    usable = np.flatnonzero(samples.filled_weights > 0)
    group = np.unique(np.asarray(samples.groups)[usable], return_inverse=True)[1]
    needed = np.bincount(labels)
    counts = np.zeros((group.max() + 1, len(needed)), dtype=int)
    np.add.at(counts, (group, samples.classes[usable]), 1)
    total = counts.sum(axis=0)

    def can_go(held: Array) -> Array:  # counts (..., C) of held-out samples
        return np.asarray(((total - held > needed) | (held == 0)).all(axis=-1))

    free = rng.permutation(np.flatnonzero(can_go(counts)))
    free = free[np.argsort(-counts[free].std(axis=1), kind="stable")]
    fold_of, held = np.full(len(counts), -1), np.zeros((min(n_folds, len(free)), len(needed)))
    for one in free:
        fold_of[one] = _evenest(held, counts[one], total)
        held[fold_of[one]] += counts[one]
    parts = (fold_of[group] == fold for fold in rng.permutation(np.flatnonzero(can_go(held))))
    return [(usable[~part], usable[part]) for part in parts]


def _evenest(held: Array, counts: Array, total: Array) -> int:
    """Return the fold where a group with ``counts`` (C,) leaves each class spread most evenly over the folds.

    ``held`` (F, C) are the counts of the folds so far, and ``total`` (C,) those of all samples. Of equally even folds
    the one with the fewest samples is returned.
    """
    after = held + np.eye(len(held))[:, :, None] * counts  # (fold that gets the group, fold, class)
    uneven = (after / np.maximum(total, 1)).std(axis=1).mean(axis=1).round(12)
    return int(np.lexsort((held.sum(axis=1), uneven))[0])


def _warn(what: str) -> None:
    warnings.warn(
        f"groups: no held-out part of whole groups {what}, so random samples are held out, as without groups",
        UserWarning,
        stacklevel=2,
    )


def _shuffled(samples: Samples, numbers: Array, labels: Array, rng: np.random.Generator) -> Iterator[tuple[Array, int]]:
    """Yield the distinct samples of each class in random order, and how many of them may be held out at once."""
    usable = samples.filled_weights > 0
    for label, count in enumerate(np.bincount(labels)):
        own = np.unique(numbers[(samples.classes == label) & usable])
        yield rng.permutation(own), max(len(own) - int(count) - 1, 0)


def _rows(samples: Samples, numbers: Array, held: list[Array]) -> tuple[Array, Array]:
    """Return the indices of the usable samples that are not held out, and of those that are."""
    usable = samples.filled_weights > 0
    chosen = np.isin(numbers, np.concatenate(held)) & usable
    return np.flatnonzero(usable & ~chosen), np.flatnonzero(chosen)
