"""The Riemannian mean on any manifold, computed with ``connect`` and ``move`` alone.

The means of many small groups are computed together, because one by one they take longer in Python than in LAPACK.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rplvq.arrays import matrix_size, parts_of, parts_of_batch, single_blas_thread, subset
from rplvq.capabilities import Additive, Grouped, provides
from rplvq.protocols import AnyManifold, Array, Geodesics, Prototypes, StatefulPrototypes

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
TOLERANCE = 1e-9
"""Largest length of a mean logarithm, relative to the root mean squared distance, as for a single mean."""
MOST_PASSES = 15
"""Few groups need more passes than this; they are computed one by one."""


class Mean(NamedTuple):
    """A Riemannian mean, and how its search ended."""

    code: Array  # (...), the mean in the manifold's coordinates
    n_iter: int  # number of passes over the data
    gradient: float  # length of the last mean logarithm, relative to the root mean squared distance
    converged: bool  # whether this fell below the tolerance, or to the rounding of the data


def riemannian_mean(
    manifold: AnyManifold, codes: Array, weights: Array | None = None, *, start: Array | None = None, tol: float = 1e-9,
    max_iter: int = 200,
) -> Mean:  # fmt: skip
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


def means_of_parts(manifold: AnyManifold, codes: Array, mean: Array, parts: Iterable[Array]) -> Iterator[Array]:
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
                yield np.asarray(follow(known_step))[0]  # without any pass over the data
                continue
            first = _measure(manifold, Look(start, float(shares @ geodesics.sqdist[:, 0]), follow), 0.0)
            _, look = passes_over(manifold, codes, weights)
            second = _measure(manifold, look(first.follow(1.0)), 0.0)
            step = _curved_step(manifold, first, second, 1.0)
            third = second.follow(step)
            if matrix_size(codes) >= LARGE and second.length < FLAT * first.length:
                known_step = step
            if second.length > NEARLY_FLAT * first.length:
                tol = 0.01 * first.gradient
                yield descend(manifold, look, third, len(codes), tol=tol, max_iter=200).code
            else:
                yield np.asarray(third)[0]


def _moved(manifold: AnyManifold, geodesics: Geodesics, shares: Array, step: float) -> Prototypes:
    """Return the prototype after a step along the mean logarithm, given shares (N,) that sum to one."""
    moved = manifold.move(geodesics, step * shares[:, None])
    return np.asarray(moved) if is_stateful(moved) else moved  # a mean does not learn a metric


def passes_over(manifold: Any, codes: Array, weights: Array | None) -> tuple[Array, Callable[[Prototypes], Look]]:
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
        if not in_parts:
            geodesics = manifold.connect(prototype, codes[:])
            value = float(shares @ geodesics.sqdist[:, 0])
            return Look(prototype, value, partial(_moved, manifold, geodesics, shares))
        sqdist = np.empty(len(codes))
        total = np.zeros(1)
        for rows in parts:  # only the distances and the sum of the logarithms are kept
            geodesics = manifold.connect(prototype, codes[rows])
            sqdist[rows] = geodesics.sqdist[:, 0]
            total = total + manifold.pull(geodesics, shares[rows, None])
        return Look(prototype, float(shares @ sqdist), lambda step: manifold.exp(prototype, step * total))

    return codes, look


def is_additive(manifold: AnyManifold) -> bool:
    """Whether the manifold has ``pull`` and ``exp``, so that tangents of several parts of the data add up."""
    return provides(manifold, Additive)


def is_stateful(prototypes: Prototypes) -> TypeGuard[StatefulPrototypes]:
    """Whether prototypes store more than codes, such as a learned metric."""
    return provides(prototypes, StatefulPrototypes)


class Look(NamedTuple):
    """Result of one pass over the data: the cost of a candidate, and its steps along the mean logarithm."""

    prototype: Prototypes
    value: float
    follow: Callable[[float], Prototypes]


def descend(
    manifold: AnyManifold, look: Callable[[Prototypes], Look], start: Prototypes, n_points: int, *, tol: float,
    max_iter: int,
) -> Mean:  # fmt: skip
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
            # Far from the mean, no cost may rise.
            recent = [*recent, point.value] if point.gradient < SMALL_GRADIENT else [point.value]
        else:
            step = 0.5 * step  # from the same point again
    enough = max(tol, RESOLUTION) if stalled == MAX_STALLED else tol
    if best.gradient <= enough:
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


def _measure(manifold: AnyManifold, seen: Look, negligible: float) -> _Point:
    prototype, value, follow = seen
    # The length of a full step is that of the mean logarithm, so that no method of the manifold has to return it.
    code = np.asarray(prototype)
    ahead = np.asarray(follow(1.0))
    noise, square = manifold.sqdist(prototype, np.concatenate([code, ahead]))[:, 0]
    # If all points agree up to rounding, their mean logarithm is only noise, so its length is reported as 0.
    length = 0.0 if value <= max(negligible, 1e4 * noise) else float(np.sqrt(square))
    return _Point(prototype, code, follow, value, ahead, length)


def _curved_step(manifold: AnyManifold, old: _Point, new: _Point, step: float) -> float:
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


Seen = tuple[Array, Array]
"""Squared distances (M,) and logarithms (M, ...), as a manifold with the capability Grouped returns them."""


def means_of_groups(manifold: AnyManifold, codes: Array, groups: list[Array], weights: Array) -> Array:
    """Return the means (G, ...), as of :func:`riemannian_mean`, of groups of samples, given as their indices."""
    rows = np.concatenate(groups)
    counts = np.array([len(own) for own in groups])
    together: list[Array | None] = [None] * len(groups)
    if _fits(manifold, codes, len(rows)):
        own = codes[rows]
        together = _together(manifold, own[np.cumsum(counts) - counts], own, counts, weights[rows])
    return np.stack([
        riemannian_mean(manifold, subset(codes, own), weights[own]).code if mean is None else mean
        for own, mean in zip(groups, together, strict=True)
    ])  # fmt: skip


def means_of_folds(manifold: AnyManifold, codes: Array, classes: Array, means: Array, trains: Array) -> Iterator[Array]:
    """Yield the class means (C, ...) of the samples of each fold, as :func:`means_of_parts` computes them.

    The samples (N, ...) have the class indices ``classes`` (N,) and the class means ``means`` (C, ...). Their weights
    in each fold are ``trains`` (F, N), 0 for a sample that is not in it.
    """
    labels = np.arange(len(means))
    order = np.argsort(classes, kind="stable")
    folds, places = np.nonzero(trains[:, order])
    rows = order[places]
    counts = np.bincount(folds * len(means) + classes[rows], minlength=len(trains) * len(means))
    together: list[Array | None] = [None] * len(counts)
    if _fits(manifold, codes, len(rows)) and counts.all():
        with single_blas_thread(matrix_size(codes)):  # all folds share the decompositions at the class means
            both = np.concatenate([codes, means])  # what is known of the first guesses comes last
            owners = np.concatenate([classes, labels])
            sqdist, logs = manifold.logarithms(means, both, owners)
        start = np.concatenate([means] * len(trains))
        again = np.concatenate([rows, np.tile(len(codes) + labels, len(trains))])
        together = _together(manifold, start, codes[rows], counts, trains[folds, rows], (sqdist[again], logs[again]))
    by_class = []  # one search per class for all folds in which its mean is missing, because they share a decomposition
    for label, mean in zip(labels, means, strict=True):
        mine = np.flatnonzero(classes == label)
        missing = [part is None for part in together[label :: len(means)]]
        by_class.append(means_of_parts(manifold, codes[mine], mean, trains[missing][:, mine]))
    for fold in range(len(trains)):
        parts = together[fold * len(means) : (fold + 1) * len(means)]
        pairs = zip(parts, by_class, strict=True)
        yield np.stack([next(search) if part is None else part for part, search in pairs])


def _fits(manifold: AnyManifold, codes: Array, count: int) -> TypeGuard[Grouped]:
    """Whether the manifold is Grouped, and the logarithms of so many samples, like codes (N, ...), fit one block."""
    if not provides(manifold, Grouped) or len(parts_of_batch(codes, count, 1)) > 1:
        return False
    # The logarithms of a base class do not fit a subclass that overrides what they replace.
    replaced = {"connect", "move", "sqdist", "logarithms"}
    latest = next((each for each in type(manifold).__mro__ if replaced & vars(each).keys()), type(manifold))
    return "logarithms" in vars(latest)


def _together(
    manifold: Grouped, start: Array, codes: Array, counts: Array, weights: Array, seen: Seen | None = None
) -> list[Array | None]:
    """Run the iteration of :func:`riemannian_mean` for G groups at once, from the guesses ``start`` (G, ...).

    The mean is None for a group whose cost rises, or that takes long: it needs the safeguards of the single search.
    ``counts`` (G,) are the numbers of samples, which are sorted by group and have positive weights (M,). ``seen`` may
    be what is known of samples and guesses (M + G). The means are then only as accurate as those of means_of_parts.
    """
    firsts = np.cumsum(counts) - counts
    n_samples = len(codes)
    is_part = seen is not None
    shares = weights / np.repeat(np.add.reduceat(weights, firsts), counts)
    column = (-1, *[1] * (codes.ndim - 1))
    groups = np.arange(len(counts))
    both = [codes, start]
    owners = np.concatenate([np.repeat(groups, counts), groups])
    means: list[Array | None] = [None] * len(groups)
    point = start
    running = counts > 0
    step = np.ones(len(counts))
    first = last = negligible = np.zeros(len(counts))
    with single_blas_thread(matrix_size(codes)), np.errstate(all="ignore"):
        for n_pass in range(MOST_PASSES):
            # The last rows are the points of the pass before, whose logarithms show the curvature along its step.
            sqdist, logs = seen or manifold.logarithms(point, np.concatenate(both), owners)
            values = np.add.reduceat(shares * sqdist[:n_samples], firsts)
            ahead = np.add.reduceat(shares.reshape(column) * logs[:n_samples], firsts)
            squares = _inner(ahead, ahead)
            back = logs[n_samples:]
            if n_pass == 0:
                first = squares
                negligible = np.maximum(NEGLIGIBLE * values, 1e4 * sqdist[n_samples:])
            else:
                running &= (values <= last * (1 + ROUNDING)) | (squares < SMALL_GRADIENT**2 * values)
                ahead[~running] = 0  # they stay where they are
                step = step_of(1 / step + _inner(back, ahead) / _inner(back, back))
            enough = TOLERANCE**2 * values
            if is_part:
                gradient = NEARLY_FLAT if n_pass == 1 else 0.01
                enough = np.maximum(enough, gradient**2 * first)
            done = running & ((squares <= enough) | (values <= negligible))
            now = np.asarray(point)
            point = manifold.exp(point, step.reshape(column) * ahead)
            if done.any():
                reached = np.asarray(point) if is_part else now
                means = [reached[k] if done[k] else mean for k, mean in enumerate(means)]
            running = running & ~done
            if not running.any():
                break
            both = [codes, now]
            last = values
            seen = None
    return means


def _inner(a: Array, b: Array) -> Array:
    """Return the inner products (G,) of tangents (G, ...)."""
    return np.asarray(np.vecdot(a.reshape(len(a), -1), b.reshape(len(b), -1)).real)
