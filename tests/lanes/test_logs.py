"""Logarithms in lanes: exact, and for each matrix independent of its neighbours."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq.arrays import logm
from rplvq.lanes import PLAIN_LANES, aligned, from_lanes, into_lanes, lane_kernels
from tests.problems import spd

KERNELS = pytest.mark.parametrize(
    "kernels",
    [
        pytest.param(lambda: PLAIN_LANES, id="python"),
        pytest.param(
            lane_kernels,
            id="numba",
            marks=pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed"),
        ),
    ],
)
KINDS = pytest.mark.parametrize("dtype", [float, complex], ids=["real", "complex"])


def logs_of(kernels, matrices, width=8):
    n = matrices.shape[1]
    lanes = into_lanes(matrices.swapaxes(1, 2), width)
    squares, spare = aligned(len(lanes[0]) // n), tuple(aligned(n * n * width) for _ in lanes)
    blocks = len(squares) // (n * width)
    kernels.batch_logs(lanes, squares, 0, blocks, n, aligned(6 * n * width), spare, (0.0,) * width)
    return from_lanes(lanes, len(matrices), n, width).swapaxes(1, 2), squares.reshape(-1, n, width)


@KERNELS
@KINDS
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_logarithms_are_those_of_lapack(kernels, dtype, n):
    matrices = spd(np.random.default_rng(0), 11, n, dtype=dtype)
    found, _ = logs_of(kernels(), matrices)
    assert_allclose(found, logm(matrices), atol=1e-13)
    assert_array_equal(found, found.conj().swapaxes(1, 2))


@KERNELS
@KINDS
def test_a_logarithm_depends_neither_on_neighbours_nor_on_the_width(kernels, dtype):
    """Neighbours take another number of rotations: some are diagonal, some nearly singular."""
    matrices = spd(np.random.default_rng(1), 12, 4, dtype=dtype)
    matrices[3] = np.diag([1.0, 2.0, 3.0, 4.0])
    matrices[5] = np.diag([1e-9, 1.0, 1.0, 1e3]) + 1e-10 * matrices[5]
    wide, narrow = (logs_of(kernels(), matrices, width)[0] for width in (8, 4))
    assert_array_equal(wide, narrow)
    for k in range(12):
        assert_array_equal(logs_of(kernels(), matrices[k : k + 1])[0][0], wide[k])


@KERNELS
def test_an_indefinite_matrix_has_no_eigenvalues_and_spoils_no_neighbour(kernels):
    matrices = spd(np.random.default_rng(2), 5, 3)
    wanted = logs_of(kernels(), matrices)[0]
    matrices[2] = np.diag([1.0, -1.0, 1.0])
    with np.errstate(invalid="ignore"):
        found, squares = logs_of(kernels(), matrices)
    assert np.isnan(squares[0, :, 2]).any()
    others = [0, 1, 3, 4]
    assert_array_equal(found[others], wanted[others])
