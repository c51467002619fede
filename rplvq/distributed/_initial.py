"""First prototypes of data in partitions: Karcher means and k-means by passes over the workers."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from rplvq.arrays import Samples, canonical_order
from rplvq.distributed._partitions import Partitions, partition, rows_of_class
from rplvq.estimators import resolve_manifold
from rplvq.initializers import ClassKMeans, ClassMeans, GivenPrototypes, perturbed, prototype_counts
from rplvq.manifolds import Look, Mean, descend
from rplvq.protocols import Array, Initializer, Manifold, Prototypes

__all__ = ["distributed_mean", "first_prototypes"]


def distributed_mean(manifold: str | Manifold[Any], X: Any, *, tol: float = 1e-9, max_iter: int = 200) -> Array:
    """Riemannian mean of a Dask array: Karcher's iteration, one pass over the workers a step.

    Every worker returns the sum of its squared distances and of its logarithms; see
    :func:`rplvq.manifolds.riemannian_mean` for formula and source.

    Parameters
    ----------
    manifold : str or Manifold
        The geometry, with ``pull`` and ``exp``.
    X : dask.array.Array of shape (N, n, n)
        Points.
    tol : float, default=1e-9
        Where to stop, as for :func:`rplvq.manifolds.riemannian_mean`.
    max_iter : int, default=200
        Steps at most; a warning tells if they were not enough.

    Returns
    -------
    ndarray of shape (n, n)
        The mean, as a point.

    Raises
    ------
    ValueError
        At the first point that is not on the manifold.

    Examples
    --------
    >>> import dask.array as da
    >>> from rplvq.distributed import distributed_mean
    >>> X = da.from_array(np.array([np.diag([np.e**2, 1.0]), np.eye(2)]), chunks=(1, 2, 2))
    >>> distributed_mean("affine_invariant", X).round(6)
    array([[2.718282, 0.      ],
           [0.      , 1.      ]])
    """
    geometry = resolve_manifold(manifold)
    partitions, _ = partition(X, None, geometry, persist=True)
    mean = _mean(geometry, partitions, None, None, tol=tol, max_iter=max_iter)
    return np.array(geometry.decode(mean.code[None])[0])


def first_prototypes(
    initializer: Initializer, manifold: Manifold[Any], partitions: Partitions, n_classes: int, rng: np.random.Generator
) -> tuple[Prototypes, Array]:
    """Choose prototypes (K, ...) and labels (K,) as the initializer would on all samples in one place.

    Raises
    ------
    ValueError
        If a class has fewer samples than prototypes, or the initializer has no distributed version.
    """
    if isinstance(initializer, GivenPrototypes):
        few = partitions.take(np.arange(1))
        return initializer(manifold, few.codes, few.targets, n_classes, rng)
    if not isinstance(initializer, (ClassMeans, ClassKMeans)):
        raise ValueError(
            f"init={initializer!r} has no distributed version: use 'mean', 'kmeans' or (prototypes, labels)"
        )
    counts = prototype_counts(initializer.per_class, n_classes)
    chosen = []
    for label in range(n_classes):
        members = _Members.of(partitions, label)
        if len(members) < counts[label]:
            raise ValueError(f"class {label} has {len(members)} samples for {counts[label]} prototypes")
        if isinstance(initializer, ClassKMeans):
            chosen.append(_k_means(initializer, manifold, members, int(counts[label]), rng))
        else:
            chosen.append(_means(initializer, manifold, members, int(counts[label]), rng))
    return np.concatenate(chosen), np.repeat(np.arange(n_classes), counts)


@attrs.frozen(eq=False)
class _Members:
    """The samples of one class in every partition."""

    partitions: Partitions
    label: int
    sizes: Array

    @classmethod
    def of(cls, partitions: Partitions, label: int) -> _Members:
        return cls(partitions, label, np.array(partitions.map(_count, label)))

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def draw(self, totals: Array, weight: float) -> tuple[int, float]:
        """Partition in which the running total of weights (P,) exceeds ``weight``, and what is left of it there."""
        running = np.cumsum(totals)
        part = int(np.searchsorted(running, weight, side="right").clip(max=len(totals) - 1))
        return part, float(weight - (running[part] - totals[part]))

    def take(self, part: int, row: int) -> Array:
        """Code (1, ...) of the class's ``row`` in a partition."""
        (code,) = Partitions([self.partitions.blocks[part]], self.sizes[[part]]).map(_member, self.label, row)
        return np.asarray(code)


def _count(block: Samples, label: int) -> int:
    return len(rows_of_class(block, label))


def _member(block: Samples, label: int, row: int) -> Array:
    return block.codes[rows_of_class(block, label)[[row]]]


def _means(
    initializer: ClassMeans, manifold: Manifold[Any], members: _Members, count: int, rng: np.random.Generator
) -> Array:
    mean = _mean(manifold, members.partitions, members.label, None, start=_first(members)).code
    if count == 1 or initializer.perturbation == 0:
        return np.repeat(mean[None], count, axis=0)
    total = float(len(members))
    rows = [members.draw(members.sizes, rng.uniform() * total) for _ in range(32)]
    few = np.concatenate([members.take(part, int(left)) for part, left in rows])
    return perturbed(manifold, mean, few, count, initializer.perturbation, rng)


