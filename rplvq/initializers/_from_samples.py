"""First prototypes that are chosen from the samples: class means, k-means in classes, or those of a discriminant.

The last ones classify as a linear discriminant analysis of tangent vectors does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
from scipy.optimize import brentq

from rplvq.arrays import by_block, first_bad, hard_targets, reads_parts, subset
from rplvq.capabilities import AtReference, PlacesMeans, Whitened, provides
from rplvq.exceptions import PointError
from rplvq.manifolds import (
    AffineInvariant,
    LowRankCovariance,
    Shrunk,
    TangentSpace,
    from_coordinates,
    means_of_groups,
    n_coordinates,
    riemannian_mean,
    within_covariance,
)
from rplvq.parts import count_from, library_part, number_in
from rplvq.protocols import AnyManifold, Array

LARGE = 64
"""Size of matrices above which a discriminant of many samples takes too long to be tried beside the class means."""
MOST_PRODUCTS = 2e10
"""Above this size, it is tried if N samples with m coordinates need at most so many products, N^2 m."""
NEAR = 1e-6
"""Tolerance of the mean of the class means, relative to the distances between them."""
REACH = 4.0
LONGEST = 0.9
"""A shift of the prototypes is shorter than LONGEST times REACH radii of the data, and the scale stays positive."""


def prototype_counts(per_class: int | Sequence[int] | None, n_classes: int) -> Array:
    """Return the number of prototypes of each class, shape (C,); raise ValueError unless C positive integers result."""
    counts = np.asarray(1 if per_class is None else per_class)
    if counts.ndim == 0:
        counts = np.full(n_classes, counts)
    if counts.dtype.kind not in "iu":
        raise ValueError(f"prototypes_per_class must be integers, got {per_class!r}")
    if counts.shape != (n_classes,):
        raise ValueError(f"prototypes_per_class has {counts.size} entries, but there are {n_classes} classes")
    if (index := first_bad(counts < 1)) is not None:
        raise ValueError(f"prototypes_per_class must be at least 1, got {counts[index]} for class index {index}")
    return counts


def perturbed(
    manifold: AnyManifold, code: Array, samples: Array, count: int, size: float, rng: np.random.Generator
) -> Array:
    """Return ``count`` copies of a code (...), each moved by a random sum of the logarithms of samples (N, ...).

    The root mean squared length of the moves is ``size`` times that of the distances from the code to the samples.
    """
    # Random combinations of the logarithms of samples follow the scale and the shape of the data.
    geodesics = manifold.connect(np.repeat(code[None], count, axis=0), samples)
    weights = rng.uniform(-1, 1, (len(samples), count)) * size * np.sqrt(3 / len(samples))  # of variance 1/3
    return np.asarray(manifold.move(geodesics, weights))


@attrs.frozen(eq=False)
class Members:
    """The samples (N, ...) of one class, with their weights (N,) and their mean, if it is known."""

    manifold: AnyManifold
    codes: Array
    weights: Array
    known: Array | None = None

    def mean(self) -> Array:
        """Return the Riemannian mean (...) of all samples."""
        return riemannian_mean(self.manifold, self.codes, self.weights).code if self.known is None else self.known

    def draw(self, rng: np.random.Generator, sqdist: Array | None = None) -> Array:
        """Draw one sample (1, ...) with probability proportional to its weight times its ``sqdist``, 1 if not given."""
        weights = self.weights if sqdist is None else self.weights * sqdist
        if not weights.any():
            weights = np.ones_like(weights)
        total = np.cumsum(weights)
        # By rounding it may be one more.
        row = np.searchsorted(total, rng.uniform() * total[-1], side="right").clip(max=len(total) - 1)
        return self.codes[[int(row)]]


def places_means(initializer: object) -> bool:
    """Whether an initializer places the single prototype of a class at its mean."""
    return provides(initializer, PlacesMeans) and initializer.takes_means


@reads_parts
def _choose_in_each_class(
    self: Any, manifold: AnyManifold, codes: Array, targets: Array, n_classes: int, rng: np.random.Generator,
    sample_weight: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return prototypes (K, ...) and labels (K,); raise ValueError if a class has too few samples."""
    # The method __call__ of all initializers that choose the prototypes of each class by a method ``choose``.
    hard = hard_targets(targets)
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    rows = [np.flatnonzero((hard == label) & (weights > 0)) for label in range(n_classes)]
    known: Array | list[None] = [None] * n_classes
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
        # A few samples show the directions, so a large class takes no longer.
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
        owners = np.empty(0)  # unlike any assignment
        for _ in range(self.max_iter):
            nearest = by_block(lambda part: manifold.sqdist(centers, part).argmin(axis=1), codes, n_columns=count)
            if np.array_equal(nearest, owners):
                break
            owners = nearest
            for k in np.unique(owners):  # a center without samples stays where it is
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


