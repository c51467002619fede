"""Real coordinates of Hermitian matrices, and covariances of them.

The covariance of samples within their groups is shrunk so that each sample is classified well by the others. One of
many coordinates that is known from few samples is kept as a matrix of low rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import DTypeLike

from rplvq.arrays import best_factor, block_slices, distinct, evenly_spaced_rows
from rplvq.parts import library_part
from rplvq.protocols import Array

LARGEST = 1 << 28
"""Largest size in bytes of a matrix on coordinates. Full rank is within it for real matrices up to 107 x 107."""
SAME = attrs.cmp_using(eq=np.array_equal)
CANDIDATES = (1.0, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Values of the shrinkage that are compared."""
TEMPORARIES = 6
"""Number of temporary arrays of the size of the energies."""
MOST_LEFT_OUT = 2000
"""Largest number of samples that are left out in turn. Of more samples, so many are taken at equal intervals."""
FACTORS = (3e-4, 20.0)
"""Bounds of the factor that scales energies. With many normally distributed samples, 1 is best."""
DEPENDENT = 1e-10
"""Relative eigenvalue below which a direction counts as one in which samples do not vary."""
LEAST = 1e-6
"""Smallest shrinkage that the rule of Ledoit and Wolf may give. It keeps the covariance of a few samples invertible."""
COINCIDENT = 1e-24
"""Variance of tangent vectors, which carry no unit, that rounding errors can cause among equal samples."""
MOST_DENSE = 2080
"""Number of coordinates above which few samples have a covariance of low rank; real 64 x 64 matrices have so many."""


def n_coordinates(n: int, is_complex: bool) -> int:
    """Return the number of real coordinates of Hermitian n x n matrices: n (n + 1) / 2, or n^2 for complex ones."""
    return n * n if is_complex else n * (n + 1) // 2


@lru_cache(maxsize=8)
def _above(n: int) -> tuple[Array, Array]:
    """Return the rows and columns of the entries above the diagonal; finding them takes as long as reading them."""
    rows, columns = np.triu_indices(n, 1)
    return rows, columns


def coordinates(codes: Array, m: int) -> Array:
    """Return real coordinates (N, m) of Hermitian matrices (N, n, n), orthonormal for the Frobenius product.

    They are the diagonal, sqrt 2 times the real parts of the entries above it, and, if m is n^2, sqrt 2 times their
    imaginary parts.
    """
    n = codes.shape[-1]
    if m < n * n and np.iscomplexobj(codes):
        raise ValueError("X is complex, but the metric was learned on real matrices: learn it on complex ones")
    rows, columns = _above(n)
    places = np.arange(n)
    above = np.sqrt(2.0) * codes[:, rows, columns]
    parts = [codes[:, places, places].real, above.real]
    if m > n_coordinates(n, False):
        parts.append(above.imag)
    return np.hstack(parts)


def as_vectors(codes: Array) -> Array:
    """Return codes (N, ...) as real vectors (N, m) of the same Euclidean length."""
    vectors = codes.reshape(len(codes), -1)
    return np.ascontiguousarray(vectors).view(float) if np.iscomplexobj(vectors) else vectors


def from_coordinates(vectors: Array, n: int) -> Array:
    """Return the Hermitian matrices (N, n, n) whose real coordinates are vectors (N, m), as `coordinates` has them."""
    rows, columns = _above(n)
    places = np.arange(n)
    n_above = len(rows)
    is_complex = vectors.shape[1] > n + n_above
    result = np.zeros((len(vectors), n, n), dtype=complex if is_complex else float)
    result[:, places, places] = vectors[:, :n]
    above = vectors[:, n : n + n_above] / np.sqrt(2.0)
    if is_complex:
        above = above + 1j * (vectors[:, n + n_above :] / np.sqrt(2.0))
    result[:, rows, columns] = above
    result[:, columns, rows] = above.conj()
    return result


