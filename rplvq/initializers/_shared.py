"""What several initializers share: the numbers of prototypes, and slightly moved copies of one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rplvq.protocols import Array, Manifold


def prototype_counts(per_class: int | Sequence[int] | None, n_classes: int) -> Array:
    """Return the number of prototypes of each class, shape (C,); raise ValueError unless C positive integers result."""
    counts = np.asarray(1 if per_class is None else per_class)
    if counts.ndim == 0:
        counts = np.full(n_classes, counts)
    if counts.dtype.kind not in "iu":
        raise ValueError(f"prototypes_per_class must be integers, got {per_class!r}")
    if counts.shape != (n_classes,):
        raise ValueError(f"prototypes_per_class has {counts.size} entries, but there are {n_classes} classes")
    if (counts < 1).any():
        index = int(np.argmax(counts < 1))
        raise ValueError(f"prototypes_per_class must be at least 1, got {counts[index]} for class index {index}")
    return counts


def perturbed(
    manifold: Manifold[Any], code: Array, samples: Array, count: int, size: float, rng: np.random.Generator
) -> Array:
    """Return copies (count, ...) of one code, each moved a little along the logarithms of samples (N, ...).

    ``size`` is the root mean squared length of these moves, relative to the distances of the samples.
    """
    # Random combinations of the logarithms of samples follow the scale and the shape of the data.
    geodesics = manifold.connect(np.repeat(code[None], count, axis=0), samples)
    weights = rng.uniform(-1, 1, (len(samples), count)) * size * np.sqrt(3 / len(samples))
    return np.asarray(manifold.move(geodesics, weights))
