"""Averages of neighbouring pixels for images that hold one matrix per pixel."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from rplvq.arrays import check_hermitian, unmasked
from rplvq.exceptions import PointError
from rplvq.protocols import Array


def boxcar(X: npt.ArrayLike, size: int | tuple[int, int] = 5) -> Array:
    r"""Replace the matrix of every pixel by the mean over a window around it, which reduces the speckle of radar.

    ValueError is raised at the first pixel whose matrix is not Hermitian or holds NaN or infinity; it names the row and
    the column.

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
    image = _as_image(X)
    window = _window(size)
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


def _as_image(X: Any) -> Array:
    """Check an image of Hermitian matrices (rows, columns, n, n); return it in float64 or complex128."""
    array = X if isinstance(X, np.ndarray) else np.asarray(unmasked(X))
    if array.ndim != 4:
        raise ValueError(f"X must be an image of matrices of shape (rows, columns, n, n), got shape {array.shape}")
    try:
        return check_hermitian(array.reshape(-1, *array.shape[2:])).reshape(array.shape)
    except PointError as error:
        raise error.at(np.unravel_index(error.index, array.shape[:2])) from None


def _window(size: Any) -> tuple[int, int]:
    """Return height and width of the window."""
    sizes = size if isinstance(size, tuple) else (size, size)
    odd = [isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 and n % 2 == 1 for n in sizes]
    if len(sizes) != 2 or not all(odd):
        raise ValueError(f"size must be an odd integer of at least 1, or two of them, got {size!r}")
    return int(sizes[0]), int(sizes[1])
