"""First prototypes of data in partitions: those of a sample that this process holds, and the means of all samples."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from rplvq.arrays import Samples, parts_of
from rplvq.distributed._partitions import Partitions
from rplvq.manifolds import Look, descend, is_stateful
from rplvq.protocols import Array, Manifold, Prototypes
from rplvq.training import Trainer

THREADS = 16
"""Classes whose means are searched at the same time, so that the round trips of one do not hold up the others."""


def first_prototypes(
    trainer: Trainer, partitions: Partitions, some: Samples, n_classes: int, rng: np.random.Generator, *, is_all: bool
) -> tuple[Prototypes, Array]:
    """Choose prototypes (K, ...) and labels (K,): the initializer sees ``some`` samples that were collected here.

    Unless these are all, class means are searched from there among all samples.
    """
    prototypes, labels = trainer.first_prototypes(some, n_classes, rng)
    is_one_each = len(labels) == n_classes and getattr(trainer.initializer, "takes_means", False)
    if is_all or not is_one_each:
        return prototypes, labels
    with ThreadPoolExecutor(THREADS) as threads:
        search = partial(_mean, trainer.manifold, partitions)
        return np.stack(list(threads.map(search, np.asarray(prototypes), range(n_classes)))), labels


def _mean(manifold: Manifold[Any], partitions: Partitions, start: Array, label: int) -> Array:
    """Return the Riemannian mean (...) of the samples of one class.

    A pass sends a candidate to the workers. Each moves it along the mean logarithm of its samples, and the mean
    logarithm of all is that of these points.
    """

    def look(prototype: Prototypes) -> Look:
        found = [seen for seen in partitions.map(_look_at, manifold, np.asarray(prototype), label) if len(seen[0])]
        codes, totals, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        shares, geodesics = totals / totals.sum(), manifold.connect(prototype, codes)

        def follow(step: float) -> Prototypes:
            moved = manifold.move(geodesics, step * shares[:, None])
            return np.asarray(moved) if is_stateful(moved) else moved

        return Look(prototype, float(values.sum() / totals.sum()), follow)

    return descend(manifold, look, start[None], len(partitions), tol=1e-9, max_iter=200).code


def _look_at(part: Samples, manifold: Manifold[Any], prototype: Array, label: int) -> tuple[Array, Array, Array]:
    """Return codes (M, ...), weights (M,) and weighted sums of squared distances (M,) of M blocks of one class.

    Each code is the prototype (1, ...) after a step along the mean logarithm of a block.
    """
    mine = np.flatnonzero(part.classes == label)
    codes, weights = part.codes[mine], part.filled_weights[mine]
    moved, totals, values = [codes[:0]], [0.0] * 0, [0.0] * 0
    for rows in parts_of(codes) if len(codes) else []:
        geodesics, own = manifold.connect(prototype, codes[rows]), weights[rows]
        moved.append(np.asarray(manifold.move(geodesics, own[:, None] / own.sum())))
        totals.append(float(own.sum()))
        values.append(float(own @ geodesics.sqdist[:, 0]))
    return np.concatenate(moved), np.array(totals), np.array(values)
