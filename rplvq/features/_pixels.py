"""Features of single pixels; :func:`rplvq.features.region_covariances` computes their covariance."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from rplvq.arrays import unmasked
from rplvq.protocols import Array

FeatureMap: TypeAlias = Callable[[Array], npt.ArrayLike]
"""Maps one image (h, w) or (h, w, channels) to the features of its pixels (h, w, d)."""

LUMA = (0.299, 0.587, 0.114)


def grey5(image: Array) -> Array:
    """Compute the features [x, y, I, abs Ix, abs Iy] of the pixels of a grey image.

    Parameters
    ----------
    image : ndarray of shape (h, w)
        Intensities I.

    Returns
    -------
    ndarray of shape (h, w, 5)
        Column x and row y, in pixels from 0; I; and the derivatives along x and y by the 3x3 Sobel masks, not
        normalised (eight times the slope of a ramp). The border is mirrored about the centers of the outermost pixels.

    Examples
    --------
    >>> from rplvq.features import grey5
    >>> grey5(np.tile(np.arange(4.0), (3, 1)))[1, 2]
    array([2., 1., 2., 8., 0.])
    """
    image = np.asarray(image, dtype=float)
    gradients = [np.abs(ndimage.sobel(image, axis=axis, mode="mirror")) for axis in (1, 0)]
    return np.stack([*_coordinates(image), image, *gradients], axis=-1)


def rgb9(image: Array) -> Array:
    """Compute the features [x, y, R, G, B, abs Ix, abs Iy, abs Ixx, abs Iyy] of the pixels of an RGB image.

    Parameters
    ----------
    image : ndarray of shape (h, w, 3)
        Intensities R, G, B.

    Returns
    -------
    ndarray of shape (h, w, 9)
        Column x and row y, in pixels from 0; the colors; and the derivatives of the luminance
        I = 0.299 R + 0.587 G + 0.114 B by the masks [-1, 0, 1] and [1, -2, 1]. Edge pixels are repeated.

    Examples
    --------
    >>> from rplvq.features import rgb9
    >>> parabola = np.tile(np.arange(4.0)[:, None, None] ** 2, (1, 3, 3))
    >>> rgb9(parabola)[2, 1].round(6)
    array([1., 2., 4., 4., 4., 0., 8., 0., 2.])
    """
    image = np.asarray(image, dtype=float)
    luminance = image @ np.array(LUMA)
    derivatives = [
        np.abs(ndimage.correlate1d(luminance, mask, axis=axis, mode="nearest"))
        for mask in ([-1.0, 0.0, 1.0], [1.0, -2.0, 1.0])
        for axis in (1, 0)
    ]
    colors = np.moveaxis(image, -1, 0)
    return np.stack([*_coordinates(luminance), *colors, *derivatives], axis=-1)


# Name -> function and the shape of one of its pixels.
NAMED: dict[str, tuple[FeatureMap, tuple[int, ...]]] = {"grey5": (grey5, ()), "rgb9": (rgb9, (3,))}
PIXEL_NAMES = {
    5: ("x", "y", "I", "abs Ix", "abs Iy"),
    9: ("x", "y", "R", "G", "B", "abs Ix", "abs Iy", "abs Ixx", "abs Iyy"),
}
"""Names of the features of grey5 and rgb9, by their number."""


def _coordinates(image: Array) -> tuple[Array, Array]:
    """Return the columns x and rows y of the pixels of an image, each (h, w)."""
    rows, columns = np.indices(image.shape, dtype=float)
    return columns, rows


def feature_map(features: str | FeatureMap, shape: tuple[int, ...]) -> FeatureMap:
    """Return the function that ``features`` names, for images (N, h, w) or (N, h, w, channels); check their shape."""
    if callable(features):
        return features
    if features == "auto":
        features = "rgb9" if len(shape) == 4 else "grey5"
    if not isinstance(features, str) or features not in NAMED:
        raise ValueError(f"features must be one of {['auto', *NAMED]} or a callable, got {features!r}")
    function, pixel = NAMED[features]
    if shape[3:] != pixel:
        wanted = f"(N, {', '.join(['h', 'w', *map(str, pixel)])}) for features={features!r}, got {shape}"
        remedy = "name another set of features, pass a callable, or convert the images"
        raise ValueError(f"images must have shape {wanted}: {remedy}")
    return function


def evaluate(function: FeatureMap, image: Array, index: int) -> Array:
    """Compute the features (h, w, d) of images[index], as float64 or complex128, and check their shape.

    The function gets a copy of the image in floats, because differences of bytes would overflow.
    """
    values = np.asarray(unmasked(function(image.astype(float)), f"features of images[{index}]"))
    height, width = image.shape[:2]
    fits = values.ndim == 3 and values.shape[:2] == (height, width) and values.size > 0
    if values.dtype.kind not in "biufc" or not fits:
        what = f"dtype {values.dtype} and shape {values.shape} for images[{index}]"
        raise ValueError(f"features must return numbers of shape ({height}, {width}, d), got {what}")
    return values.astype(complex if np.iscomplexobj(values) else float, copy=False)
