"""Robust soft LVQ (the likelihood ratio) and probabilistic LVQ (the cross-entropy to soft labels)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self

import attrs
import numpy as np

from rplvq.costs._algebra import Combinable
from rplvq.costs._mixture import (
    Terms,
    as_soft,
    class_groups,
    class_log_proba,
    class_log_sum_exp,
    described_by,
    log_prior,
    log_sum_exp,
    mixture_logits,
    term,
)
from rplvq.parts import library_part
from rplvq.protocols import Array, Evaluation

SMALLEST_SUM = 1e-280
"""If the exponentials of the own class add up to less than this, underflow has cost them digits."""
FEW_PROTOTYPES = 24
"""Up to this number of prototypes plain floats evaluate one sample faster than NumPy, whose calls have overhead."""


def likelihood_ratio(logits: Array, own: Array) -> tuple[Array, Array]:
    """Return the loss ``-log p(y | X)`` (B,), and minus its derivative by each logit, ``P_k - p_k`` (B, K).

    p is the softmax of the logits (B, K) over all prototypes, and P that over those of the class y (``own``, (B, K)).
    """
    logits_own = np.where(own, logits, -np.inf)  # so that P is 0 for the others
    log_all = log_sum_exp(logits)
    log_own = log_sum_exp(logits_own)
    return (log_all - log_own)[:, 0], np.exp(logits_own - log_own) - np.exp(logits - log_all)


def cross_entropy(logits: Array, targets: Array, labels: Array) -> tuple[Array, Array]:
    """Return ``-sum_c t_c log p(c | X)`` (B,), and minus its derivative by each logit, ``t_{c_k} P_k - p_k`` (B, K).

    p is the softmax of the logits (B, K), P the softmax within each class, and t the class probabilities (B, C).
    """
    by_class = class_log_sum_exp(logits, class_groups(labels))
    log_all = log_sum_exp(by_class)
    total = targets.sum(axis=1, keepdims=True)
    within = np.exp(logits - by_class[:, labels])
    difference = targets[:, labels] * within - total * np.exp(logits - log_all)
    return np.vecdot(targets, log_all - by_class), difference


def evaluate_one(sqdist: list[float], target: int, labels: list[int], scale: float) -> Evaluation | None:
    """Evaluate one sample in plain floats with equal priors, or return None where they would underflow."""
    joint = [math.exp(-scale * distance) for distance in sqdist]  # the smallest distance is not subtracted
    total_own = 0.0
    for k, label in enumerate(labels):
        if label == target:
            total_own += joint[k]
    if total_own < SMALLEST_SUM:
        return None
    total = sum(joint)
    repel = scale / total
    pull = scale / total_own - repel
    slope = []
    for k, label in enumerate(labels):
        slope.append(joint[k] * (pull if label == target else -repel))
    return Evaluation(np.array([math.log(total / total_own)]), np.array([slope]))


def check_priors(_: object, __: attrs.Attribute[Any], value: tuple[float, ...] | None) -> None:
    """Attrs validator: accept None, or positive numbers that sum to one."""
    if value is None:
        return
    for index, prior in enumerate(value):
        if not prior > 0:
            raise ValueError(f"priors[{index}] must be positive, got {prior}")
    if not np.isclose(sum(value), 1.0):
        raise ValueError(f"priors must sum to one, got {sum(value):.6g}")


def to_priors(value: Iterable[float] | None) -> tuple[float, ...] | None:
    """Attrs converter: turn any sequence of numbers into a tuple, which can be compared and pickled."""
    return None if value is None else tuple(float(prior) for prior in value)


def mixture_terms(priors: tuple[float, ...] | None, labels: Array, sigma2: float) -> Terms:
    """Return the one term of RSLVQ and PLVQ."""
    offsets = log_prior(priors, labels)
    return term(1.0, 0.5 / sigma2, 0.0 if offsets is None else offsets, len(labels))


@attrs.frozen(repr=False)
class MixtureCost(Combinable):
    """What costs of the mixture share: the priors of the classes, and what follows from the posterior."""

    priors: tuple[float, ...] | None = attrs.field(default=None, converter=to_priors, validator=check_priors)

    def restrict_to_classes(self, classes: Array) -> Self:
        """Return the cost for the classes with these indices (M,); their priors, if given, are scaled to sum to one.

        ValueError is raised at the first index for which the given priors have no entry.
        """
        if self.priors is None:
            return self
        if (missing := classes[classes >= len(self.priors)]).size:
            raise ValueError(f"priors has {len(self.priors)} entries, none for class index {missing[0]}")
        chosen = np.array(self.priors)[classes]
        return attrs.evolve(self, priors=chosen / chosen.sum())

    def largest_slope(self, sigma2: float) -> float:
        """Return ``1 / (2 sigma2)``, the largest absolute slope of any sample."""
        return 0.5 / sigma2

    def log_proba(self, sqdist: Array, labels: Array, sigma2: float) -> Array:
        """Return the class log-posterior, shape (B, C)."""
        return class_log_proba(sqdist, labels, sigma2, log_prior(self.priors, labels))


@library_part
@attrs.frozen
class RSLVQ(MixtureCost):
    """Likelihood-ratio cost of robust soft learning vector quantization.

    With ``p = softmax(-d / (2 sigma2))`` over all prototypes and P the same over those of the sample's
    class y, ``loss = -log p(y | X)`` and ``slope_k = (P_k - p_k) / (2 sigma2)``: the sample attracts prototypes of its
    class and repels the others (Seo and Obermayer 2003, doi:10.1162/089976603321891819; on SPD matrices Tang et al.,
    "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite Matrices").

    Parameters
    ----------
    priors : sequence of float, optional
        Prior of each class, in the order of ``classes_``; its prototypes share it evenly. By default all prototypes
        have the same weight.

    Examples
    --------
    >>> from rplvq import RSLVQ
    >>> near, far = 0.0, 2.0
    >>> loss, slope = RSLVQ()(np.array([[near, far]]), np.array([0]), np.array([0, 1]), sigma2=1.0)
    >>> loss.round(4), slope.round(4)
    (array([0.3133]), array([[ 0.1345, -0.1345]]))
    """

    @described_by(lambda cost, labels, sigma2, soft: None if soft else mixture_terms(cost.priors, labels, sigma2))
    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices (B,); raise ValueError at class probabilities."""
        if targets.ndim != 1:
            raise ValueError(
                "cost RSLVQ learns from one class per sample; for soft labels use cost='plvq', or pass y.argmax(axis=1)"
            )
        scale = 0.5 / sigma2
        if len(sqdist) == 1 and len(labels) <= FEW_PROTOTYPES and self.priors is None:
            one = evaluate_one(sqdist[0].tolist(), targets.item(0), labels.tolist(), scale)
            if one is not None:
                return one
        logits = mixture_logits(sqdist, sigma2, log_prior(self.priors, labels))
        loss, difference = likelihood_ratio(logits, labels == targets[:, None])
        return Evaluation(loss, difference * scale)


