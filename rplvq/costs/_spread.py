"""Robust soft LVQ in which each class has its own variance."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import attrs
import numpy as np

from rplvq.arrays import first_bad
from rplvq.costs._algebra import Combinable
from rplvq.costs._mixture import Terms, as_soft, class_groups, class_log_sum_exp, described_by, log_sum_exp, term
from rplvq.costs._normaliser import Normaliser, check_variances, likeliest_variance
from rplvq.costs._rslvq import cross_entropy, likelihood_ratio
from rplvq.parts import library_part, what_lacks
from rplvq.protocols import Array, Evaluation


def _to_variances(value: object) -> tuple[float, ...]:
    """Attrs converter: turn positive numbers into a tuple, which can be compared and pickled."""
    variances = check_variances("variances", value)
    if variances.ndim != 1 or len(variances) < 1:
        raise ValueError(f"variances must be a sequence of one number per class, got {value!r}")
    return tuple(variances.tolist())


def _check_normaliser(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if what_lacks(value, ("log_z", "mean_sqdist")):
        raise ValueError(
            f"{attribute.name} must be FlatGaussian(...), RiemannianGaussian(...) or a similar object, got {value!r}"
        )


@lru_cache(maxsize=64)
def _offsets(normaliser: Normaliser, variances: tuple[float, ...]) -> tuple[Array, Array, float]:
    """Return half precisions (C,), log-normalisers (C,) minus the smallest, and the geometric mean of the variances."""
    values = np.array(variances)
    log_z = normaliser.log_z(values)
    return 0.5 / values, log_z - log_z.min(), float(np.exp(np.log(values).mean()))  # a constant cancels in the softmax


@library_part
@attrs.frozen
class SpreadRSLVQ(Combinable):
    """RSLVQ in which each class has its own variance: a broad class reaches further, with less density at its centre.

    Prototype k of class c has the logit ``-(m / sigma2) (d_k / (2 v_c) + log Z(v_c))`` for the variances v and their
    geometric mean m; ``p = softmax`` over all prototypes and P over those of the sample's class y. As for RSLVQ
    ``loss = -log p(y | X)``, the expectation over classes for soft labels, and
    ``slope_k = m (P_k - p_k) / (2 v_c sigma2)``. Z is the normaliser of a Gaussian on the manifold (Said et al. 2017,
    arXiv:1507.01760). It cancels if all classes have the same variance, and the cost is then :class:`RSLVQ`.

    As in RSLVQ, sigma2 is the variance of a class of middling spread. At ``sigma2 = m`` the probabilities are those of
    the Gaussians; a larger sigma2 makes them flatter, because every density is raised to the power m / sigma2. The
    variances do not change in training. The nearest prototype ignores the spread of its class, and after training may
    be wrong for most samples; so give the model ``decision="posterior"``.

    Parameters
    ----------
    variances : sequence of float
        Variance of each class, in the order of ``classes_``, in the units of squared distances.
    normaliser : FlatGaussian or RiemannianGaussian
        The normaliser of the manifold; another hashable object with the same methods will do.

    Examples
    --------
    >>> from rplvq.costs import FlatGaussian, SpreadRSLVQ
    >>> cost = SpreadRSLVQ([1.0, 4.0], FlatGaussian(2))
    >>> at_first, between, far = [0.0, 9.0], [4.0, 4.0], [16.0, 16.0]
    >>> np.exp(cost.log_proba(np.array([at_first, between, far]), np.array([0, 1]), sigma2=2.0)).round(3)
    array([[0.925, 0.075],
           [0.472, 0.528],
           [0.01 , 0.99 ]])
    """

    variances: tuple[float, ...] = attrs.field(converter=_to_variances)
    normaliser: Normaliser = attrs.field(validator=_check_normaliser)

    @classmethod
    def from_sqdist(
        cls, sqdist: Array, targets: Array, labels: Array, normaliser: Normaliser, sample_weight: Array | None = None
    ) -> Self:
        """Estimate the variance of each class from the distances of its samples to its nearest prototype.

        The squared distances (N, K) are those to the prototypes before training, such as class means, whose class
        indices are ``labels`` (K,). ``targets`` are class indices (N,) or class probabilities (N, C), ``normaliser`` is
        that of the manifold, and ``sample_weight`` (N,) counts each sample as so many. The variances have the largest
        likelihood, see :func:`rplvq.costs.likeliest_variance`. ValueError is raised if a target is not a class index, a
        class has no sample, or all of its samples are prototypes.

        Examples
        --------
        >>> from rplvq.costs import FlatGaussian, SpreadRSLVQ
        >>> sqdist = np.array([[1.0, 9.0], [3.0, 9.0], [9.0, 8.0]])
        >>> cost = SpreadRSLVQ.from_sqdist(sqdist, np.array([0, 0, 1]), np.array([0, 1]), FlatGaussian(2))
        >>> np.round(cost.variances, 6)
        array([1., 4.])
        """
        groups = class_groups(labels)
        _check_indices(np.asarray(targets), len(groups.starts))
        soft = as_soft(np.asarray(targets), len(groups.starts))
        weights = soft if sample_weight is None else soft * np.asarray(sample_weight, dtype=float)[:, None]
        nearest = np.minimum.reduceat(sqdist[:, groups.order], groups.starts, axis=1)
        total = weights.sum(axis=0)
        means = (weights * nearest).sum(axis=0) / np.where(total > 0, total, np.inf)  # 0 without samples, refused below
        variances = []
        for index, mean in enumerate(means):
            if not 0 < mean < np.inf:
                raise ValueError(
                    f"class index {index} has no spread: its samples (total weight {total[index]:g}) have the mean "
                    f"squared distance {mean:g} to their prototypes. Give it more samples, or SpreadRSLVQ its variance"
                )
            variances.append(likeliest_variance(normaliser, float(mean)))
        return cls(variances, normaliser)

    def _terms(self, labels: Array, sigma2: float, soft: bool) -> Terms:
        """Return the one term, whose offsets are the logits at distances of 0."""
        offsets, scales = self._logits(np.zeros((1, len(labels))), labels, sigma2)
        return term(1.0, scales, offsets[0], len(labels))

    @described_by(_terms)
    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices (B,) or class probabilities (B, C)."""
        logits, scale = self._logits(sqdist, labels, sigma2)
        if targets.ndim == 1:
            loss, difference = likelihood_ratio(logits, labels == targets[:, None])
        else:
            loss, difference = cross_entropy(logits, as_soft(targets, len(self.variances)), labels)
        return Evaluation(loss, difference * scale)

    def restrict_to_classes(self, classes: Array) -> SpreadRSLVQ:
        """Return the same cost for the classes with these indices (M,) only; raise ValueError if one is missing."""
        if (missing := classes[classes >= len(self.variances)]).size:
            raise ValueError(f"variances has {len(self.variances)} entries, none for class index {missing[0]}")
        return SpreadRSLVQ([self.variances[index] for index in classes.tolist()], self.normaliser)

    def largest_slope(self, sigma2: float) -> float:
        """Return ``m / (2 v sigma2)``, the largest absolute slope, for the smallest variance v."""
        half_precision, _, middle = _offsets(self.normaliser, self.variances)
        return float(middle / sigma2 * half_precision.max())

    def log_proba(self, sqdist: Array, labels: Array, sigma2: float) -> Array:
        """Return the class log-posterior, shape (B, C)."""
        by_class = class_log_sum_exp(self._logits(sqdist, labels, sigma2)[0], class_groups(labels))
        return np.asarray(by_class - log_sum_exp(by_class))

    def _logits(self, sqdist: Array, labels: Array, sigma2: float) -> tuple[Array, Array]:
        """Return the logits (B, K), and minus their derivatives (K,) with respect to the squared distances."""
        n_classes = len(class_groups(labels).starts)
        if len(self.variances) != n_classes:
            counts = f"{len(self.variances)} entries, but there are {n_classes} classes"
            raise ValueError(f"SpreadRSLVQ: variances has {counts}: give one per class")
        half_precision, log_z, middle = _offsets(self.normaliser, self.variances)
        power = middle / sigma2
        scaled = sqdist * half_precision[labels]
        nearest = np.minimum.reduce(scaled, axis=1, keepdims=True)  # so that differences of large distances survive
        return power * (nearest - scaled - log_z[labels]), power * half_precision[labels]


def _check_indices(targets: Array, n_classes: int) -> None:
    """Raise ValueError at the first target (N,) that is not a class index; accept class probabilities (N, C)."""
    if targets.ndim != 1:
        return
    known = (targets >= 0) & (targets < n_classes) if targets.dtype.kind in "iu" else np.zeros(len(targets), bool)
    if (at := first_bad(~known)) is not None:
        raise ValueError(
            f"targets[{at}] is {targets[at]!r}, not a class index 0..{n_classes - 1}: "
            "pass np.searchsorted(classes_, y) for labels y"
        )
