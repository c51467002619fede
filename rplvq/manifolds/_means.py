"""The Riemannian mean on any manifold, computed with ``connect`` and ``move`` alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rplvq.arrays import matrix_size, parts_of, single_blas_thread, subset
from rplvq.capabilities import Additive, provides
from rplvq.protocols import Array, Manifold, Prototypes, StatefulPrototypes

ROUNDING = 1e-9
"""Relative difference of two costs that rounding can cause for ill-conditioned data."""
RESOLUTION = 1e-5
"""Where no step improves the gradient, float64 has reached its limit; a gradient below this counts as converged."""
NEGLIGIBLE = 1e-24
"""If the cost is below this share of the first cost, the points coincide."""
MAX_STALLED = 20
"""After this many passes without a better candidate the search ends."""
LONGEST = 10.0
"""Longest step, in mean logarithms; steps above 1 are useful where the curvature is positive, as on a sphere."""
MEMORY = 5
"""Near the mean, a step is accepted if its cost is at most the largest of this many last costs."""
SMALL_GRADIENT = 0.1
"""With a gradient below this, a step that raises the cost cannot reach another local minimum."""
NEARLY_FLAT = 0.3
"""If one step leaves more than this share of the gradient, the curvature matters and two steps do not suffice."""
FLAT = 0.15
LARGE = 48
"""If it leaves less than the share FLAT of matrices of size LARGE, the curvature serves for all parts of the data."""


class Mean(NamedTuple):
    """A Riemannian mean, and how its search ended."""

    code: Array  # (...), the mean in the manifold's coordinates
    n_iter: int  # number of passes over the data
    gradient: float  # length of the last mean logarithm, relative to the root mean squared distance
    converged: bool  # whether this fell below the tolerance, or to the rounding of the data


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

    The method is Karcher's iteration ``w <- Exp_w(t sum_b q_b Log_w(x_b))`` (Karcher 1977,
    doi:10.1002/cpa.3160300502) with step control. t starts at 1, which is exact on flat manifolds, then follows the
    curvature of f (Barzilai and Borwein 1988, doi:10.1093/imanum/8.1.141), and is halved if a step would raise f, or
    near the mean if it would exceed its last five values (Grippo, Lampariello and Lucidi 1986, doi:10.1137/0723046). A
    rejected step costs one pass over the data. On a manifold with ``pull`` and ``exp`` a pass reads the data in parts
    of bounded memory.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    codes : ndarray or LazyRows of shape (N, ...)
        Encoded points.
    weights : ndarray of shape (N,), optional
        Weights that are not negative and not all zero; by default all are equal.
    start : ndarray of shape (...), optional
        First guess; by default the first point of positive weight.
    tol : float, default=1e-9
        Largest length of the mean logarithm, relative to the root mean squared distance.
    max_iter : int, default=200
        Largest number of passes over the data.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` passes did not reach ``tol``, or if no step improves a gradient above 1e-5; the best mean that
        was seen is returned.

    Examples
    --------
    >>> from rplvq import AffineInvariant
    >>> manifold = AffineInvariant()
    >>> codes = manifold.encode([np.diag([np.e**2, 1.0]), np.eye(2)])
    >>> riemannian_mean(manifold, codes).code.round(6)
    array([[2.718282, 0.      ],
           [0.      , 1.      ]])
    """
    with single_blas_thread(matrix_size(codes)):
        codes, look = passes_over(manifold, codes, weights)
        first = codes[:1] if start is None else np.asarray(start)[None]
        return descend(manifold, look, first, len(codes), tol=tol, max_iter=max_iter)


