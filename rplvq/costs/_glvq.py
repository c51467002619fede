"""Generalized LVQ: a cost that compares the nearest prototype of the own class with the nearest of another one."""

import attrs
import numpy as np
from scipy.special import expit

from rplvq.costs._algebra import Combinable
from rplvq.costs._mixture import MARGIN, Terms, described_by, term
from rplvq.parts import library_part, number_in
from rplvq.protocols import Array, Evaluation

COINCIDENT = 1e-290
"""If both squared distances add up to less than this, the sample is at both prototypes, and neither is moved."""


@library_part
@attrs.frozen
class GLVQ(Combinable):
    """Margin cost of generalized learning vector quantization.

    With d+ the squared distance to the nearest prototype of the sample's class and d- that to the nearest of any other,
    ``mu = (d+ - d-) / (d+ + d-)`` lies between -1 (clearly right) and 1 (clearly wrong), and
    ``loss = 1 / (1 + exp(-steepness mu))``. Only these two prototypes move:
    ``d loss / d d+ = f' 2 d- / (d+ + d-)^2`` and ``d loss / d d- = -f' 2 d+ / (d+ + d-)^2`` with
    ``f' = steepness loss (1 - loss)`` (Sato and Yamada 1996, "Generalized learning vector quantization", NIPS 8).

    With a fixed steepness, multiplying all distances by a number does not change the cost, and training does not use
    sigma2. Class probabilities are those of the mixture at sigma2.

    With ``steepness=None`` the steepness is ``1 / sigma2``, so that the schedule of sigma2 anneals this cost: first all
    samples count, later only those near a border between classes. sigma2 is then a plain number without units, and the
    loss is ``sigma2 / (1 + exp(-mu / sigma2))``, so that f' does not grow with the steepness. On the affine-invariant
    manifold with ``sigma2 = 1 / t`` in epoch t this is GLRSQ, :func:`rplvq.presets.glrsq`.

    Parameters
    ----------
    steepness : float or None, default=1
        Steepness of the sigmoid; with a larger value only samples near the border between classes count.

    Examples
    --------
    >>> from rplvq import GLVQ
    >>> loss, slope = GLVQ()(np.array([[1.0, 3.0]]), np.array([0]), np.array([0, 1]), sigma2=1.0)
    >>> loss.round(4), slope.round(4)
    (array([0.3775]), array([[ 0.0881, -0.0294]]))
    """

    steepness: float | None = attrs.field(default=1.0, validator=number_in(finite=True, or_none=True))

    def _terms(self, labels: Array, sigma2: float, soft: bool) -> Terms | None:
        """Return the one term; there is none where the cost raises an error."""
        if soft or (labels == labels[0]).all():
            return None
        factor, steepness = self._scale(sigma2)
        return term(steepness, 0.0, 0.0, len(labels), MARGIN).times(factor)

    def _scale(self, sigma2: float) -> tuple[float, float]:
        """Return the factor of the loss, and the steepness."""
        return (sigma2, 1.0 / sigma2) if self.steepness is None else (1.0, self.steepness)

    @described_by(_terms)
    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices ``targets`` (B,).

        ValueError is raised if targets are class probabilities, or if all prototypes have the same class.
        """
        if targets.ndim != 1:
            raise ValueError("cost GLVQ learns from one class per sample; for soft labels use cost='plvq'")
        own = labels == targets[:, None]
        if own.all(axis=1).any():  # then d- is infinite
            raise ValueError("cost GLVQ compares classes, but all prototypes have the same class")
        rows = np.arange(len(sqdist))
        right = np.where(own, sqdist, np.inf).argmin(axis=1)
        wrong = np.where(own, np.inf, sqdist).argmin(axis=1)
        ahead = sqdist[rows, right]
        behind = sqdist[rows, wrong]
        # Divide by the sum twice instead of by its square, which would overflow for large distances.
        inverse = 1.0 / np.maximum(ahead + behind, COINCIDENT)
        share = ahead * inverse
        factor, steepness = self._scale(sigma2)
        loss = expit(steepness * (share - behind * inverse))
        rate = 2.0 * factor * steepness * loss * (1.0 - loss) * inverse * (ahead + behind > COINCIDENT)
        slope = np.zeros_like(sqdist)
        slope[rows, right] = rate * behind * inverse
        slope[rows, wrong] = -rate * share
        return Evaluation(factor * loss, slope)
