"""Covariance matrices of the pixels of images and of regions of images."""

from typing import Literal, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import numbered_names, require_finite, single_blas_thread, unmasked
from rplvq.exceptions import PointError
from rplvq.features._covariances import effective_size, second_moments, shrunk, strength_of
from rplvq.features._pixels import PIXEL_NAMES, FeatureMap, evaluate, feature_map
from rplvq.features._trials import FeatureTransformer, Signals
from rplvq.parts import library_estimator
from rplvq.protocols import Array, ArrayLike

Features: TypeAlias = Literal["auto", "grey5", "rgb9"] | FeatureMap


def region_covariances(
    images: ArrayLike, features: Features = "auto", *, shrinkage: float = 0.0, masks: ArrayLike | None = None
) -> Array:
    r"""Compute the region covariance descriptor of every image: the covariance of its pixels' features.

    It is that of Tuzel, Porikli and Meer (2006, doi:10.1007/11744047_45). ValueError is raised if an argument is
    invalid, a value is NaN or infinite, or a region has fewer than two pixels.

    Parameters
    ----------
    images : array-like of shape (N, h, w) or (N, h, w, 3)
        Grey or RGB images with intensities in any unit (bytes: 0..255), or of any number of channels for a callable.
    features : {"auto", "grey5", "rgb9"} or callable, default="auto"
        :func:`grey5` for grey images, :func:`rgb9` for RGB images, or a function that maps one image of floats (h, w)
        or (h, w, channels) to features (h, w, d). "auto" chooses by the shape of the images.
    shrinkage : float in [0, 1], default=0.0
        Weight s of the scaled identity in ``(1 - s) C + s tr(C) / d I``. The trace adds up features of different units,
        so bring them to one scale first if s is more than a safeguard.
    masks : array-like of bool of shape (N, h, w), default=None
        The pixels that belong to the region; None takes all. Derivatives are always those of the whole image.

    Returns
    -------
    ndarray of shape (N, d, d)
        ``C = sum_p (z_p - mean)(z_p - mean)^H / (P - 1)`` over the P pixels of the region. C is singular if P is at
        most d, or if features are linearly dependent, such as R = G = B in a grey picture that is stored as RGB. A
        small shrinkage repairs this.

    Examples
    --------
    >>> from rplvq.features import grey5, region_covariances
    >>> images = np.random.default_rng(0).integers(0, 256, size=(4, 16, 16), dtype=np.uint8)
    >>> region_covariances(images).shape
    (4, 5, 5)

    Features of your own, over the bright pixels only:

    >>> region_covariances(images, lambda image: grey5(image)[..., 2:], masks=images > 99).shape
    (4, 3, 3)
    """
    pictures = _check_images(images)
    strength = strength_of(shrinkage)
    function = feature_map(features, pictures.shape)
    regions = None if masks is None else _check_masks(masks, pictures.shape[:3])
    covariances: list[Array] = []
    for index, image in enumerate(pictures):
        values = evaluate(function, image, index)
        pixels = values.reshape(-1, values.shape[2]) if regions is None else values[regions[index]]
        _check_pixels(pixels, index)
        if covariances and pixels.shape[1] != len(covariances[0]):
            counts = f"{pixels.shape[1]} features for images[{index}], but {len(covariances[0])} for images[0]"
            raise ValueError(f"features returned {counts}: return the same number for every image")
        centered = pixels - pixels.mean(axis=0)
        with single_blas_thread(effective_size(*centered.T.shape)):
            covariances.append(second_moments(centered.T, len(pixels) - 1))
    return shrunk(np.stack(covariances), np.full(len(covariances), strength))


def _check_images(images: ArrayLike) -> Array:
    """Return images (N, h, w) or (N, h, w, channels) as an array of real numbers, not copied."""
    array = np.asarray(unmasked(images, "images"))
    if array.dtype.kind not in "biuf":
        raise ValueError(f"images must hold real numbers, got dtype {array.dtype}")
    if array.ndim not in (3, 4) or 0 in array.shape:
        wanted = "a stack (N, h, w) or (N, h, w, channels) of at least one pixel"
        raise ValueError(f"images must be {wanted}, got shape {array.shape}; a single image is passed as images[None]")
    try:
        require_finite(array)
    except PointError as error:
        raise error.renamed("images") from None
    return array


def _check_masks(masks: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(unmasked(masks, "masks"))
    if array.dtype != bool:
        raise ValueError(f"masks must hold booleans, got dtype {array.dtype}: pass e.g. masks > 0")
    if array.shape != shape:
        remedy = "one mask for all is passed as numpy.broadcast_to(mask, images.shape[:3])"
        raise ValueError(f"masks must have the pixels of images, shape {shape}, got {array.shape}: {remedy}")
    return array


def _check_pixels(pixels: Array, index: int) -> None:
    """Refuse a region (P, d) whose covariance is undefined."""
    if len(pixels) < 2:
        raise ValueError(f"images[{index}] has {len(pixels)} pixel(s) in its region: a covariance needs at least 2")
    finite = np.isfinite(pixels)
    if not finite.all():
        pixel, feature = np.argwhere(~finite)[0]
        what = f"{pixels[pixel, feature]} for images[{index}] (feature {feature})"
        raise ValueError(f"features returned {what}: mask such pixels out, or return finite features")


def _read_images(images: ArrayLike) -> Signals:
    """Return checked images with the mean square of each value of a pixel: one of grey images, three of RGB."""
    array = _check_images(images)
    channels = array.reshape(*array.shape[:3], -1).astype(float)
    return Signals(array, np.mean(channels**2, axis=(0, 1, 2)))


@library_estimator()
class RegionCovariances(FeatureTransformer):
    """Transformer of images to descriptors: :func:`region_covariances` with its options as parameters.

    Parameters
    ----------
    features, shrinkage
        As for :func:`region_covariances`. Masks belong to single images, so they are not parameters here.

    Attributes
    ----------
    n_features_in_, n_features_out_ : int
        Number of values per pixel, and size of the matrices.

    Examples
    --------
    >>> from rplvq.features import RegionCovariances
    >>> step = RegionCovariances().fit(np.random.default_rng(0).integers(0, 256, size=(4, 16, 16)))
    >>> step.get_feature_names_out().tolist()
    ['x', 'y', 'I', 'abs Ix', 'abs Iy']
    """

    _function = staticmethod(region_covariances)
    _read = staticmethod(_read_images)

    def __init__(self, features: Features = "auto", *, shrinkage: float = 0.0) -> None:
        self.features = features
        self.shrinkage = shrinkage

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the features of a pixel, shape (d,)."""
        check_is_fitted(self)
        n = self.n_features_out_
        return numbered_names(self, n) if callable(self.features) else np.array(PIXEL_NAMES[n], dtype=object)
