"""Region covariances of images: published descriptors, features by hand, symmetries, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rplvq.features import grey5, region_covariances, rgb9

SEEDS = st.integers(0, 2**32 - 1)


def pictures(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def relative_gap(computed, expected):
    """Largest error of an entry, in units of the standard deviations of its two features."""
    spread = np.sqrt(np.diagonal(expected, axis1=1, axis2=2))
    return np.abs((computed - expected) / (spread[:, :, None] * spread[:, None, :])).max()


def test_eth80_descriptors_are_reproduced(real_data):
    with np.load(real_data("eth80_images48.npz")) as file:
        images, index = file["images"], file["index"]
    with np.load(real_data("eth80_cov5.npz")) as file:
        expected = file["full256"][index]
    assert relative_gap(region_covariances(images), expected) < 1e-12
    assert_array_equal(region_covariances(images[:3], "grey5"), region_covariances(images[:3]))


def test_cifar10_descriptors_are_reproduced(real_data, unpack_symmetric):
    with np.load(real_data("cifar10_images200.npz")) as file:
        images = file["images"]
    with np.load(real_data("cifar10_cov9.npz")) as file:
        expected = unpack_symmetric(file["test_cov"][:200], 9)
    assert relative_gap(region_covariances(images), expected) < 1e-12
    assert_array_equal(region_covariances(images[:3], "rgb9"), region_covariances(images[:3]))


def test_grey5_by_hand():
    image = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0], [5.0, 0.0, 2.0], [1.0, 1.0, 1.0]])
    features = grey5(image)
    assert features.shape == (4, 3, 5)
    assert_array_equal(features[2, 1, :3], [1.0, 2.0, 0.0])
    # Sobel at row 2, column 1: right minus left column, lower minus upper row, weights 1 2 1.
    assert features[2, 1, 3] == abs((1 + 2 * 2 + 1) - (0 + 2 * 5 + 1))
    assert features[2, 1, 4] == abs((1 + 2 * 1 + 1) - (0 + 2 * 3 + 1))
    # At the left border both neighbors of the mirrored image are column 1; above row 0 is row 1.
    assert_array_equal(features[:, 0, 3], 0.0)
    assert_array_equal(features[0, :, 4], 0.0)
    assert features[0, 1, 3] == abs(2 * 1 + 2 * 4 - 2 * 0 - 2 * 1)


def test_rgb9_by_hand():
    rng = np.random.default_rng(0)
    image = rng.uniform(0, 255, (3, 4, 3))
    grey = 0.299 * image[..., 0] + 0.587 * image[..., 1] + 0.114 * image[..., 2]
    features = rgb9(image)
    assert features.shape == (3, 4, 9)
    assert_array_equal(features[1, 2, :5], [2.0, 1.0, *image[1, 2]])
    dx, dy, dxx, dyy = features[1, 2, 5:]
    assert_allclose(dx, abs(grey[1, 3] - grey[1, 1]))
    assert_allclose(dy, abs(grey[2, 2] - grey[0, 2]))
    assert_allclose(dxx, abs(grey[1, 3] - 2 * grey[1, 2] + grey[1, 1]))
    assert_allclose(dyy, abs(grey[2, 2] - 2 * grey[1, 2] + grey[0, 2]))
    # Edge pixels are repeated, so that first and second differences agree there.
    assert_allclose(features[:, 0, 5], abs(grey[:, 1] - grey[:, 0]))
    assert_allclose(features[:, 0, 7], features[:, 0, 5])
    assert_allclose(features[2, :, 6], features[2, :, 8])


@given(SEEDS, st.floats(-1e3, 1e3), st.floats(0.01, 100.0))
def test_brightness_drops_out_and_contrast_scales(seed, offset, contrast):
    images = pictures(seed, 2, 9, 7).astype(float)
    scale = np.array([1.0, 1.0, contrast, contrast, contrast])
    expected = region_covariances(images) * np.outer(scale, scale)
    computed = region_covariances(contrast * images + offset)
    assert relative_gap(computed, expected) < 1e-9


@given(SEEDS, st.sampled_from(["grey5", "rgb9"]))
def test_transposing_an_image_swaps_x_and_y(seed, features):
    color = (3,) if features == "rgb9" else ()
    swap = [1, 0, 2, 3, 4, 6, 5, 8, 7] if features == "rgb9" else [1, 0, 2, 4, 3]
    images = pictures(seed, 2, 8, 11, *color)
    expected = region_covariances(images)[:, swap][:, :, swap]
    assert relative_gap(region_covariances(images.swapaxes(1, 2)), expected) < 1e-12


@given(SEEDS, st.sampled_from(["grey5", "rgb9"]))
def test_mirroring_an_image_flips_the_sign_of_its_coordinate(seed, features):
    color = (3,) if features == "rgb9" else ()
    images = pictures(seed, 2, 8, 11, *color)
    expected = region_covariances(images)
    sign = np.ones(expected.shape[1])
    sign[0] = -1.0
    computed = region_covariances(images[:, :, ::-1])
    assert relative_gap(computed, expected * np.outer(sign, sign)) < 1e-12


@given(SEEDS, st.booleans())
def test_masked_covariances_are_numpys(seed, full):
    images = pictures(seed, 3, 10, 8, 3)
    masks = np.random.default_rng(seed).random((3, 10, 8)) < (1.0 if full else 0.5)
    computed = region_covariances(images, masks=masks)
    pixels = [rgb9(image)[mask] for image, mask in zip(images, masks, strict=True)]
    expected = np.stack([np.cov(rows, rowvar=False) for rows in pixels])
    assert relative_gap(computed, expected) < 1e-12
    assert_array_equal(computed, computed.swapaxes(1, 2))
    if full:
        assert_array_equal(computed, region_covariances(images))


def test_shrinkage_keeps_the_trace_and_repairs_a_grey_picture_in_colors():
    grey = pictures(1, 2, 12, 12)
    images = np.repeat(grey[..., None], 3, axis=-1)
    plain = region_covariances(images)
    spectrum = np.linalg.eigvalsh(plain)
    assert (np.abs(spectrum[:, 0]) < 1e-10 * spectrum[:, -1]).all()  # R = G = B
    shrunk = region_covariances(images, shrinkage=0.01)
    trace = np.trace(plain, axis1=1, axis2=2)[:, None, None]
    assert_allclose(shrunk, 0.99 * plain + 0.01 * trace / 9 * np.eye(9), rtol=1e-12)
    assert np.linalg.eigvalsh(shrunk).min() > 0.009 * trace.min() / 9


@pytest.mark.parametrize("dtype", [np.uint8, float])
def test_a_callable_gets_floats_and_may_return_complex_features(dtype):
    images = pictures(2, 2, 6, 5, 4).astype(dtype)  # four channels, as of a multispectral camera
    seen = []

    def wave(image):
        seen.append(image.dtype)
        image -= image[0, 0]  # the caller's images must not change
        return np.stack([image[..., 0] + 1j * image[..., 1], image[..., 2] * 1j], axis=-1)

    before = images.copy()
    computed = region_covariances(images, wave)
    assert seen == [np.dtype(float)] * 2
    assert_array_equal(images, before)
    z = images.astype(float)
    rows = np.stack([z[..., 0] + 1j * z[..., 1], z[..., 2] * 1j], axis=1).reshape(2, 2, 30)
    assert_allclose(computed, [np.cov(row) for row in rows], rtol=1e-12)
    assert_array_equal(computed, computed.conj().swapaxes(1, 2))


def test_a_callable_may_be_undefined_outside_the_mask():
    images = np.array([[[0, 1, 2], [4, 8, 1]]], dtype=np.uint8)

    def logarithm(image):
        with np.errstate(divide="ignore"):
            return np.log2(image)[..., None]

    assert_allclose(region_covariances(images, logarithm, masks=images > 0), [[[1.7]]])
    with pytest.raises(ValueError, match=r"features returned -inf for images\[0\] \(feature 0\)"):
        region_covariances(images, logarithm)


def test_small_regions_are_singular_unless_shrinkage_repairs_them():
    images = pictures(3, 3, 4, 4)
    masks = np.ones((3, 4, 4), dtype=bool)
    masks[1] = np.arange(16).reshape(4, 4) % 3 == 0
    masks[1, 0, 0] = False
    assert masks[1].sum() == 5
    spectrum = np.linalg.eigvalsh(region_covariances(images, masks=masks))
    assert abs(spectrum[1, 0]) < 1e-12 * spectrum[1, -1] < spectrum[0, 0]
    assert np.linalg.eigvalsh(region_covariances(images, masks=masks, shrinkage=0.1)).min() > 0
    masks[2] = False
    with pytest.raises(ValueError, match=r"images\[2\] has 0 pixel\(s\) in its region.*at least 2"):
        region_covariances(images, masks=masks, shrinkage=0.1)


def test_non_finite_intensities_are_named():
    images = pictures(4, 3, 5, 5).astype(float)
    images[2, 3, 1] = np.inf
    with pytest.raises(ValueError, match=r"images\[2\].*\[3, 1\] is inf"):
        region_covariances(images)


@pytest.mark.parametrize(
    ("images", "features", "message"),
    [
        (np.ones((5, 5)), "auto", r"images must be a stack.*got shape \(5, 5\).*images\[None\]"),
        (np.ones((0, 5, 5)), "auto", r"at least one pixel, got shape \(0, 5, 5\)"),
        (np.ones((1, 1, 1, 5, 5)), "auto", r"images must be a stack"),
        (np.ones((1, 5, 5)) * 1j, "auto", r"images must hold real numbers, got dtype complex128"),
        (np.ones((1, 5, 5)), "rgb9", r"shape \(N, h, w, 3\) for features='rgb9', got \(1, 5, 5\)"),
        (np.ones((1, 5, 5, 3)), "grey5", r"shape \(N, h, w\) for features='grey5', got"),
        (np.ones((1, 5, 5, 4)), "auto", r"shape \(N, h, w, 3\) for features='rgb9', got"),
        (np.ones((1, 5, 5)), "grey6", r"features must be one of \['auto', 'grey5', 'rgb9'\].*grey6"),
        (np.ones((1, 5, 5)), ["grey5"], r"features must be one of .* or a callable, got \['grey5'\]"),
        (np.ones((1, 5, 5)), np.sum, r"features must return numbers of shape \(5, 5, d\).*shape \(\)"),
        (np.ones((1, 5, 5)), np.array, r"features must return .*shape \(5, 5\) for images\[0\]"),
        (np.ones((1, 5, 5)), lambda image: grey5(image[1:]), r"shape \(4, 5, 5\) for images\[0\]"),
        (np.ones((1, 5, 5)), lambda image: grey5(image)[..., :0], r"shape \(5, 5, 0\) for images"),
        (np.ones((1, 5, 5)), lambda image: [[["a"] * 5] * 5], r"features must return .*dtype <U1"),
    ],
)
def test_wrong_images_and_features_are_refused(images, features, message):
    with pytest.raises(ValueError, match=message):
        region_covariances(images, features)


def test_a_changing_number_of_features_is_refused():
    images = pictures(5, 2, 5, 5)
    images[0, 0, 0], images[1, 0, 0] = 0, 9
    with pytest.raises(ValueError, match=r"returned 5 features for images\[1\], but 3 for images\[0"):
        region_covariances(images, lambda im: grey5(im)[..., : 5 if im[0, 0] else 3])


def test_wrong_masks_are_refused():
    images = pictures(6, 2, 5, 5)
    with pytest.raises(ValueError, match=r"masks must hold booleans, got dtype uint8"):
        region_covariances(images, masks=images)
    with pytest.raises(ValueError, match=r"masks must have the pixels.*\(2, 5, 5\), got \(5, 5\)"):
        region_covariances(images, masks=images[0] > 9)
    shared = np.broadcast_to(images[0] > 99, images.shape)
    assert region_covariances(images, masks=shared).shape == (2, 5, 5)
