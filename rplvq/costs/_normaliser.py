"""Normalisers of Gaussians on manifolds, which a cost needs if the classes have different variances."""

from collections.abc import Hashable
from functools import lru_cache
from importlib.resources import files
from typing import Protocol

import attrs
import numpy as np
from numpy.polynomial import chebyshev
from scipy.optimize import brentq
from scipy.special import gammaln

from rplvq.parts import count_from, library_part, one_of
from rplvq.protocols import Array, ArrayLike

LARGEST_TABLED = 32


@lru_cache(maxsize=1)
def _table() -> tuple[Array, float]:
    """Return the Chebyshev coefficients (31, 65) for n = 2..32 and the largest sigma, by tools/normaliser_table.py."""
    with files("rplvq.costs").joinpath("normaliser.npz").open("rb") as stream, np.load(stream) as stored:
        return stored["table"], float(stored["largest_sigma"])


class Normaliser(Hashable, Protocol):
    """The integral Z of ``exp(-d^2 / (2 variance))`` over a manifold on which it does not depend on the centre."""

    def log_z(self, variance: ArrayLike) -> Array:
        """Return the logarithm of Z at variances of any shape, up to a constant."""

    def mean_sqdist(self, variance: ArrayLike) -> Array:
        """Return the expected squared distance to the centre, ``2 variance^2 d log Z / d variance``."""


def check_variances(argument: str, value: object) -> Array:
    """Return positive finite numbers as an array of float, or raise ValueError at the first that is not."""
    variances = np.asarray(value, dtype=float)
    bad = np.argwhere(~((variances > 0) & (variances < np.inf)))
    if len(bad):
        where = f"{argument}[{', '.join(map(str, bad[0].tolist()))}]" if variances.ndim else argument
        raise ValueError(f"{where} must be a positive finite number, got {variances[tuple(bad[0])]}")
    return variances


@library_part
@attrs.frozen
class FlatGaussian:
    """Normaliser of a flat space: ``log Z = (dimension / 2) log(2 pi variance)``.

    For Log-Euclidean and other flat metrics of n x n matrices the dimension is n (n + 1) / 2, of Hermitian ones
    n^2, of vectors their length.

    Parameters
    ----------
    dimension : int
        Dimension of the space.

    Examples
    --------
    >>> FlatGaussian(3).log_z([1.0, 2.0]).round(4)
    array([2.7568, 3.7965])
    >>> FlatGaussian(3).mean_sqdist([1.0, 2.0])
    array([3., 6.])
    """

    dimension: int = attrs.field(validator=count_from(1))

    def log_z(self, variance: ArrayLike) -> Array:
        """Return the logarithm of Z at variances (...); raise ValueError at one that is not positive."""
        return np.asarray(0.5 * self.dimension * np.log(2 * np.pi * check_variances("variance", variance)))

    def mean_sqdist(self, variance: ArrayLike) -> Array:
        """Return the expected squared distance to the centre, ``dimension * variance``, at variances (...)."""
        return np.asarray(self.dimension * check_variances("variance", variance))


