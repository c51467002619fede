"""The paper's methods, each nothing but a composition of public parts with the paper's settings.

Tang, Feng, Tino, Si, Ji, "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive
Definite Matrices". Their weights are not capped (``max_weight=None``): see :class:`rplvq.StepSize` for what this can
do.
"""

from __future__ import annotations

from typing import Any

from rplvq.costs import RSLVQ
from rplvq.estimators import RiemannianLVQ
from rplvq.initializers import ClassMeans
from rplvq.manifolds import AffineInvariant, ProjectedEuclidean
from rplvq.schedules import Annealed, GeometricDecay, StepSize

__all__ = ["plrsq_annealed", "plrsq_const", "rslvq_projected"]


def _paper(
    manifold: Any, sigma2: Any, prototypes_per_class: Any, max_epochs: int, other: dict[str, Any]
) -> RiemannianLVQ:
    settings: dict[str, Any] = {
        "cost": RSLVQ(),
        "step_size": StepSize(GeometricDecay(ratio=0.01), max_weight=None),
        "init": ClassMeans(),
        "batch_size": 1,
        "decision": "nearest",
    } | other
    return RiemannianLVQ(
        manifold, sigma2=sigma2, prototypes_per_class=prototypes_per_class, max_epochs=max_epochs, **settings
    )


def plrsq_const(
    sigma2: Any = "auto", prototypes_per_class: Any = 1, max_epochs: int = 100, **other: Any
) -> RiemannianLVQ:
    """PLRSQ-Const: affine-invariant metric, likelihood ratio, constant sigma2.

    Parameters
    ----------
    sigma2 : float, "auto", "blended" or "half_median", default="auto"
        Constant; "half_median" is the choice of the authors' program, the others are those of RiemannianLVQ.
    prototypes_per_class : int or dict, default=1
        Prototypes of each class.
    max_epochs : int, default=100
        Sweeps.
    **other
        Any other argument of RiemannianLVQ.

    Returns
    -------
    RiemannianLVQ
        Not fitted.

    Raises
    ------
    TypeError
        If an argument is not one of RiemannianLVQ's.

    Examples
    --------
    >>> from rplvq.presets import plrsq_const
    >>> plrsq_const(sigma2=9.5).sigma2
    9.5
    """
    return _paper(AffineInvariant(), sigma2, prototypes_per_class, max_epochs, other)


def plrsq_annealed(
    sigma2: Any = "auto", prototypes_per_class: Any = 1, max_epochs: int = 100, **other: Any
) -> RiemannianLVQ:
    """PLRSQ-AN: affine-invariant metric, likelihood ratio, sigma2 annealed from its start by 0.4.

    Parameters
    ----------
    sigma2 : float, Schedule, "auto" or "blended", default="auto"
        Start of :class:`rplvq.Annealed`, for both names that of "blended"; another schedule is used as it is.
    prototypes_per_class : int or dict, default=1
        Prototypes of each class.
    max_epochs : int, default=100
        Sweeps.
    **other
        Any other argument of RiemannianLVQ.

    Returns
    -------
    RiemannianLVQ
        Not fitted.

    Raises
    ------
    TypeError
        If an argument is not one of RiemannianLVQ's.

    Examples
    --------
    >>> from rplvq.presets import plrsq_annealed
    >>> plrsq_annealed(sigma2=0.5).sigma2
    Annealed(start=0.5, beta=0.99, power=1.1, drop=0.4, floor=0.01)
    """
    if not callable(sigma2):
        sigma2 = Annealed(None if sigma2 in (None, "auto", "blended") else sigma2)
    return _paper(AffineInvariant(), sigma2, prototypes_per_class, max_epochs, other)


def rslvq_projected(
    sigma2: Any = "auto", prototypes_per_class: Any = 1, max_epochs: int = 100, **other: Any
) -> RiemannianLVQ:
    """RSLVQ of the paper's tables: Frobenius distance, straight steps, eigenvalues raised to 1e-4.

    Parameters
    ----------
    sigma2 : float, Schedule or "auto", default="auto"
        In squared Frobenius distances.
    prototypes_per_class : int or dict, default=1
        Prototypes of each class.
    max_epochs : int, default=100
        Sweeps.
    **other
        Any other argument of RiemannianLVQ.

    Returns
    -------
    RiemannianLVQ
        Not fitted.

    Raises
    ------
    TypeError
        If an argument is not one of RiemannianLVQ's.

    Examples
    --------
    >>> from rplvq.presets import rslvq_projected
    >>> rslvq_projected(sigma2=2.0).manifold
    ProjectedEuclidean(tau=0.0001, relative=False)
    """
    return _paper(ProjectedEuclidean(tau=1e-4), sigma2, prototypes_per_class, max_epochs, other)
