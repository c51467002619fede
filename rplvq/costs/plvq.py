"""Probabilistic LVQ: cross-entropy to soft labels."""

from __future__ import annotations

import attrs
import numpy as np

from rplvq.costs.algebra import Combinable
from rplvq.costs.mixture import class_groups, class_log_proba, class_log_sum_exp, log_prior, log_sum_exp, mixture_logits
from rplvq.costs.rslvq import RSLVQ, check_priors, to_priors
from rplvq.protocols import Array, Evaluation

__all__ = ["PLVQ"]


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
        groups = class_groups(labels)
        if targets.shape[1] != len(groups.starts):
            raise ValueError(f"soft labels have {targets.shape[1]} columns for {len(groups.starts)} classes")
        logits = mixture_logits(sqdist, sigma2, log_prior(self.priors, labels))
        by_class = class_log_sum_exp(logits, groups)
        log_all = log_sum_exp(by_class)
        total = targets.sum(axis=1, keepdims=True)
        within = np.exp(logits - by_class[:, labels])
        slope = (targets[:, labels] * within - total * np.exp(logits - log_all)) * (0.5 / sigma2)
        return Evaluation(np.vecdot(targets, log_all - by_class), slope)

    def log_proba(self, sqdist: Array, labels: Array, sigma2: float) -> Array:
        """Class log-posterior, shape (B, C)."""
        return class_log_proba(sqdist, labels, sigma2, log_prior(self.priors, labels))
