"""Sums of shifted inverses in lanes: exact, and for each matrix independent of its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq.lanes import aligned, from_lanes, into_lanes
from tests.lanes.test_logs import KERNELS, KINDS
from tests.problems import spd

SHIFTS, FACTORS = np.array([0.1, 1.0, 8.0]), np.array([-0.5, 2.0, -7.0])


def inverses_of(kernels, matrices, width=8):
    n = matrices.shape[1]
    lanes = into_lanes(matrices.swapaxes(1, 2), width)
    spare = tuple(aligned(2 * n * n * width) for _ in lanes)
    blocks = len(lanes[0]) // (n * n * width)
    kernels.batch_inverses(lanes, 0, blocks, n, SHIFTS, FACTORS, spare, (0.0,) * width)
    return from_lanes(lanes, len(matrices), n, width).swapaxes(1, 2)


@KERNELS
@KINDS
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_the_sum_is_that_of_general_inverses(kernels, dtype, n):
    matrices = spd(np.random.default_rng(0), 11, n, dtype=dtype)
    found = inverses_of(kernels(), matrices)
    pairs = zip(SHIFTS, FACTORS, strict=True)
    wanted = sum(factor * np.linalg.inv(matrices + shift * np.eye(n)) for shift, factor in pairs)
    assert_allclose(found, wanted, atol=1e-12 * np.abs(wanted).max())
    assert_array_equal(found, found.conj().swapaxes(1, 2))


@KERNELS
def test_small_eigenvalues_keep_their_digits(kernels):
    """The condition number is 1e12; the inverse of the shifted matrix is known from the eigenvalues."""
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(5, 6, 6)))[0]
    values = np.geomspace(1e-9, 1e3, 6)
    found = inverses_of(kernels(), (basis * values) @ basis.swapaxes(1, 2))
    shifted = sum(factor / (values + shift) for shift, factor in zip(SHIFTS, FACTORS, strict=True))
    assert_allclose(found, (basis * shifted) @ basis.swapaxes(1, 2), atol=1e-10)


@KERNELS
@KINDS
def test_a_matrix_depends_neither_on_neighbours_nor_on_the_width(kernels, dtype):
    matrices = spd(np.random.default_rng(2), 9, 4, dtype=dtype)
    wanted = inverses_of(kernels(), matrices)
    assert_array_equal(inverses_of(kernels(), matrices, 4), wanted)
    matrices[2] = -10.0 * np.eye(4)
    with np.errstate(invalid="ignore"):
        found = inverses_of(kernels(), matrices)
    assert np.isnan(found[2]).any()
    assert_array_equal(np.delete(found, 2, axis=0), np.delete(wanted, 2, axis=0))
