"""The search for the nearest prototype under the affine-invariant metric, with few of the K distances.

The Frobenius distance of two logarithms never exceeds the affine-invariant distance (Bhatia 2007, Positive Definite
Matrices, Theorem 6.1.4), and a real function whose slope lies in [0, 1] never increases Frobenius distances of
Hermitian matrices. So ``||f(X) - f(W)||_F <= d(X, W)`` for every f with
``0 <= x f'(x) <= 1``. The Pade approximants of the logarithm are such functions, and need no eigenvalues: with
Gauss-Legendre nodes t and weights w on [0, 1], ``f(x) = sum_j w_j (x - 1) / (1 + t_j (x - 1))`` is a constant minus a
sum of shifted inverses.

A congruence of all matrices changes no affine-invariant distance. In coordinates in which the mean of the prototypes
is the identity the bound is tight. Three inverses per sample and one matrix product then rank all prototypes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from rplvq.arrays import adjoint, from_spectrum, lower_inverse, positive_inverse
from rplvq.lanes import LaneKernels
from rplvq.manifolds._logarithms import summed_inverses
from rplvq.manifolds._shrinkage import as_vectors
from rplvq.protocols import Array

UNRELIABLE = 1e-2
"""Relative error above which a bound of first order in the rounding is not valid."""
FEW_OPEN = 256
"""With at most this many open samples, one more round costs more time than the distances that it rules out."""
CACHE_BYTES = 1 << 20
"""Bytes of samples of which the inverses are computed at once, so that they fit into the cache of a processor."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)  # on [-1, 1]
SHIFTS = (1 - NODES) / (1 + NODES)
FACTORS = 2 * WEIGHTS / (1 + NODES) ** 2
SENSITIVITY = float(np.sum(FACTORS * (1 / SHIFTS + 1 / SHIFTS**2)))


class Frame(NamedTuple):
    """Coordinates ``R X R^H`` in which the mean of K prototypes is about the identity, and what is known there."""

    whitener: Array  # (n, n), upper triangular R
    images: Array  # (K, m), f of the prototypes as real vectors, m = n^2 or 2 n^2
    error: float  # bound on the rounding of the images
    envelope: Array  # (n, n), largest absolute value of each entry of the inverse factors
    spread: float  # ratio of the largest to the smallest eigenvalue of all prototypes in these coordinates


def common_frame(factors: Array) -> Frame:
    """Return the frame of prototypes W_k, given as inverse factors G_k (K, n, n) with ``G_k W_k G_k^H = I``."""
    # It makes the harmonic mean the identity, which needs no inverse: R^H R = mean_k G_k^H G_k.
    n_prototypes, n = factors.shape[:2]
    whitener: Array = np.asarray(np.linalg.qr((factors / np.sqrt(n_prototypes)).reshape(-1, n), mode="r"))
    rows = solve_triangular(whitener.T, factors.reshape(-1, n).T, lower=True)
    seen: Array = rows.T.reshape(n_prototypes, n, n)  # G_k R^-1
    _, singular, basis = np.linalg.svd(seen)
    inverse = np.abs(lower_inverse(adjoint(whitener)).T)
    amplified = np.linalg.norm(np.abs(seen) @ (np.abs(whitener) @ inverse), axis=(1, 2))
    error = 2 * rounding(n) * ((amplified + singular[:, 0]) / singular[:, -1]).max()
    values = -np.sum(FACTORS / (singular[..., None] ** -2 + SHIFTS), axis=-1)  # eigenvalues are singular^-2 here
    images = as_vectors(from_spectrum(values, adjoint(basis)))
    spread = (singular.max() / singular.min()) ** 2
    return Frame(whitener, images, float(error), np.abs(factors).max(axis=0), float(spread))


