"""Representability: a cost that keeps prototypes near the data of their class."""

import attrs
import numpy as np

from rplvq.costs._algebra import Combinable
from rplvq.costs._mixture import Terms, as_soft, class_groups, class_log_sum_exp, described_by, mixture_logits, term
from rplvq.parts import library_part
from rplvq.protocols import Array, Evaluation


@library_part
@attrs.frozen
class Representability(Combinable):
    """Negative log-likelihood of a sample under the mixture of its own class, which pulls prototypes to their data.

    ``loss = -log (1 / K_y) sum_{c_k = y} exp(-d_k / (2 sigma2))``, with the squared distances d_k to the K_y prototypes
    of the sample's class y. The normaliser is left out: it is constant, because all classes share sigma2.
    ``slope_k = P_k / (2 sigma2)``, where P is the softmax within the class: the prototypes of this class share the
    sample by their posterior, and the others are not moved. For soft labels the loss is the expectation over classes.
    With one prototype per class its minimum is the class mean.

    It is the generative term that Hammer, Nebel, Riedel and Villmann ("Generative versus discriminative prototype based
    classification", WSOM 2014) add to discriminative LVQ costs: ``RSLVQ() + 0.1 * Representability()``.

    Examples
    --------
    >>> from rplvq import Representability
    >>> loss, slope = Representability()(np.array([[1.0, 3.0]]), np.array([0]), np.array([0, 1]), sigma2=1.0)
    >>> loss, slope
    (array([0.5]), array([[0.5, 0. ]]))
    """

    def _terms(self, labels: Array, sigma2: float, soft: bool) -> Terms:
        """Return the one term, that of a mixture without its likelihood over all classes."""
        return term(0.0, 0.5 / sigma2, -np.log(class_groups(labels).counts)[labels], len(labels))

    @described_by(_terms)
    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices (B,) or class probabilities (B, C)."""
        groups = class_groups(labels)
        soft = as_soft(targets, len(groups.starts))
        logits = mixture_logits(sqdist, sigma2)
        by_class = class_log_sum_exp(logits, groups)
        nearest = sqdist.min(axis=1) * (0.5 / sigma2)  # mixture_logits has subtracted it
        loss = np.vecdot(soft, np.log(groups.counts) - by_class) + soft.sum(axis=1) * nearest
        slope = soft[:, labels] * np.exp(logits - by_class[:, labels]) * (0.5 / sigma2)
        return Evaluation(loss, slope)

    def largest_slope(self, sigma2: float) -> float:
        """Return ``1 / (2 sigma2)``, the largest absolute slope of any sample."""
        return 0.5 / sigma2
