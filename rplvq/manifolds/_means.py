"""The Riemannian mean on any manifold, as the fixed point of connect and move."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rplvq.arrays import parts_of, subset
from rplvq.protocols import Array, Manifold, Prototypes

__all__ = ["Look", "Mean", "descend", "is_additive", "riemannian_mean"]

ROUNDING = 1e-9
"""Relative difference of two costs that conditioning can cause."""
RESOLUTION = 1e-5
"""Gradient that still counts as converged where no step improves it: the limit of float64 for these data."""
NEGLIGIBLE = 1e-24
"""Cost, in units of the first guess's, that means that the points coincide."""
MAX_STALLED = 20
"""Passes without a better candidate after which none is expected."""
LONGEST = 10.0
"""Largest step, in mean logarithms; above 1 where the manifold is curved like a sphere."""
MEMORY = 5
"""Passes over which the cost has to fall near the mean: one that raises it may be the faster way, or rounding."""
NEAR = 0.1
"""Gradient below which a step that raises the cost cannot lead to another valley."""


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
    step control: t starts at 1, which is exact on flat manifolds, follows the curvature of f (Barzilai and Borwein
    1988, doi:10.1093/imanum/8.1.141), and is halved where a step would raise f, near the mean above its last five
    values (Grippo, Lampariello and Lucidi 1986, doi:10.1137/0723046). A rejected step costs one pass over the data.
    On a manifold with ``pull`` and ``exp`` a pass runs through the data in parts of bounded memory.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    codes : ndarray of shape (N, ...), or rplvq.arrays.Samples
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
    parts = parts_of(codes)
    in_parts = len(parts) > 1 and is_additive(manifold)

    def look(prototype: Prototypes) -> Look:
        if in_parts:
            return _look_by_parts(manifold, prototype, codes, shares, parts)
        geodesics = manifold.connect(prototype, codes[:])
        value = float(shares @ geodesics.sqdist[:, 0])
        return Look(prototype, value, lambda step: _bare(manifold.move(geodesics, step * shares[:, None])))

    first = codes[:1] if start is None else np.asarray(start)[None]
    return descend(manifold, look, first, len(codes), tol=tol, max_iter=max_iter)


def is_additive(manifold: Manifold[Any]) -> bool:
    """Whether tangents of several parts of the data add up: the manifold has ``pull`` and ``exp``."""
    return hasattr(manifold, "pull") and hasattr(manifold, "exp")


def _bare(prototype: Prototypes) -> Prototypes:
    """Return a prototype without state that prototypes share, such as a learned metric: a mean learns nothing."""
    return np.asarray(prototype) if hasattr(prototype, "with_codes") else prototype


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
    point = best = _measure(manifold, look(start), 0.0)
    negligible = NEGLIGIBLE * point.value
    recent, step, stalled, n_iter = [point.value], 1.0, 0, 1
    while best.gradient > tol and stalled < MAX_STALLED and n_iter < max_iter:
        n_iter += 1
        reached = _measure(manifold, look(point.follow(step)), negligible)
        stalled = 0 if _better(reached, best) else stalled + 1
        best = best if stalled else reached
        if reached.value <= max(recent[-MEMORY:]) * (1 + ROUNDING):
            step = _curved_step(manifold, point, reached, step)
            point = reached
            recent = [*recent, point.value] if point.gradient < NEAR else [point.value]
        else:
            step = 0.5 * step
    if best.gradient <= (max(tol, RESOLUTION) if stalled == MAX_STALLED else tol):
        return Mean(np.asarray(best.prototype)[0], n_iter, best.gradient, True)
    warnings.warn(
        f"the Riemannian mean of {n_points} points did not converge in {n_iter} passes: its mean logarithm "
        f"is {best.gradient:.2g} of the root mean squared distance (tol={tol:g}). The data are ill-conditioned "
        "or heavy-tailed: regularise them (shrinkage) or raise max_iter",
        ConvergenceWarning,
        stacklevel=3,
    )
    return Mean(np.asarray(best.prototype)[0], n_iter, best.gradient, False)


class _Point(NamedTuple):
    """A candidate with its cost and where its mean logarithm leads."""

    prototype: Prototypes
    follow: Callable[[float], Prototypes]
    value: float
    ahead: Array  # codes (1, ...) after the whole mean logarithm
    length: float  # of the mean logarithm; 0 where that is rounding

    @property
    def gradient(self) -> float:
        """Length of the mean logarithm relative to the root mean squared distance."""
        return self.length / float(np.sqrt(self.value)) if self.length else 0.0


def _measure(manifold: Manifold[Any], seen: Look, negligible: float) -> _Point:
    prototype, value, follow = seen
    # The length of a full step is that of the mean logarithm, and no manifold method has to return it.
    ahead = np.asarray(follow(1.0))
    # Points that agree up to rounding have no mean logarithm to speak of, only the quotient of two roundings.
    if value <= max(negligible, 1e4 * _between(manifold, prototype, np.asarray(prototype))):
        return _Point(prototype, follow, value, ahead, 0.0)
    return _Point(prototype, follow, value, ahead, float(np.sqrt(_between(manifold, prototype, ahead))))


def _between(manifold: Manifold[Any], prototype: Prototypes, codes: Array) -> float:
    """Squared distance of two stacks of one."""
    return float(manifold.sqdist(prototype, codes)[0, 0])


def _curved_step(manifold: Manifold[Any], old: _Point, new: _Point, step: float) -> float:
    """Share of the next mean logarithm to follow: the inverse curvature on the way just made.

    That of Barzilai and Borwein (1988, doi:10.1093/imanum/8.1.141), ``<s, s> / <s, y>`` for the way s and the change y
    of the gradient along it. Inner products come from the sides of the triangle of the old point, the new one and the
    one ahead, which is flat to first order.
    """
    way = _between(manifold, new.prototype, np.asarray(old.prototype))
    back = 0.5 * (new.length**2 + way - _between(manifold, old.prototype, new.ahead))
    with np.errstate(all="ignore"):
        curvature = 1 / step + np.divide(back, way)
    return float(1 / max(curvature, 1 / LONGEST)) if 0 < curvature < np.inf else 1.0


def _better(new: _Point, old: _Point) -> bool:
    """Lower cost; or, where costs differ by rounding only, a shorter mean logarithm."""
    if new.value < old.value * (1 - ROUNDING):
        return True
    return new.value <= old.value * (1 + ROUNDING) and new.gradient < old.gradient
