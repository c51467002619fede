"""Positive definite matrices under the Bures-Wasserstein metric, represented by square roots up to rotation."""

from typing import NamedTuple

import attrs
import numpy as np

from rplvq.arrays import adjoint, by_block, check_positive_definite, hermitian_part, reads_parts, squared_roots
from rplvq.parts import has_kernel, library_part, number_in
from rplvq.protocols import Array, ArrayLike

NEAR_SHARE = 1e-3
"""A squared distance below this share of the two traces is computed from the difference of roots instead."""
LOWEST_SHARE = 1e-10
"""Eigenvalues of a repelled prototype are kept above this share of their mean."""


class BuresWassersteinGeodesics(NamedTuple):
    """The square roots of the prototypes, and those of the samples turned towards them.

    With ``W_k = R_k R_k^H`` and ``X_b = L_b L_b^H``, ``turned`` is ``L_b U`` for the unitary U that brings it closest
    to ``R_k``, the polar factor of ``L_b^H R_k``. Their distance is that of the matrices.
    """

    sqdist: Array  # (B, K)
    turned: Array  # (B, K, n, n), L_b U_bk
    roots: Array  # (K, n, n)


def turn(roots: Array, samples: Array) -> Array:
    """Turn roots of samples towards those of prototypes, both of shape (..., n, n); leading axes broadcast."""
    left, _, right = np.linalg.svd(adjoint(samples) @ roots)
    return np.asarray(samples @ (left @ right))  # left @ right is the polar factor


def squares(matrices: Array) -> Array:
    """Return the squared Frobenius norms of matrices (..., n, n)."""
    flat = matrices.reshape(*matrices.shape[:-2], matrices.shape[-1] ** 2)
    return np.asarray(np.vecdot(flat, flat).real)


def by_traces(roots: Array, samples: Array) -> Array:
    """Return the squared distances (B, K), from traces where they do not cancel, and else from roots."""
    size = squares(samples)[:, None] + squares(roots)
    singular = np.linalg.svd(adjoint(samples)[:, None] @ roots, compute_uv=False)
    sqdist = size - 2.0 * singular.sum(axis=-1)
    b, k = np.nonzero(sqdist < NEAR_SHARE * size)  # there most digits have cancelled
    sqdist[b, k] = squares(turn(roots[k], samples[b]) - roots[k])
    return np.asarray(sqdist)