def _first(members: _Members) -> Array:
    """Start of a mean, (1, ...): the first sample in the order of their values, whatever partition it is in."""
    found = members.partitions.map(_first_of, members.label)
    codes = np.concatenate([code for code in found if code is not None])
    return codes[canonical_order(codes, np.zeros(len(codes)))[:1]]


def _first_of(block: Samples, label: int) -> Array | None:
    codes = block.codes[rows_of_class(block, label)]
    return codes[canonical_order(codes, np.zeros(len(codes)))[:1]] if len(codes) else None


def _mean(
    manifold: Manifold[Any],
    partitions: Partitions,
    label: int | None,
    owners: tuple[list[Any], int] | None,
    *,
    start: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> Mean:
    """Mean of a class, or of the members that ``owners`` give to one center."""
    geometry: Any = manifold
    own = [(owner, owners[1]) for owner in owners[0]] if owners else [(None, 0)] * len(partitions.blocks)

    def look(prototype: Prototypes) -> Look:
        found = partitions.map(_look_at, manifold, prototype, label, each=own)
        count = sum(part[0] for part in found)
        tangent = sum(part[2] for part in found) / count
        value = sum(part[1] for part in found) / count
        return Look(prototype, value, lambda step: geometry.exp(prototype, step * tangent))

    first = partitions.take(np.arange(1)).codes if start is None else start
    return descend(manifold, look, first, len(partitions), tol=tol, max_iter=max_iter)


def _look_at(
    block: Samples, manifold: Any, prototype: Prototypes, label: int | None, owner: Array | None, center: int
) -> tuple[int, float, Array]:
    """Return the number of members in a block, the sum of their squared distances and of their logarithms."""
    rows = rows_of_class(block, label)
    rows = rows if owner is None else rows[owner == center]
    if not len(rows):
        return 0, 0.0, np.zeros(1)
    geodesics = manifold.connect(prototype, block.codes[rows])
    return len(rows), float(geodesics.sqdist.sum()), manifold.pull(geodesics, np.ones((len(rows), 1)))


def _k_means(
    initializer: ClassKMeans, manifold: Manifold[Any], members: _Members, count: int, rng: np.random.Generator
) -> Array:
    """k-means of one class, as :class:`rplvq.ClassKMeans` does it: the same draws, the same passes."""
    partitions, label = members.partitions, members.label
    if count == 1:
        return _mean(manifold, partitions, label, None, start=_first(members)).code[None]
    centers = _seeds(manifold, members, count, rng)
    owners: list[Any] = [None] * len(partitions.blocks)
    for _ in range(initializer.max_iter):
        assigned = partitions.lazily(_assign, manifold, centers, label)
        changed = partitions.map(_differ, each=list(zip(assigned, owners, strict=True)))
        if not any(part[0] for part in changed):
            break
        owners = [part[1] for part in changed]
        for k in np.unique(np.concatenate(owners)):
            centers[k] = _mean(manifold, partitions, label, (owners, int(k)), start=centers[k][None], tol=1e-6).code
    return centers


def _assign(block: Samples, manifold: Manifold[Any], centers: Array, label: int) -> Array:
    rows = rows_of_class(block, label)
    if not len(rows):
        return np.empty(0, dtype=np.int32)
    return np.asarray(manifold.sqdist(centers, block.codes[rows]).argmin(axis=1), dtype=np.int32)


def _differ(_: Samples, assigned: Array, owner: Array | None) -> tuple[bool, Array]:
    return owner is None or not np.array_equal(assigned, owner), assigned


def _seeds(manifold: Manifold[Any], members: _Members, count: int, rng: np.random.Generator) -> Array:
    """k-means++ over the partitions: every draw asks each for its total first."""
    part, left = members.draw(members.sizes, rng.uniform() * len(members))
    seeds = [members.take(part, int(left))]
    for _ in range(count - 1):
        found = members.partitions.map(_nearest_total, manifold, np.concatenate(seeds), members.label)
        totals = np.array(found) if any(found) else members.sizes.astype(float)
        part, left = members.draw(totals, rng.uniform() * totals.sum())
        block = Partitions([members.partitions.blocks[part]], members.sizes[[part]])
        (row,) = block.map(_nearest_row, manifold, np.concatenate(seeds), members.label, left)
        seeds.append(members.take(part, row))
    return np.concatenate(seeds)


def _nearest(block: Samples, manifold: Manifold[Any], seeds: Array, label: int) -> Array:
    rows = rows_of_class(block, label)
    if not len(rows):
        return np.empty(0)
    return np.asarray(manifold.sqdist(seeds, block.codes[rows]).min(axis=1))


def _nearest_total(block: Samples, manifold: Manifold[Any], seeds: Array, label: int) -> float:
    return float(_nearest(block, manifold, seeds, label).sum())


def _nearest_row(block: Samples, manifold: Manifold[Any], seeds: Array, label: int, left: float) -> int:
    nearest = _nearest(block, manifold, seeds, label)
    total = np.cumsum(nearest if nearest.any() else np.ones_like(nearest))
    return int(np.searchsorted(total, left, side="right").clip(max=len(total) - 1))
