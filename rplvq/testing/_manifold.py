"""The check of a manifold, with one function per promise; simple promises come first, because they explain more."""

from typing import Any, NamedTuple

import numpy as np

from rplvq.parts import MANIFOLD_METHODS, what_lacks
from rplvq.protocols import AnyManifold, Array, ArrayLike, Prototypes
from rplvq.testing._agreement import RTOL, accepted, agree, pickled, require, vanish


class Case(NamedTuple):
    """The data of the checks: N points, of which K are prototypes and B others are samples."""

    manifold: AnyManifold
    points: Array  # (N, ...)
    codes: Array  # (N, ...)
    prototypes: Array  # (K, ...)
    samples: Array  # (B, ...)
    d: Array  # (B, K), squared distances of the samples to the prototypes
    size: float  # the largest of them, with which errors are compared
    rng: np.random.Generator
    divergence: bool = False  # whether sqdist need not be a squared distance

    def moved(self, weights: Array) -> Prototypes:
        """Move the prototypes by weights (B, K)."""
        return self.manifold.move(self.manifold.connect(self.prototypes, self.samples), weights)

    def moved_alone(self, index: int, weights: Array) -> Prototypes:
        """Move the prototypes by one sample alone, with weights (K,)."""
        geodesics = self.manifold.connect(self.prototypes, self.samples[index : index + 1])
        return self.manifold.move(geodesics, weights[None])

    def apart(self, first: Prototypes, second: Prototypes) -> Array:
        """Return the squared distances (K,) between the k-th prototypes of two sets."""
        return np.diagonal(self.manifold.sqdist(first, np.asarray(second)))


def check_manifold(
    manifold: AnyManifold, points: ArrayLike | None = None, *, divergence: bool = False, pickling: bool = True,
    random_state: int = 0,
) -> None:  # fmt: skip
    """Check that a geometry keeps the promises of :class:`rplvq.protocols.Manifold`.

    For example, the squared distance of a pair does not depend on the other points, ``encode`` undoes ``decode``, and a
    move with weight s leaves the share ``|1 - s|`` of the distance. ``move`` must follow the gradient of ``sqdist``,
    ``grad d^2(x, w) = -2 Log_w(x)``: the rate of d^2(y, w) on the way to x, ``-2 <Log_w(x), Log_w(y)>``, is that of
    d^2(x, w) on the way to y. A reference (:class:`rplvq.capabilities.Referenced`) must not depend on the order of the
    points, and a weight counts as copies of its point. AssertionError is raised at the first broken promise.

    Parameters
    ----------
    manifold : Manifold
        The part to check.
    points : array-like of shape (N, ...), optional
        At least 4 points that are distinct and well-conditioned; ValueError is raised otherwise. A promise about
        geodesics that are prolonged by a fifth fails beyond a cut locus; it is then checked on points nearer to the
        first one. By default seven positive definite 3 x 3 matrices or, if ``encode`` refuses them, vectors.
    divergence : bool, default=False
        Whether ``sqdist`` is a divergence, which need not be symmetric, and whose gradient is no logarithm. ``move``
        must then follow ``V(x) = -grad_w d(x, w) / 2`` in place of the logarithm, and weight 1 must lower d.
    pickling : bool, default=True
        Whether the part must be picklable; a class defined in a function or doctest is not.
    random_state : int, default=0
        Seed of the points and of the weights.

    Examples
    --------
    Vectors of positive numbers, whose distance is that of their logarithms:

    >>> from rplvq.manifolds import flat_connect, flat_move, flat_sqdist
    >>> class PositiveVectors:
    ...     sqdist, connect, move = map(staticmethod, (flat_sqdist, flat_connect, flat_move))
    ...     def encode(self, points):
    ...         if not (points > 0).all():
    ...             raise ValueError("X must be positive")
    ...         return np.log(points)
    ...     def decode(self, codes):
    ...         return np.exp(codes)
    >>> check_manifold(PositiveVectors(), np.arange(1.0, 13.0).reshape(4, 3), pickling=False)
    """
    why = what_lacks(manifold, MANIFOLD_METHODS)
    require(not why, f"{manifold!r} is not a Manifold: {why}")
    rng = np.random.default_rng(random_state)
    points = default_points(manifold, rng) if points is None else np.array(points)
    if len(points) < 4:
        raise ValueError(f"points must hold at least 4 points, got {len(points)}")
    manifold = with_reference(manifold, points)
    codes = encoded(manifold, points)
    kept = codes.copy()
    case = case_of(manifold, points, codes, rng, divergence)
    for promise in PROMISES:
        try:
            promise(case)
        except AssertionError:
            # A geodesic that was prolonged beyond a cut locus is no longer the shortest one.
            near = drawn_nearer(case) if promise in PROLONGING else None
            if near is None:
                raise
            case = near
            promise(case)
        require(np.array_equal(codes, kept), "sqdist, connect and move must not write into codes")
    if pickling:
        again = pickled(manifold, "a manifold").sqdist(case.prototypes, case.samples)
        agree(again, case.d, case.size, "a manifold must give the same sqdist after pickling")