@attrs.frozen(eq=False)
class Discriminant:
    """The tangent vectors of samples, from which discriminants are computed, with and without some of the samples."""

    manifold: AnyManifold
    space: TangentSpace
    tangents: Array  # (N, n, n)
    classes: Array  # (N,), none of 0..C-1 is missing
    weights: Array  # (N,)
    whole: Shrunk  # covariance within classes of all samples; each fold uses its shrinkage

    @classmethod
    def of(
        cls, manifold: AnyManifold, codes: Array, classes: Array, weights: Array | None, means: Array
    ) -> Discriminant:
        """Compute the tangent vectors of codes (N, ...) at the affine-invariant mean of class means (C, ...).

        If the metric has a reference, they are computed there. Raise ValueError if the points of the manifold are no
        positive definite matrices, or if all samples of each class are equal.
        """
        weights = np.ones(len(codes)) if weights is None else weights
        try:
            reference = manifold.reference if provides(manifold, AtReference) else None
            if reference is None:
                points = AffineInvariant().encode(manifold.decode(means))
                reference = riemannian_mean(AffineInvariant(), points, start=points.mean(axis=0), tol=NEAR).code
            space = TangentSpace(reference)
        except (ValueError, TypeError) as error:
            needs = "init='discriminant' needs a metric of positive definite matrices, not"
            raise ValueError(f"{needs} {manifold!r} ({error}): take init='mean'") from error
        tangents = space.encode(manifold.decode(codes))
        return cls(manifold, space, tangents, classes, weights, _within(tangents, classes, weights))

    def prototypes(self, rows: Array | None = None) -> Array:
        """Return the codes (C, ...) of one prototype per class, computed from all samples, or from some of each class.

        Raise ValueError if all samples of each class are equal, or if a prototype is no point of the manifold.
        """
        within = self.whole
        if rows is not None:
            within = _within(self.tangents[rows], self.classes[rows], self.weights[rows], self.whole.shrinkage)
        points = from_coordinates(discriminant_points(within.means, within.covariance), self.tangents.shape[-1])
        try:
            return np.asarray(self.manifold.encode(self.space.decode(points)))
        except PointError as error:
            raise ValueError(
                f"the discriminant's prototype of class index {error.index} {error.reason.partition('. ')[0]}: the "
                "classes vary too much within, take init='mean'"
            ) from error


def _within(tangents: Array, classes: Array, weights: Array, shrinkage: float | None = None) -> Shrunk:
    """Return the covariance of tangent vectors (N, n, n) within classes, with its shrinkage."""
    m = n_coordinates(tangents.shape[-1], np.iscomplexobj(tangents))
    try:
        return within_covariance(tangents, m, classes, weights, shrinkage)
    except ValueError as error:
        raise ValueError(
            "a discriminant needs a class with at least two different samples, and there is none: pass more samples, "
            "or take init='mean'"
        ) from error


def discriminant_points(means: Array, covariance: Array | LowRankCovariance) -> Array:
    """Return the points (C, m) of :class:`DiscriminantMeans`, from class means (C, m) and the covariance S (m, m)."""
    middle = means.mean(axis=0)
    centred = means - middle
    if isinstance(covariance, LowRankCovariance):  # the matrix (m, m) is not formed, not even for its trace
        directions = (covariance.power(-1.0) @ centred[..., None])[..., 0]
        trace = covariance.trace
    else:
        directions = np.linalg.solve(covariance, centred.T).T
        trace = np.trace(covariance)
    offsets, lengths = (0.5 * np.vecdot(directions, other) for other in (centred, directions))
    if not lengths.any():  # equal class means, or a single class
        return means
    scale = offsets.sum() / lengths.sum()
    # Unknown are the shift, in units of REACH radii of the data, and the relative change of the scale.
    reach = REACH * np.sqrt(trace + np.vecdot(centred, centred).mean())
    system = np.column_stack([reach * directions, scale * lengths])
    rests = offsets - scale * lengths
    change = shortest(system - system.mean(axis=0), rests - rests.mean())
    return np.asarray(middle + scale * (1 + change[-1]) * directions + reach * change[:-1])


def shortest(matrix: Array, wanted: Array) -> Array:
    """Return the shortest least squares solution (m,) for a matrix (C, m), or the best one of length LONGEST."""
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    known = singular > 1e-10 * singular[0]  # the others are rounding
    values = singular[known]
    parts = (wanted @ left)[known]

    def solution(ridge: float) -> Array:
        return np.asarray(values * parts / (values**2 + ridge))

    ridge = 0.0
    if np.linalg.norm(solution(0.0)) > LONGEST:
        enough = np.linalg.norm(values * parts) / LONGEST  # because s / (s^2 + ridge) is at most s / ridge
        ridge = brentq(lambda some: np.linalg.norm(solution(some)) - LONGEST, 0.0, enough)
    return np.asarray(solution(ridge) @ right[known])


