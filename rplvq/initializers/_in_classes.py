"""First prototypes that are chosen in each class: its mean, or k-means."""

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from rplvq.arrays import by_block, hard_targets, reads_parts, subset
from rplvq.capabilities import PlacesMeans, provides
from rplvq.manifolds import means_of_groups, riemannian_mean
from rplvq.parts import count_from, library_part, number_in
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


@attrs.frozen(eq=False)
class Members:
    """The samples (N, ...) of one class, with their weights (N,) and their mean, if it is known."""

    manifold: Manifold[Any]
    codes: Array
    weights: Array
    known: Array | None = None

    def mean(self) -> Array:
        """Return the Riemannian mean (...) of all samples."""
        return riemannian_mean(self.manifold, self.codes, self.weights).code if self.known is None else self.known

    def draw(self, rng: np.random.Generator, sqdist: Array | None = None) -> Array:
        """Draw one sample (1, ...) with probability proportional to its weight times its ``sqdist``, 1 if not given."""
        weights = self.weights if sqdist is None else self.weights * sqdist
        total = np.cumsum(weights if weights.any() else np.ones_like(weights))
        row = np.searchsorted(total, rng.uniform() * total[-1], side="right").clip(max=len(total) - 1)
        return self.codes[[int(row)]]


def places_means(initializer: Any) -> bool:
    """Whether an initializer places the single prototype of a class at its mean."""
    return provides(initializer, PlacesMeans) and initializer.takes_means


@reads_parts
def _choose_in_each_class(
    self: Any,
    manifold: Manifold[Any],
    codes: Array,
    targets: Array,
    n_classes: int,
    rng: np.random.Generator,
    sample_weight: Array | None = None,
) -> tuple[Array, Array]:
    """Return prototypes (K, ...) and labels (K,); raise ValueError if a class has too few samples."""
    # The method __call__ of all initializers that choose the prototypes of each class by a method ``choose``.
    hard = hard_targets(targets)
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    rows = [np.flatnonzero((hard == label) & (weights > 0)) for label in range(n_classes)]
    known: Any = [None] * n_classes
    if places_means(self) and all(map(len, rows)):
        known = means_of_groups(manifold, codes, rows, weights)
    counts = prototype_counts(self.per_class, n_classes)
    chosen = []
    for label, (mine, mean) in enumerate(zip(rows, known, strict=True)):
        size = int(min(np.ceil(weights[mine]).sum(), 2.0**31))  # a weight counts as copies, too
        if size < counts[label]:
            raise ValueError(
                f"class index {label} has {size} sample(s) of positive weight, fewer than its "
                f"{counts[label]} prototype(s): lower prototypes_per_class or drop the class"
            )
        members = Members(manifold, subset(codes, mine), weights[mine], mean)
        chosen.append(self.choose(members, int(counts[label]), rng))
    return np.concatenate(chosen), np.repeat(np.arange(n_classes), counts)


@library_part
@attrs.frozen
class ClassMeans:
    """Every prototype of a class starts at the Riemannian mean of the class, slightly perturbed.

    A single prototype of a class is the mean itself, so that a fit with no epoch is the classifier of minimum distance
    to mean (MDM).

    Parameters
    ----------
    per_class : int or sequence of int, optional
        Number of prototypes of each class; by default the ``prototypes_per_class`` of the estimator, else 1.
    perturbation : float, default=1e-3
        Root mean squared length of the perturbation, relative to the distances of the samples to the mean.

    Examples
    --------
    >>> from rplvq import ClassMeans, EuclideanVectors
    >>> codes, targets = np.array([[0.0], [2.0], [9.0]]), np.array([0, 0, 1])
    >>> ClassMeans()(EuclideanVectors(), codes, targets, 2, np.random.default_rng(0))
    (array([[1.],
           [9.]]), array([0, 1]))
    """

    takes_means: ClassVar[bool] = True
    """Whether a single prototype of a class is placed at its mean."""

    per_class: int | tuple[int, ...] | None = None
    perturbation: float = attrs.field(default=1e-3, validator=number_in(closed=True, finite=True))

    __call__ = _choose_in_each_class

    def choose(self, members: Members, count: int, rng: np.random.Generator) -> Array:
        """Choose the prototypes (count, ...) of one class."""
        mean = members.mean()
        if count == 1 or self.perturbation == 0:
            return np.repeat(mean[None], count, axis=0)
        few = np.concatenate([members.draw(rng) for _ in range(32)])
        return perturbed(members.manifold, mean, few, count, self.perturbation, rng)


@library_part
@attrs.frozen
class ClassKMeans:
    """k-means inside each class, on the manifold: seeding by k-means++, then Lloyd's iterations.

    Centers are Riemannian means of their samples (Lloyd 1982; seeding by Arthur and Vassilvitskii 2007).

    Parameters
    ----------
    per_class : int or sequence of int, optional
        Number of prototypes of each class; by default the ``prototypes_per_class`` of the estimator, else 1.
    max_iter : int, default=20
        Largest number of Lloyd's iterations, which end when no sample changes its center.

    Examples
    --------
    >>> from rplvq import ClassKMeans, EuclideanVectors
    >>> codes, targets = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([0, 0, 0, 0])
    >>> prototypes, _ = ClassKMeans(per_class=2)(EuclideanVectors(), codes, targets, 1, np.random.default_rng(0))
    >>> np.sort(prototypes, axis=0)
    array([[0.5],
           [8.5]])
    """

    per_class: int | tuple[int, ...] | None = None
    max_iter: int = attrs.field(default=20, validator=count_from(1))

    __call__ = _choose_in_each_class

    def choose(self, members: Members, count: int, rng: np.random.Generator) -> Array:
        """Choose the prototypes (count, ...) of one class."""
        if count == 1:
            return members.mean()[None]
        manifold = members.manifold
        codes = members.codes
        centers = self._seeds(members, count, rng)
        owners = np.empty(0)
        for _ in range(self.max_iter):
            nearest = by_block(lambda part: manifold.sqdist(centers, part).argmin(axis=1), codes, n_columns=count)
            if np.array_equal(nearest, owners):
                break
            owners = nearest
            for k in np.unique(owners):
                mine = np.flatnonzero(owners == k)
                own = subset(codes, mine), members.weights[mine]
                centers[k] = riemannian_mean(manifold, *own, start=centers[k], tol=1e-6).code
        return centers

    @staticmethod
    def _seeds(members: Members, count: int, rng: np.random.Generator) -> Array:
        """k-means++: each seed is drawn with probability proportional to its squared distance to the nearest other."""
        seeds = [members.draw(rng)]
        sqdist = np.full(len(members.codes), np.inf)
        for _ in range(count - 1):
            latest = by_block(lambda part: members.manifold.sqdist(seeds[-1], part)[:, 0], members.codes)
            sqdist = np.minimum(sqdist, latest)
            seeds.append(members.draw(rng, sqdist))
        return np.concatenate(seeds)
