"""First prototypes that classify as a linear discriminant analysis of tangent vectors does."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from rplvq.arrays import hard_targets
from rplvq.initializers._in_classes import ClassMeans, perturbed, prototype_counts
from rplvq.manifolds import Shrunk, TangentSpace, from_coordinates, n_coordinates, within_covariance
from rplvq.parts import library_part, number_in
from rplvq.protocols import Array, Manifold

LARGE = 64
"""Size of matrices above which a discriminant of many samples takes too long to be tried beside the class means."""
MOST_PRODUCTS = 2e10
"""Above this size, it is tried if N samples with m coordinates need at most so many products, N^2 m."""


@attrs.frozen(eq=False)
class Discriminant:
    """The tangent vectors of samples, from which discriminants are computed, with and without some of the samples.

    Parameters
    ----------
    manifold : Manifold
        A metric of positive definite matrices, whose codes the discriminants have.
    space : TangentSpace
        The metric of the tangent vectors.
    tangents : ndarray of shape (N, n, n)
        The tangent vectors.
    classes : ndarray of int of shape (N,)
        Class indices, of which none of 0..C-1 is missing.
    weights : ndarray of shape (N,)
        Weights of the samples.
    whole : Shrunk
        The covariance within classes of all samples. Each fold uses its shrinkage.
    """

    manifold: Manifold[Any]
    space: TangentSpace
    tangents: Array
    classes: Array
    weights: Array
    whole: Shrunk

    @classmethod
    def of(
        cls, manifold: Manifold[Any], codes: Array, classes: Array, weights: Array | None, means: Array
    ) -> Discriminant:
        """Compute the tangent vectors of codes (N, ...) at the affine-invariant mean of class means (C, ...).

        If the metric has a reference, they are computed there. Raise ValueError if the points of the manifold are no
        positive definite matrices, or if all samples of each class are equal.
        """
        weights = np.ones(len(codes)) if weights is None else weights
        space, _ = TangentSpace(getattr(manifold, "reference", None)).referenced(manifold.decode(means))
        tangents = space.encode(manifold.decode(codes))
        return cls(manifold, space, tangents, classes, weights, _within(tangents, classes, weights))

    def prototypes(self, rows: Array | None = None) -> Array:
        """Return the codes (C, ...) of one prototype per class, computed from all samples, or from some of each class.

        Raise ValueError if all samples of each class are equal.
        """
        found = self.whole
        if rows is not None:
            found = _within(self.tangents[rows], self.classes[rows], self.weights[rows], self.whole.shrinkage)
        points = from_coordinates(discriminant_points(found.means, found.covariance), self.tangents.shape[-1])
        return np.asarray(self.manifold.encode(self.space.decode(points)))


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
    """Return the points (C, m) whose nearest one is the class that LDA gives, from class means (C, m) and S (m, m).

    See :class:`DiscriminantMeans` for the formula.

    Examples
    --------
    >>> points = discriminant_points(np.array([[0.0, 0.0], [1.0, 1.0]]), np.diag([1.0, 4.0]))
    >>> points.round(3)  # the border is orthogonal to S^-1 (1, 1)
    array([[-0.088,  0.353],
           [ 1.088,  0.647]])
    """
    middle = means.mean(axis=0)
    centred = means - middle
    if hasattr(covariance, "power"):  # of low rank
        directions = (covariance.power(-1.0) @ centred[..., None])[..., 0]
    else:
        directions = np.linalg.solve(covariance, centred.T).T
    offsets, lengths = (0.5 * np.vecdot(directions, other) for other in (centred, directions))
    if not lengths.any():  # equal class means, or a single class
        return means
    scale = offsets.sum() / lengths.sum()
    # The directions add up to zero, so that the least squares solution leaves a rest that is the same for all classes.
    shift = np.linalg.lstsq(directions, offsets - scale * lengths, rcond=1e-10)[0]
    return np.asarray(middle + scale * directions + shift)


def discriminant_beside(
    manifold: Manifold[Any], codes: Array, targets: Array, weights: Array | None, means: Array
) -> Discriminant | None:
    """Return the discriminant of samples with these class means (C, ...); None if the metric does not suit.

    It suits if its points are positive definite matrices of at most 64 rows, or few larger ones, and if it is not
    whitened: the class means of a whitened metric are a discriminant.
    """
    points: Any = manifold.decode(means)
    is_square = np.ndim(points) == 3 and np.shape(points)[1] == np.shape(points)[2]
    if not is_square or getattr(manifold, "covariance", None) is not None:
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
    prototypes take it into account. They are computed without training. With one prototype per class and the metric
    "tangent", their decisions are exactly those of LDA with equal priors. Under other metrics they are close to them.

    The samples become tangent vectors x at the affine-invariant mean of the class means, or at the reference of a
    metric that has one. With the mean ``mu_k`` of x in class k, the mean ``mu`` of all ``mu_k`` and the covariance S
    within classes, LDA with equal priors gives x the class with the largest ``w_k (x - mu) - b_k``, where
    ``w_k = S^-1 (mu_k - mu)`` and ``b_k = w_k (mu_k - mu) / 2`` (Fisher 1936, doi:10.1111/j.1469-1809.1936.tb02137.x;
    tangent vectors as in Barachant, Bonnet, Congedo and Jutten 2012, doi:10.1109/TBME.2011.2172210). The prototypes
    ``p_k = mu + s w_k + c`` have these decisions under the Euclidean distance if ``s |w_k|^2 / 2 + c w_k - b_k`` is the
    same for all classes; the shift c is the shortest vector for which this holds. The scale is
    ``s = sum_k w_k (mu_k - mu) / sum_k |w_k|^2``, so that the prototypes are the class means if S is a multiple of the
    identity. S is the covariance of the deviations from the class means, shrunk as for :class:`rplvq.TangentSpace`.

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
        classes, counts = hard_targets(targets), prototype_counts(self.per_class, n_classes)
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
