"""Covariance matrices of measurements: trials of time series, and regions of images.

Both functions return stacks (N, n, n) that are ready for ``fit``. A covariance of fewer independent observations than
variables is singular, and ``fit`` refuses it. The parameter ``shrinkage`` repairs this.
"""

import warnings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rplvq.arrays import (
    adjoint,
    as_number_array,
    check_hermitian,
    mixed_units,
    require_finite,
    single_blas_thread,
    unmasked,
)
from rplvq.exceptions import PointError
from rplvq.features._pixels import FeatureMap, evaluate, feature_map
from rplvq.protocols import Array


def trial_covariances(
    X: npt.ArrayLike, *, center: bool = False, shrinkage: float | Literal["ledoit_wolf", "oas"] = 0.0
) -> Array:
    r"""Compute the covariance matrix of every trial of a multichannel time series.

    Parameters
    ----------
    X : array-like of shape (N, n_channels, n_samples)
        N trials, real or complex, in any unit u (EEG: volts or microvolts).
    center : bool, default=False
        Whether to subtract each channel's mean over the trial. It is negligible for band-passed signals, and the paper
        does not subtract it.
    shrinkage : float in [0, 1], "ledoit_wolf" or "oas", default=0.0
        Weight s of the scaled identity in ``(1 - s) C + s tr(C) / n I``, as in
        :func:`sklearn.covariance.shrunk_covariance`. The names estimate s for each trial, for complex signals too:
        "ledoit_wolf" as :func:`sklearn.covariance.ledoit_wolf_shrinkage` does (Ledoit and Wolf 2004), and "oas" as
        :func:`sklearn.covariance.oas` does (oracle approximating shrinkage, Chen et al. 2010). The latter assumes
        that signals are Gaussian, and complex ones circular, as the analytic signals of :func:`scipy.signal.hilbert`.

    Returns
    -------
    ndarray of shape (N, n_channels, n_channels)
        ``C = E E^H / (n_samples - 1)`` of each trial E, in u^2; float64, or complex128 if X is complex.

    Raises
    ------
    ValueError
        If X does not have three axes, is empty or holds a value that is NaN or infinite, if shrinkage is outside
        [0, 1], or if trials have fewer than two samples.

    Notes
    -----
    Tang et al., "Probabilistic Learning Vector Quantization on Manifold of Symmetric Positive Definite Matrices", use
    ``E E^T / (n_samples - 1)`` for BCI Competition IV 2a. The divisor is the same for both values of ``center``. The
    shrinkage estimators of other libraries divide by ``n_samples``.

    C is singular if a trial has fewer samples than channels, or as many with ``center=True``. It is also singular if a
    channel is flat or if the channels have an average reference. Drop such a channel first; a small shrinkage always
    repairs C. A UserWarning is given if shrinkage mixes units, as for :func:`shrink`.

    References
    ----------
    O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
    J. Multivariate Analysis 88, 2004. https://doi.org/10.1016/S0047-259X(03)00096-4

    Y. Chen, A. Wiesel, Y. C. Eldar, A. O. Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE Trans.
    Signal Processing 58, 2010. https://doi.org/10.1109/TSP.2010.2053029

    Examples
    --------
    >>> import numpy as np
    >>> from rplvq.features import trial_covariances
    >>> trials = np.random.default_rng(0).standard_normal((6, 3, 500))
    >>> trial_covariances(trials).shape
    (6, 3, 3)
    >>> trial_covariances([[[1.0, -1.0, 1.0], [1.0, 1.0, 0.0]]])
    array([[[1.5, 0. ],
            [0. , 1. ]]])

    As the first step of a pipeline:

    >>> from sklearn.preprocessing import FunctionTransformer
    >>> step = FunctionTransformer(trial_covariances, kw_args={"shrinkage": "ledoit_wolf"})
    >>> step.fit_transform(trials).shape
    (6, 3, 3)
    """
    signals = as_number_array(X, 3, "(n_trials, n_channels, n_samples)")
    estimator = ESTIMATORS.get(shrinkage) if isinstance(shrinkage, str) else None
    strength = 0.0 if estimator else _strength(shrinkage, " or 'ledoit_wolf' or 'oas'")
    n_channels, n_samples = signals.shape[1:]
    if n_channels == 0:
        raise ValueError(f"X must hold at least one channel, got shape {signals.shape}")
    if n_samples < 2:
        raise ValueError(f"X must hold at least 2 samples a trial for a covariance, got shape {signals.shape}")
    require_finite(signals)
    signals = signals.astype(complex if np.iscomplexobj(signals) else float, copy=False)
    if center:
        signals = signals - signals.mean(axis=2, keepdims=True)
    with single_blas_thread(_effective_size(n_channels, n_samples)):
        covariances = _second_moments(signals, n_samples - 1)
        shares = np.full(len(covariances), strength) if estimator is None else estimator(signals)
    return _shrink(covariances, shares)


