"""The paper's methods: compositions of public parts with the settings of the paper.

Tang, Feng, Tino, Si, Ji, "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite
Matrices". Each function returns a :class:`rplvq.RiemannianLVQ` that is not fitted, and passes ``**other`` on to it. The
weights have no upper bound (``max_weight=None``); :class:`rplvq.StepSize` describes the risk.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from rplvq.costs import GLVQ, RSLVQ
from rplvq.estimators import RiemannianLVQ
from rplvq.initializers import ClassMeans
from rplvq.manifolds import AffineInvariant, ProjectedEuclidean
from rplvq.protocols import AnyManifold, Schedule
from rplvq.schedules import Annealed, InverseTime, StepSize
from rplvq.selection import HeldOut

__all__ = ["glrsq", "plrsq_annealed", "plrsq_const", "rslvq_projected"]
Counts: TypeAlias = int | Mapping[Any, int] | Literal["auto"]


def _paper(manifold: AnyManifold, sigma2: Any, per_class: Counts, max_epochs: int, other: Any) -> RiemannianLVQ:
    settings: dict[str, Any] = {
        "cost": RSLVQ(),
        "step_size": StepSize("paper", max_weight=None),
        "init": ClassMeans(),
        "batch_size": 1,
        "decision": "nearest",
    } | other
    return RiemannianLVQ(manifold, sigma2=sigma2, prototypes_per_class=per_class, max_epochs=max_epochs, **settings)


def plrsq_const(
    sigma2: float | HeldOut | Literal["half_median", "auto"] = "half_median",
    prototypes_per_class: Counts = 1,
    max_epochs: int = 100,
    **other: object,
) -> RiemannianLVQ:
    """PLRSQ-Const: the affine-invariant metric, the likelihood-ratio cost and a constant sigma2.

    Parameters
    ----------
    sigma2 : float, HeldOut, "half_median" or "auto", default="half_median"
        The constant, or the rule that chooses it as in RiemannianLVQ; the authors' program uses "half_median".
    prototypes_per_class, max_epochs, **other
        As for :class:`rplvq.RiemannianLVQ`.

    Examples
    --------
    >>> from rplvq.presets import plrsq_const
    >>> plrsq_const(sigma2=9.5).sigma2
    9.5
    """
    return _paper(AffineInvariant(), sigma2, prototypes_per_class, max_epochs, other)


def plrsq_annealed(
    sigma2: float | Schedule | Literal["auto"] = "auto",
    prototypes_per_class: Counts = 1,
    max_epochs: int = 100,
    **other: object,
) -> RiemannianLVQ:
    """PLRSQ-AN: as :func:`plrsq_const`, with a sigma2 that is annealed from its start by 0.4.

    ``sigma2`` is the start of :class:`rplvq.Annealed`, or another schedule; "auto", the default, is
    :func:`rplvq.schedules.blended_sigma2`. ``prototypes_per_class`` and ``max_epochs`` are those of plrsq_const.

    Examples
    --------
    >>> from rplvq.presets import plrsq_annealed
    >>> plrsq_annealed(sigma2=0.5).sigma2
    Annealed(start=0.5, beta=0.99, power=1.1, drop=0.4, floor=0.01)
    """
    if not callable(sigma2):
        sigma2 = Annealed(None if sigma2 in (None, "auto") else sigma2)
    return _paper(AffineInvariant(), sigma2, prototypes_per_class, max_epochs, other)


def rslvq_projected(
    sigma2: float | Schedule | Literal["half_median", "auto"] = "half_median",
    prototypes_per_class: Counts = 1,
    max_epochs: int = 100,
    **other: object,
) -> RiemannianLVQ:
    """RSLVQ of the paper's tables: the Frobenius distance, straight steps and eigenvalues raised to 1e-4.

    ``sigma2``, by default "half_median", is in the units of squared Frobenius distances. ``prototypes_per_class`` and
    ``max_epochs`` are those of :func:`plrsq_const`.

    Examples
    --------
    >>> from rplvq.presets import rslvq_projected
    >>> rslvq_projected(sigma2=2.0).metric
    ProjectedEuclidean(tau=0.0001, relative=False)
    """
    return _paper(ProjectedEuclidean(tau=1e-4), sigma2, prototypes_per_class, max_epochs, other)


def glrsq(prototypes_per_class: Counts = 1, max_epochs: int = 60, **other: object) -> RiemannianLVQ:
    """GLRSQ: the affine-invariant metric and the margin cost of GLVQ, whose steepness is the number of the epoch.

    Tang, Feng and Tino, "Generalized learning Riemannian space quantization", IEEE TNNLS 2021. As in the authors'
    program, the steepness rises by one per epoch, and the derivative of the sigmoid leaves it out. The parameters
    ``prototypes_per_class``, ``max_epochs`` and ``other`` are those of :class:`rplvq.RiemannianLVQ`.

    Examples
    --------
    >>> from rplvq.presets import glrsq
    >>> glrsq().cost, glrsq().sigma2
    (GLVQ(steepness=None), InverseTime(start=1.0))
    """
    settings = {"cost": GLVQ(steepness=None)} | other
    return _paper(AffineInvariant(), InverseTime(1.0), prototypes_per_class, max_epochs, settings)