def lower_bounds(frame: Frame, samples: Array, kernels: LaneKernels | None = None) -> Array:
    """Return lower bounds (B, K) of the distances, not squared, of positive definite matrices (B, n, n).

    The rounding of the bound is subtracted; where it is unknown the bound is minus infinity.
    """
    block = max(16, CACHE_BYTES // samples[0].nbytes)
    starts = range(0, len(samples), block)
    return np.concatenate([_block_of_bounds(frame, samples[start : start + block], kernels) for start in starts])


def _block_of_bounds(frame: Frame, samples: Array, kernels: LaneKernels | None) -> Array:
    n = samples.shape[-1]
    right = (samples.reshape(-1, n) @ adjoint(frame.whitener)).reshape(samples.shape)
    seen: Array = frame.whitener @ right  # R X R^H by two large products
    error = rounding(n) * (1 + _size(frame.whitener, samples))
    lost = ~(error < UNRELIABLE)
    if lost.any():
        seen[lost] = np.eye(n)  # any matrix that has an inverse will do
    images = None if kernels is None else summed_inverses(kernels, seen, SHIFTS, -FACTORS)
    if images is None:
        images = np.zeros_like(seen)
        for factor, shift in zip(FACTORS, SHIFTS, strict=True):
            images -= factor * positive_inverse(seen + shift * np.eye(n))
    vectors = as_vectors(images)
    squares = vectors @ (-2.0 * frame.images.T)
    norms = np.vecdot(vectors, vectors)[:, None]
    own = np.vecdot(frame.images, frame.images)
    squares += (1 - rounding(n * n)) * (norms + own)  # less than the exact sum, so that the bound stays below
    bounds = np.sqrt(np.maximum(squares, 0.0)) - (2 * SENSITIVITY * error + frame.error)[:, None]
    bounds[lost] = -np.inf
    return np.asarray(bounds)


def nearest_by_bound(
    frame: Frame, bounds: Array, factors: Array, samples: Array, groups: Array, spectra: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Find the nearest of K prototypes, or another prototype of its group, for samples (B, n, n).

    ``bounds`` (B, K) are lower bounds of the distances, and are changed. ``spectra`` returns the ascending
    log-eigenvalues (M, n) of M pairs of an inverse factor and a sample. Return the index (B,) of the winner, and
    whether (B,) a prototype of another group may be as near up to rounding.
    """
    # A sample is open while a prototype of another group may be as near as its best one. Each round evaluates the
    # prototype with the smallest bound of every open sample, and the last one all that the bounds of few samples leave.
    rows = np.arange(len(bounds))
    winner = bounds.argmin(axis=1)
    logs = spectra(factors[winner], samples)
    slack = slack_of(frame, samples, logs[:, 0])
    best = lengths(logs)
    known = np.full(bounds.shape, np.inf)
    known[rows, winner] = best
    bounds[rows, winner] = np.inf  # its distance is known
    reliable = slack < np.inf
    while True:
        rivals = _of_other_groups(bounds[rows], groups, winner[rows])
        rows = rows[reliable[rows] & (rivals < np.inf) & (rivals <= best[rows] + slack[rows])]  # still open
        if len(rows) <= FEW_OPEN:
            break
        candidate = bounds[rows].argmin(axis=1)
        reached = lengths(spectra(factors[candidate], samples[rows]))
        known[rows, candidate] = reached
        bounds[rows, candidate] = np.inf
        better = reached < best[rows]
        winner[rows[better]] = candidate[better]
        best[rows[better]] = reached[better]
    if len(rows):
        left, columns = np.nonzero(bounds[rows] <= np.minimum(best + slack, np.finfo(float).max)[rows, None])
        known[rows[left], columns] = lengths(spectra(factors[columns], samples[rows[left]]))
        winner[rows] = known[rows].argmin(axis=1)
        best[rows] = known[rows, winner[rows]]
    return winner, ~(_of_other_groups(known, groups, winner) > best + slack)


def _of_other_groups(values: Array, groups: Array, winner: Array) -> Array:
    """Return the smallest (M,) of the values (M, K) of prototypes that are not in the group of the winner (M,)."""
    return np.asarray(np.where(groups == groups[winner][:, None], np.inf, values).min(axis=1))


def rounding(n: int) -> float:
    """Return a generous bound on the relative rounding of sums of n terms and of eigenvalues of n x n matrices."""
    return 16 * n * float(np.finfo(float).eps)


def lengths(logs: Array) -> Array:
    """Return the distances (M,) of pairs whose log-eigenvalues are (M, n)."""
    return np.asarray(np.sqrt(np.vecdot(logs, logs)))


def _size(factor: Array, samples: Array) -> Array:
    """Return a bound (B,) on the norm of ``|G| |X| |G|^H``; the rounding of ``G X G^H`` is eps times this norm."""
    # |X_ij| is at most sqrt(X_ii X_jj), a bound that does not grow if the channels have different units.
    roots = np.sqrt(np.abs(np.diagonal(samples, axis1=1, axis2=2)))
    return np.asarray(np.square(roots @ np.abs(factor).T).sum(axis=1))


def slack_of(frame: Frame, samples: Array, smallest: Array) -> Array:
    """Return a bound (B,) on the rounding of distances, or infinity, by the ``smallest`` whitened log-eigenvalues."""
    # A log-eigenvalue is wrong by at most the rounding of the whitened sample over its smallest eigenvalue. For any
    # prototype this eigenvalue is at least the one known here, divided by ``spread``.
    with np.errstate(over="ignore"):
        error = 4 * rounding(samples.shape[-1]) * _size(frame.envelope, samples) * frame.spread * np.exp(-smallest)
    return np.where(error < UNRELIABLE, error, np.inf)
