"""Eigenvalues in lanes: as exact as LAPACK's, and for each matrix independent of its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq.lanes import aligned, into_lanes
from tests.lanes.test_logs import KERNELS, KINDS
from tests.problems import spd


def eigenvalues_of(kernels, matrices, width=8):
    """Eigenvalues (P, n) as the kernel leaves them, unsorted."""
    n = matrices.shape[1]
    lanes = into_lanes(matrices.swapaxes(1, 2), width)
    values, work = aligned(len(lanes[0]) // n), tuple(aligned(2 * n * width) for _ in lanes)
    kernels.batch_eigenvalues(lanes, values, 0, len(values) // (n * width), n, work, (0.0,) * width)
    return values.reshape(-1, n, width).swapaxes(1, 2).reshape(-1, n)[: len(matrices)]


def assert_as_lapack(kernels, matrices):
    found, wanted = np.sort(eigenvalues_of(kernels, matrices)), np.linalg.eigvalsh(matrices)
    assert (np.abs(found - wanted) <= 1e-14 * wanted[:, -1:]).all()


@KERNELS
@KINDS
@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("scale", [1e-24, 1.0, 1e24])
def test_eigenvalues_are_those_of_lapack(kernels, dtype, n, scale):
    assert_as_lapack(kernels(), scale * spd(np.random.default_rng(0), 11, n, dtype=dtype))


@KERNELS
@KINDS
def test_matrices_with_zeros_and_multiple_eigenvalues(kernels, dtype):
    matrices = spd(np.random.default_rng(1), 9, 5, dtype=dtype)
    matrices[0] = np.eye(5)
    matrices[1] = np.diag([3.0, 1.0, 4.0, 1.0, 5.0])
    matrices[2, 0, 1:] = matrices[2, 1:, 0] = 0.0
    matrices[3, :3, 3:] = matrices[3, 3:, :3] = 0.0
    matrices[4] = np.ones((5, 5))
    matrices[5] = np.eye(5) + 1e-9 * matrices[5]
    assert_as_lapack(kernels(), matrices)


@KERNELS
@KINDS
def test_eigenvalues_of_very_different_sizes(kernels, dtype):
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(spd(rng, 9, 6, dtype=dtype))[0]
    matrices = (basis * np.geomspace(1e-12, 1e3, 6)) @ basis.conj().swapaxes(1, 2)
    assert_as_lapack(kernels(), 0.5 * (matrices + matrices.conj().swapaxes(1, 2)))


@KERNELS
@KINDS
def test_a_matrix_depends_neither_on_neighbours_nor_on_the_width(kernels, dtype):
    matrices = spd(np.random.default_rng(3), 9, 4, dtype=dtype)
    wanted = eigenvalues_of(kernels(), matrices)
    assert_array_equal(eigenvalues_of(kernels(), matrices, 4), wanted)
    matrices[2] = 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        found = eigenvalues_of(kernels(), matrices)
        for index in range(9):  # alone, beside identity matrices
            assert_array_equal(eigenvalues_of(kernels(), matrices[index : index + 1]), found[index : index + 1])
    assert np.isnan(found[2]).all()
    assert_array_equal(np.delete(found, 2, axis=0), np.delete(wanted, 2, axis=0))
