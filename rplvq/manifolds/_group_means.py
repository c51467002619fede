"""The Riemannian means of many small groups at once, which one by one would take longer in Python than in LAPACK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rplvq.arrays import matrix_size, parts_of_batch, single_blas_thread, subset
from rplvq.capabilities import Grouped, provides
from rplvq.manifolds import _means as single
from rplvq.protocols import Array, Manifold

TOLERANCE = 1e-9
"""Largest length of a mean logarithm, relative to the root mean squared distance, as for a single mean."""
MOST_PASSES = 15
"""Few groups need more passes than this; they are computed one by one."""
Seen = tuple[Array, Array]
"""Squared distances (M,) and logarithms (M, ...), as a manifold with the capability Grouped returns them."""


def means_of_groups(manifold: Manifold[Any], codes: Array, groups: list[Array], weights: Array) -> Array:
    """Return the means (G, ...), as of :func:`riemannian_mean`, of groups of samples, given as their indices."""
    rows = np.concatenate(groups)
    counts = np.array([len(own) for own in groups])
    found: list[Array | None] = [None] * len(groups)
    if _fits(manifold, codes, len(rows)):
        own = codes[rows]
        found = _together(manifold, own[np.cumsum(counts) - counts], own, counts, weights[rows])
    return np.stack([
        single.riemannian_mean(manifold, subset(codes, own), weights[own]).code if mean is None else mean
        for own, mean in zip(groups, found, strict=True)
    ])  # fmt: skip


def means_of_folds(
    manifold: Manifold[Any], codes: Array, classes: Array, means: Array, trains: Array
) -> Iterator[Array]:
    """Yield the class means (C, ...) of the samples of each fold, as :func:`means_of_parts` computes them.

    The samples (N, ...) have the class indices ``classes`` (N,) and the class means ``means`` (C, ...). Their weights
    in each fold are ``trains`` (F, N), 0 for a sample that is not in it.
    """
    labels = np.arange(len(means))
    order = np.argsort(classes, kind="stable")
    folds, places = np.nonzero(trains[:, order])
    rows = order[places]
    counts = np.bincount(folds * len(means) + classes[rows], minlength=len(trains) * len(means))
    found: list[Array | None] = [None] * len(counts)
    if _fits(manifold, codes, len(rows)) and counts.all():
        with single_blas_thread(matrix_size(codes)):  # all folds share the decompositions at the class means
            both = np.concatenate([codes, means])
            owners = np.concatenate([classes, labels])
            sqdist, logs = manifold.logarithms(means, both, owners)  # type: ignore[attr-defined]
        start = np.concatenate([means] * len(trains))
        again = np.concatenate([rows, np.tile(len(codes) + labels, len(trains))])
        found = _together(manifold, start, codes[rows], counts, trains[folds, rows], (sqdist[again], logs[again]))
    by_class = []  # one search per class for all folds in which its mean is missing, because they share a decomposition
    for label, mean in zip(labels, means, strict=True):
        mine = np.flatnonzero(classes == label)
        missing = [part is None for part in found[label :: len(means)]]
        by_class.append(single.means_of_parts(manifold, codes[mine], mean, trains[missing][:, mine]))
    for fold in range(len(trains)):
        parts = found[fold * len(means) : (fold + 1) * len(means)]
        pairs = zip(parts, by_class, strict=True)
        yield np.stack([next(search) if part is None else part for part, search in pairs])


def _fits(manifold: Manifold[Any], codes: Array, count: int) -> bool:
    """Whether the manifold is Grouped, and the logarithms of so many samples, like codes (N, ...), fit one block."""
    if not provides(manifold, Grouped) or len(parts_of_batch(codes, count, 1)) > 1:
        return False
    # The logarithms of a base class do not fit a subclass that overrides what they replace.
    replaced = {"connect", "move", "sqdist", "logarithms"}
    latest = next((each for each in type(manifold).__mro__ if replaced & vars(each).keys()), type(manifold))
    return "logarithms" in vars(latest)


def _together(
    manifold: Any, start: Array, codes: Array, counts: Array, weights: Array, seen: Seen | None = None
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
                negligible = np.maximum(single.NEGLIGIBLE * values, 1e4 * sqdist[n_samples:])
            else:
                running &= (values <= last * (1 + single.ROUNDING)) | (squares < single.SMALL_GRADIENT**2 * values)
                ahead[~running] = 0
                step = single.step_of(1 / step + _inner(back, ahead) / _inner(back, back))
            enough = TOLERANCE**2 * values
            if is_part:
                enough = np.maximum(enough, (single.NEARLY_FLAT if n_pass == 1 else 0.01) ** 2 * first)
            done = running & ((squares <= enough) | (values <= negligible))
            now = np.asarray(point)
            point = manifold.exp(point, step.reshape(column) * ahead)
            if done.any():
                found = np.asarray(point) if is_part else now
                means = [found[k] if done[k] else mean for k, mean in enumerate(means)]
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
