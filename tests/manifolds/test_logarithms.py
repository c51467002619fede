"""Log-Euclidean codes without LAPACK: as exact as LAPACK's, and the same matrices are refused."""

from __future__ import annotations

from decimal import Decimal, localcontext
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import AffineInvariant, LogEuclidean
from rplvq.arrays import logm
from rplvq.exceptions import PointError
from rplvq.manifolds import _logarithms
from tests.problems import counted_decompositions, spd

NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
KINDS = pytest.mark.parametrize("dtype", [float, complex], ids=["real", "complex"])
SIZES = pytest.mark.parametrize("n", [2, *(pytest.param(n, marks=NUMBA) for n in (3, 5, 8))])


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(_logarithms, "MANY", 20)


def by_lapack(matrices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_logarithms, "LARGEST_ROTATED", 0)
        return logm(matrices)


@SIZES
@KINDS
def test_codes_are_logarithms_and_take_no_eigendecomposition(n, dtype):
    matrices = spd(np.random.default_rng(0), 30, n, dtype=dtype)
    with counted_decompositions() as counter:
        codes = LogEuclidean().encode(matrices)
    assert counter == {"eigh": 0, "eigvalsh": 0}
    assert_allclose(codes, by_lapack(matrices), atol=1e-12)
    assert_array_equal(codes, codes.conj().swapaxes(1, 2))


@SIZES
@KINDS
def test_codes_hold_for_every_spread_and_scale(n, dtype):
    """Eigenvalues are known to eps times the condition number, by LAPACK as well."""
    for scale in [1e-12, 1.0, 1e150]:
        for condition in [1.0, 1 + 1e-9, 1e4, 1e8]:
            basis = np.linalg.eigh(spd(np.random.default_rng(1), 30, n, dtype=dtype))[1]
            logs = np.linspace(0.0, np.log(condition), n) + np.log(scale)
            matrices = (basis * np.exp(logs)) @ basis.conj().swapaxes(1, 2)
            wanted = (basis * logs) @ basis.conj().swapaxes(1, 2)
            codes = LogEuclidean().encode(0.5 * (matrices + matrices.conj().swapaxes(1, 2)))
            assert_allclose(codes, wanted, rtol=0, atol=1e-15 * condition + 1e-13 * max(1, abs(np.log(scale))))


def exact_log(matrix):
    """The logarithm of a real 2 x 2 matrix in 60 decimal digits, from its eigenvalues."""
    with localcontext(prec=60):
        (a, b), (_, c) = ([Decimal(float(x)) for x in row] for row in matrix)
        half, root = (a + c) / 2, (((a - c) / 2) ** 2 + b * b).sqrt()
        high, low = (half + root).ln(), (half - root).ln()
        slope = (high - low) / (2 * root)
        level = (high + low) / 2
        return [
            [float(level + slope * (a - half)), float(slope * b)],
            [float(slope * b), float(level + slope * (c - half))],
        ]


@pytest.mark.parametrize("condition", [1.0 + 1e-12, 10.0, 1e4, 1e8, 1e12])
def test_two_by_two_logarithms_are_as_exact_as_those_of_lapack(condition):
    """The smaller eigenvalue of such numbers is known to eps times the condition number, and so is its logarithm."""
    basis = np.linalg.eigh(spd(np.random.default_rng(4), 30, 2))[1]
    matrices = (basis * [condition, 1.0]) @ basis.swapaxes(1, 2)
    matrices = 0.5 * (matrices + matrices.swapaxes(1, 2))
    wanted = np.array([exact_log(matrix) for matrix in matrices])
    found = LogEuclidean().encode(matrices)
    by_eigh = by_lapack(matrices)
    assert np.abs(found - wanted).max() < 4 * np.finfo(float).eps * condition
    assert np.abs(found - wanted).max() < 4 * np.abs(by_eigh - wanted).max() + 1e-14


@SIZES
def test_the_same_matrices_are_refused(n):
    matrices = spd(np.random.default_rng(2), 30, n)
    for bad in (np.diag([-1.0, *[1.0] * (n - 1)]), np.ones((n, n)), np.zeros((n, n)), -np.eye(n)):
        matrices[7] = bad
        with pytest.raises(PointError, match=r"X\[7\] is"):
            LogEuclidean().encode(matrices)


@NUMBA
def test_a_code_does_not_depend_on_the_other_matrices():
    matrices = spd(np.random.default_rng(3), 50, 4)
    codes = LogEuclidean().encode(matrices)
    assert_array_equal(LogEuclidean().encode(matrices[13:37]), codes[13:37])


def test_without_numba_lapack_decomposes(monkeypatch):
    monkeypatch.setattr(_logarithms, "lane_kernels", lambda: None)
    matrices = spd(np.random.default_rng(4), 30, 3)
    with counted_decompositions() as counter:
        LogEuclidean().encode(matrices)
    assert counter == {"eigh": 30, "eigvalsh": 0}


@NUMBA
@KINDS
@pytest.mark.parametrize("n_prototypes", [2, 6])
def test_the_nearest_prototype_is_found_by_compiled_eigenvalues(dtype, n_prototypes):
    rng, manifold = np.random.default_rng(5), AffineInvariant()
    samples, prototypes = spd(rng, 150, 5, dtype=dtype), spd(rng, n_prototypes, 5, dtype=dtype)
    wanted = manifold.sqdist(prototypes, samples).argmin(axis=1)
    with counted_decompositions() as counter:
        found = manifold.nearest(prototypes, samples)
    assert_array_equal(found, wanted)
    assert counter["eigvalsh"] < len(samples)
    assert_array_equal(AffineInvariant(compiled=False).nearest(prototypes, samples), wanted)


@NUMBA
@pytest.mark.parametrize(("count", "n"), [(19, 40), (500, 2)])
def test_large_matrices_are_many_earlier(monkeypatch, count, n):
    monkeypatch.setattr(_logarithms, "LARGE", 19 * 40 * 40)
    monkeypatch.setattr(_logarithms, "MANY", 500)
    assert _logarithms.kernels_for_many("batch_eigenvalues", np.zeros((count, n, n))) is not None
    assert _logarithms.kernels_for_many("batch_eigenvalues", np.zeros((count - 1, n, n))) is None


@NUMBA
@KINDS
def test_eigenvalues_in_lanes_are_those_of_lapack(dtype):
    matrices, kernels = spd(np.random.default_rng(6), 30, 6, dtype=dtype), _logarithms.lane_kernels()
    for bad in (None, np.zeros((6, 6))):  # a matrix without eigenvalues in lanes
        if bad is not None:
            matrices[11] = bad
        found, wanted = _logarithms.ascending_eigenvalues(matrices, kernels), np.linalg.eigvalsh(matrices)
        assert_allclose(found, wanted, atol=1e-14 * wanted.max())