@library_part
@attrs.frozen
class LowRankCovariance:
    """The positive definite matrix ``B^T diag(v) B + c (I - B^T B)`` of shape (m, m), which is never formed.

    The deviations of N samples span fewer than N directions. A covariance that is shrunk towards a multiple of the
    identity has the same variance c in all others, so that it takes ``r m`` numbers for r directions, and its powers
    need no further decomposition. ``numpy.asarray`` forms the matrix.

    Parameters
    ----------
    basis : ndarray of shape (r, m)
        The directions B, as orthonormal rows.
    variances : ndarray of shape (r,)
        The variances v in these directions, which are positive.
    rest : float
        The variance c in all other directions, which is positive.

    Examples
    --------
    >>> covariance = LowRankCovariance(np.array([[0.6, 0.8]]), np.array([4.0]), 1.0)
    >>> np.asarray(covariance)
    array([[2.08, 1.44],
           [1.44, 2.92]])
    >>> whitener = np.asarray(covariance.power(-0.5))
    >>> np.allclose(whitener @ np.asarray(covariance) @ whitener, np.eye(2))
    True
    """

    basis: Array = attrs.field(eq=SAME, hash=False, repr=False)
    variances: Array = attrs.field(eq=SAME, hash=False, repr=False)
    rest: float = attrs.field(converter=float)

    def __attrs_post_init__(self) -> None:
        if np.ndim(self.basis) != 2 or np.shape(self.variances) != np.shape(self.basis)[:1]:
            shapes = f"{np.shape(self.basis)} and {np.shape(self.variances)}"
            raise ValueError(f"basis and variances must have the shapes (r, m) and (r,), got {shapes}")
        if not (0 < self.rest < np.inf and (self.variances > 0).all()):
            raise ValueError("variances and rest must be positive: the covariance is not positive definite")

    def __len__(self) -> int:
        return int(self.basis.shape[1])

    @property
    def trace(self) -> float:
        """The sum of the variances in all directions."""
        return float(self.variances.sum() + (len(self) - len(self.variances)) * self.rest)

    def power(self, exponent: float) -> LowRankCovariance:
        """Return the matrix to the power of ``exponent``, with the same directions."""
        return attrs.evolve(self, variances=self.variances**exponent, rest=self.rest**exponent)

    def __matmul__(self, vectors: Array) -> Array:
        """Return the products with column vectors (..., m, 1)."""
        inner = (self.variances - self.rest)[:, None] * (self.basis @ vectors)
        return np.asarray(self.rest * vectors + self.basis.T @ inner)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return the matrix, shape (m, m)."""
        return np.asarray(self @ np.eye(len(self)), dtype=dtype)


class Shrunk(NamedTuple):
    """A covariance (m, m), how far it was shrunk towards a multiple of the identity, and the means of the groups."""

    covariance: Array | LowRankCovariance
    shrinkage: float
    means: Array  # (G, m), of the groups in ascending order


def within_covariance(
    codes: Array, m: int, groups: Array | None = None, weights: Array | None = None, shrinkage: float | None = None
) -> Shrunk:
    """Return the shrunk covariance of Hermitian matrices (N, n, n) within groups, ``(1 - s) S + s tr(S) / m I``.

    S is the weighted covariance of the deviations from the means of the groups, in m real coordinates. By default the
    shrinkage s is the one of 15 values with which a linear discriminant analysis of all others classifies each sample
    best (:func:`leave_one_out_energies`), by the mean negative log-posterior. For a single group it is that of Ledoit
    and Wolf (2004, doi:10.1016/S0047-259X(03)00096-4). ``groups`` (N,) are the classes; a weight w is w copies.

    The covariance is a :class:`LowRankCovariance` if no matrix (m, m) is to be formed, see :func:`is_low_rank`.
    ValueError is raised if all samples of each group are equal.
    """
    data = _Within.of(codes, m, groups, weights, merges=shrinkage is None)
    total = float(data.weights.sum())
    variance = data.trace / total / m
    if not variance > COINCIDENT:
        raise ValueError(
            f"whiten=True needs a class with at least two different samples, but the {len(codes)} samples have none: "
            "pass more samples, or set whiten=False"
        )
    if shrinkage is None:
        shrinkage = _ledoit_wolf(data) if len(data.means) < 2 else _best_for_classification(data)
    rest = shrinkage * variance
    if data.spectrum is None:
        return Shrunk((1.0 - shrinkage) * (data.scatter / total) + rest * np.eye(m), shrinkage, data.means)
    eigenvalues, basis = data.spectrum
    return Shrunk(LowRankCovariance(basis, (1.0 - shrinkage) * eigenvalues / total + rest, rest), shrinkage, data.means)


def is_low_rank(n_samples: int, m: int) -> bool:
    """Whether the covariance of samples on m coordinates is stored by the directions in which they vary."""
    return m > MOST_DENSE and 2 * n_samples < m


@attrs.frozen(eq=False)
class _Within:
    """Distinct samples, the means of their groups, and the scatter within the groups: a matrix or its spectrum."""

    codes: Array  # (N, n, n)
    rows: Array  # (M,), the samples of positive weight
    groups: Array  # (M,), indices 0..G-1
    weights: Array  # (M,), positive
    means: Array  # (G, m)
    scatter: Any = None  # (m, m), weighted sum of r r^T over the deviations r from the means
    spectrum: tuple[Array, Array] | None = None  # eigenvalues (M,) that can differ from 0, and eigenvectors (M, m)

    @classmethod
    def of(cls, codes: Array, m: int, groups: Array | None, weights: Array | None, *, merges: bool) -> _Within:
        """Compute the means and the scatter; copies become one sample if it ``merges``, to be left out together."""
        names = np.zeros(len(codes), dtype=int) if groups is None else np.unique(groups, return_inverse=True)[1]
        if merges:
            rows, counts = distinct(codes, names, weights)
        else:
            rows = np.arange(len(codes)) if weights is None else np.flatnonzero(weights > 0)
            counts = None if weights is None else weights[rows]
        mine = np.unique(names[rows], return_inverse=True)[1]  # samples of weight 0 are not among the rows
        counts = np.ones(len(rows)) if counts is None else counts
        empty = cls(codes, rows, mine, counts, np.zeros((mine.max() + 1, m)))
        means = np.zeros_like(empty.means)
        for part, vectors in empty.deviations():
            means += (np.equal.outer(np.arange(len(means)), mine[part]) * counts[part]) @ vectors  # all groups at once
        centred = attrs.evolve(empty, means=means / np.bincount(mine, counts)[:, None])
        if is_low_rank(len(rows), m):
            everything = np.sqrt(counts)[:, None] * centred.deviations_of(np.arange(len(rows)))
            _, singular, basis = np.linalg.svd(everything, full_matrices=False)  # the scatter would be (m, m)
            return attrs.evolve(centred, spectrum=(singular**2, basis))
        scatter = np.zeros((m, m))
        for part, deviations in centred.deviations():
            weighted = np.sqrt(counts[part])[:, None] * deviations
            scatter += weighted.T @ weighted
        return attrs.evolve(centred, scatter=scatter)

    @property
    def trace(self) -> float:
        """The trace of the scatter."""
        if self.spectrum is None:
            return float(np.trace(self.scatter))
        return float(self.spectrum[0].sum())

    def deviations(self) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the samples, and their deviations (B, m) from the means of their groups."""
        m = self.means.shape[1]
        for part in block_slices(len(self.rows), 64 * m):
            yield part, self.deviations_of(np.arange(len(self.rows))[part])

    def deviations_of(self, places: Array) -> Array:
        """Return the deviations (B, m) of the samples at places (B,) from the means of their groups."""
        return coordinates(self.codes[self.rows[places]], self.means.shape[1]) - self.means[self.groups[places]]


