"""Probabilistic LVQ: cross-entropy to soft labels."""

from __future__ import annotations

import attrs
import numpy as np

from rplvq.costs._algebra import Combinable
from rplvq.costs._mixture import (
    as_soft,
    class_groups,
    class_log_proba,
    class_log_sum_exp,
    log_prior,
    log_sum_exp,
    mixture_logits,
)
from rplvq.costs._rslvq import RSLVQ, check_priors, some_priors, to_priors
from rplvq.parts import library_part
from rplvq.protocols import Array, Evaluation

__all__ = ["PLVQ", "cross_entropy"]


def cross_entropy(logits: Array, targets: Array, labels: Array) -> tuple[Array, Array]:
    """Return -sum_c t_c log p(c | X) of shape (B,), and t_{c_k} P_k - p_k of shape (B, K).

    Parameters
    ----------
    logits : ndarray of shape (B, K)
        Logits of the prototypes.
    targets : ndarray of shape (B, C)
        Class probabilities t.
    labels : ndarray of int of shape (K,)
        Class index of each prototype; P is the softmax within its class.
    """
    by_class = class_log_sum_exp(logits, class_groups(labels))
    log_all = log_sum_exp(by_class)
    total = targets.sum(axis=1, keepdims=True)
    within = np.exp(logits - by_class[:, labels])
    difference = targets[:, labels] * within - total * np.exp(logits - log_all)
    return np.vecdot(targets, log_all - by_class), difference


@library_part
@attrs.frozen
class PLVQ(Combinable):
    """Cross-entropy between soft labels t and the mixture's class posterior.

    ``loss = -sum_c t_c log p(c | X)`` and ``slope_k = p_k (t_{c_k} / p(c_k) - 1) / (2 sigma2)`` (Tang et al.,
    "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite Matrices", the
    method PLVQ). With one-hot t it equals :class:`RSLVQ`; class indices are taken as one-hot.

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

    priors: tuple[float, ...] | None = attrs.field(default=None, converter=to_priors, validator=check_priors)

    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices (B,) or class probabilities (B, C).

        Raises
        ------
        ValueError
            If the number of columns is not the number of classes with a prototype.
        """
        if targets.ndim == 1:
            return RSLVQ(self.priors)(sqdist, targets, labels, sigma2)
        soft = as_soft(targets, len(class_groups(labels).starts))
        logits = mixture_logits(sqdist, sigma2, log_prior(self.priors, labels))
        loss, difference = cross_entropy(logits, soft, labels)
        return Evaluation(loss, difference * (0.5 / sigma2))

    def restrict_to_classes(self, classes: Array) -> PLVQ:
        """Return the cost for some of its classes, given by index (M,): their priors, summing to one."""
        return self if self.priors is None else PLVQ(some_priors(self.priors, classes))

    def log_proba(self, sqdist: Array, labels: Array, sigma2: float) -> Array:
        """Class log-posterior, shape (B, C)."""
        return class_log_proba(sqdist, labels, sigma2, log_prior(self.priors, labels))
