"""Features of single pixels, and averages of neighbouring pixels."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import ndimage

from rplvq.arrays import check_hermitian, unmasked
from rplvq.exceptions import PointError
from rplvq.protocols import Array, ArrayLike

FeatureMap: TypeAlias = Callable[[Array], ArrayLike]
"""Maps one image (h, w) or (h, w, channels) to the features of its pixels (h, w, d)."""

LUMA = (0.299, 0.587, 0.114)
PIXEL_NAMES = {  # names of the features of grey5 and rgb9, by their number
    5: ("x", "y", "I", "abs Ix", "abs Iy"),
    9: ("x", "y", "R", "G", "B", "abs Ix", "abs Iy", "abs Ixx", "abs Iyy"),
}


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
    rows, columns = np.indices(image.shape, dtype=float)
    return np.stack([columns, rows, image, *gradients], axis=-1)


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
    rows, columns = np.indices(luminance.shape, dtype=float)
    return np.stack([columns, rows, *np.moveaxis(image, -1, 0), *derivatives], axis=-1)


# Name -> function and the shape of one of its pixels.
NAMED: dict[str, tuple[FeatureMap, tuple[int, ...]]] = {"grey5": (grey5, ()), "rgb9": (rgb9, (3,))}


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
    """Compute the features (h, w, d) of images[index], as float64 or complex128, and check their shape."""
    # The function gets a copy in floats, because differences of bytes would overflow.
    values = np.asarray(unmasked(function(image.astype(float)), f"features of images[{index}]"))
    height, width = image.shape[:2]
    fits = values.ndim == 3 and values.shape[:2] == (height, width) and values.size > 0
    if values.dtype.kind not in "biufc" or not fits:
        what = f"dtype {values.dtype} and shape {values.shape} for images[{index}]"
        raise ValueError(f"features must return numbers of shape ({height}, {width}, d), got {what}")
    return values.astype(complex if np.iscomplexobj(values) else float, copy=False)


def boxcar(X: ArrayLike, size: int | tuple[int, int] = 5) -> Array:
    r"""Replace the matrix of every pixel by the mean over a window around it, which reduces the speckle of radar.

    ValueError names row and column of the first pixel whose matrix is not Hermitian or holds NaN or infinity.

    Parameters
    ----------
    X : array-like of shape (rows, columns, n, n)
        Symmetric or Hermitian matrices, such as those of :func:`rplvq.datasets.read_polsar`, in any unit.
    size : int or (int, int), default=5
        Height and width of the window in pixels; odd, so that the pixel is in its middle. 1 averages nothing. The mean
        of fewer than n looks is singular (Lee and Pottier, "Polarimetric Radar Imaging", 2009, chapter 5), so 3 x 3
        matrices of one look need at least 3.

    Returns
    -------
    ndarray of shape (rows, columns, n, n)
        ``sum_q X_q / |window|`` over the pixels q of the window that lie inside the image, so that windows at the
        border are smaller; float64 or complex128, exactly Hermitian.

    Examples
    --------
    >>> from rplvq.features import boxcar
    >>> image = np.arange(1.0, 6.0).reshape(1, 5, 1, 1) * np.eye(2)
    >>> boxcar(image, (1, 3))[0, :, 0, 0]
    array([1.5, 2. , 3. , 4. , 4.5])
    """
    sizes = size if isinstance(size, tuple) else (size, size)
    odd = [isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 and n % 2 == 1 for n in sizes]
    if len(sizes) != 2 or not all(odd):
        raise ValueError(f"size must be an odd integer of at least 1, or two of them, got {size!r}")
    window = (int(sizes[0]), int(sizes[1]))
    array: Array = X if isinstance(X, np.ndarray) else np.asarray(unmasked(X))
    if array.ndim != 4:
        raise ValueError(f"X must be an image of matrices of shape (rows, columns, n, n), got shape {array.shape}")
    try:
        image: Array = check_hermitian(array.reshape(-1, *array.shape[2:])).reshape(array.shape)
    except PointError as error:
        raise error.at(np.unravel_index(error.index, array.shape[:2])) from None
    n_pixels = _sums(np.ones(image.shape[:2]), window)
    result = np.empty_like(image)
    for i, j in zip(*np.triu_indices(image.shape[2]), strict=True):
        result[..., i, j] = _sums(image[..., i, j], window) / n_pixels
        result[..., j, i] = result[..., i, j].conj()
    return result


def _sums(plane: Array, window: tuple[int, int]) -> Array:
    """Return the sum of a plane (rows, columns) over the window of each pixel, as if there were zeros outside."""
    # A running sum would be faster for large windows, but it would carry the rounding of strong reflections on to
    # pixels that are thousands of times darker.
    for axis, size in enumerate(window):
        plane = ndimage.correlate1d(plane, np.ones(size), axis=axis, mode="constant")
    return plane
