"""First prototypes that classify as a linear discriminant analysis of tangent vectors does."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from scipy.optimize import brentq

from rplvq.arrays import hard_targets
from rplvq.capabilities import AtReference, Whitened, provides
from rplvq.exceptions import PointError
from rplvq.initializers._in_classes import ClassMeans, perturbed, prototype_counts
from rplvq.manifolds import (
    AffineInvariant,
    LowRankCovariance,
    Shrunk,
    TangentSpace,
    from_coordinates,
    n_coordinates,
    riemannian_mean,
    within_covariance,
)
from rplvq.parts import library_part, number_in
from rplvq.protocols import Array, Manifold

LARGE = 64
"""Size of matrices above which a discriminant of many samples takes too long to be tried beside the class means."""
MOST_PRODUCTS = 2e10
"""Above this size, it is tried if N samples with m coordinates need at most so many products, N^2 m."""
NEAR = 1e-6
"""Tolerance of the mean of the class means, relative to the distances between them."""
REACH = 4.0
LONGEST = 0.9
"""A shift of the prototypes is shorter than LONGEST times REACH radii of the data, and the scale stays positive."""


@attrs.frozen(eq=False)
class Discriminant:
    """The tangent vectors of samples, from which discriminants are computed, with and without some of the samples."""

    manifold: Manifold[Any]
    space: TangentSpace
    tangents: Array  # (N, n, n)
    classes: Array  # (N,), none of 0..C-1 is missing
    weights: Array  # (N,)
    whole: Shrunk  # covariance within classes of all samples; each fold uses its shrinkage

    @classmethod
    def of(
        cls, manifold: Manifold[Any], codes: Array, classes: Array, weights: Array | None, means: Array
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
        found = self.whole
        if rows is not None:
            found = _within(self.tangents[rows], self.classes[rows], self.weights[rows], self.whole.shrinkage)
        points = from_coordinates(discriminant_points(found.means, found.covariance), self.tangents.shape[-1])
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


def discriminant_points(means: Array, covariance: Any) -> Array:
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
    known = singular > 1e-10 * singular[0]
    values = singular[known]
    parts = (wanted @ left)[known]

    def solution(ridge: float) -> Array:
        return np.asarray(values * parts / (values**2 + ridge))

    ridge = 0.0
    if np.linalg.norm(solution(0.0)) > LONGEST:
        enough = np.linalg.norm(values * parts) / LONGEST
        ridge = brentq(lambda some: np.linalg.norm(solution(some)) - LONGEST, 0.0, enough)
    return np.asarray(solution(ridge) @ right[known])


def discriminant_beside(
    manifold: Manifold[Any], codes: Array, targets: Array, weights: Array | None, means: Array
) -> Discriminant | None:
    """Return the discriminant of samples with these class means (C, ...); None if the metric does not suit.

    It suits if its points are positive definite matrices of at most 64 rows, or few larger ones, and if it is not
    whitened: the class means of a whitened metric are a discriminant.
    """
    points: Any = manifold.decode(means)
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
        self,
        manifold: Manifold[Any],
        codes: Array,
        targets: Array,
        n_classes: int,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return prototypes (K, ...), sorted by class, and labels (K,).

        Raise ValueError if a class has no sample, if the points of the manifold are no positive definite matrices, or
        if all samples of each class are equal.
        """
        classes = hard_targets(targets)
        counts = prototype_counts(self.per_class, n_classes)
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        means, _ = ClassMeans()(manifold, codes, classes, n_classes, rng, weights)
        single = Discriminant.of(manifold, codes, classes, weights, means).prototypes()
        chosen = [
            code[None]
            if count == 1
            else perturbed(manifold, code, codes[(classes == label) & (weights > 0)], count, self.perturbation, rng)
            for label, (code, count) in enumerate(zip(single, counts, strict=True))
        ]
        return np.concatenate(chosen), np.repeat(np.arange(n_classes), counts)
