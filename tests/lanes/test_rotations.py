"""Rotations of graded and nearly parallel columns, whose norms lose their digits while they are rotated."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq.lanes import PLAIN_LANES, aligned, from_lanes, into_lanes, lane_kernels

NO_NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
KERNELS = ["python", pytest.param("numba", marks=NO_NUMBA)]
N_MATRICES, WIDTH = 13, 4


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


def rotated(matrices, kernel):
    """Columns (N, n, n) and eigenvalues (N, n) after the rotations, and the cosines between the columns."""
    n, kernels = matrices.shape[1], PLAIN_LANES if kernel == "python" else lane_kernels()
    lanes, blocks = into_lanes(np.ascontiguousarray(matrices.swapaxes(1, 2)), WIDTH), -(-len(matrices) // WIDTH)
    squares = aligned(blocks * n * WIDTH)
    kernels.batch_spectra(lanes, squares, 0, blocks, n, aligned(5 * n * WIDTH), (0.0,) * WIDTH)
    columns = from_lanes(lanes, len(matrices), n, WIDTH).swapaxes(1, 2)
    values = squares.reshape(-1, n, WIDTH).swapaxes(1, 2).reshape(-1, n)[: len(matrices)]
    basis = columns / np.linalg.norm(columns, axis=1, keepdims=True)
    return columns, values, np.abs(basis.conj().swapaxes(1, 2) @ basis - np.eye(n))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("imaginary", [False, True])
@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("kind", ["lengths", "parallel", "cascade"])
def test_all_columns_end_orthogonal_and_none_is_lost(kind, n, imaginary, kernel):
    matrices = graded(kind, n, imaginary=imaginary)
    columns, values, cosines = rotated(matrices, kernel)
    assert cosines.max() < 1e-14 * n
    assert_allclose(values, (np.abs(columns) ** 2).sum(axis=1), rtol=1e-13)
    wanted = matrices @ matrices.conj().swapaxes(1, 2)
    sizes = np.abs(wanted).max(axis=(1, 2), keepdims=True)
    assert_allclose((columns @ columns.conj().swapaxes(1, 2)) / sizes, wanted / sizes, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [3, 4, 7])
def test_no_bit_and_no_place_of_a_column_depends_on_the_other_lanes(n, kernel):
    matrices = np.concatenate([graded(kind, n) for kind in ("lengths", "parallel", "cascade")])
    order = np.random.default_rng(0).permutation(len(matrices))
    columns, values, _ = rotated(matrices, kernel)
    others = rotated(matrices[order], kernel)
    assert_array_equal(columns[order], others[0])
    assert_array_equal(values[order], others[1])
