"""The table of all geometries: random points for each, and its distance by an independent formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
from pymanopt.manifolds import Grassmann, PoincareBall, Sphere, SymmetricPositiveDefinite

from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    EuclideanVectors,
    FromPymanopt,
    LearnedLogEuclidean,
    LogCholesky,
    LogEuclidean,
    Product,
    ProjectedEuclidean,
    TangentSpace,
)
from tests.problems import spd

AI, LE, LC, BW = AffineInvariant(), LogEuclidean(), LogCholesky(), BuresWasserstein()
FIXED = LearnedLogEuclidean(rate=0)


def hpd(rng, count, n, spread=0.7):
    return spd(rng, count, n, spread, complex)


def vectors(rng, count, n):
    return rng.normal(size=(count, n))


def on_sphere(rng, count, n):
    points = 0.4 * rng.normal(size=(count, n + 1)) + np.eye(n + 1)[0]
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def bases(rng, count, n):
    return np.linalg.qr(np.eye(n + 2)[:, :2] + 0.15 * rng.normal(size=(count, n + 2, 2)))[0]


def in_ball(rng, count, n):
    return rng.uniform(-0.7, 0.7, (count, n)) / np.sqrt(n)


def affine_invariant_distance(x, w):
    return np.sqrt((np.log(scipy.linalg.eigvalsh(x, w)) ** 2).sum())


def log_euclidean_distance(x, w):
    return np.linalg.norm(scipy.linalg.logm(x) - scipy.linalg.logm(w))


def log_cholesky_distance(x, w):
    first, second = np.linalg.cholesky(x), np.linalg.cholesky(w)
    logs = np.log(np.diag(first).real / np.diag(second).real)
    return np.sqrt((np.abs(np.tril(first - second, -1)) ** 2).sum() + (logs**2).sum())


def bures_wasserstein_distance(x, w):
    # tr (W^1/2 X W^1/2)^1/2 by the eigenvalues of X W, of which that is the square root's trace, too.
    cross = np.sqrt(scipy.linalg.eigvals(x @ w)).sum().real
    return np.sqrt(np.trace(x).real + np.trace(w).real - 2 * cross)


def two_coordinates_distance(x, w):
    """Log-Euclidean distance as seen by a metric of rank 2, in coordinates written out here."""
    vector = real_coordinates(scipy.linalg.logm(x) - scipy.linalg.logm(w), np.iscomplexobj(x))
    metric = low_rank(len(x)).metric(np.array([x]))
    return np.sqrt(vector @ metric @ vector)


def reference_of(n, dtype=float):
    return spd(np.random.default_rng(21), 1, n, dtype=dtype)[0]


def covariance_of(m):
    noise = np.random.default_rng(22).normal(size=(m, m))
    return noise @ noise.T / m + np.eye(m)


def at_reference(dtype=float):
    return lambda n: TangentSpace(reference_of(n, dtype))


def whitened(dtype=float):
    return lambda n: TangentSpace(
        reference_of(n, dtype), True, covariance_of(n * n if dtype is complex else n * (n + 1) // 2)
    )


def tangent_vector(x):
    """Logarithm at the reference, by SciPy's functions of a single matrix."""
    inverse = np.linalg.inv(scipy.linalg.sqrtm(reference_of(len(x), complex if np.iscomplexobj(x) else float)))
    return scipy.linalg.logm(inverse @ x @ inverse)


def tangent_distance(x, w):
    return np.linalg.norm(tangent_vector(x) - tangent_vector(w))


def whitened_distance(x, w):
    vector = real_coordinates(tangent_vector(x) - tangent_vector(w), np.iscomplexobj(x))
    return np.sqrt(vector @ np.linalg.solve(covariance_of(len(vector)), vector))


def real_coordinates(matrix, is_complex):
    """Diagonal, real parts above it and, if complex, imaginary parts, with the length of the Frobenius norm."""
    above = np.sqrt(2) * matrix[np.triu_indices(len(matrix), 1)]
    return np.concatenate([np.diag(matrix).real, above.real, *([above.imag] if is_complex else [])])


def low_rank(n):
    return LearnedLogEuclidean(rate=0, rank=min(2, n))


def norm_of_difference(x, w):
    return np.linalg.norm(x - w)


def angle(x, w):
    return np.arccos(x @ w)


def principal_angles(x, w):
    return np.linalg.norm(scipy.linalg.subspace_angles(x, w))


def hyperbolic_distance(x, w):
    ratio = ((x - w) @ (x - w)) / ((1 - x @ x) * (1 - w @ w))
    return np.arccosh(1 + 2 * ratio)


def pairs(rng, count, n, dtype=float):
    return np.stack([spd(rng, count, n, dtype=dtype), spd(rng, count, n, dtype=dtype)], axis=1)


def complex_pairs(rng, count, n):
    return pairs(rng, count, n, complex)


