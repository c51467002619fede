"""Positive definite matrices under a Log-Euclidean metric that is learned with the prototypes."""

from __future__ import annotations

from typing import NamedTuple

import attrs
import numpy as np
from numpy.typing import DTypeLike
from scipy.spatial.distance import cdist

from rplvq.capabilities import Components
from rplvq.manifolds._flat import FlatGeodesics, LogEuclidean, flat_move
from rplvq.manifolds._shrinkage import LARGEST, coordinates, n_coordinates
from rplvq.parts import count_from, has_kernel, library_part, number_in
from rplvq.protocols import Array, ArrayLike, Prototypes

LONGEST = 0.5
"""Largest relative change of Omega in one step."""


@library_part
@attrs.define(eq=False, repr=False)
class MetricPrototypes:
    """Logarithms ``codes`` (K, n, n), and ``omega`` (r, m) of the metric ``Q = omega^T omega`` on their coordinates."""

    codes: Array
    omega: Array

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return the logarithms, shape (K, n, n), without the metric."""
        return np.array(self.codes, dtype=dtype)

    def with_codes(self, codes: Array) -> MetricPrototypes:
        """Return new prototypes (M, n, n) with the same metric."""
        return MetricPrototypes(codes, self.omega)


class MetricGeodesics(NamedTuple):
    """The straight lines between logarithms, their squared lengths under omega, and omega itself."""

    sqdist: Array  # (B, K)
    prototypes: Array  # (K, n, n)
    samples: Array  # (B, n, n)
    omega: Array  # (r, m)


def on_entries(values: Array, n: int) -> Array:
    """Share out values (N, m) of :func:`coordinates` among the entries of symmetric matrices (N, n, n)."""
    rows, columns = np.triu_indices(n, 1)
    result = np.zeros((len(values), n, n))
    parts = values[:, n:].reshape(len(values), -1, max(len(rows), 1))  # real, and perhaps imaginary
    result[:, rows, columns] = result[:, columns, rows] = 0.5 * parts.sum(axis=1)[:, : len(rows)]
    result[:, range(n), range(n)] = values[:, :n]
    return result


def stepped(omega: Array, rate: float, samples: Array, prototypes: Array, weights: Array) -> Array:
    """Return omega (r, m) after a gradient step, given weights (B, K), samples (B, m) and prototypes (K, m)."""
    # sum_bk w_bk (x_b - p_k)(x_b - p_k)^T, multiplied out around a point amid the prototypes.
    center = prototypes.mean(axis=0)
    samples = samples - center
    prototypes = prototypes - center
    mixed = weights.T @ samples
    images = omega @ prototypes.T
    pull: Array = (omega @ samples.T * weights.sum(axis=1)) @ samples
    pull += (images * weights.sum(axis=0) - omega @ mixed.T) @ prototypes - images @ mixed
    reach = float(np.vdot(np.abs(weights), cdist(samples, prototypes, "sqeuclidean")))
    pull *= -min(rate, LONGEST / reach) if reach > 0 else 0.0
    pull += omega
    pull *= np.sqrt(omega.shape[1] / np.vdot(pull, pull))  # so that tr Q = m
    return pull


@library_part
@attrs.frozen
class LearnedLogEuclidean:
    """Positive definite matrices under a Log-Euclidean metric, learned together with the prototypes.

    ``d^2(X, W) = |Omega vec(log X - log W)|^2 = |log X - log W|_Q^2`` with ``Q = Omega^T Omega``, where vec are the
    m real coordinates of a symmetric (m = n (n + 1) / 2) or Hermitian (m = n^2) matrix, orthonormal for the Frobenius
    product. Schneider, Biehl and Hammer (2009, doi:10.1162/neco.2009.11-08-908) introduced metric learning for LVQ;
    Tang, Tino and Yu (2023, doi:10.1109/TCYB.2022.3178412) study it on logarithms of positive definite matrices. Their
    other form, n x n numbers on the matrix itself, was less accurate on four data sets (docs/reproduction/later.md).
    With full rank the metric starts at Q = I, which is the Log-Euclidean metric.

    Parameters
    ----------
    rate : float, default=0.01
        Step size of Omega, as a share of the step size of the prototypes. With 0 the metric does not change.
    rank : int, optional
        Number of rows of Omega, at most m, which is the rank of Q. By default m. A lower rank starts at a random
        subspace.
    random_state : int, default=0
        Seed of this subspace.
    max_step_length : float, default=10
        Longest step of a prototype, in the learned metric.

    Notes
    -----
    The weights of a step are all that learning the metric needs: with ``w_bk = 2 step slope_bk / B`` and differences
    ``v_bk = log X_b - log W_k``, ``d loss / d Omega = 2 Omega sum_bk slope_bk v_bk v_bk^T / B``, so that the gradient
    step is ``Omega <- Omega - rate Omega sum_bk w_bk v_bk v_bk^T``. Then Omega is scaled to ``tr Q = m``, because
    otherwise the scale of the metric would change and act like another sigma2. The caps on weights also bound this
    step, and one step changes no direction of Omega by more than half.

    Under a fixed Q the space is flat, and the Riemannian gradient, taken in the metric Q itself, is
    ``grad d^2 = Q^-1 (-2 Q v) = -2 v``. Prototypes therefore move as under :class:`rplvq.LogEuclidean`.

    Prototypes store Omega. Codes without it, such as those of initializers, are measured by the initial metric. The
    conditions of :func:`rplvq.testing.check_manifold` that compare distances before and after a move need ``rate=0``.

    Examples
    --------
    One coordinate distinguishes the classes, and the metric learns to weight it.

    >>> from rplvq import LearnedLogEuclidean, Trainer
    >>> from rplvq.arrays import Samples
    >>> rng = np.random.default_rng(0)
    >>> logs = rng.normal(size=(40, 2)) * [0.1, 2.0] + np.repeat([[0.0, 0.0], [0.5, 0.0]], 20, axis=0)
    >>> trainer = Trainer(LearnedLogEuclidean(rate=1.0), sigma2=0.1, step_size=0.02, max_epochs=20)
    >>> codes = trainer.manifold.encode(np.exp(logs)[:, :, None] * np.eye(2))
    >>> samples = Samples(codes, np.repeat([0, 1], 20))
    >>> state, _ = trainer.run(trainer.init(samples, 2, rng), samples, rng)
    >>> metric = trainer.manifold.metric(state.prototypes)
    >>> metric.shape, bool(metric[0, 0] > 10 * metric[1, 1])
    ((3, 3), True)
    """

    rate: float = attrs.field(default=0.01, validator=number_in(closed=True))
    rank: int | None = attrs.field(default=None, validator=count_from(1, or_none=True))
    random_state: int = attrs.field(default=0, validator=count_from(0))
    max_step_length: float = attrs.field(default=10.0, validator=number_in())

    def encode(self, points: ArrayLike) -> Array:
        """Return the logarithms of matrices (N, n, n); raise ValueError at the first that is not positive definite.

        It is also raised if ``rank`` exceeds m, or if Omega would take more than 256 MiB.
        """
        codes = LogEuclidean().encode(points)
        n = codes.shape[-1]
        m = n_coordinates(n, np.iscomplexobj(codes))
        if self.rank is not None and self.rank > m:
            raise ValueError(f"rank must be at most {m} for matrices of size {n}, got {self.rank}")
        if (size := 8 * m * (self.rank or m)) > LARGEST:
            raise ValueError(
                f"X holds matrices of size {n}, whose metric of rank {self.rank or m} on {m} coordinates takes "
                f"{size / 2**30:.2g} GiB: give a lower rank, or project the matrices first (SPDProjection)"
            )
        return codes

    def decode(self, codes: Prototypes) -> Array:
        """Return the exponentials of codes, shape (K, n, n)."""
        return LogEuclidean().decode(np.asarray(codes))

    def metric(self, prototypes: Prototypes) -> Array:
        """Return the metric ``Q = Omega^T Omega``, of shape (m, m) and trace m, that trained prototypes store."""
        omega = self._omega(prototypes)
        return np.asarray(omega.T @ omega)

    def sqdist(self, prototypes: Prototypes, samples: Array) -> Array:
        """Return the squared distances (B, K) under the metric that the prototypes store."""
        omega = self._omega(prototypes, samples)
        ends, starts = (coordinates(np.asarray(codes), omega.shape[1]) @ omega.T for codes in (samples, prototypes))
        return np.asarray(cdist(ends, starts, "sqeuclidean"))

    @has_kernel("learned_log_euclidean")
    def connect(self, prototypes: Prototypes, samples: Array) -> MetricGeodesics:
        """Connect the logarithms of samples (B, n, n) with those of prototypes (K, n, n)."""
        omega = self._omega(prototypes, samples)
        return MetricGeodesics(self.sqdist(prototypes, samples), np.asarray(prototypes), samples, omega)

    @has_kernel("learned_log_euclidean")
    def move(self, geodesics: MetricGeodesics, weights: Array) -> MetricPrototypes:
        """Move prototypes (K, n, n) by the weighted differences, and Omega (r, m) by its gradient."""
        sqdist, prototypes, samples, omega = geodesics
        moved = flat_move(FlatGeodesics(sqdist, prototypes, samples), weights)
        if self.rate == 0 or not weights.any():
            return MetricPrototypes(moved, omega)
        ends, starts = (coordinates(codes, omega.shape[1]) for codes in (samples, prototypes))
        return MetricPrototypes(moved, stepped(omega, self.rate, ends, starts, weights))

    def components(self, prototypes: Prototypes, samples: Array) -> Components:
        """Split the squared distances (B, K) by entry of the logarithms, shape (B, K, n, n).

        A coordinate i of the difference v has the part ``v_i (Q v)_i``, which may be negative. Real and imaginary parts
        of an entry are added up, and its two places above and below the diagonal get half of it each.
        """
        omega = self._omega(prototypes, samples)
        ends, starts = (coordinates(np.asarray(codes), omega.shape[1]) for codes in (samples, prototypes))
        differences = ends[:, None] - starts
        shares = differences * (differences @ omega.T @ omega)
        entries = on_entries(shares.reshape(-1, omega.shape[1]), samples.shape[-1])
        return Components(entries.reshape(*shares.shape[:2], *entries.shape[1:]))

    def _omega(self, prototypes: Prototypes, samples: Array | None = None) -> Array:
        """Return the Omega (r, m) that prototypes store, or the initial one."""
        if isinstance(prototypes, MetricPrototypes):
            return prototypes.omega
        n = np.shape(prototypes)[-1]
        is_complex = np.iscomplexobj(prototypes) or (samples is not None and np.iscomplexobj(samples))
        m = n_coordinates(n, is_complex)
        if self.rank is None or self.rank == m:
            return np.eye(m)
        noise = np.random.default_rng(self.random_state).normal(size=(m, self.rank))
        return np.asarray(np.linalg.qr(noise)[0].T * np.sqrt(m / self.rank))