def case_of(manifold: AnyManifold, points: Array, codes: Array, rng: np.random.Generator, divergence: bool) -> Case:
    """Return the case of points and their codes, of which the first are the prototypes."""
    half = len(codes) // 2
    prototypes = codes[: min(3, half)]
    samples = codes[half:][:4]
    d = distances(manifold, prototypes, samples)
    return Case(manifold, points, codes, prototypes, samples, d, float(d.max()), rng, divergence)


def drawn_nearer(case: Case) -> Case | None:
    """Return the case with all points drawn towards the first, to a fifth of the distance; None if that fails."""
    manifold = case.manifold
    try:
        geodesics = manifold.connect(case.codes[1:], case.codes[:1])
        moved = np.asarray(manifold.move(geodesics, np.full((1, len(case.codes) - 1), 0.8)))
        points = np.asarray(manifold.decode(np.concatenate([case.codes[:1], moved])))
        near = case_of(manifold, points, np.asarray(manifold.encode(points)), case.rng, case.divergence)
    except (ValueError, AssertionError):
        return None
    return near if near.size < case.size else None


def default_points(manifold: AnyManifold, rng: np.random.Generator) -> Array:
    """Return seven points that ``encode`` accepts: positive definite matrices (7, 3, 3) or vectors (7, 3)."""
    bases = np.linalg.qr(rng.normal(size=(7, 3, 3)))[0]
    matrices = (bases * np.exp(rng.uniform(-0.6, 0.6, (7, 1, 3)))) @ bases.swapaxes(1, 2)
    refusals = []
    for points in (0.5 * (matrices + matrices.swapaxes(1, 2)), rng.normal(size=(7, 3))):
        try:
            getattr(manifold, "ambient", manifold).encode(points.copy())
        except (ValueError, TypeError, IndexError) as error:
            refusals.append(str(error))
        else:
            return points
    remedy = "so pass points of the manifold, check_manifold(manifold, points)"
    reasons = " | ".join(refusals)
    raise ValueError(f"encode refuses positive definite matrices and vectors, {remedy}. It said: {reasons}")