def region_covariances(
    images: npt.ArrayLike,
    features: Literal["auto", "grey5", "rgb9"] | FeatureMap = "auto",
    *,
    shrinkage: float = 0.0,
    masks: npt.ArrayLike | None = None,
) -> Array:
    r"""Compute the region covariance descriptor of every image: the covariance of its pixels' features.

    Parameters
    ----------
    images : array-like of shape (N, h, w) or (N, h, w, 3)
        Grey or RGB images with intensities in any unit (bytes are read as 0..255). With a callable ``features``, images
        may have any number of channels.
    features : {"auto", "grey5", "rgb9"} or callable, default="auto"
        :func:`grey5` for grey images, :func:`rgb9` for RGB images, or a function that maps one image of floats (h, w)
        or (h, w, channels) to features (h, w, d). "auto" chooses by the shape of the images.
    shrinkage : float in [0, 1], default=0.0
        Weight s of the scaled identity in ``(1 - s) C + s tr(C) / d I``. The trace adds up features of different units,
        so bring them to one scale first if s is more than a safeguard, as
        :func:`rplvq.datasets.load_digits_covariances` does.
    masks : array-like of bool of shape (N, h, w), default=None
        The pixels that belong to the region; None takes all. Derivatives are always those of the whole image.

    Returns
    -------
    ndarray of shape (N, d, d)
        ``C = sum_p (z_p - mean)(z_p - mean)^H / (P - 1)`` over the P pixels of the region.

    Raises
    ------
    ValueError
        If a shape does not fit, a value is NaN or infinite, the name of the features is unknown, shrinkage is outside
        [0, 1], or a region has fewer than two pixels.

    Notes
    -----
    C is singular if a region has at most d pixels. It is also singular if features are linearly dependent, such as
    R = G = B in a grey picture that is stored as RGB. A small shrinkage repairs this.

    References
    ----------
    O. Tuzel, F. Porikli, P. Meer, "Region Covariance: A Fast Descriptor for Detection and
    Classification", ECCV 2006. https://doi.org/10.1007/11744047_45

    Examples
    --------
    >>> import numpy as np
    >>> from rplvq.features import grey5, region_covariances
    >>> images = np.random.default_rng(0).integers(0, 256, size=(4, 16, 16), dtype=np.uint8)
    >>> region_covariances(images).shape
    (4, 5, 5)

    Features of your own, over the bright pixels only:

    >>> region_covariances(images, lambda image: grey5(image)[..., 2:], masks=images > 99).shape
    (4, 3, 3)
    """
    pictures = _check_images(images)
    strength = _strength(shrinkage)
    function = feature_map(features, pictures.shape)
    regions = None if masks is None else _check_masks(masks, pictures.shape[:3])
    covariances: list[Array] = []
    for index, image in enumerate(pictures):
        values = evaluate(function, image, index)
        pixels = values.reshape(-1, values.shape[2]) if regions is None else values[regions[index]]
        _check_pixels(pixels, index)
        if covariances and pixels.shape[1] != len(covariances[0]):
            raise ValueError(
                f"features returned {pixels.shape[1]} features for images[{index}], but "
                f"{len(covariances[0])} for images[0]: return the same number for every image"
            )
        centered = pixels - pixels.mean(axis=0)
        with single_blas_thread(_effective_size(*centered.T.shape)):
            covariances.append(_second_moments(centered.T, len(pixels) - 1))
    return _shrink(np.stack(covariances), np.full(len(covariances), strength))