@library_part
@attrs.frozen
class RiemannianGaussian:
    """Normaliser of the Riemannian Gaussian on positive definite matrices with the affine-invariant metric.

    ``log Z = (dim / 2) log(2 pi v) + excess(v)`` for a variance v. The excess vanishes at v = 0 and grows as
    ``v n (n^2 - 1) / 24``, because volume grows exponentially with distance (Said, Bombrun, Berthoumieu and Manton
    2017, "Riemannian Gaussian distributions on the space of symmetric positive definite matrices", IEEE Transactions on
    Information Theory, arXiv:1507.01760). For real matrices, with dim = n (n + 1) / 2, ``log Z`` contains a Pfaffian of
    error functions (de Bruijn), which is read from a table for n = 2..32 with an error of at most 2e-11. Every positive
    variance is allowed: beyond 144, where the table ends, the error functions are 1 to rounding. For Hermitian
    matrices, with dim = n^2 and the Stieltjes-Wigert determinant,
    ``excess = v n (n^2 - 1) / 12 + sum_{m < n} (n - m) log(sinh(m v / 2) / (m v / 2))``.

    Parameters
    ----------
    n : int
        Size of the matrices; at most 32 for real ones.
    hermitian : bool, default=False
        Whether the matrices are complex.

    Examples
    --------
    >>> curved, flat = RiemannianGaussian(10), FlatGaussian(55)
    >>> (curved.log_z([0.01, 1.0]) - flat.log_z([0.01, 1.0])).round(3)
    array([ 0.225, 26.2  ])
    """

    n: int = attrs.field(validator=count_from(1))
    hermitian: bool = attrs.field(default=False, validator=one_of(True, False))

    def __attrs_post_init__(self) -> None:
        if self.n > LARGEST_TABLED and not self.hermitian:
            raise ValueError(
                f"n={self.n}: the table of real matrices ends at n = {LARGEST_TABLED}. Reduce the matrices "
                "(SPDProjection), or take FlatGaussian with the Log-Euclidean metric"
            )

    @property
    def dimension(self) -> int:
        """Dimension of the manifold."""
        return self.n**2 if self.hermitian else self.n * (self.n + 1) // 2

    def log_z(self, variance: ArrayLike) -> Array:
        """Return the logarithm of Z at variances (...); raise ValueError at one that is not positive."""
        v = check_variances("variance", variance)
        excess = self._hermitian(v)[0] if self.hermitian else self._real(v)[0]
        return np.asarray(0.5 * self.dimension * np.log(2 * np.pi * v) + excess)

    def mean_sqdist(self, variance: ArrayLike) -> Array:
        """Return the expected squared distance to the centre, ``v dim + 2 v^2 d excess / dv``, at variances (...)."""
        v = check_variances("variance", variance)
        rate = self._hermitian(v)[1] if self.hermitian else self._real(v)[1]
        return np.asarray(v * (self.dimension + 2 * v * rate))

    def _hermitian(self, v: Array) -> tuple[Array, Array]:
        """Return the excess and its derivative with respect to the variance."""
        m = np.arange(1, self.n)
        half = 0.5 * m * v[..., None]
        tiny = half < 1e-3
        safe = np.where(tiny, 1.0, half)
        # log(sinh(h) / h) in a form without overflow, and its series where the fraction is 1 to rounding.
        exact = safe + np.log1p(-np.exp(-2 * safe)) - np.log(2 * safe)
        log_ratio = np.where(tiny, half**2 / 6 * (1 - half**2 / 30), exact)
        rate = np.where(tiny, half / 3 * (1 - half**2 / 15), 1 / np.tanh(safe) - 1 / safe)
        growth = self.n * (self.n**2 - 1) / 12
        return growth * v + log_ratio @ (self.n - m), growth + rate @ (0.5 * m * (self.n - m))

    def _real(self, v: Array) -> tuple[Array, Array]:
        """Return the excess, ``v n (n^2 - 1) / 24`` minus the value of the table, and its derivative."""
        n = self.n
        if n == 1:
            return np.zeros_like(v), np.zeros_like(v)
        table, largest_sigma = _table()
        row = table[n - 2]
        end = np.log1p(n * largest_sigma**2)
        x = np.minimum(np.log1p(n * v), end)
        at = 2 * x / end - 1
        value = chebyshev.chebval(at, row)
        slope = chebyshev.chebval(at, chebyshev.chebder(row))
        pairs = 0.5 * n * (n - 1)
        j = np.arange(1, n + 1)
        # The integral where all error functions are 1.
        mehta = np.sum(gammaln(1 + j / 2) - gammaln(1.5)) - gammaln(n + 1)
        beyond = v > largest_sigma**2
        lag = np.where(beyond, 0.5 * pairs * np.log(v) + mehta, x * value)
        rate = np.where(beyond, 0.5 * pairs / v, (value + x * slope * 2 / end) * n / (1 + n * v))
        growth = n * (n**2 - 1) / 24
        return growth * v - lag, growth - rate


def likeliest_variance(normaliser: Normaliser, mean_sqdist: float) -> float:
    """Maximum-likelihood variance of a Gaussian, in squared distances, from the mean squared distance to its centre.

    It solves ``normaliser.mean_sqdist(v) = mean_sqdist``, that is ``d log Z / d log sigma = E d^2 / sigma^2``.
    ValueError is raised if the mean is not a positive finite number.

    Examples
    --------
    >>> round(likeliest_variance(FlatGaussian(3), 6.0), 6)
    2.0
    >>> round(likeliest_variance(RiemannianGaussian(3), 6.0), 3)  # volume grows with distance
    0.843
    """
    wanted = float(check_variances("mean_sqdist", mean_sqdist))
    low = high = np.log(wanted)
    while normaliser.mean_sqdist(np.exp(low)) > wanted:
        low -= 3.0  # a factor of 20; the expected distance grows with the variance
    while normaliser.mean_sqdist(np.exp(high)) < wanted:
        high += 3.0
    if low == high:
        return wanted

    def excess(log_variance: float) -> float:
        return float(np.log(normaliser.mean_sqdist(np.exp(log_variance)) / wanted))

    return float(np.exp(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)))
