"""Where prototypes begin: class means, k-means inside each class, or points that the user gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from rplvq.arrays import by_block, hard_targets, reads_parts, subset
from rplvq.exceptions import PointError
from rplvq.manifolds import riemannian_mean
from rplvq.parts import library_part
from rplvq.protocols import Array, Manifold, Prototypes

__all__ = ["ClassKMeans", "ClassMeans", "GivenPrototypes", "prototype_counts"]


def prototype_counts(per_class: int | Sequence[int] | None, n_classes: int) -> Array:
    """Return the number of prototypes of each class, shape (C,).

    Raises
    ------
    ValueError
        If a number is below 1 or their count is not C.
    """
    counts = np.asarray(1 if per_class is None else per_class)
    if counts.ndim == 0:
        counts = np.full(n_classes, counts)
    if counts.dtype.kind not in "iu":
        raise ValueError(f"prototypes_per_class must be integers, got {per_class!r}")
    if counts.shape != (n_classes,):
        raise ValueError(f"prototypes_per_class has {counts.size} entries for {n_classes} classes")
    if (counts < 1).any():
        index = int(np.argmax(counts < 1))
        raise ValueError(f"prototypes_per_class must be at least 1, got {counts[index]} for class index {index}")
    return counts


def _classes(
    codes: Array, targets: Array, counts: Array, sample_weight: Array | None
) -> Iterator[tuple[int, Array, Array]]:
    """Yield class index, codes and weights of the samples of each class; refuse too small classes."""
    hard = hard_targets(targets)
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    members = [np.flatnonzero((hard == label) & (weights > 0)) for label in range(len(counts))]
    for label, rows in enumerate(members):
        if len(rows) < counts[label]:
            raise ValueError(
                f"class index {label} has {len(rows)} sample(s) of positive weight, fewer than its "
                f"{counts[label]} prototype(s): lower prototypes_per_class or drop the class"
            )
    for label, rows in enumerate(members):
        yield label, subset(codes, rows), weights[rows]


def _draw(weights: Array, rng: np.random.Generator) -> int:
    """Draw an index with probability proportional to weights (N,); equal for all if they are all zero."""
    total = np.cumsum(weights if weights.any() else np.ones_like(weights))
    return int(np.searchsorted(total, rng.uniform() * total[-1], side="right").clip(max=len(total) - 1))


def perturbed(
    manifold: Manifold[Any], code: Array, samples: Array, count: int, size: float, rng: np.random.Generator
) -> Array:
    """Copy one code ``count`` times, each moved a little towards and away from the samples.

    The tangents are random combinations of the samples' logarithms with root mean squared length ``size``
    times that of the samples' distances, so that the perturbation follows the data's scale and shape.
    """
    geodesics = manifold.connect(np.repeat(code[None], count, axis=0), samples)
    weights = rng.uniform(-1, 1, (len(samples), count)) * size * np.sqrt(3 / len(samples))
    return np.asarray(manifold.move(geodesics, weights))


@library_part
@attrs.frozen
class ClassMeans:
    """Every prototype of a class starts at the class's Riemannian mean, slightly perturbed.

    A single prototype of a class is the mean itself, so that training for no epoch is the classifier of
    minimum distance to mean (MDM).

    Parameters
    ----------
    per_class : int or sequence of int, optional
        Prototypes of each class; the estimator fills in its ``prototypes_per_class``.
    perturbation : float, default=1e-3
        Root mean squared length of the perturbation, in units of the distances in the class.

    Examples
    --------
    >>> from rplvq import ClassMeans, EuclideanVectors
    >>> codes, targets = np.array([[0.0], [2.0], [9.0]]), np.array([0, 0, 1])
    >>> ClassMeans()(EuclideanVectors(), codes, targets, 2, np.random.default_rng(0))
    (array([[1.],
           [9.]]), array([0, 1]))
    """

    per_class: int | tuple[int, ...] | None = None
    perturbation: float = attrs.field(default=1e-3, validator=attrs.validators.ge(0))

    @reads_parts
    def __call__(
        self,
        manifold: Manifold[Any],
        codes: Array,
        targets: Array,
        n_classes: int,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return prototypes (K, ...) and labels (K,), sorted by class.

        Raises
        ------
        ValueError
            If a class has fewer samples than prototypes.
        """
        counts = prototype_counts(self.per_class, n_classes)
        chosen = []
        for label, members, weights in _classes(codes, targets, counts, sample_weight):
            mean = riemannian_mean(manifold, members, weights).code
            if counts[label] == 1 or self.perturbation == 0:
                chosen.append(np.repeat(mean[None], counts[label], axis=0))
                continue
            few = members[[_draw(weights, rng) for _ in range(32)]]
            chosen.append(perturbed(manifold, mean, few, int(counts[label]), self.perturbation, rng))
        return np.concatenate(chosen), np.repeat(np.arange(n_classes), counts)