def means_of_parts(manifold: Manifold[Any], codes: Array, mean: Array, parts: Iterable[Array]) -> Iterator[Array]:
    """Yield the Riemannian means (...) of parts of samples (N, ...) whose ``mean`` is known, such as all but one fold.

    ``parts`` are the weights (N,) of the samples in each part, 0 for a sample that is not in it. The first step of each
    search is known from one decomposition at ``mean``, which all parts share. Where the space is nearly flat at the
    scale of the data, a second step suffices. The results are within about 1 % of the distance between the two means.
    Of large matrices (3 %), the curvature that one part has found serves for the next ones, whose first step is then
    the last.
    """
    known_step = 0.0
    with single_blas_thread(matrix_size(codes)):
        start = np.asarray(mean)[None]
        geodesics = manifold.connect(start, codes)
        for weights in parts:
            shares = weights / weights.sum()
            follow = partial(_moved, manifold, geodesics, shares)
            if known_step:
                yield np.asarray(follow(known_step))[0]
                continue
            first = _measure(manifold, Look(start, float(shares @ geodesics.sqdist[:, 0]), follow), 0.0)
            _, look = passes_over(manifold, codes, weights)
            second = _measure(manifold, look(first.follow(1.0)), 0.0)
            step = _curved_step(manifold, first, second, 1.0)
            found = second.follow(step)
            if matrix_size(codes) >= LARGE and second.length < FLAT * first.length:
                known_step = step
            if second.length > NEARLY_FLAT * first.length:
                tol = 0.01 * first.gradient
                found = np.asarray(descend(manifold, look, found, len(codes), tol=tol, max_iter=200).code)[None]
            yield np.asarray(found)[0]


def _moved(manifold: Manifold[Any], geodesics: Any, shares: Array, step: float) -> Prototypes:
    """Return the prototype after a step along the mean logarithm, given shares (N,) that sum to one."""
    moved = manifold.move(geodesics, step * shares[:, None])
    return np.asarray(moved) if is_stateful(moved) else moved  # a mean does not learn a metric


def passes_over(
    manifold: Manifold[Any], codes: Array, weights: Array | None
) -> tuple[Array, Callable[[Prototypes], Look]]:
    """Return the codes of positive weight, and the function that passes over them for one candidate."""
    shares = np.full(len(codes), 1.0) if weights is None else np.asarray(weights, dtype=float)
    kept = shares > 0
    if not kept.all():
        codes = subset(codes, np.flatnonzero(kept))
        shares = shares[kept]
    shares = shares / shares.sum()
    parts = parts_of(codes)
    in_parts = len(parts) > 1 and is_additive(manifold)

    def look(prototype: Prototypes) -> Look:
        if in_parts:
            return _look_by_parts(manifold, prototype, codes, shares, parts)
        geodesics = manifold.connect(prototype, codes[:])
        value = float(shares @ geodesics.sqdist[:, 0])
        return Look(prototype, value, partial(_moved, manifold, geodesics, shares))

    return codes, look


def is_additive(manifold: Manifold[Any]) -> bool:
    """Whether the manifold has ``pull`` and ``exp``, so that tangents of several parts of the data add up."""
    return provides(manifold, Additive)


def is_stateful(prototypes: Prototypes) -> TypeGuard[StatefulPrototypes]:
    """Whether prototypes store more than codes, such as a learned metric."""
    return provides(prototypes, StatefulPrototypes)


def _look_by_parts(manifold: Any, prototype: Prototypes, codes: Array, shares: Array, parts: list[slice]) -> Look:
    """Pass over the data part by part; only the distances (N,) and the sum of the logarithms are kept."""
    sqdist = np.empty(len(codes))
    total = np.zeros(1)
    for rows in parts:
        geodesics = manifold.connect(prototype, codes[rows])
        sqdist[rows] = geodesics.sqdist[:, 0]
        total = total + manifold.pull(geodesics, shares[rows, None])
    return Look(prototype, float(shares @ sqdist), lambda step: manifold.exp(prototype, step * total))


