"""The choice of samples to hold out from each class: some for early stopping, or one fold after the other."""

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
    """
    numbers = repeats(samples.codes, samples.targets)
    held = [
        own[: min(max(1, round(fraction * len(own))), spare)] for own, spare in _shuffled(samples, numbers, labels, rng)
    ]
    return _rows(samples, numbers, held)


def deal_folds(samples: Samples, labels: Array, rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Deal the samples of each class into folds; return the kept and the held-out indices for each fold.

    The rules are those of :func:`split_classes`, so that some samples of a small class may be held out in no fold.
    """
    numbers, held = repeats(samples.codes, samples.targets), [[] for _ in range(FOLDS)]  # type: ignore[var-annotated]
    first = 0
    for own, spare in _shuffled(samples, numbers, labels, rng):
        for fold, part in enumerate(np.array_split(own, FOLDS)):
            held[(first + fold) % FOLDS].append(part[:spare])
        first += len(own)  # the next class begins where this one ended, so that all folds have about the same size
    return [_rows(samples, numbers, part) for part in held]


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
