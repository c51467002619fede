"""The Gaussian mixture behind the probabilistic costs, in logarithms throughout.

Component k has the logit ``log pi_k - d_k / (2 sigma2)``; the normaliser of a shared sigma2 cancels. Sums
over a class run over prototypes sorted by label, with their own maximum taken out, so that a class whose
probability underflows still has an exact logarithm and an exact slope.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rplvq.protocols import Array

__all__ = ["Groups", "as_soft", "class_groups", "class_log_proba", "log_prior", "log_proba_of", "mixture_logits"]


class Groups(NamedTuple):
    """How K prototypes fall into C classes: sorted by label, where each class starts, how many."""

    order: Array  # (K,)
    starts: Array  # (C,)
    counts: Array  # (C,)


def class_groups(labels: Array) -> Groups:
    """Group prototypes by label (K,).

    Raises
    ------
    ValueError
        If a class between 0 and the largest label has no prototype.
    """
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
    """Logarithm of each prototype's prior (K,): its class's, shared evenly; None for equal weights.

    Raises
    ------
    ValueError
        If the number of priors is not the number of classes.
    """
    if priors is None:
        return None
    counts = class_groups(labels).counts
    if len(priors) != len(counts):
        raise ValueError(f"priors has {len(priors)} entries for {len(counts)} classes")
    return np.asarray(np.log(np.asarray(priors) / counts)[labels])


def mixture_logits(sqdist: Array, sigma2: float, log_priors: Array | None = None) -> Array:
    """Logits -d / (2 sigma2) + log prior, shape (B, K).

    The smallest distance of each sample is taken out first: softmax does not see it, and distances
    beyond 1e16 times sigma2 keep their differences.
    """
    nearest = np.minimum.reduce(sqdist, axis=1, keepdims=True)
    logits = (nearest - sqdist) * (0.5 / sigma2)
    return logits if log_priors is None else logits + log_priors


def log_sum_exp(logits: Array) -> Array:
    """Log of the summed exponentials over the last axis, kept as length 1."""
    top = np.maximum.reduce(logits, axis=-1, keepdims=True)
    return np.asarray(np.log(np.add.reduce(np.exp(logits - top), axis=-1, keepdims=True)) + top)


def class_log_sum_exp(logits: Array, groups: Groups) -> Array:
    """Log of the summed exponentials within each class: logits (B, K) -> (B, C)."""
    ordered = logits[:, groups.order]
    top = np.maximum.reduceat(ordered, groups.starts, axis=1)
    shifted = np.exp(ordered - np.repeat(top, groups.counts, axis=1))
    return np.asarray(np.log(np.add.reduceat(shifted, groups.starts, axis=1)) + top)


def class_log_proba(sqdist: Array, labels: Array, sigma2: float, log_priors: Array | None = None) -> Array:
    """Class log-posterior of the mixture.

    ``log p(c | X) = log sum_{c_k = c} p_k``, p = softmax of the logits (Tang et al., section on RSLVQ).

    Parameters
    ----------
    sqdist : ndarray of shape (B, K)
        Squared distances.
    labels : ndarray of int of shape (K,)
        Class index of each prototype.
    sigma2 : float
        Shared variance, in the units of ``sqdist``.
    log_priors : ndarray of shape (K,), optional
        Logarithm of each prototype's prior; equal if not given.

    Returns
    -------
    ndarray of shape (B, C)
        Logarithms of probabilities; rows of their exponentials sum to one.
    """
    logits = mixture_logits(sqdist, sigma2, log_priors)
    by_class = class_log_sum_exp(logits, class_groups(labels))
    return np.asarray(by_class - log_sum_exp(by_class))


def log_proba_of(cost: Any, sqdist: Array, labels: Array, sigma2: float) -> Array:
    """Class log-posterior (B, C) of a cost, that of the plain mixture where it has none."""
    return np.asarray(getattr(cost, "log_proba", class_log_proba)(sqdist, labels, sigma2))


def as_soft(targets: Array, n_classes: int) -> Array:
    """Class probabilities (B, C) of class indices (B,), or targets as they are.

    Raises
    ------
    ValueError
        If the number of columns is not ``n_classes``.
    """
    if targets.ndim == 1:
        return np.asarray(np.eye(n_classes)[targets])
    if targets.shape[1] != n_classes:
        raise ValueError(f"soft labels have {targets.shape[1]} columns for {n_classes} classes")
    return targets
