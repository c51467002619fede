"""The nearest prototype under the affine-invariant metric without a distance to each of them.

The logarithm shortens affine-invariant distances at most (Bhatia 2007, Positive Definite Matrices, Theorem 6.1.4,
the exponential metric increasing property), and a real function whose slope lies in [0, 1] shortens Frobenius
distances of Hermitian matrices at most. So ``||f(X) - f(W)||_F <= d(X, W)`` for every f with ``0 <= x f'(x) <= 1``.
The Pade approximants of the logarithm are such functions, and need no eigenvalues: with Gauss-Legendre nodes t and
weights w on [0, 1], ``f(x) = sum_j w_j (x - 1) / (1 + t_j (x - 1))`` is a constant minus a sum of shifted inverses.

A common congruence changes no affine-invariant distance. In a frame in which the prototypes' mean is the identity
the bound is tight: a few inverses a sample and one matrix product then rank all prototypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from rplvq.arrays import adjoint, from_spectrum, lower_inverse, positive_inverse
from rplvq.manifolds._flat import as_vectors
from rplvq.protocols import Array

__all__ = ["Frame", "common_frame", "lower_bounds", "nearest_by_bound", "rounding"]

UNRELIABLE = 1e-2
"""Error above which first order in the rounding is no bound any more."""
FEW_OPEN = 256
"""Samples left open from which on a round by itself costs more than the prototypes that it rules out."""
CACHE_BYTES = 1 << 20
"""Samples handled at a time while their inverses are taken: a processor's cache."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)  # on [-1, 1]
SHIFTS, FACTORS = (1 - NODES) / (1 + NODES), 2 * WEIGHTS / (1 + NODES) ** 2
SENSITIVITY = float(np.sum(FACTORS * (1 / SHIFTS + 1 / SHIFTS**2)))


class Frame(NamedTuple):
    """K prototypes seen from a basis in which their mean is about the identity.

    Parameters
    ----------
    whitener : ndarray of shape (n, n)
        Upper triangular R; the frame's coordinates of X are ``R X R^H``.
    images : ndarray of shape (K, m)
        f of the prototypes in the frame as real vectors, m = n^2 or 2 n^2.
    error : float
        Bound on the rounding of ``images``.
    envelope : ndarray of shape (n, n)
        Largest absolute value of each entry of the inverse factors.
    spread : float
        Largest over smallest eigenvalue of all prototypes in the frame.
    """

    whitener: Array
    images: Array
    error: float
    envelope: Array
    spread: float


def common_frame(factors: Array) -> Frame:
    """Find the frame of prototypes W_k, given as G_k (K, n, n) with ``G_k W_k G_k^H = I``.

    That of their harmonic mean, which needs no inverse: ``R^H R = mean_k G_k^H G_k``. Any frame gives bounds; the
    closer to the prototypes, the tighter.
    """
    n_prototypes, n = factors.shape[:2]
    whitener: Array = np.asarray(np.linalg.qr((factors / np.sqrt(n_prototypes)).reshape(-1, n), mode="r"))
    seen = _seen_from(factors, whitener)
    _, singular, basis = np.linalg.svd(seen)
    inverse = np.abs(lower_inverse(adjoint(whitener)).T)
    amplified = np.linalg.norm(np.abs(seen) @ (np.abs(whitener) @ inverse), axis=(1, 2))
    error = 2 * rounding(n) * ((amplified + singular[:, 0]) / singular[:, -1]).max()
    values = -np.sum(FACTORS / (singular[..., None] ** -2 + SHIFTS), axis=-1)
    images = as_vectors(from_spectrum(values, adjoint(basis)))
    spread = (singular.max() / singular.min()) ** 2
    return Frame(whitener, images, float(error), np.abs(factors).max(axis=0), float(spread))