@library_part
@attrs.frozen
class BuresWasserstein:
    """Symmetric or Hermitian positive definite matrices under the Bures-Wasserstein metric.

    ``d^2(X, W) = tr X + tr W - 2 tr (W^1/2 X W^1/2)^1/2``, the squared optimal transport distance between centred
    Gaussians of these covariances (Bhatia, Jain and Lim 2019, Expositiones Mathematicae 37(2),
    doi:10.1016/j.exmath.2018.01.002). With the transport map ``T = W^-1/2 (W^1/2 X W^1/2)^1/2 W^-1/2`` the logarithm
    is ``S W + W S`` with ``S = T - I``, and ``Exp_W`` of it is ``(I + S) W (I + S)``.

    Codes are square roots: Cholesky factors of the data, and for prototypes any R with ``W = R R^H``. In these
    coordinates the step is straight, ``R + sum_b w_b (L_b U_b - R)``, where ``L_b U_b = T_b R`` is the root of the
    sample that is closest to R. One singular value decomposition per pair gives the distance and the logarithm.

    Parameters
    ----------
    min_stretch : float, default=0.1
        Between 0 and 1: the smallest eigenvalue that ``I + S`` may have in one step, see the notes.

    Notes
    -----
    ``Exp_W`` leaves the cone where ``I + S`` is no longer positive. Attraction alone (weights that are not negative and
    whose sum is at most 1) never gets there. Where a prototype is repelled, `move` computes the smallest eigenvalue m
    of ``I + S``; if it is below ``min_stretch``, the step is shortened on its geodesic to
    ``(1 - min_stretch) / (1 - m)`` of its length. The eigenvalues of a repelled prototype that are below 1e-10 of their
    mean are raised to this value, because many such steps can still come close to the boundary.

    Examples
    --------
    >>> from rplvq import BuresWasserstein
    >>> manifold = BuresWasserstein()
    >>> codes = manifold.encode([np.eye(2), np.diag([9.0, 4.0])])
    >>> geodesics = manifold.connect(codes[:1], codes)
    >>> geodesics.sqdist
    array([[0.],
           [5.]])
    >>> manifold.decode(manifold.move(geodesics, np.array([[0.0], [0.5]])))[0].round(6)
    array([[4.  , 0.  ],
           [0.  , 2.25]])
    """

    min_stretch: float = attrs.field(default=0.1, validator=number_in(high=1))

    def encode(self, points: ArrayLike) -> Array:
        """Return the Cholesky factors of matrices (N, n, n); raise ValueError if one is not positive definite."""
        return np.asarray(np.linalg.cholesky(check_positive_definite(points)))

    def decode(self, codes: Array) -> Array:
        """Return the matrices ``R R^H``, shape (K, n, n), exactly Hermitian."""
        return squared_roots(np.asarray(codes))

    def sqdist(self, prototypes: Array, samples: Array) -> Array:
        """Return the squared distances (B, K), computed in chunks of bounded memory."""
        return by_block(lambda part: by_traces(prototypes, part), samples, n_columns=prototypes.size)

    @has_kernel("bures_wasserstein")
    def connect(self, prototypes: Array, samples: Array) -> BuresWassersteinGeodesics:
        """Turn the root of each sample (B, n, n) towards that of each prototype (K, n, n)."""
        turned = turn(prototypes, samples[:, None])
        return BuresWassersteinGeodesics(squares(turned - prototypes), turned, prototypes)

    @has_kernel("bures_wasserstein")
    def move(self, geodesics: BuresWassersteinGeodesics, weights: Array) -> Array:
        """Move roots (K, n, n) along the weighted differences, shortened where they would leave the cone."""
        roots = geodesics.roots
        steps = self.pull(geodesics, weights)
        moved = np.asarray(roots + steps)
        repelled = (weights < 0).any(axis=0) | (weights.sum(axis=0) > 1)  # others cannot leave the cone
        if repelled.any():
            moved[repelled] = self.exp(roots[repelled], steps[repelled])
        return moved

    def pull(self, geodesics: BuresWassersteinGeodesics, weights: Array) -> Array:
        """Return the weighted differences of roots, shape (K, n, n), which add over batches."""
        return np.asarray(np.einsum("bk,bkij->kij", weights, geodesics.turned - geodesics.roots))

    def exp(self, prototypes: Array, tangents: Array) -> Array:
        """Return the roots (K, n, n) after a step by tangents of :meth:`pull`, shortened if it would leave the cone."""
        roots = np.asarray(prototypes)
        return _lifted(roots + self._share(roots, tangents)[:, None, None] * tangents)

    @reads_parts
    def unit(self, codes: Array, weights: Array | None = None) -> float:
        """Return a quarter of the mean eigenvalue of the weighted data (N, n, n)."""
        # Near c times the identity, squared distances are c / 4 times the affine-invariant ones, for which the default
        # step was chosen; the mean eigenvalue estimates c.
        return float(np.average(by_block(squares, codes), weights=weights) / (4 * codes.shape[-1]))

    def _share(self, roots: Array, steps: Array) -> Array:
        """Return the shares (K,) of steps ``S R`` that keep the eigenvalues of ``I + S`` above ``min_stretch``."""
        # S = steps R^-1, solved from the right; it is Hermitian up to rounding.
        maps = hermitian_part(np.linalg.solve(adjoint(roots), adjoint(steps)))
        room = 1.0 - self.min_stretch
        if _are_above(maps, -room):
            return np.ones(len(maps))
        least = np.linalg.eigvalsh(maps)[:, 0]
        return np.asarray(np.where(least < -room, room / np.maximum(-least, room), 1.0))


def _are_above(matrices: Array, bounds: float | Array) -> bool:
    """Whether all eigenvalues of Hermitian matrices (..., n, n) exceed bounds (...), which needs none of them."""
    shifted = matrices - np.asarray(bounds)[..., None, None] * np.eye(matrices.shape[-1])
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


def _lifted(roots: Array) -> Array:
    """Raise the singular values of roots (K, n, n) to a floor, so that their matrices stay positive definite."""
    floors = np.sqrt(LOWEST_SHARE / roots.shape[-1] * squares(roots))
    if _are_above(squared_roots(roots), 2.0 * floors**2):
        return roots
    left, singular, right = np.linalg.svd(roots)
    low = (singular < floors[:, None]).any(axis=1)  # the test above errs towards a decomposition
    if low.any():
        roots = roots.copy()
        roots[low] = (left[low] * np.maximum(singular, floors[:, None])[low][:, None, :]) @ right[low]
    return roots