@library_part
@attrs.frozen
class PLVQ(MixtureCost):
    """Cross-entropy between soft labels t and the class posterior of the mixture.

    ``loss = -sum_c t_c log p(c | X)`` and ``slope_k = p_k (t_{c_k} / p(c_k) - 1) / (2 sigma2)`` (Tang et al.,
    "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite Matrices", the
    method PLVQ). With one-hot t it equals :class:`RSLVQ`; class indices count as one-hot t.

    Parameters
    ----------
    priors : sequence of float, optional
        As for RSLVQ.

    Examples
    --------
    >>> from rplvq import PLVQ
    >>> unsure = np.array([[0.5, 0.5]])
    >>> loss, slope = PLVQ()(np.array([[0.0, 2.0]]), unsure, np.array([0, 1]), sigma2=1.0)
    >>> loss.round(4), slope.round(4)
    (array([0.8133]), array([[-0.1155,  0.1155]]))
    """

    @described_by(lambda cost, labels, sigma2, _: mixture_terms(cost.priors, labels, sigma2))
    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices (B,) or class probabilities (B, C)."""
        if targets.ndim == 1:
            return RSLVQ(self.priors)(sqdist, targets, labels, sigma2)
        soft = as_soft(targets, len(class_groups(labels).starts))
        logits = mixture_logits(sqdist, sigma2, log_prior(self.priors, labels))
        loss, difference = cross_entropy(logits, soft, labels)
        return Evaluation(loss, difference * (0.5 / sigma2))