def lower_bounds(frame: Frame, samples: Array) -> Array:
    """Bound the distances (B, K), not squared, of positive definite matrices (B, n, n) from below.

    Rounding of the bound itself is subtracted; where it is out of hand the bound is minus infinity.
    """
    bounds = np.empty((len(samples), len(frame.images)))
    block = max(16, CACHE_BYTES // samples[0].nbytes)
    for start in range(0, len(samples), block):
        rows = slice(start, start + block)
        bounds[rows] = _block_of_bounds(frame, samples[rows])
    return bounds


def _block_of_bounds(frame: Frame, samples: Array) -> Array:
    n = samples.shape[-1]
    seen = whitened(frame.whitener, samples)
    error = rounding(n) * (1 + _size(frame.whitener, samples))
    lost = ~(error < UNRELIABLE)
    if lost.any():
        seen[lost] = np.eye(n)
    images = np.zeros_like(seen)
    for factor, shift in zip(FACTORS, SHIFTS, strict=True):
        images -= factor * positive_inverse(seen + shift * np.eye(n))
    vectors = as_vectors(images)
    squares = vectors @ (-2.0 * frame.images.T)
    norms, own = np.vecdot(vectors, vectors)[:, None], np.vecdot(frame.images, frame.images)
    squares += (1 - rounding(n * n)) * (norms + own)
    bounds = np.sqrt(np.maximum(squares, 0.0)) - (2 * SENSITIVITY * error + frame.error)[:, None]
    bounds[lost] = -np.inf
    return np.asarray(bounds)


def nearest_by_bound(
    frame: Frame, factors: Array, samples: Array, groups: Array, spectra: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Find a prototype of the group that the nearest of K belongs to, and where rounding leaves the group open.

    Each round evaluates the most promising prototype of every sample that is still open; once few are, a last one
    evaluates all that their bounds leave. A sample is open while a prototype of another group than its best may be as
    near.

    Parameters
    ----------
    frame : Frame
        Of the prototypes.
    factors : ndarray of shape (K, n, n)
        Inverse factors of the prototypes.
    samples : ndarray of shape (B, n, n)
        Positive definite matrices.
    groups : ndarray of int of shape (K,)
        Prototypes of one group are not told apart.
    spectra : callable
        Logarithms (M, n), ascending, of the eigenvalues of M pairs: one inverse factor and one sample each, both of
        shape (M, n, n).

    Returns
    -------
    winner : ndarray of int of shape (B,)
        Index of the nearest prototype, or of another one of its group.
    tied : ndarray of bool of shape (B,)
        Where one of another group may be as near up to rounding.
    """
    bounds = lower_bounds(frame, samples)
    rows, candidate = np.arange(len(samples)), bounds.argmin(axis=1)
    logs = spectra(factors[candidate], samples)
    slack = _slack(frame, samples, logs[:, 0])
    lengths = np.full(bounds.shape, np.inf)
    lengths[rows, candidate] = best = _lengths(logs)
    bounds[rows, candidate] = np.inf
    winner = candidate
    reliable = slack < np.inf
    while True:
        rivals = _of_other_groups(bounds[rows], groups, winner[rows])
        rows = rows[reliable[rows] & (rivals < np.inf) & (rivals <= best[rows] + slack[rows])]
        if len(rows) <= FEW_OPEN:
            break
        candidate = bounds[rows].argmin(axis=1)
        found = _lengths(spectra(factors[candidate], samples[rows]))
        lengths[rows, candidate], bounds[rows, candidate] = found, np.inf
        better = found < best[rows]
        winner[rows[better]], best[rows[better]] = candidate[better], found[better]
    if len(rows):
        left, columns = np.nonzero(bounds[rows] <= np.minimum(best + slack, np.finfo(float).max)[rows, None])
        lengths[rows[left], columns] = _lengths(spectra(factors[columns], samples[rows[left]]))
        winner[rows] = lengths[rows].argmin(axis=1)
        best[rows] = lengths[rows, winner[rows]]
    return winner, ~(_of_other_groups(lengths, groups, winner) > best + slack)


def _of_other_groups(values: Array, groups: Array, winner: Array) -> Array:
    """Smallest of values (M, K) among prototypes of other groups than those of the winners (M,)."""
    return np.asarray(np.where(groups == groups[winner][:, None], np.inf, values).min(axis=1))


def whitened(factor: Array, samples: Array) -> Array:
    """G X G^H for one factor (n, n) and samples (B, n, n), as two large products."""
    n = len(factor)
    right = (samples.reshape(-1, n) @ adjoint(factor)).reshape(samples.shape)
    return np.asarray(factor @ right)


def rounding(n: int) -> float:
    """Bound on the relative rounding of sums of n terms and of eigenvalues of n x n matrices, generously."""
    return 16 * n * float(np.finfo(float).eps)


def _lengths(logs: Array) -> Array:
    return np.asarray(np.sqrt(np.vecdot(logs, logs)))


def _seen_from(factors: Array, whitener: Array) -> Array:
    """G_k R^-1 for factors (K, n, n) and upper triangular R."""
    n_prototypes, n = factors.shape[:2]
    rows = solve_triangular(whitener.T, factors.reshape(-1, n).T, lower=True)
    return np.asarray(rows.T.reshape(n_prototypes, n, n))


def _size(factor: Array, samples: Array) -> Array:
    """Bound (B,) on the norm of |G| |X| |G|^H, whose eps-fold is the rounding of G X G^H.

    |X_ij| is at most ``sqrt(X_ii X_jj)``. Unlike the product of norms, this does not grow when the channels have
    different units.
    """
    roots = np.sqrt(np.abs(np.diagonal(samples, axis1=1, axis2=2)))
    return np.asarray(np.square(roots @ np.abs(factor).T).sum(axis=1))


def _slack(frame: Frame, samples: Array, smallest: Array) -> Array:
    """Bound (B,) on the rounding of a sample's computed distances, infinite where it is out of hand.

    The rounding of a whitened pair over its smallest eigenvalue is the error of its logarithm. From the smallest
    log-eigenvalue of one pair, those of the others are bounded by the spread of the prototypes.
    """
    with np.errstate(over="ignore"):
        error = 4 * rounding(samples.shape[-1]) * _size(frame.envelope, samples) * frame.spread * np.exp(-smallest)
    return np.where(error < UNRELIABLE, error, np.inf)