def with_reference(manifold: Any, points: Array) -> AnyManifold:
    """Return the manifold with its reference, if it needs one, learned from the points, which are in two groups."""
    if not hasattr(manifold, "referenced"):
        return manifold  # type: ignore[no-any-return]
    raw = np.asarray(manifold.ambient.encode(points))
    groups = np.arange(len(points)) % 2
    learned, codes = manifold.referenced(raw, groups)
    d = np.asarray(learned.sqdist(codes, codes))

    def same(other: AnyManifold, own: Array, wanted: Array, rule: str) -> None:
        agree(other.sqdist(own, own), wanted, float(d.max()), rule)

    same(learned, learned.encode(points), d, "referenced must return the codes that encode of its manifold gives")
    backwards, own = manifold.referenced(raw[::-1], groups[::-1])
    same(backwards, own[::-1], d, "the reference must not depend on the order of the points")
    again, own = learned.referenced(raw[:-1], groups[:-1])
    same(again, own, d[:-1, :-1], "a reference that is known must not be learned again")
    times = np.where(np.arange(len(points)) < 2, 2, 1)
    weighted, own = manifold.referenced(raw, groups, times.astype(float))
    copied, _ = manifold.referenced(raw.repeat(times, axis=0), groups.repeat(times))
    twice = np.asarray(copied.encode(points))
    same(weighted, own, copied.sqdist(twice, twice), "a point of weight 2 must count as two points")
    if hasattr(learned, "relearned"):
        fold, inner, outer = learned.relearned(codes[:-2], codes[-2:], groups[:-2])
        own = np.concatenate([inner, outer])
        wanted = np.asarray(fold.encode(points))
        rule = "relearned must return the codes that encode of its manifold gives"
        same(fold, own, fold.sqdist(wanted, wanted), rule)
    return learned  # type: ignore[no-any-return]


def encoded(manifold: AnyManifold, points: Array) -> Array:
    """Return codes (N, ...) of points; require that ``encode`` does not change its input and refuses NaN."""
    written = points.copy()
    codes = manifold.encode(written)
    require(np.array_equal(written, points), "encode must not write into its input")
    require(isinstance(codes, np.ndarray), f"encode must return an array, got {type(codes)}")
    require(len(codes) == len(points), f"encode gave {len(codes)} codes of {len(points)} points")
    require(np.isfinite(codes).all(), "encode must return finite codes of points that it accepts")
    broken = points.astype(np.result_type(points, float))
    broken[(1, *[0] * (points.ndim - 1))] = np.nan  # not the first, so that the whole stack must be looked at
    try:
        manifold.encode(broken)
    except ValueError:
        return codes
    raise AssertionError("encode must raise ValueError at NaN, but accepts a NaN in X[1]")


def distances(manifold: AnyManifold, prototypes: Array, samples: Array) -> Array:
    """Return the squared distances (B, K), which must be finite and positive."""
    d = manifold.sqdist(prototypes, samples)
    shape = (len(samples), len(prototypes))
    require(np.shape(d) == shape, f"sqdist must have shape (B, K) = {shape}, got {np.shape(d)}")
    require(np.isfinite(d).all(), "sqdist must be finite")
    require((d >= 0).all(), f"sqdist must not be negative, got {d.min():.3g}")
    require((d > 0).all(), "sqdist must be positive between points that differ (do they?), got 0")
    return np.asarray(d)


def sqdist_is_symmetric(case: Case) -> None:
    """Require that the distance of a point to itself is zero, and that distances are symmetric."""
    table = case.manifold.sqdist(case.codes, case.codes)
    vanish(np.diagonal(table), case.size, "sqdist of a point to itself must be 0")
    if not case.divergence:
        agree(table, table.T, case.size, "sqdist must be symmetric")


def sqdist_follows_order(case: Case) -> None:
    """Require one row per sample and one column per prototype, whatever their order and number."""
    rows = np.roll(np.arange(len(case.samples)), 1)
    columns = np.arange(len(case.prototypes))[::-1]
    d = case.manifold.sqdist(case.prototypes[columns], case.samples[rows])
    agree(d, case.d[rows][:, columns], case.size, "sqdist must follow the order of samples and prototypes")
    one = case.manifold.sqdist(case.prototypes, case.samples[:1])
    agree(one, case.d[:1], case.size, "sqdist must not depend on the other samples of a batch")


