"""The Gaussian mixture behind the probabilistic costs, the sigma2 that fits its posterior best, and calls of any cost.

Component k has the logit ``log pi_k - d_k / (2 sigma2)``; the normaliser of a shared sigma2 cancels. Everything is
computed in logarithms: the sum over a class is divided by its own largest term, so that a class whose probability
underflows still has an exact logarithm and an exact slope. Terms are what compiled steps know of a cost: numbers, from
which one compiled function evaluates every cost of the library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from rplvq.arrays import best_factor, by_block
from rplvq.capabilities import BoundedSlope, ForSomeClasses, Probabilistic, WithPriors, provides
from rplvq.protocols import Array, Cost, Evaluation

GRID_STEP = 1.2
"""Approximate spacing, in log sigma2, of the grid that locates the lowest minimum if there may be several."""
FEW = 20
"""So many samples tell whether the posterior of a cost is that of the mixture."""
MIXTURE = 0.0
MARGIN = 1.0
"""The kinds of terms."""


class Groups(NamedTuple):
    """The prototypes of each of C classes: those of class c are ``order[starts[c] : starts[c] + counts[c]]``."""

    order: Array  # (K,)
    starts: Array  # (C,)
    counts: Array  # (C,)


def class_groups(labels: Array) -> Groups:
    """Group prototypes by label (K,); raise ValueError if a class up to the largest label has no prototype."""
    return _class_groups(labels.tobytes(), labels.dtype.str)


@lru_cache(maxsize=64)
def _class_groups(buffer: bytes, dtype: str) -> Groups:
    labels = np.frombuffer(buffer, dtype=dtype)
    counts = np.bincount(labels)
    if (counts == 0).any():
        raise ValueError(f"class index {int(np.argmin(counts))} has no prototype among labels={labels.tolist()}")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return Groups(np.argsort(labels, kind="stable"), starts, counts)


def log_prior(priors: tuple[float, ...] | None, labels: Array) -> Array | None:
    """Return the log-priors (K,) of prototypes, which share the prior of their class evenly; None for equal weights."""
    if priors is None:
        return None
    counts = class_groups(labels).counts
    if len(priors) != len(counts):
        raise ValueError(f"priors has {len(priors)} entries, but there are {len(counts)} classes: give one per class")
    return np.asarray(np.log(np.asarray(priors) / counts)[labels])


def mixture_logits(sqdist: Array, sigma2: float, log_priors: Array | None = None) -> Array:
    """Return the logits ``-d / (2 sigma2) + log prior`` (B, K), up to a constant per sample."""
    # Taking out the smallest distance keeps differences of distances far above sigma2 (1e16 times) from rounding away.
    nearest = np.minimum.reduce(sqdist, axis=1, keepdims=True)
    logits = (nearest - sqdist) * (0.5 / sigma2)
    return logits if log_priors is None else logits + log_priors


def log_sum_exp(logits: Array) -> Array:
    """Return ``log(sum(exp(logits)))`` over the last axis: (..., 1) for logits (..., m)."""
    top = np.maximum.reduce(logits, axis=-1, keepdims=True)
    return np.asarray(np.log(np.add.reduce(np.exp(logits - top), axis=-1, keepdims=True)) + top)


def class_log_sum_exp(logits: Array, groups: Groups) -> Array:
    """Return the logarithm of the summed exponentials of logits (B, K) within each class, shape (B, C)."""
    ordered = logits[:, groups.order]
    if len(groups.starts) == ordered.shape[1]:  # one prototype per class
        return np.asarray(ordered)
    top = np.maximum.reduceat(ordered, groups.starts, axis=1)
    shifted = np.exp(ordered - np.repeat(top, groups.counts, axis=1))
    return np.asarray(np.log(np.add.reduceat(shifted, groups.starts, axis=1)) + top)


def class_log_proba(sqdist: Array, labels: Array, sigma2: float, log_priors: Array | None = None) -> Array:
    """Return the class log-posterior (B, C), ``log sum_{c_k = c} p_k`` with the softmax p of the logits (B, K)."""
    by_class = class_log_sum_exp(mixture_logits(sqdist, sigma2, log_priors), class_groups(labels))
    return np.asarray(by_class - log_sum_exp(by_class))


def evaluate(cost: Cost, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
    """Return loss (B,) and slope (B, K) of any cost, which may return them as a plain tuple.

    TypeError is raised if it does not return two arrays of these shapes, and ValueError if it fails at class
    probabilities (B, C) because it reads class indices (B,).
    """
    try:
        answer = cost(sqdist, targets, labels, sigma2)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        # A cost that refuses class probabilities says so by a ValueError. NumPy's ValueErrors are about broadcasting.
        if targets.ndim == 1 or (isinstance(error, ValueError) and "broadcast" not in str(error)):
            raise
        raise _needs_indices(cost, targets, f"raised {type(error).__name__}") from error
    # The usual answer leaves by the first return, because this function runs in every step of training.
    if isinstance(answer, Evaluation) and isinstance(answer.loss, np.ndarray) and isinstance(answer.slope, np.ndarray):
        if answer.slope.shape == sqdist.shape and answer.loss.shape == sqdist.shape[:1]:
            return answer
    elif not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise TypeError(f"cost {cost!r} must return (loss, slope), got {type(answer)}")
    for name, value, wanted in zip(("loss", "slope"), answer, (sqdist.shape[:1], sqdist.shape), strict=True):
        if (shape := np.shape(value)) != wanted:
            if targets.ndim == 2:
                raise _needs_indices(cost, targets, f"returned a {name} of shape {shape} instead of {wanted}")
            raise TypeError(f"cost {cost!r}: {name} must have shape {wanted}, got {shape}")
    return Evaluation(*map(np.asarray, answer))


def _needs_indices(cost: Cost, targets: Array, what: str) -> ValueError:
    """Return the error for a cost that failed at class probabilities (B, C); ``what`` says how."""
    return ValueError(
        f"cost {cost!r} {what} for soft labels, targets of shape {targets.shape}: it seems to read one class index per "
        "sample. Pass y.argmax(axis=1), use a cost for soft labels such as cost='plvq', or let the cost read "
        "targets[:, labels], the probability of the class of each prototype"
    )


def log_proba_of(cost: Cost | None, sqdist: Array, labels: Array, sigma2: float) -> Array:
    """Return the class log-posterior (B, C) of a cost, or that of the mixture with equal weights if it has none."""
    log_proba = cost.log_proba if provides(cost, Probabilistic) else class_log_proba
    return np.asarray(log_proba(sqdist, labels, sigma2))


def priors_of(cost: Cost | None) -> tuple[float, ...] | None:
    """Return the class priors of a cost, None if they are equal or if it states none."""
    return cost.priors if provides(cost, WithPriors) else None


def as_soft(targets: Array, n_classes: int) -> Array:
    """Return class probabilities (B, C) of class indices (B,); raise ValueError at another number of columns."""
    if targets.ndim == 1:
        return np.asarray(np.eye(n_classes)[targets])
    if targets.shape[1] != n_classes:
        raise ValueError(f"soft labels have {targets.shape[1]} columns for {n_classes} classes")
    return targets


def smoothed(targets: Array, n_classes: int, total: float, unsure: float = 1.0) -> Array:
    """Return class probabilities (M, C) as if ``unsure`` samples of unknown class joined those of weight ``total``."""
    return (as_soft(targets, n_classes) * total + unsure / n_classes) / (total + unsure)


def sample_losses(cost: Cost, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Array:
    """Return the negative log-posterior of the true class of each sample (M,); arguments as for calibrated_loss."""
    n_classes = int(labels.max()) + 1

    def of(sqdist: Array, targets: Array) -> Array:
        # In this memory layout, sums over few prototypes are twice as fast.
        logs = log_proba_of(cost, np.asfortranarray(sqdist), labels, sigma2)
        if targets.ndim == 1:
            return np.asarray(-logs[np.arange(len(logs)), targets])
        soft = as_soft(targets, n_classes)
        # A class with target probability 0 adds no loss, even if its log-probability is -inf (0 * inf is NaN).
        return np.asarray(-np.where(soft > 0, soft * logs, 0.0).sum(axis=1))

    return by_block(of, sqdist, targets)


def _is_mixture(cost: Cost, labels: Array) -> bool:
    """Whether a cost has the posterior of the mixture with one prototype per class, in the order of the classes."""
    if not np.array_equal(labels, np.arange(len(labels))):
        return False
    try:
        return _equals_mixture(cost, len(labels))  # type: ignore[arg-type]
    except TypeError:  # the cost cannot be hashed
        return _equals_mixture.__wrapped__(cost, len(labels))


@lru_cache(maxsize=64)  # a race asks for each candidate on each fold, which took 2 % of a small fit
def _equals_mixture(cost: Cost, n_classes: int) -> bool:
    labels = np.arange(n_classes)
    sqdist = np.geomspace(0.1, 10.0, FEW * n_classes).reshape(n_classes, FEW).T
    mixture = class_log_proba(sqdist, labels, 0.7, log_prior(priors_of(cost), labels))
    return np.array_equal(log_proba_of(cost, sqdist, labels, 0.7), mixture)


def calibrated_loss(
    cost: Cost, sqdist: Array, targets: Array, labels: Array, sigma2: float, sample_weight: Array | None = None, *,
    factor: float = 1e4,
) -> tuple[float, float]:  # fmt: skip
    """Minimise the mean negative log-posterior of the true class over sigma2; return the mean and its sigma2.

    The posterior of the ``cost`` counts; if it has none, that of the mixture with equal weights. ``sqdist`` are squared
    distances (M, K), ``targets`` class indices (M,) or class probabilities (M, C), and ``labels`` class indices (K,).
    The search goes up and down from ``sigma2`` by the ``factor``; ``sample_weight`` (M,) counts samples several times.

    Examples
    --------
    >>> from rplvq import RSLVQ
    >>> sqdist = np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 1.0], [1.0, 2.0], [2.0, 1.5]])
    >>> loss, sigma2 = calibrated_loss(RSLVQ(), sqdist, np.array([0, 0, 1, 1, 1]), np.array([0, 1]), 1.0)
    >>> round(loss, 3), round(sigma2, 2)
    (0.412, 0.5)
    """
    weights = np.ones(len(sqdist)) if sample_weight is None else sample_weight
    if _is_mixture(cost, labels):
        priors = log_prior(priors_of(cost), labels)
        start = 0.5 / sigma2
        bounds = start / factor, start * factor
        offsets = 0.0 if priors is None else priors
        precision, losses = best_factor(sqdist[None], targets, weights, start, bounds, offsets)
        return float(losses[0]), float(0.5 / precision[0])
    total = weights.sum()

    def loss(log_sigma2: float) -> float:
        return float(weights @ sample_losses(cost, sqdist, targets, labels, float(np.exp(log_sigma2))) / total)

    # There may be several minima. Of equal values, such as losses of 0, the one nearest to the given sigma2 is taken.
    n_steps = max(round(np.log(factor) / GRID_STEP), 1)
    step = np.log(factor) / n_steps
    offsets = step * np.arange(-n_steps, n_steps + 1)
    start = np.log(sigma2) + min(offsets, key=lambda offset: (loss(np.log(sigma2) + offset), abs(offset)))
    best = minimize_scalar(loss, bounds=(start - step, start + step), method="bounded", options={"xatol": 1e-4})
    return float(best.fun), float(np.exp(best.x))


FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


class Terms(NamedTuple):
    """A cost as a sum of T terms at K prototypes, for given labels and a given sigma2.

    A term of the kind ``MIXTURE`` has the logits ``offset_k - scale_k d_k``. With ``s_c`` the logarithm of their summed
    exponentials within class c, and ``s`` over all classes, its loss is ``sum_c t_c (parameter s - s_c)`` for class
    probabilities t. A term of the kind ``MARGIN`` is that of :class:`rplvq.costs.GLVQ`, and ``parameter`` its
    steepness. Losses and slopes are multiplied by the factor of their term.
    """

    numbers: Array  # (T, 3), the kind, factor and parameter of each term
    scales: Array  # (T, K), of the logits; those of a margin are not used
    offsets: Array  # (T, K), likewise

    def times(self, factor: float) -> Terms:
        """Return the terms with all factors multiplied by ``factor``."""
        return self._replace(numbers=self.numbers * [1.0, factor, 1.0])


def term(parameter: float, scale: Array | float, offset: Array | float, count: int, kind: float = MIXTURE) -> Terms:
    """Return :class:`Terms` of one term, with the factor 1, for K = ``count``; scale and offset are (K,) or numbers."""
    scales, offsets = (np.full((1, count), value, dtype=float) for value in (scale, offset))
    return Terms(np.array([[kind, 1.0, parameter]]), scales, offsets)


def described_by(describe: Callable[..., Terms | None]) -> Callable[[FunctionT], FunctionT]:
    """Mark the ``__call__`` of a cost with ``describe(cost, labels, sigma2, soft)``, which returns its terms.

    ``soft`` is whether targets are class probabilities. ``describe`` returns None where the cost has no terms, or
    where its call raises an error. A subclass that overrides ``__call__``, and a wrapper that calls it, are not marked.
    """

    def mark(function: FunctionT) -> FunctionT:
        function.terms = describe  # type: ignore[attr-defined]
        return function

    return mark


def terms_of(cost: Cost, labels: Array, sigma2: float, soft: bool) -> Terms | None:
    """Return the terms of a cost at prototypes with these labels (K,), or None if it does not describe itself.

    Examples
    --------
    >>> from rplvq import GLVQ, RSLVQ
    >>> terms_of(RSLVQ() + 0.1 * GLVQ(steepness=3.0), np.array([0, 1]), 2.0, soft=False).numbers
    array([[0. , 1. , 1. ],
           [1. , 0.1, 3. ]])
    >>> terms_of(lambda *arguments: RSLVQ()(*arguments), np.array([0, 1]), 2.0, soft=False)
    """
    describe = getattr(type(cost).__call__, "terms", None)
    terms: Terms | None = None if describe is None else describe(cost, labels, sigma2, soft)
    return terms


def restrict_to_classes(cost: Cost, classes: Array) -> Cost:
    """Return the cost for a model of only the classes with these indices (M,); most costs do not depend on them."""
    return cost.restrict_to_classes(classes) if provides(cost, ForSomeClasses) else cost


def largest_slope(cost: Cost, sigma2: float) -> float | None:
    """Return the largest absolute slope that a cost can have at sigma2, or None if it does not state one."""
    return cost.largest_slope(sigma2) if provides(cost, BoundedSlope) else None