@library_part
@attrs.frozen
class ClassKMeans:
    """k-means inside each class, in the manifold: k-means++ seeding, then Lloyd's iterations.

    Centers are Riemannian means of their samples (Lloyd 1982; seeding by Arthur and Vassilvitskii 2007).

    Parameters
    ----------
    per_class : int or sequence of int, optional
        Prototypes of each class; the estimator fills in its ``prototypes_per_class``.
    max_iter : int, default=20
        Bound on Lloyd's iterations; they stop when no sample changes its center.

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
    max_iter: int = attrs.field(default=20, validator=attrs.validators.ge(1))

    @reads_parts
    def __call__(
        self,
        manifold: Manifold[Any],
        codes: Array,
        targets: Array,
        n_classes: int,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return prototypes (K, ...) and labels (K,), sorted by class.

        Raises
        ------
        ValueError
            If a class has fewer samples than prototypes.
        """
        counts = prototype_counts(self.per_class, n_classes)
        chosen = [
            self._centers(manifold, members, weights, int(counts[label]), rng)
            for label, members, weights in _classes(codes, targets, counts, sample_weight)
        ]
        return np.concatenate(chosen), np.repeat(np.arange(n_classes), counts)

    def _centers(
        self, manifold: Manifold[Any], codes: Array, weights: Array, count: int, rng: np.random.Generator
    ) -> Array:
        if count == 1:
            return riemannian_mean(manifold, codes, weights).code[None]
        centers = self._seeds(manifold, codes, weights, count, rng)
        owner = np.full(len(codes), -1)
        for _ in range(self.max_iter):
            nearest = by_block(lambda part: manifold.sqdist(centers, part).argmin(axis=1), codes, n_columns=count)
            if (nearest == owner).all():
                break
            owner = nearest
            for k in np.unique(owner):
                mine = np.flatnonzero(owner == k)
                members, shares = subset(codes, mine), weights[mine]
                centers[k] = riemannian_mean(manifold, members, shares, start=centers[k], tol=1e-6).code
        return centers

    def _seeds(
        self, manifold: Manifold[Any], codes: Array, weights: Array, count: int, rng: np.random.Generator
    ) -> Array:
        """k-means++: each seed drawn with probability proportional to its squared distance to the others."""
        seeds = [_draw(weights, rng)]
        nearest = np.full(len(codes), np.inf)
        for _ in range(count - 1):
            seed = codes[seeds[-1]][None]
            found = by_block(lambda part, seed=seed: manifold.sqdist(seed, part)[:, 0], codes)
            nearest = np.minimum(nearest, found)
            seeds.append(_draw(weights * nearest, rng))
        return codes[seeds]


@library_part
@attrs.frozen(eq=False)
class GivenPrototypes:
    """Prototypes that the user gives, as points of the manifold.

    Parameters
    ----------
    prototypes : array-like of shape (K, ...)
        Points, not codes.
    labels : ndarray of int of shape (K,)
        Class index of each.
    """

    prototypes: Any
    labels: Array

    @reads_parts
    def __call__(
        self,
        manifold: Manifold[Any],
        codes: Array,
        targets: Array,
        n_classes: int,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[Prototypes, Array]:
        """Return the encoded prototypes, sorted by class, and their labels (K,).

        Raises
        ------
        ValueError
            If a prototype is not a point of the manifold or has another shape than the samples, if a
            label is out of range, or if a class has no prototype.
        """
        try:
            encoded = manifold.encode(self.prototypes)
        except PointError as error:
            raise error.renamed("init prototypes") from error
        except ValueError as error:
            raise ValueError(f"init prototypes: {str(error).removeprefix('X ')}") from error
        if encoded.shape[1:] != codes.shape[1:]:
            raise ValueError(f"init prototypes have shape {encoded.shape[1:]}, the samples {codes.shape[1:]}")
        if self.labels.shape != (len(encoded),):
            raise ValueError(f"init has {len(encoded)} prototypes and {self.labels.size} labels")
        if len(outside := np.flatnonzero((self.labels < 0) | (self.labels >= n_classes))):
            first = outside[0]
            raise ValueError(
                f"init labels[{first}] is {self.labels[first]}, not among class indices 0..{n_classes - 1}"
            )
        missing = np.setdiff1d(np.arange(n_classes), self.labels)
        if len(missing):
            raise ValueError(f"init has no prototype for class index {missing[0]} of 0..{n_classes - 1}")
        order = np.argsort(self.labels, kind="stable")
        return encoded[order], self.labels[order]
