"""Generalized LVQ: a smooth margin."""

from __future__ import annotations

import attrs
import numpy as np
from scipy.special import expit

from rplvq.costs._algebra import Combinable
from rplvq.parts import library_part
from rplvq.protocols import Array, Evaluation

__all__ = ["GLVQ"]

COINCIDENT = 1e-290
"""Sum of both distances below which a sample lies on both prototypes: no direction is better than another."""


@library_part
@attrs.frozen
class GLVQ(Combinable):
    """Margin cost of generalized learning vector quantization.

    With d+ the squared distance to the nearest prototype of the sample's class and d- that to the nearest of any other,
    ``mu = (d+ - d-) / (d+ + d-)`` lies between -1 (right and sure) and 1, and ``loss = 1 / (1 + exp(-steepness mu))``.
    Only these two prototypes move: ``d loss / d d+ = f' 2 d- / (d+ + d-)^2`` and
    ``d loss / d d- = -f' 2 d+ / (d+ + d-)^2`` with ``f' = steepness loss (1 - loss)`` (Sato and Yamada 1996,
    "Generalized learning vector quantization", NIPS 8). On the affine-invariant manifold this is GLRSQ (Tang, Fan
    and Tino, "Generalized learning Riemannian space quantization", IEEE TNNLS).

    The cost has no scale: multiplying all distances by a number changes nothing, and sigma2 is not used in
    training. Class probabilities are those of the mixture at sigma2.

    Parameters
    ----------
    steepness : float, default=1
        Of the sigmoid; larger values let only samples near the border count.

    Examples
    --------
    >>> from rplvq import GLVQ
    >>> loss, slope = GLVQ()(np.array([[1.0, 3.0]]), np.array([0]), np.array([0, 1]), sigma2=1.0)
    >>> loss.round(4), slope.round(4)
    (array([0.3775]), array([[ 0.0881, -0.0294]]))
    """

    steepness: float = attrs.field(default=1.0, validator=[attrs.validators.gt(0), attrs.validators.lt(np.inf)])

    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices ``targets`` (B,).

        Raises
        ------
        ValueError
            If targets are class probabilities, or every prototype has one class.
        """
        if targets.ndim != 1:
            raise ValueError("cost GLVQ learns from one class a sample; for soft labels use cost='plvq'")
        own = labels == targets[:, None]
        if own.all(axis=1).any():
            raise ValueError("cost GLVQ compares classes, and all prototypes have one class")
        rows = np.arange(len(sqdist))
        right = np.where(own, sqdist, np.inf).argmin(axis=1)
        wrong = np.where(own, np.inf, sqdist).argmin(axis=1)
        ahead, behind = sqdist[rows, right], sqdist[rows, wrong]
        # Shares of the sum instead of the sum's square, which would overflow before the distances do.
        inverse = 1.0 / np.maximum(ahead + behind, COINCIDENT)
        share = ahead * inverse
        loss = expit(self.steepness * (share - behind * inverse))
        rate = 2.0 * self.steepness * loss * (1.0 - loss) * inverse * (ahead + behind > COINCIDENT)
        slope = np.zeros_like(sqdist)
        slope[rows, right] = rate * behind * inverse
        slope[rows, wrong] = -rate * share
        return Evaluation(loss, slope)