def pair_distance(x, w):
    return np.hypot(affine_invariant_distance(x[0], w[0]), log_euclidean_distance(x[1], w[1]))


def mixed(n):
    """A product of a Hermitian matrix, a vector and a symmetric matrix, packed, with relevances of its own."""
    return Product([AI, EuclideanVectors(), LC], shapes=[(n, n), (n + 1,), (n, n)], relevances=[2, 1, 0.5])


def mixed_points(rng, count, n):
    return mixed(n).pack([hpd(rng, count, n), vectors(rng, count, n + 1), spd(rng, count, n)])


def mixed_parts(x):
    """Return the three parts (..., n, n), (..., n + 1) and (..., n, n) of packed points (..., d)."""
    n = next(n for n in range(x.shape[-1]) if 2 * n * n + n + 1 == x.shape[-1])
    first, second, third = np.split(x, [n * n, n * n + n + 1], axis=-1)
    return first.reshape(*x.shape[:-1], n, n), second.real, third.real.reshape(*x.shape[:-1], n, n)


def mixed_distance(x, w):
    parts = mixed_parts(x), mixed_parts(w)
    distances = affine_invariant_distance, norm_of_difference, log_cholesky_distance
    squares = [distance(*ends) ** 2 for distance, *ends in zip(distances, *parts, strict=True)]
    return np.sqrt(np.dot([2, 1, 0.5], squares) / (3.5 / 3))


class Case(NamedTuple):
    """A geometry, random points for it, and its distance by an independent formula."""

    manifold: Callable[[int], Any]
    points: Callable[..., Any]
    distance: Callable[[Any, Any], Any]


def always(manifold):
    return lambda n: manifold


CASES = {
    "affine-invariant": Case(always(AI), spd, affine_invariant_distance),
    "affine-invariant, complex": Case(always(AI), hpd, affine_invariant_distance),
    "Log-Euclidean": Case(always(LE), spd, log_euclidean_distance),
    "Log-Euclidean, complex": Case(always(LE), hpd, log_euclidean_distance),
    "log-Cholesky": Case(always(LC), spd, log_cholesky_distance),
    "log-Cholesky, complex": Case(always(LC), hpd, log_cholesky_distance),
    "tangent": Case(at_reference(), spd, tangent_distance),
    "tangent, complex": Case(at_reference(complex), hpd, tangent_distance),
    "tangent, whitened": Case(whitened(), spd, whitened_distance),
    "tangent, whitened, complex": Case(whitened(complex), hpd, whitened_distance),
    "Bures-Wasserstein": Case(always(BW), spd, bures_wasserstein_distance),
    "Bures-Wasserstein, complex": Case(always(BW), hpd, bures_wasserstein_distance),
    "learned, at the start": Case(always(FIXED), spd, log_euclidean_distance),
    "learned, at the start, complex": Case(always(FIXED), hpd, log_euclidean_distance),
    "learned, rank 2": Case(low_rank, spd, two_coordinates_distance),
    "learned, rank 2, complex": Case(low_rank, hpd, two_coordinates_distance),
    "projected": Case(always(ProjectedEuclidean()), spd, norm_of_difference),
    "projected, complex": Case(always(ProjectedEuclidean()), hpd, norm_of_difference),
    "projected, relative": Case(always(ProjectedEuclidean(relative=True)), spd, norm_of_difference),
    "vectors": Case(always(EuclideanVectors()), vectors, norm_of_difference),
    "product": Case(always(Product([AI, LE])), pairs, pair_distance),
    "product, complex": Case(always(Product([AI, LE])), complex_pairs, pair_distance),
    "product, learned, at the start": Case(
        always(Product([AI, LE], relevances="learned", rate=0)), pairs, pair_distance
    ),
    "product, mixed": Case(mixed, mixed_points, mixed_distance),
    "sphere": Case(lambda n: FromPymanopt(Sphere(n + 1)), on_sphere, angle),
    "Grassmann": Case(lambda n: FromPymanopt(Grassmann(n + 2, 2)), bases, principal_angles),
    "Poincare ball": Case(lambda n: FromPymanopt(PoincareBall(n)), in_ball, hyperbolic_distance),
    "pymanopt's SPD": Case(lambda n: FromPymanopt(SymmetricPositiveDefinite(n)), spd, affine_invariant_distance),
}
EVERY = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def made(case, count=7, n=3, seed=0):
    """Manifold and codes of a case."""
    manifold = case.manifold(n)
    return manifold, manifold.encode(case.points(np.random.default_rng(seed), count, n))


def relative_gap(actual, wanted):
    return np.abs(actual - wanted).max() / np.abs(wanted).max()


def reference_move_affine_invariant(w, samples, weights):
    root = scipy.linalg.sqrtm(w)
    inverse = np.linalg.inv(root)
    logs = [scipy.linalg.logm(inverse @ x @ inverse) for x in samples]
    return root @ scipy.linalg.expm(np.tensordot(weights, logs, 1)) @ root
