"""Representability: prototypes stay with the data they stand for."""

from __future__ import annotations

import attrs
import numpy as np

from rplvq.costs._algebra import Combinable
from rplvq.costs._mixture import as_soft, class_groups, class_log_sum_exp, mixture_logits
from rplvq.parts import library_part
from rplvq.protocols import Array, Evaluation

__all__ = ["Representability"]


@library_part
@attrs.frozen
class Representability(Combinable):
    """Pulls each prototype to the data it stands for: minus the log-likelihood of a class's own mixture.

    ``loss = -log (1 / K_y) sum_{c_k = y} exp(-d_k / (2 sigma2))`` up to the normaliser, which a shared sigma2 does not
    change, with K_y prototypes of the sample's class y. ``slope_k = P_k / (2 sigma2)`` with P the softmax within the
    class: prototypes of one class share a sample by their posterior, the others do not see it. For soft labels the loss
    is the expectation over classes. With one prototype a class its minimum is the class mean.

    It is the generative term that Hammer, Nebel, Riedel and Villmann ("Generative versus discriminative prototype based
    classification", WSOM 2014) add to discriminative LVQ costs: ``RSLVQ() + 0.1 * Representability()``. In the
    units of RSLVQ's loss, so that the factor means the same for all data.

    Examples
    --------
    >>> from rplvq import Representability
    >>> loss, slope = Representability()(np.array([[1.0, 3.0]]), np.array([0]), np.array([0, 1]), sigma2=1.0)
    >>> loss, slope
    (array([0.5]), array([[0.5, 0. ]]))
    """

    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices (B,) or class probabilities (B, C).

        Raises
        ------
        ValueError
            If the number of columns is not the number of classes with a prototype.
        """
        groups = class_groups(labels)
        soft = as_soft(targets, len(groups.starts))
        logits = mixture_logits(sqdist, sigma2)
        by_class = class_log_sum_exp(logits, groups)
        nearest = sqdist.min(axis=1) * (0.5 / sigma2)  # what mixture_logits has taken out
        loss = np.vecdot(soft, np.log(groups.counts) - by_class) + soft.sum(axis=1) * nearest
        slope = soft[:, labels] * np.exp(logits - by_class[:, labels]) * (0.5 / sigma2)
        return Evaluation(loss, slope)