def shrink(X: npt.ArrayLike, shrinkage: float = 1e-6) -> Array:
    """Shrink given matrices towards the scaled identity, which makes singular covariances positive definite.

    Parameters
    ----------
    X : array-like of shape (N, n, n)
        Symmetric or Hermitian matrices.
    shrinkage : float in [0, 1], default=1e-6
        Weight s of the scaled identity. The smallest value that repairs the matrices changes them least.

    Returns
    -------
    ndarray of shape (N, n, n)
        ``(1 - s) X + s tr(X) / n I``, float64 or complex128.

    Raises
    ------
    ValueError
        If X holds no Hermitian matrices of finite numbers, or if shrinkage is outside [0, 1].

    Warns
    -----
    UserWarning
        If the standard deviations of two channels differ by more than three orders of magnitude and the added variance
        exceeds the smaller variance: scale the channels first.

    Examples
    --------
    >>> from rplvq.features import shrink
    >>> shrink([[[2.0, 2.0], [2.0, 2.0]]], shrinkage=0.5)
    array([[[2., 1.],
            [1., 2.]]])
    """
    matrices = check_hermitian(X)
    return _shrink(matrices, np.full(len(matrices), _strength(shrinkage)))


def _effective_size(n_channels: int, n_samples: int) -> int:
    """Return the size of square matrices whose product takes as many operations as that of signals (n, l)."""
    return int((float(n_channels) ** 2 * n_samples) ** (1 / 3))


def _second_moments(signals: Array, divisor: int) -> Array:
    """Return ``E E^H / divisor`` (..., n, n) of signals E (..., n, l), exactly Hermitian."""
    product = signals @ adjoint(signals)
    hermitian: Array = (product + adjoint(product)) / (2 * divisor)
    return hermitian


def _shrink(covariances: Array, strength: Array) -> Array:
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
    noise = np.clip(noise / n_samples, 0.0, scatter)
    share: Array = noise / np.where(scatter > 0, scatter, 1.0)
    return share


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
    if np.iscomplexobj(signals):
        share, scale = b, n_samples * spread
    else:
        share, scale = a + b, (n_samples + 1) * spread
    return np.asarray(np.where(share < scale, share / np.where(scale > 0, scale, 1.0), 1.0))


def _relative_moments(signals: Array) -> tuple[Array, Array]:
    """Return signals (N, n, l) divided by the root of their mean variance, and the second moments of these."""
    variance = np.mean(np.abs(signals) ** 2, axis=(1, 2))
    relative = signals / np.sqrt(np.where(variance > 0, variance, 1.0))[:, None, None]
    return relative, _second_moments(relative, signals.shape[2])


ESTIMATORS = {"ledoit_wolf": _ledoit_wolf, "oas": _oas}
"""Estimators of the shrinkage of each trial, by name."""


def _strength(shrinkage: Any, alternative: str = "") -> float:
    is_number = isinstance(shrinkage, int | float | np.integer | np.floating)
    if is_number and not isinstance(shrinkage, bool) and 0.0 <= shrinkage <= 1.0:
        return float(shrinkage)
    raise ValueError(f"shrinkage must be a number in [0, 1]{alternative}, got {shrinkage!r}")


def _check_images(images: npt.ArrayLike) -> Array:
    """Return images (N, h, w) or (N, h, w, channels) as an array of real numbers, not copied."""
    array = np.asarray(unmasked(images, "images"))
    if array.dtype.kind not in "biuf":
        raise ValueError(f"images must hold real numbers, got dtype {array.dtype}")
    if array.ndim not in (3, 4) or 0 in array.shape:
        raise ValueError(
            "images must be a stack (N, h, w) or (N, h, w, channels) of at least one pixel, got "
            f"shape {array.shape}; a single image is passed as images[None]"
        )
    try:
        require_finite(array)
    except PointError as error:
        raise error.renamed("images") from None
    return array


def _check_masks(masks: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(unmasked(masks, "masks"))
    if array.dtype != bool:
        raise ValueError(f"masks must hold booleans, got dtype {array.dtype}: pass e.g. masks > 0")
    if array.shape != shape:
        raise ValueError(
            f"masks must have the pixels of images, shape {shape}, got {array.shape}: one mask for "
            "all is passed as numpy.broadcast_to(mask, images.shape[:3])"
        )
    return array


def _check_pixels(pixels: Array, index: int) -> None:
    """Refuse a region (P, d) whose covariance is undefined."""
    if len(pixels) < 2:
        raise ValueError(f"images[{index}] has {len(pixels)} pixel(s) in its region: a covariance needs at least 2")
    finite = np.isfinite(pixels)
    if not finite.all():
        pixel, feature = np.argwhere(~finite)[0]
        raise ValueError(
            f"features returned {pixels[pixel, feature]} for images[{index}] (feature {feature}): "
            "mask such pixels out, or return finite features"
        )