def connect_gives_sqdist(case: Case) -> None:
    """Require that ``connect`` has the distances of ``sqdist``, for a batch and for one sample."""
    for size in (len(case.samples), 1):
        seen = case.manifold.connect(case.prototypes, case.samples[:size]).sqdist
        agree(seen, case.d[:size], case.size, "connect(...).sqdist must equal sqdist(...)")


def decode_is_undone(case: Case) -> None:
    """Require that ``encode(decode(codes))`` are the same points."""
    shape = np.shape(case.manifold.decode(case.prototypes))
    wanted = case.points[: len(case.prototypes)].shape
    require(shape == wanted, f"decode must return points of shape {wanted}, got {shape}")
    codes = accepted(case.manifold, case.prototypes, "encode must accept what decode returns")
    vanish(case.apart(codes, case.prototypes), case.size, "encode must undo decode")


def weight_zero_stays(case: Case) -> None:
    """Require that a prototype moves only if its own column of weights is not zero."""
    for moved in (case.moved(np.zeros_like(case.d)), case.moved_alone(0, np.zeros(len(case.prototypes)))):
        shape = np.shape(np.asarray(moved))
        wanted = case.prototypes.shape
        require(shape == wanted, f"move must return prototypes of shape {wanted}, got {shape}")
        require(len(moved) == len(case.prototypes), "move must return something with a length, K")
        vanish(case.apart(moved, case.prototypes), case.size, "move with weight 0 must stay")
    first = 0.3 * np.eye(1, len(case.prototypes))[0]
    gap = case.apart(case.moved_alone(0, first), case.prototypes)[1:]
    vanish(gap, case.size, "move must leave the prototypes without weight when another has some")


def weight_shortens_distance(case: Case) -> None:
    """Require that ``d(x, Exp_w(s Log_w x)) = |1 - s| d(x, w)``; a divergence must only fall, or rise for s < 0."""
    for i in range(len(case.samples)):
        for s in (1.0, 0.3, -0.2):  # onto the sample, towards it, and away from it, which repulsion needs
            moved = case.moved_alone(i, np.full(len(case.prototypes), s))
            left = case.manifold.sqdist(moved, case.samples[i : i + 1])[0]
            if case.divergence:
                nearer = left < case.d[i]
                word = "lower" if s > 0 else "raise"
                require((nearer if s > 0 else ~nearer).all(), f"move with weight {s} must {word} the divergence")
                continue
            if s == 1:
                vanish(left, case.size, f"move with weight 1 must reach the sample, here {i}")
                continue
            rule = f"move with weight {s} must leave {(1 - s) ** 2:.3g} of sqdist, (1 - {s})^2"
            if np.allclose(left / case.d[i], abs(1 - s), rtol=RTOL):
                rule += ", but sqdist looks like the distance, not its square"
            agree(left, (1 - s) ** 2 * case.d[i], case.size, rule)


def move_stays_on_manifold(case: Case) -> None:
    """Require that ``encode`` accepts moved prototypes, and that their codes are at the same place."""
    for weights in (np.full(case.d.shape, 0.2), case.rng.uniform(-0.1, 0.1, case.d.shape)):
        moved = case.moved(weights)
        codes = accepted(case.manifold, moved, "move must stay on the manifold, but encode says")
        vanish(case.apart(codes, moved), case.size, "encode must undo decode after a move")
        carried = case.manifold.sqdist(moved, case.samples)
        seen = case.manifold.connect(np.asarray(moved), case.samples).sqdist
        agree(carried, seen, case.size, "what move returns must have the distances of its codes")


def batch_agrees_with_samples(case: Case) -> None:
    """Require that the order of samples does not matter, and that samples of weight 0 have no effect."""
    weights = case.rng.uniform(0.05, 0.3, case.d.shape)
    reversed_samples = case.manifold.connect(case.prototypes, case.samples[::-1])
    again = case.manifold.move(reversed_samples, weights[::-1])
    vanish(case.apart(again, case.moved(weights)), case.size, "move must not depend on the order of the samples")
    only = weights * (np.arange(len(weights)) == 1)[:, None]
    rule = "move of a batch in which one sample has weight must be the move of that sample alone"
    vanish(case.apart(case.moved(only), case.moved_alone(1, weights[1])), case.size, rule)


