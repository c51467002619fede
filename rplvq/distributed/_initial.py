"""First prototypes of data in partitions: the initializers of one process, run by passes over the workers."""

from typing import Any, TypeGuard

import attrs
import numpy as np

from rplvq.arrays import Samples, canonical_order
from rplvq.distributed._partitions import Partitions
from rplvq.initializers import Assignment, choose_by_class, prototype_counts
from rplvq.manifolds import Look, descend
from rplvq.protocols import Array, Initializer, InitializerByClass, InitializerWithoutSamples, Manifold, Prototypes


def _is_by_class(initializer: Initializer) -> TypeGuard[InitializerByClass]:
    return hasattr(initializer, "choose") and hasattr(initializer, "per_class")


def _needs_no_samples(initializer: Initializer) -> TypeGuard[InitializerWithoutSamples]:
    return hasattr(initializer, "place")


def first_prototypes(
    initializer: Initializer, manifold: Manifold[Any], partitions: Partitions, n_classes: int, rng: np.random.Generator
) -> tuple[Prototypes, Array]:
    """Choose prototypes (K, ...) and labels (K,) as the initializer would on all samples in one process.

    The initializer must offer ``choose``, as :class:`rplvq.ClassMeans` does, or ``place`` if it needs no samples.
    """
    if _needs_no_samples(initializer):
        shape = partitions.take(np.arange(1)).codes.shape[1:]
        return initializer.place(manifold, shape, n_classes)
    if not _is_by_class(initializer):
        usable = "use 'mean', 'kmeans' or (prototypes, labels)"
        raise ValueError(f"init={initializer!r} has no distributed version: {usable}")
    counts = prototype_counts(initializer.per_class, n_classes)
    classes = [DistributedMembers(manifold, partitions.of_class(label)) for label in range(n_classes)]
    return choose_by_class(initializer.choose, counts, classes, rng)


@attrs.frozen(eq=False)
class DistributedMembers:
    """The samples of one class on the workers, as :class:`rplvq.initializers.Members`.

    ``sqdist`` and ``owners`` are lists with one array per partition, which stays on the worker.
    """

    manifold: Manifold[Any]
    partitions: Partitions

    def __len__(self) -> int:
        return len(self.partitions)

    def mean(
        self, start: Array | None = None, tol: float = 1e-9, owners: Any = None, center: int = 0, *, max_iter: int = 200
    ) -> Array:
        geometry: Any = self.manifold
        own = [(owner, center) for owner in owners or [None] * len(self.partitions.blocks)]

        def look(prototype: Prototypes) -> Look:
            found = self.partitions.map(_look_at, geometry, prototype, each=own)
            count, value, tangent = (sum(values) for values in zip(*found, strict=True))
            return Look(prototype, value / count, lambda step: geometry.exp(prototype, step * (tangent / count)))

        if start is None:  # the first sample in canonical order, whatever partition it is in
            codes = np.concatenate([code for code in self.partitions.map(_first_of) if len(code)])
            start = codes[canonical_order(codes, np.zeros(len(codes)))[0]]
        return descend(geometry, look, start[None], len(self), tol=tol, max_iter=max_iter).code

    def draw(self, rng: np.random.Generator, sqdist: Any = None) -> Array:
        # The partition is drawn first, by its total, and then the sample in it, with the same random number.
        totals = self.partitions.sizes.astype(float)
        if sqdist is not None and any(found := self.partitions.map(_total, each=[(part,) for part in sqdist])):
            totals = np.array(found)
        else:
            sqdist = None
        running = np.cumsum(totals)
        left = rng.uniform() * running[-1]
        part = int(np.searchsorted(running, left, side="right").clip(max=len(totals) - 1))
        weights, rest = None if sqdist is None else sqdist[part], float(left - (running[part] - totals[part]))
        one = Partitions([self.partitions.blocks[part]], totals[[part]])
        (code,) = one.map(_draw_one, each=[(weights, rest)])
        return np.asarray(code)

    def nearest(self, seed: Array, sqdist: Any = None) -> list[Any]:
        before = sqdist or [None] * len(self.partitions.blocks)
        return self.partitions.keep(_nearest, self.manifold, seed, each=[(part,) for part in before])

    def assign(self, centers: Array, owners: Any = None) -> Assignment:
        before = owners or [None] * len(self.partitions.blocks)
        found = self.partitions.keep(_assign, self.manifold, centers)
        changes = self.partitions.map(_compare, each=list(zip(found, before, strict=True)))
        used = np.unique(np.concatenate([centers_used for centers_used, _ in changes]))
        return Assignment(found, used, any(changed for _, changed in changes))


def _look_at(
    block: Samples, manifold: Any, prototype: Prototypes, owners: Array | None, center: int | None
) -> tuple[int, float, Array]:
    """Return the number of samples of a center, the sum of their squared distances and that of their logarithms."""
    codes = block.codes[:] if owners is None else block.codes[owners == center]
    if not len(codes):
        return 0, 0.0, np.zeros(1)
    geodesics = manifold.connect(prototype, codes)
    return len(codes), float(geodesics.sqdist.sum()), manifold.pull(geodesics, np.ones((len(codes), 1)))


def _first_of(block: Samples) -> Array:
    return block.codes[canonical_order(block.codes, np.zeros(len(block)))[:1]]


def _total(_: Samples, sqdist: Array) -> float:
    return float(sqdist.sum())


def _draw_one(block: Samples, sqdist: Array | None, rest: float) -> Array:
    """Return the code (1, ...) where the running total of ``sqdist`` (N,), ones if None, exceeds ``rest``."""
    total = np.cumsum(np.ones(len(block)) if sqdist is None else sqdist)
    return block.codes[[int(np.searchsorted(total, rest, side="right").clip(max=len(total) - 1))]]


def _nearest(block: Samples, manifold: Manifold[Any], seed: Array, sqdist: Array | None) -> Array:
    if not len(block):
        return np.empty(0)
    found = np.asarray(manifold.sqdist(seed, block.codes[:]))[:, 0]
    return found if sqdist is None else np.minimum(sqdist, found)


def _assign(block: Samples, manifold: Manifold[Any], centers: Array) -> Array:
    if not len(block):
        return np.empty(0, dtype=np.int32)
    return np.asarray(manifold.sqdist(centers, block.codes[:]).argmin(axis=1), dtype=np.int32)


def _compare(_: Samples, owners: Array, before: Array | None) -> tuple[Array, bool]:
    """Return the centers in use, and whether any sample changed its center."""
    return np.unique(owners), before is None or not np.array_equal(owners, before)
