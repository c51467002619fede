"""The flat kernel: squared distances and weighted steps in coordinates where geodesics are lines.

LogEuclidean, ProjectedEuclidean and EuclideanVectors differ in their coordinates only; they share these
functions. Codes of any shape (N, ...) are read as vectors, complex ones as pairs of reals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from rplvq.protocols import Array

__all__ = ["FlatGeodesics", "flat_connect", "flat_exp", "flat_move", "flat_nearest", "flat_pull", "flat_sqdist"]


class FlatGeodesics(NamedTuple):
    """Both ends of each line segment, and the squared lengths (B, K)."""

    sqdist: Array
    prototypes: Array
    samples: Array


def as_vectors(codes: Array) -> Array:
    """Read codes (N, ...) as real vectors (N, m) with the same Euclidean length."""
    vectors = codes.reshape(len(codes), -1)
    if np.iscomplexobj(vectors):
        return np.ascontiguousarray(vectors).view(float)
    return vectors


def flat_sqdist(prototypes: Array, samples: Array) -> Array:
    """Squared Euclidean distances of samples (B, ...) to prototypes (K, ...), shape (B, K).

    From differences, not from inner products, so that a sample at a prototype has distance 0. One sample alone has
    the same bits as among others.
    """
    if np.iscomplexobj(prototypes) != np.iscomplexobj(samples):
        prototypes, samples = prototypes.astype(complex), samples.astype(complex)
    return np.asarray(cdist(as_vectors(samples), as_vectors(prototypes), "sqeuclidean"))


def flat_nearest(prototypes: Array, samples: Array) -> Array:
    """Index (B,) of the smallest squared distance, the first if several, from one matrix product.

    ``|x - w|^2 = |x|^2 - 2 x.w + |w|^2`` loses digits by cancellation. Where two prototypes are within that rounding
    of each other, differences decide, so that the index is always that of ``flat_sqdist(...).argmin(axis=1)``.
    """
    if np.iscomplexobj(prototypes) != np.iscomplexobj(samples):
        prototypes, samples = prototypes.astype(complex), samples.astype(complex)
    ends, starts = as_vectors(samples), as_vectors(prototypes)
    if len(starts) == 1:
        return np.zeros(len(ends), dtype=np.intp)
    own = np.vecdot(starts, starts)
    partial = ends @ (-2.0 * starts.T)
    partial += own
    rows = np.arange(len(ends))
    winner = partial.argmin(axis=1)
    best = partial[rows, winner]
    partial[rows, winner] = np.inf
    slack = 16 * ends.shape[1] * np.finfo(float).eps * (np.vecdot(ends, ends) + own.max())
    tied = ~(partial.min(axis=1) > best + slack)
    if tied.any():
        winner[tied] = flat_sqdist(prototypes, samples[tied]).argmin(axis=1)
    return np.asarray(winner)


def flat_connect(prototypes: Array, samples: Array) -> FlatGeodesics:
    """Connect samples (B, ...) to prototypes (K, ...) by straight lines."""
    prototypes = np.asarray(prototypes)
    if len(samples) != 1 or np.iscomplexobj(prototypes) != np.iscomplexobj(samples):
        return FlatGeodesics(flat_sqdist(prototypes, samples), prototypes, samples)
    # The plain trainer's step, where cdist's own overhead would dominate.
    difference = as_vectors(samples) - as_vectors(prototypes)
    return FlatGeodesics(np.asarray(np.vecdot(difference, difference)[None]), prototypes, samples)


def flat_move(geodesics: FlatGeodesics, weights: Array) -> Array:
    """Return w_k + sum_b weights[b, k] (x_b - w_k), shape (K, ...)."""
    prototypes, samples = geodesics.prototypes, geodesics.samples
    if len(samples) == 1:
        factors = weights.reshape(-1, *[1] * (prototypes.ndim - 1))
        return np.asarray(prototypes + factors * (samples - prototypes))
    pulled = np.tensordot(weights, samples, axes=(0, 0))
    kept = 1.0 - weights.sum(axis=0)
    return np.asarray(kept.reshape(-1, *[1] * (prototypes.ndim - 1)) * prototypes + pulled)


def flat_pull(geodesics: FlatGeodesics, weights: Array) -> Array:
    """Return the weighted differences ``sum_b weights[b, k] (x_b - w_k)``, shape (K, ...); they add over batches."""
    prototypes, samples = geodesics.prototypes, geodesics.samples
    totals = weights.sum(axis=0).reshape(-1, *[1] * (prototypes.ndim - 1))
    return np.asarray(np.tensordot(weights, samples, axes=(0, 0)) - totals * prototypes)


def flat_exp(prototypes: Array, tangents: Array) -> Array:
    """Return prototypes plus tangents, both of shape (K, ...)."""
    return np.asarray(np.asarray(prototypes) + tangents)
