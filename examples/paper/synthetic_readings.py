"""Why MDRM scores more on our SynII than on the paper's: other readings of how the data are drawn, and other means.

The class means need no settings, so whatever differs for them lies in the data or in the mean itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from examples.paper.runner import Job, Record
from rplvq import AffineInvariant, LogEuclidean, ProjectedEuclidean
from rplvq.manifolds import riemannian_mean
from rplvq.protocols import Array

__all__ = ["READINGS", "draw_reading", "jobs", "means_under", "smoke"]

N = 10
# What differs from the description, by the name of the row. ``noise`` is the standard deviation of the perturbation of
# the eigenvectors, ``spread`` half the width of the interval of an eigenvalue.
READINGS: dict[str, Record] = {
    "as described": {},
    "spectra not scaled to mean 1": {"scaled": False},
    "eigenvalues within 0.05": {"spread": 0.05},
    "normal eigenvalues of deviation 0.1, redrawn below 0.001": {"normal": True},
    "noise of variance 0.3": {"noise": 0.3**0.5},
    "noise of deviation 0.4": {"noise": 0.4},
    "one basis for all samples, without noise": {"noise": 0.0},
    "classes as Log-Euclidean means": {"mean": "log_euclidean"},
    "classes as arithmetic means": {"mean": "euclidean"},
}
MEANS: dict[str, Any] = {
    "affine_invariant": AffineInvariant(),
    "log_euclidean": LogEuclidean(),
    "euclidean": ProjectedEuclidean(),
}


def draw_reading(
    rng: np.random.RandomState,
    basis: Array,
    n_per_class: int,
    *,
    noise: float = 0.3,
    spread: float = 0.1,
    scaled: bool = True,
    normal: bool = False,
) -> tuple[Array, Array]:
    """Draw SynII under one reading: matrices (4 n_per_class, 10, 10) class after class, and their labels."""
    j = np.arange(1, N + 1)
    spectra = np.stack([13.0 - j, 1 + 100 * np.exp(-0.5 * j), 13 - 0.5 * j, 1.0 / j])
    if scaled:
        spectra /= spectra.mean(axis=1, keepdims=True)
    centers = spectra.repeat(n_per_class, axis=0)
    values = centers + spread * (rng.standard_normal(centers.shape) if normal else rng.uniform(-1, 1, centers.shape))
    while (low := values < 1e-3).any():  # a draw that would not be positive is repeated
        values[low] = centers[low] + spread * (
            rng.standard_normal(low.sum()) if normal else rng.uniform(-1, 1, low.sum())
        )
    q, r = np.linalg.qr(basis + noise * rng.standard_normal((len(values), N, N)))
    vectors = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    return (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2), np.arange(4).repeat(n_per_class)


def means_under(*, repetition: int, method: str, n_per_class: int = 250) -> Record:
    """Classify by the affine-invariant distance to the class means, under a reading of READINGS.

    Returns
    -------
    dict
        accuracy on 250 test matrices per class; the means are those of twice as many.
    """
    options = dict(READINGS[method])
    geometry = MEANS[options.pop("mean", "affine_invariant")]
    rng = check_random_state(repetition)
    basis = np.linalg.qr(rng.standard_normal((N, N)))[0]
    X, y = draw_reading(rng, basis, 2 * n_per_class, **options)
    X_test, y_test = draw_reading(rng, basis, n_per_class, **options)
    centers = np.concatenate(
        [geometry.decode(riemannian_mean(geometry, geometry.encode(X[y == label])).code[None]) for label in range(4)]
    )
    manifold = AffineInvariant()
    nearest = manifold.sqdist(manifold.encode(centers), manifold.encode(X_test)).argmin(axis=1)
    return {"accuracy": float(np.mean(nearest == y_test))}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs; ``quick`` has one repetition."""
    return list(_jobs(range(1 if quick else 10), {}))


def smoke() -> list[Job]:
    """Return one job per reading with few matrices, which take a second."""
    return list(_jobs(range(1), {"n_per_class": 20}))


def _jobs(repetitions: range, settings: Record) -> Iterator[Job]:
    for repetition in repetitions:
        for method in READINGS:
            yield Job("syn2-readings", method, repetition, settings, means_under)