def discriminant_beside(
    manifold: AnyManifold, codes: Array, targets: Array, weights: Array | None, means: Array
) -> Discriminant | None:
    """Return the discriminant of samples with these class means (C, ...); None if the metric does not suit.

    It suits if its points are positive definite matrices of at most 64 rows, or few larger ones, and if it is not
    whitened: the class means of a whitened metric are a discriminant.
    """
    points = manifold.decode(means)
    is_square = np.ndim(points) == 3 and np.shape(points)[1] == np.shape(points)[2]
    if not is_square or (provides(manifold, Whitened) and manifold.covariance is not None):
        return None
    m = n_coordinates(len(points[0]), np.iscomplexobj(points))
    if len(points[0]) > LARGE and len(codes) ** 2 * m > MOST_PRODUCTS:
        return None
    try:
        return Discriminant.of(manifold, codes, hard_targets(targets), weights, means)
    except ValueError:  # not positive definite
        return None


@library_part
@attrs.frozen
class DiscriminantMeans:
    """Prototypes that classify as a linear discriminant analysis (LDA) of tangent vectors does.

    It is for metrics of positive definite matrices. Class means ignore how the samples vary within their classes; these
    prototypes take it into account, without training. With one prototype per class, the metric "tangent", and no more
    than m + 1 classes for m free entries of a matrix (n (n + 1) / 2, or n^2 if complex), their decisions are exactly
    those of LDA with equal priors, unless they would lie more than 3.6 radii of the data away. For more classes, and
    under other metrics, they come close.

    The samples become tangent vectors x at the affine-invariant mean of the class means, or at the reference of a
    metric that has one. With the mean ``mu_k`` of x in class k, the mean ``mu`` of all ``mu_k`` and the covariance S
    within classes, LDA with equal priors gives x the class with the largest ``w_k (x - mu) - b_k``, where
    ``w_k = S^-1 (mu_k - mu)`` and ``b_k = w_k (mu_k - mu) / 2`` (Fisher 1936, doi:10.1111/j.1469-1809.1936.tb02137.x;
    tangent vectors as in Barachant, Bonnet, Congedo and Jutten 2012, doi:10.1109/TBME.2011.2172210). The prototypes
    ``p_k = mu + s w_k + c`` have these decisions under the Euclidean distance if ``s |w_k|^2 / 2 + c w_k - b_k`` is the
    same for all classes. The shift c and the scale s are the least squares solution that changes c = 0 and
    ``s = sum_k w_k (mu_k - mu) / sum_k |w_k|^2`` least; these give the class means if S is a multiple of the identity.
    S is the covariance of the deviations from the class means, shrunk as for :class:`rplvq.TangentSpace`.

    Parameters
    ----------
    per_class : int or sequence of int, optional
        Number of prototypes of each class; by default the ``prototypes_per_class`` of the estimator, else 1.
    perturbation : float, default=1e-3
        Several prototypes of a class are moved by this root mean squared length, relative to the distances of the
        samples of the class.

    Notes
    -----
    S is a matrix (m, m), with m = n (n + 1) / 2 for real matrices and n^2 for complex ones, so that this start takes
    long above about n = 60. It takes short for fewer than m / 2 samples, of which no such matrix is formed.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import load_digits_covariances
    >>> X, y = load_digits_covariances()
    >>> for init in ("mean", "discriminant"):
    ...     model = RiemannianLVQ(init=init, max_epochs=0).fit(X[:200], y[:200])
    ...     print(round(model.score(X[200:], y[200:]), 2))
    0.54
    0.65
    """

    per_class: int | tuple[int, ...] | None = None
    perturbation: float = attrs.field(default=1e-3, validator=number_in(closed=True, finite=True))

    def __call__(
        self, manifold: AnyManifold, codes: Array, targets: Array, n_classes: int, rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return prototypes (K, ...), sorted by class, and labels (K,).

        Raise ValueError if a class has no sample, if the points of the manifold are no positive definite matrices, or
        if all samples of each class are equal.
        """
        classes = hard_targets(targets)
        counts = prototype_counts(self.per_class, n_classes)
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        if n_classes == 1:  # there is nothing to discriminate, and w is 0
            return ClassMeans(self.per_class, self.perturbation)(manifold, codes, classes, 1, rng, weights)
        means, _ = ClassMeans()(manifold, codes, classes, n_classes, rng, weights)
        single = Discriminant.of(manifold, codes, classes, weights, means).prototypes()
        chosen = [
            code[None]
            if count == 1
            else perturbed(manifold, code, codes[(classes == label) & (weights > 0)], count, self.perturbation, rng)
            for label, (code, count) in enumerate(zip(single, counts, strict=True))
        ]
        return np.concatenate(chosen), np.repeat(np.arange(n_classes), counts)
