"""The Riemannian mean on any manifold, as the fixed point of connect and move."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rplvq.protocols import Array, Manifold, Prototypes
from rplvq.samples import adds_up, parts_of, subset

__all__ = ["Look", "Mean", "descend", "riemannian_mean"]

ROUNDING = 1e-9
"""Relative difference of two costs that conditioning can cause."""
RESOLUTION = 1e-5
"""Gradient that still counts as converged where no step improves it: the limit of float64 for these data."""
NEGLIGIBLE = 1e-24
"""Cost, in units of the first guess's, that means that the points coincide."""
MAX_REJECTED = 10


class Mean(NamedTuple):
    """A Riemannian mean.

    Parameters
    ----------
    code : ndarray of shape (...)
        The mean in the manifold's coordinates.
    n_iter : int
        Passes over the data.
    gradient : float
        Length of the last mean logarithm, relative to the root mean squared distance.
    converged : bool
        Whether ``gradient`` fell below the tolerance, or to the rounding of the data.
    """

    code: Array
    n_iter: int
    gradient: float
    converged: bool


def riemannian_mean(
    manifold: Manifold[Any],
    codes: Array,
    weights: Array | None = None,
    *,
    start: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> Mean:
    """Minimise the weighted squared distances ``f(w) = sum_b q_b d^2(x_b, w)``, q summing to one.

    Karcher's iteration ``w <- Exp_w(t sum_b q_b Log_w(x_b))`` (Karcher 1977, doi:10.1002/cpa.3160300502) with
    step control: t starts at 1, which is exact on flat manifolds, is halved when a step would raise f,
    and recovers slowly. A rejected step costs one pass over the data. On a manifold with ``pull`` and ``exp`` a pass
    runs through the data in parts of bounded memory.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    codes : ndarray of shape (N, ...), or rplvq.samples.Samples
        Encoded points.
    weights : ndarray of shape (N,), optional
        Not negative, not all zero; equal if not given.
    start : ndarray of shape (...), optional
        First guess; by default the first point of positive weight.
    tol : float, default=1e-9
        Bound on the length of the mean logarithm, relative to the root mean squared distance.
    max_iter : int, default=200
        Bound on passes over the data.

    Returns
    -------
    Mean
        With its number of passes and whether it converged.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` passes did not reach ``tol``, or no step improves a gradient above 1e-5; the mean
        returned is the best one seen.

    Examples
    --------
    >>> from rplvq import AffineInvariant
    >>> manifold = AffineInvariant()
    >>> codes = manifold.encode([np.diag([np.e**2, 1.0]), np.eye(2)])
    >>> riemannian_mean(manifold, codes).code.round(6)
    array([[2.718282, 0.      ],
           [0.      , 1.      ]])
    """
    shares = np.full(len(codes), 1.0) if weights is None else np.asarray(weights, dtype=float)
    kept = shares > 0
    if not kept.all():
        codes, shares = subset(codes, np.flatnonzero(kept)), shares[kept]
    shares = shares / shares.sum()
    manifold = getattr(manifold, "fixed", manifold)
    parts = parts_of(codes)
    in_parts = len(parts) > 1 and adds_up(manifold)

    def look(prototype: Prototypes) -> Look:
        if in_parts:
            return _look_by_parts(manifold, prototype, codes, shares, parts)
        geodesics = manifold.connect(prototype, codes[:])
        value = float(shares @ geodesics.sqdist[:, 0])
        return Look(prototype, value, lambda step: manifold.move(geodesics, step * shares[:, None]))

    first = codes[:1] if start is None else np.asarray(start)[None]
    return descend(manifold, look, first, len(codes), tol=tol, max_iter=max_iter)


def _look_by_parts(manifold: Any, prototype: Prototypes, codes: Array, shares: Array, parts: list[slice]) -> Look:
    """Pass over the data part by part: only distances (N,) and the sum of the logarithms stay."""
    sqdist, total = np.empty(len(codes)), np.zeros(1)
    for rows in parts:
        geodesics = manifold.connect(prototype, codes[rows])
        sqdist[rows] = geodesics.sqdist[:, 0]
        total = total + manifold.pull(geodesics, shares[rows, None])
    return Look(prototype, float(shares @ sqdist), lambda step: manifold.exp(prototype, step * total))


class Look(NamedTuple):
    """What one pass over the data tells of a candidate: its cost, and where a step along the mean logarithm leads."""

    prototype: Prototypes
    value: float
    follow: Callable[[float], Prototypes]


def descend(
    manifold: Manifold[Any],
    look: Callable[[Prototypes], Look],
    start: Prototypes,
    n_points: int,
    *,
    tol: float,
    max_iter: int,
) -> Mean:
    """Karcher's iteration with step control, wherever the data are: ``look`` passes over them.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    look : callable
        Cost and step at a candidate, a stack of one prototype.
    start : Prototypes
        First candidate.
    n_points : int
        For the message.
    tol, max_iter
        As for :func:`riemannian_mean`, with its warning.
    """
    point = _measure(manifold, look(start), 0.0)
    negligible = NEGLIGIBLE * point.value
    step, rejected, n_iter = 1.0, 0, 1
    while point.gradient > tol and rejected < MAX_REJECTED and n_iter < max_iter:
        n_iter += 1
        reached = _measure(manifold, look(point.follow(step)), negligible)
        if _better(reached, point):
            point, step, rejected = reached, min(1.0, 1.2 * step), 0
        else:
            step, rejected = 0.5 * step, rejected + 1
    if point.gradient <= (max(tol, RESOLUTION) if rejected == MAX_REJECTED else tol):
        return Mean(np.asarray(point.prototype)[0], n_iter, point.gradient, True)
    warnings.warn(
        f"the Riemannian mean of {n_points} points did not converge in {n_iter} passes: its mean logarithm "
        f"is {point.gradient:.2g} of the root mean squared distance (tol={tol:g}). The data are ill-conditioned "
        "or heavy-tailed: regularise them (shrinkage) or raise max_iter",
        ConvergenceWarning,
        stacklevel=3,
    )
    return Mean(np.asarray(point.prototype)[0], n_iter, point.gradient, False)


class _Point(NamedTuple):
    """A candidate with its cost and the relative length of its mean logarithm."""

    prototype: Prototypes
    follow: Callable[[float], Prototypes]
    value: float
    gradient: float


def _measure(manifold: Manifold[Any], seen: Look, negligible: float) -> _Point:
    prototype, value, follow = seen
    # Points that agree up to rounding have no mean logarithm to speak of, only the quotient of two roundings.
    rounding = float(manifold.sqdist(prototype, np.asarray(prototype))[0, 0])
    if value <= max(negligible, 1e4 * rounding):
        return _Point(prototype, follow, value, 0.0)
    # The length of a full step is that of the mean logarithm, and no manifold method has to return it.
    length = float(np.sqrt(manifold.sqdist(prototype, np.asarray(follow(1.0)))[0, 0]))
    return _Point(prototype, follow, value, float(length / np.sqrt(value)))


def _better(new: _Point, old: _Point) -> bool:
    """Lower cost; or, where costs differ by rounding only, a shorter mean logarithm."""
    if new.value < old.value * (1 - ROUNDING):
        return True
    return new.value <= old.value * (1 + ROUNDING) and new.gradient < old.gradient