def move_follows_gradient(case: Case) -> None:
    """Require that rates of change, by central differences, are inner products of the logarithms."""

    def rate(weights: Array, eps: float = 1e-4) -> Array:
        ahead = case.manifold.sqdist(case.moved(eps * weights), case.samples)
        behind = case.manifold.sqdist(case.moved(-eps * weights), case.samples)
        return np.asarray((ahead - behind) / (2 * eps))

    # One sample alone moves all prototypes, and the rates to all samples are seen.
    towards = [rate(row[:, None] * np.ones_like(case.d)) for row in np.eye(len(case.samples))]
    rates = np.moveaxis(np.array(towards), 2, 0)  # (K, B, B): towards i, of sqdist to j
    own = np.diagonal(rates, axis1=1, axis2=2).T
    if not case.divergence:
        agree(own, -2 * case.d, case.size, "move by a small weight s must change sqdist by -2 s sqdist")
    rule = "move must follow the gradient of sqdist: its rate to y on the way to x must be that to x on the way to y"
    agree(rates, rates.swapaxes(1, 2), case.size, rule)
    weights = case.rng.uniform(0.5, 1.5, case.d.shape)
    summed = np.einsum("ik,kij->jk", weights, rates)
    agree(rate(weights), summed, 4 * case.size, "move must add up the logarithms of a batch")


def move_splits(case: Case) -> None:
    """Require that ``pull`` and ``exp``, if a manifold has them, make up ``move``, and that batches add up."""
    pull, exp = (getattr(case.manifold, name, None) for name in ("pull", "exp"))
    require((pull is None) == (exp is None), "a manifold must offer both pull and exp, or neither")
    if pull is None or exp is None:
        return
    weights = case.rng.uniform(0.05, 0.3, case.d.shape)
    for prototypes in (case.prototypes, case.moved(0.5 * weights)):
        geodesics = case.manifold.connect(prototypes, case.samples)
        whole = pull(geodesics, weights)
        moved = case.manifold.move(geodesics, weights)
        require(len(whole) == len(case.prototypes), "pull must return one tangent per prototype")
        vanish(case.apart(exp(prototypes, whole), moved), case.size, "move must be exp of pull")
        rows = (slice(0, 1), slice(1, None))
        parts = [pull(case.manifold.connect(prototypes, case.samples[row]), weights[row]) for row in rows]
        vanish(case.apart(exp(prototypes, sum(parts)), moved), case.size, "pulls of batches must add up")


def components_add_up(case: Case) -> None:
    """Require that the shares of ``components``, if a manifold has it, add up to ``sqdist``."""
    if (components := getattr(case.manifold, "components", None)) is not None:
        shares = np.asarray(components(case.prototypes, case.samples).shares)
        require(shares.shape[:2] == case.d.shape, f"components must have shares (B, K, ...), got {shares.shape}")
        summed = shares.sum(axis=tuple(range(2, shares.ndim)))
        agree(summed, case.d, case.size, "the shares of components must add up to sqdist")


PROMISES = (
    sqdist_is_symmetric, sqdist_follows_order, connect_gives_sqdist, decode_is_undone, weight_zero_stays,
    weight_shortens_distance, move_stays_on_manifold, batch_agrees_with_samples, move_follows_gradient, move_splits,
    components_add_up,
)  # fmt: skip
PROLONGING = (
    weight_shortens_distance, move_stays_on_manifold, batch_agrees_with_samples, move_follows_gradient, move_splits
)  # fmt: skip
"""The promises that prolong geodesics, or that move prototypes by several logarithms, which jump at a cut locus."""