class Look(NamedTuple):
    """Result of one pass over the data: the cost of a candidate, and its steps along the mean logarithm."""

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
    """Run the iteration of :func:`riemannian_mean`, where ``look`` passes over the data for one candidate.

    A candidate, such as ``start``, is a stack of one prototype. ``n_points`` is only used by the warning.
    """
    point = best = _measure(manifold, look(start), 0.0)
    negligible = NEGLIGIBLE * point.value
    recent = [point.value]
    step = 1.0
    stalled = 0
    n_iter = 1
    while best.gradient > tol and stalled < MAX_STALLED and n_iter < max_iter:
        n_iter += 1
        reached = _measure(manifold, look(point.follow(step)), negligible)
        stalled = 0 if _better(reached, best) else stalled + 1
        best = best if stalled else reached
        if reached.value <= max(recent[-MEMORY:]) * (1 + ROUNDING):
            step = _curved_step(manifold, point, reached, step)
            point = reached
            recent = [*recent, point.value] if point.gradient < SMALL_GRADIENT else [point.value]
        else:
            step = 0.5 * step
    if best.gradient <= (max(tol, RESOLUTION) if stalled == MAX_STALLED else tol):
        return Mean(best.code[0], n_iter, best.gradient, True)
    more = "" if n_iter < max_iter else " or raise max_iter"
    warnings.warn(
        f"the Riemannian mean of {n_points} points did not converge in {n_iter} passes: its mean logarithm "
        f"is {best.gradient:.2g} of the root mean squared distance (tol={tol:g}). The data are ill-conditioned "
        f"or heavy-tailed: regularise them (shrinkage, rplvq.features.shrink){more}",
        ConvergenceWarning,
        stacklevel=3,
    )
    return Mean(best.code[0], n_iter, best.gradient, False)


class _Point(NamedTuple):
    """A candidate with its cost and its mean logarithm."""

    prototype: Prototypes
    code: Array  # (1, ...), of the prototype
    follow: Callable[[float], Prototypes]
    value: float
    ahead: Array  # codes (1, ...) after the whole mean logarithm
    length: float  # of the mean logarithm; 0 if it is only noise

    @property
    def gradient(self) -> float:
        """Length of the mean logarithm relative to the root mean squared distance."""
        return self.length / float(np.sqrt(self.value)) if self.length else 0.0


def _measure(manifold: Manifold[Any], seen: Look, negligible: float) -> _Point:
    prototype, value, follow = seen
    # The length of a full step is that of the mean logarithm, so that no method of the manifold has to return it.
    code = np.asarray(prototype)
    ahead = np.asarray(follow(1.0))
    noise, square = manifold.sqdist(prototype, np.concatenate([code, ahead]))[:, 0]
    # If all points agree up to rounding, their mean logarithm is only noise, so its length is reported as 0.
    length = 0.0 if value <= max(negligible, 1e4 * noise) else float(np.sqrt(square))
    return _Point(prototype, code, follow, value, ahead, length)


def _curved_step(manifold: Manifold[Any], old: _Point, new: _Point, step: float) -> float:
    """Return the next step, in mean logarithms: ``<s, s> / <s, y>`` for the step s and the gradient's change y."""
    # The triangle of the old point, the new one and the one ahead is flat to first order. Therefore its sides give the
    # inner products.
    way, further = manifold.sqdist(old.prototype, np.concatenate([new.code, new.ahead]))[:, 0]
    back = 0.5 * (new.length**2 + way - further)
    with np.errstate(all="ignore"):
        return float(step_of(1 / step + np.divide(back, way)))


def step_of(curvature: Array) -> Array:
    """Return the steps, in mean logarithms, for curvatures (...): their inverses within limits, and 1 for no use."""
    is_curved = (curvature > 0) & (curvature < np.inf)
    return np.asarray(np.where(is_curved, 1 / np.maximum(curvature, 1 / LONGEST), 1.0))


def _better(new: _Point, old: _Point) -> bool:
    """Whether the cost is lower or, if the costs differ only by rounding, the mean logarithm is shorter."""
    if new.value < old.value * (1 - ROUNDING):
        return True
    return new.value <= old.value * (1 + ROUNDING) and new.gradient < old.gradient
