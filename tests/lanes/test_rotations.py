"""Rotations find spectra and eigenvectors, also of columns whose norms lose their digits while they are rotated."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq.lanes import PLAIN_LANES, aligned, from_lanes, into_lanes, lane_kernels
from tests.problems import spd

NO_NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
KERNELS = ["python", pytest.param("numba", marks=NO_NUMBA)]
WIDTHS = pytest.mark.parametrize("width", [4, 8])
SPECTRA = [[1.0, 2.0, 3.0, 4.0], [1e-10, 1e-3, 1.0, 1.0], [2.0] * 4, [1e8, 1.0, 1e-2, 1e-2], [1.0, 1.0, 1.0, 1 + 1e-9]]
N_MATRICES = 13


def graded(kind, n, *, imaginary=False):
    """Matrices (N, n, n) whose columns differ in length by many orders of magnitude, or are nearly parallel."""
    rng = np.random.default_rng(n)
    columns = rng.normal(size=(N_MATRICES, n, n)) + 1j * imaginary * rng.normal(size=(N_MATRICES, n, n))
    columns = columns if imaginary else columns.real
    if kind == "lengths":
        return columns * 10.0 ** -rng.uniform(0, 12, (N_MATRICES, 1, n))
    if kind == "parallel":
        return columns[:, :, :1] + columns * 10.0 ** -rng.uniform(0, 8, (N_MATRICES, 1, 1))
    # Each column is nearly parallel to the one before it, and what it adds is shorter by orders of magnitude.
    steps = np.cumsum(rng.uniform(0.5, 3, (N_MATRICES, 1, n)), axis=2)
    return (columns * 10.0**-steps) @ np.triu(rng.uniform(0.5, 1, (N_MATRICES, n, n)))


def rotated(matrices, kernel, width=4):
    """Columns (N, n, n) and their squared norms (N, n) after the rotations."""
    n, kernels = matrices.shape[1], PLAIN_LANES if kernel == "python" else lane_kernels()
    lanes, blocks = into_lanes(np.ascontiguousarray(matrices.swapaxes(1, 2)), width), -(-len(matrices) // width)
    squares = aligned(blocks * n * width)
    kernels.batch_spectra(lanes, squares, 0, blocks, n, aligned(5 * n * width), (0.0,) * width)
    columns = from_lanes(lanes, len(matrices), n, width).swapaxes(1, 2)
    values = squares.reshape(-1, n, width).swapaxes(1, 2).reshape(-1, n)[: len(matrices)]
    return columns, values


def cosines(columns, norms):
    """Products (N, n, n) of the columns over their norms (N, n)."""
    basis = columns / norms[:, None, :]
    return basis.conj().swapaxes(1, 2) @ basis


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("imaginary", [False, True])
@pytest.mark.parametrize("spectrum", SPECTRA)
@WIDTHS
def test_rotations_find_spectra_and_eigenvectors(spectrum, imaginary, kernel, width):
    """Columns become U diag(s): unitary, and A = U diag(s^2) U^H."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 11, 4, 4)) + 1j * imaginary * rng.normal(size=(2, 11, 4, 4))
    left, right = np.linalg.qr(noise if imaginary else noise.real)[0]
    roots = (left * np.sqrt(spectrum)) @ right
    columns, found = rotated(roots, kernel, width)
    assert_allclose(np.sort(found), np.sort([spectrum] * 11), rtol=1e-10)
    assert_allclose(cosines(columns, np.sqrt(found)), np.tile(np.eye(4), (11, 1, 1)), atol=1e-10)
    whole = roots @ roots.conj().swapaxes(1, 2)
    assert_allclose(columns @ columns.conj().swapaxes(1, 2), whole, rtol=0, atol=1e-14 * max(spectrum))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [float, complex], ids=["real", "complex"])
@WIDTHS
@pytest.mark.parametrize("exponent", [-125, -80, -60, 60, 80, 125])
def test_rotations_find_spectra_at_every_scale(kernel, dtype, width, exponent):
    """Neighbours in a vector register have other scales; a square is the scale to the power of two."""
    roots = np.linalg.cholesky(spd(np.random.default_rng(1), 2 * width, 4, dtype=dtype))
    is_scaled, found = np.arange(len(roots)) % 3 > 0, []
    for scale in (1.0, 10.0**exponent):
        columns, values = rotated(roots * np.where(is_scaled, scale, 1.0)[:, None, None], kernel, width)
        assert_allclose(cosines(columns, np.sqrt(values)), np.tile(np.eye(4), (len(roots), 1, 1)), atol=1e-10)
        found.append(np.sort(np.log(values)))
    shift = 2 * exponent * np.log(10) * is_scaled
    assert_allclose(found[1] - shift[:, None], found[0], atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("imaginary", [False, True])
@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("kind", ["lengths", "parallel", "cascade"])
def test_all_columns_end_orthogonal_and_none_is_lost(kind, n, imaginary, kernel):
    matrices = graded(kind, n, imaginary=imaginary)
    columns, values = rotated(matrices, kernel)
    assert np.abs(cosines(columns, np.linalg.norm(columns, axis=1)) - np.eye(n)).max() < 1e-14 * n
    assert_allclose(values, (np.abs(columns) ** 2).sum(axis=1), rtol=1e-13)
    wanted = matrices @ matrices.conj().swapaxes(1, 2)
    sizes = np.abs(wanted).max(axis=(1, 2), keepdims=True)
    assert_allclose((columns @ columns.conj().swapaxes(1, 2)) / sizes, wanted / sizes, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [3, 4, 7])
def test_no_bit_and_no_place_of_a_column_depends_on_the_other_lanes(n, kernel):
    matrices = np.concatenate([graded(kind, n) for kind in ("lengths", "parallel", "cascade")])
    order = np.random.default_rng(0).permutation(len(matrices))
    columns, values = rotated(matrices, kernel)
    others = rotated(matrices[order], kernel)
    assert_array_equal(columns[order], others[0])
    assert_array_equal(values[order], others[1])
