"""Means over windows of an image of matrices, checked against means that are computed pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq.exceptions import PointError
from rplvq.features import boxcar
from tests.problems import spd


def image(rows=6, columns=8, n=3, dtype=complex, seed=0):
    return spd(np.random.default_rng(seed), rows * columns, n, dtype=dtype).reshape(rows, columns, n, n)


def by_pixel(X, height, width):
    """The mean over each window by its slices."""
    found = np.empty_like(X)
    for row in range(X.shape[0]):
        for column in range(X.shape[1]):
            rows = slice(max(0, row - height // 2), row + height // 2 + 1)
            columns = slice(max(0, column - width // 2), column + width // 2 + 1)
            found[row, column] = X[rows, columns].mean(axis=(0, 1))
    return found


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("size", [1, 3, 5, (1, 3), (5, 1), 21])
def test_a_pixel_is_the_mean_of_its_window(dtype, size):
    X = image(dtype=dtype)
    before = X.copy()
    found = boxcar(X, size)
    assert found.dtype == dtype
    assert_allclose(found, by_pixel(X, *(size if isinstance(size, tuple) else (size, size))), rtol=1e-12, atol=1e-14)
    assert_array_equal(found, found.conj().swapaxes(-1, -2))
    assert_array_equal(X, before)
    assert np.linalg.eigvalsh(found).min() > 0


def test_a_strong_reflection_leaves_no_rounding_in_dark_pixels():
    X = np.ones((1, 400, 1, 1)) * 1e-6
    X[0, 10] = 1e12
    dark = boxcar(X, 3)[0, 20:, 0, 0]
    assert_allclose(dark, 1e-6, rtol=1e-12)


def test_looks_of_rank_one_become_positive_definite():
    rng = np.random.default_rng(1)
    looks = rng.normal(size=(9, 9, 3, 1)) + 1j * rng.normal(size=(9, 9, 3, 1))
    single = (looks @ looks.conj().swapaxes(-1, -2)).astype(np.complex64)
    found = boxcar(single, 3)
    assert found.dtype == complex
    assert np.linalg.eigvalsh(found)[..., 0].min() > 1e-3


@pytest.mark.parametrize("size", [0, -3, 2, 2.5, "5", True, None, (3,), (3, 2), (3, 3, 3)])
def test_wrong_sizes_are_refused(size):
    with pytest.raises(ValueError, match=r"size must be an odd integer of at least 1, or two of them, got "):
        boxcar(image(), size)


def test_wrong_images_are_refused():
    X = image()
    for wrong in (X[0], X[..., 0], X[None]):
        with pytest.raises(ValueError, match=r"X must be an image of matrices of shape \(rows, columns, n, n\)"):
            boxcar(wrong)
    with pytest.raises(ValueError, match=r"X must hold square matrices, got shape \(48, 3, 2\)"):
        boxcar(X[..., :2])
    with pytest.raises(ValueError, match=r"Found array with 0 sample"):
        boxcar(X[:0])
    with pytest.raises(ValueError, match="X must hold numbers"):
        boxcar(np.full((2, 2, 1, 1), "a"))


def test_the_first_wrong_pixel_is_named():
    X = image()
    X[4, 7, 1, 2] += 1
    with pytest.raises(PointError, match=r"X\[4, 7\] is not Hermitian"):
        boxcar(X)
    X[2, 3, 0, 0] = np.inf
    with pytest.raises(PointError, match=r"X\[2, 3\] contains NaN or infinity: its entry \[0, 0\] is \(?inf"):
        boxcar(X)
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[1, 1, 0, 0] = True
    with pytest.raises(PointError, match=r"X\[1, 1\] has masked entries"):
        boxcar(np.ma.masked_array(X, hidden))
