"""Covariance matrices of signals with some of the scaled identity, which makes singular ones positive definite."""

import warnings

import numpy as np

from rplvq.arrays import adjoint, check_hermitian, mixed_units
from rplvq.protocols import Array, ArrayLike


def shrink(X: ArrayLike, shrinkage: float = 1e-6) -> Array:
    """Shrink given matrices towards the scaled identity, which makes singular covariances positive definite.

    Parameters
    ----------
    X : array-like of shape (N, n, n)
        Symmetric or Hermitian matrices of finite numbers; ValueError is raised otherwise.
    shrinkage : float in [0, 1], default=1e-6
        Weight s of the scaled identity. The smallest value that repairs the matrices changes them least.

    Returns
    -------
    ndarray of shape (N, n, n)
        ``(1 - s) X + s tr(X) / n I``, float64 or complex128. A UserWarning is given if the standard deviations of two
        channels differ by a factor above 1000 and the added variance exceeds the smaller variance: scale them first.

    Examples
    --------
    >>> from rplvq.features import shrink
    >>> shrink([[[2.0, 2.0], [2.0, 2.0]]], shrinkage=0.5)
    array([[[2., 1.],
            [1., 2.]]])
    """
    matrices = check_hermitian(X)
    return shrunk(matrices, np.full(len(matrices), strength_of(shrinkage)))


def effective_size(n_channels: int, n_samples: int) -> int:
    """Return the size of square matrices whose product takes as many operations as that of signals (n, l)."""
    return int((float(n_channels) ** 2 * n_samples) ** (1 / 3))


def second_moments(signals: Array, divisor: int) -> Array:
    """Return ``E E^H / divisor`` (..., n, n) of signals E (..., n, l), exactly Hermitian."""
    product = signals @ adjoint(signals)
    return np.asarray((product + adjoint(product)) / (2 * divisor))


def shrunk(covariances: Array, strength: Array) -> Array:
    """Return ``(1 - s) C + s tr(C) / n I`` for covariances C (N, n, n) and strengths s (N,)."""
    n = covariances.shape[-1]
    scale = np.trace(covariances, axis1=1, axis2=2).real / n
    variances = np.diagonal(covariances, axis1=1, axis2=2).real.mean(axis=0)
    if advice := mixed_units(variances, float(np.mean(strength * scale))):
        warnings.warn(f"shrinkage mixes the units of the channels. {advice}", UserWarning, stacklevel=3)
    kept: Array = (1.0 - strength)[:, None, None] * covariances
    kept += (strength * scale)[:, None, None] * np.eye(n)
    return kept


def _ledoit_wolf(signals: Array) -> Array:
    """Estimate the Ledoit-Wolf shrinkage (N,) of each trial (N, n, l).

    It is the share of noise in the scatter of C around its target. Both are computed relative to the mean variance,
    because fourth powers of signals in small units underflow.
    """
    n, n_samples = signals.shape[1:]
    relative, moments = _relative_moments(signals)
    power = np.sum(np.abs(relative) ** 2, axis=1)
    scatter = np.sum(np.abs(moments - np.eye(n)) ** 2, axis=(1, 2))
    noise = np.mean(power**2, axis=1) - np.sum(np.abs(moments) ** 2, axis=(1, 2))
    return np.asarray(np.clip(noise / n_samples, 0.0, scatter) / np.where(scatter > 0, scatter, 1.0))


def _oas(signals: Array) -> Array:
    """Estimate the oracle approximating shrinkage (N,) of each trial (N, n, l).

    For ``a = tr(S^2)`` and ``b = tr(S)^2`` it is ``(a + b) / ((l + 1) (a - b / n))``, at most 1 (Chen et al. 2010,
    equation 23, without terms of order 1 / n, as scikit-learn has it). For circular complex Gaussian signals
    ``E tr(S^2)`` and the variance of ``tr(S)`` are smaller, and the same derivation gives ``b / (l (a - b / n))``.
    """
    n, n_samples = signals.shape[1:]
    moments = _relative_moments(signals)[1]
    a = np.sum(np.abs(moments) ** 2, axis=(1, 2))
    b = np.trace(moments, axis1=1, axis2=2).real ** 2
    spread = np.maximum(a - b / n, 0.0)
    is_complex = np.iscomplexobj(signals)
    share = b if is_complex else a + b
    scale = spread * (n_samples if is_complex else n_samples + 1)
    return np.asarray(np.where(share < scale, share / np.where(scale > 0, scale, 1.0), 1.0))


def _relative_moments(signals: Array) -> tuple[Array, Array]:
    """Return signals (N, n, l) divided by the root of their mean variance, and the second moments of these."""
    variance = np.mean(np.abs(signals) ** 2, axis=(1, 2))
    relative = signals / np.sqrt(np.where(variance > 0, variance, 1.0))[:, None, None]
    return relative, second_moments(relative, signals.shape[2])


STRENGTHS = {"ledoit_wolf": _ledoit_wolf, "oas": _oas}  # estimators of the shrinkage of each trial, by name


def strength_of(shrinkage: object, alternative: str = "") -> float:
    """Return the shrinkage as a float in [0, 1]; the ValueError for any other value also names the ``alternative``."""
    is_flag = isinstance(shrinkage, bool)
    if isinstance(shrinkage, int | float | np.integer | np.floating) and not is_flag and 0.0 <= shrinkage <= 1.0:
        return float(shrinkage)
    raise ValueError(f"shrinkage must be a number in [0, 1]{alternative}, got {shrinkage!r}")
