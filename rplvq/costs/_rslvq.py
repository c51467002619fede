"""Robust soft LVQ: the likelihood-ratio cost."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from rplvq.costs._algebra import Combinable
from rplvq.costs._mixture import class_log_proba, log_prior, log_sum_exp, mixture_logits
from rplvq.parts import library_part
from rplvq.protocols import Array, Evaluation

__all__ = ["RSLVQ", "check_priors"]

SMALLEST_SUM = 1e-280
"""Sum over the own class below which plain exponentials would lose digits to underflow."""
FEW_PROTOTYPES = 24
"""Up to here one sample is faster in plain floats: NumPy's call overhead outweighs K exponentials."""


def likelihood_ratio(logits: Array, own: Array) -> tuple[Array, Array]:
    """Return -log p(y | X) of shape (B,), and P_k - p_k of shape (B, K).

    Parameters
    ----------
    logits : ndarray of shape (B, K)
        Logits of the prototypes.
    own : ndarray of bool of shape (B, K)
        Whether the prototype has the sample's class.
    """
    logits_own = np.where(own, logits, -np.inf)
    log_all, log_own = log_sum_exp(logits), log_sum_exp(logits_own)
    return (log_all - log_own)[:, 0], np.exp(logits_own - log_own) - np.exp(logits - log_all)


def evaluate_one(sqdist: list[float], target: int, labels: list[int], scale: float) -> Evaluation | None:
    """Evaluate one sample with equal priors in plain floats, or return None where they would underflow.

    Parameters
    ----------
    sqdist : list of K floats
        Squared distances.
    target : int
        Class index of the sample.
    labels : list of K ints
        Class index of each prototype.
    scale : float
        1 / (2 sigma2).
    """
    joint = [math.exp(-scale * distance) for distance in sqdist]
    total = sum(joint)
    total_own = sum([share for share, label in zip(joint, labels, strict=True) if label == target])
    if total_own < SMALLEST_SUM:
        return None
    repel, attract = scale / total, scale / total_own
    pull = attract - repel
    slope = [share * (pull if label == target else -repel) for share, label in zip(joint, labels, strict=True)]
    return Evaluation(np.array([math.log(total / total_own)]), np.array([slope]))


def check_priors(_: Any, __: attrs.Attribute[Any], value: tuple[float, ...] | None) -> None:
    """Attrs validator: None, or positive numbers that sum to one."""
    if value is None:
        return
    for index, prior in enumerate(value):
        if not prior > 0:
            raise ValueError(f"priors[{index}] must be positive, got {prior}")
    if not np.isclose(sum(value), 1.0):
        raise ValueError(f"priors must sum to one, got {sum(value):.6g}")


def to_priors(value: Any) -> tuple[float, ...] | None:
    """Attrs converter: any sequence of numbers becomes a tuple, which compares and pickles."""
    return None if value is None else tuple(float(prior) for prior in value)


def some_priors(priors: tuple[float, ...], classes: Array) -> tuple[float, ...]:
    """Priors of some classes, given by index (M,), scaled to sum to one; ValueError if one has none."""
    if (missing := classes[classes >= len(priors)]).size:
        raise ValueError(f"priors has {len(priors)} entries, none for class index {missing[0]}")
    chosen = np.array(priors)[classes]
    return tuple((chosen / chosen.sum()).tolist())


@library_part
@attrs.frozen
class RSLVQ(Combinable):
    """Likelihood-ratio cost of robust soft learning vector quantization.

    With ``p = softmax(-d / (2 sigma2))`` over all prototypes and P the same over those of the sample's
    class y, ``loss = -log p(y | X)`` and ``slope_k = (P_k - p_k) / (2 sigma2)``: prototypes of the class attract,
    the others repel (Seo and Obermayer 2003, doi:10.1162/089976603321891819; on SPD matrices Tang et al.,
    "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite Matrices").

    Parameters
    ----------
    priors : sequence of float, optional
        Prior of each class, in the order of ``classes_``, shared evenly by its prototypes. By default
        every prototype weighs the same.

    Examples
    --------
    >>> from rplvq import RSLVQ
    >>> near, far = 0.0, 2.0
    >>> loss, slope = RSLVQ()(np.array([[near, far]]), np.array([0]), np.array([0, 1]), sigma2=1.0)
    >>> loss.round(4), slope.round(4)
    (array([0.3133]), array([[ 0.1345, -0.1345]]))
    """

    priors: tuple[float, ...] | None = attrs.field(default=None, converter=to_priors, validator=check_priors)

    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate loss (B,) and slope (B, K) at class indices ``targets`` (B,).

        Raises
        ------
        ValueError
            If targets are class probabilities: PLVQ learns from those.
        """
        if targets.ndim != 1:
            raise ValueError(
                "cost RSLVQ learns from one class a sample; for soft labels use cost='plvq', or pass y.argmax(axis=1)"
            )
        scale = 0.5 / sigma2
        if len(sqdist) == 1 and len(labels) <= FEW_PROTOTYPES and self.priors is None:
            one = evaluate_one(sqdist[0].tolist(), targets.item(0), labels.tolist(), scale)
            if one is not None:
                return one
        logits = mixture_logits(sqdist, sigma2, log_prior(self.priors, labels))
        loss, difference = likelihood_ratio(logits, labels == targets[:, None])
        return Evaluation(loss, difference * scale)

    def restrict_to_classes(self, classes: Array) -> RSLVQ:
        """Return the cost for some of its classes, given by index (M,): their priors, summing to one."""
        return self if self.priors is None else RSLVQ(some_priors(self.priors, classes))

    def log_proba(self, sqdist: Array, labels: Array, sigma2: float) -> Array:
        """Class log-posterior, shape (B, C)."""
        return class_log_proba(sqdist, labels, sigma2, log_prior(self.priors, labels))