def _ledoit_wolf(data: _Within) -> float:
    """Return the shrinkage of :func:`sklearn.covariance.ledoit_wolf`, which does not support weights."""
    total = float(data.weights.sum())
    m = data.means.shape[1]
    entries = data.scatter if data.spectrum is None else data.spectrum[0]
    entries = entries / total
    square = float(np.vdot(entries, entries))
    variance = data.trace / total / m
    fourth = sum(data.weights[part] @ np.vecdot(own, own) ** 2 for part, own in data.deviations()) / total
    spread = square - m * variance**2
    error = (fourth - square) / total
    return 1.0 if error >= spread else float(max(error / spread, LEAST))  # also if both are 0


def _best_for_classification(data: _Within) -> float:
    """Return the candidate with the smallest leave-one-out loss, the largest of equally good ones."""
    totals = np.bincount(data.groups, data.weights)
    everything = np.arange(len(data.rows))
    places = everything[data.weights < totals[data.groups]]  # no group loses its only sample
    places = places[evenly_spaced_rows(len(places), MOST_LEFT_OUT)]
    if data.spectrum is not None:
        spectrum = data.spectrum[0], data.spectrum[1].T
    elif len(everything) < data.means.shape[1]:  # then the products of the samples are a smaller matrix
        weighted = np.sqrt(data.weights)[:, None] * data.deviations_of(everything)
        eigenvalues, vectors = np.linalg.eigh(weighted @ weighted.T)
        kept = eigenvalues > DEPENDENT * eigenvalues[-1]
        spectrum = eigenvalues[kept], weighted.T @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    else:
        spectrum = np.linalg.eigh(data.scatter)
    groups = data.groups[places]
    weights = data.weights[places]
    deviations = data.deviations_of(places)
    centers = data.means - data.means.mean(axis=0)
    losses: list[float] = []
    n_groups = len(centers)
    size = TEMPORARIES * n_groups * (len(groups) + n_groups) + centers.size
    for some in block_slices(len(CANDIDATES), 8 * size):
        shrinkages = np.array(CANDIDATES[some])
        energies = leave_one_out_energies(shrinkages, deviations, groups, weights, centers, totals, *spectrum)
        losses.extend(best_factor(energies, groups, weights, 1.0, FACTORS)[1])  # sigma2 scales them later
    return CANDIDATES[int(np.argmin(losses))]


def leave_one_out_energies(
    shrinkages: Array, deviations: Array, groups: Array, weights: Array, means: Array, totals: Array,
    eigenvalues: Array, basis: Array,
) -> Array:  # fmt: skip
    """Return the energies (S, B, G) of samples by the discriminant of all others, for several ``shrinkages`` (S,).

    The energy of group k is ``(x - mu_k)^T A^-1 (x - mu_k) / 2``, so that all groups have the same prior. The means
    ``mu_k`` and the covariance A are computed without the sample x.

    Let S be the scatter (m, m) of all samples within groups, ``t = trace(S) / m`` and ``B = (1 - s) S + s t I`` for the
    shrinkage s. A sample of weight w has the deviation r from the mean of its group, whose total weight is T. Without
    the sample, its deviation from this mean is ``T / (T - w) r``, and B becomes ``B - c r r^T`` with
    ``c = (1 - s) w T / (T - w)``. (Only t stays that of all samples.) Divided by the total weight of the other samples,
    this is A. Its inverse follows from ``(B - c r r^T)^-1 = B^-1 + c B^-1 r r^T B^-1 / (1 - c r^T B^-1 r)`` (Sherman
    and Morrison 1950, doi:10.1214/aoms/1177729893). The eigenvectors of S give ``B^-1`` for every s, so that one
    decomposition is enough for all samples and candidates.

    The samples have ``deviations`` (B, m), ``groups`` and ``weights`` (B,), the groups ``means`` (G, m) and ``totals``
    (G,), and S has ``eigenvalues`` (p,) and a ``basis`` (m, p); those of the eigenvalue 0 may lack.
    """
    inner = deviations @ basis
    centers = means @ basis
    own = (slice(None), np.arange(len(deviations)), groups)
    beyond = means - centers @ basis.T  # the parts of the means in directions without scatter
    ratio = totals[groups] / (totals[groups] - weights)
    target = eigenvalues.sum() / len(basis)
    rest = shrinkages * target
    inverse = 1.0 / ((1.0 - shrinkages)[:, None] * eigenvalues + rest[:, None])  # (S, p)
    scaled = centers * inverse[:, None]
    products = scaled @ centers.T + beyond @ beyond.T / rest[:, None, None]
    lengths = np.diagonal(products, axis1=1, axis2=2)
    between = lengths[..., None] - 2 * products + lengths[:, None]  # (S, G, G), squared distances of the means
    length = inverse @ (inner**2).T  # (S, B)
    mixed = inner @ scaled.swapaxes(1, 2)
    away = mixed[own][..., None] - mixed
    cross = length[..., None] + away  # r^T B^-1 (x - mu_k)
    sqdist = cross + away + between[:, groups]  # (x - mu_k)^T B^-1 (x - mu_k)
    cross[own] = length * ratio  # the mean of its own group lacks it, too
    sqdist[own] = length * ratio**2
    c = (1.0 - shrinkages)[:, None] * weights * ratio
    sqdist += (c / (1.0 - c * length))[..., None] * cross**2  # the formula of Sherman and Morrison
    sqdist *= 0.5 * (totals.sum() - weights)[:, None]  # A is a mean over the other samples
    return np.asarray(sqdist)
