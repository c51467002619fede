"""Compiled rotations keep the small eigenvalues that roots hold, at every scale."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rplvq import RSLVQ, AffineInvariant
from rplvq.arrays import Samples
from rplvq.lanes import PLAIN_LANES, lane_kernels
from rplvq.training.compiled import CONSTANT, PLAIN, compiled_kernels, connection, rules_of, run_block
from tests.problems import spd

KERNELS = pytest.mark.parametrize(
    "kernels",
    [
        pytest.param((lambda: PLAIN, lambda: PLAIN_LANES), id="python"),
        pytest.param(
            (compiled_kernels, lane_kernels),
            id="numba",
            marks=pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed"),
        ),
    ],
)
KINDS = pytest.mark.parametrize("dtype", [float, complex], ids=["real", "complex"])
MANIFOLD = AffineInvariant()


def stretched(condition, n, dtype, count=3):
    """Matrices of this condition number in random frames."""
    basis = np.linalg.eigh(spd(np.random.default_rng(0), count, n, dtype=dtype))[1]
    matrices = (basis * np.geomspace(1, condition, n)) @ basis.conj().swapaxes(1, 2)
    return 0.5 * (matrices + matrices.conj().swapaxes(1, 2))


@KERNELS
@KINDS
@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("condition", [1e6, 1e8, 1e10])
def test_distances_of_single_steps_and_of_batches_are_those_of_sqdist(kernels, dtype, n, condition, monkeypatch):
    codes = stretched(condition, n, dtype)
    wanted = MANIFOLD.sqdist(codes[:2], codes)
    monkeypatch.setattr("rplvq.manifolds._logarithms.lane_kernels", kernels[1])
    monkeypatch.setattr("rplvq.manifolds._affine_invariant.FEW_PAIRS", 0)
    assert wanted.max() > np.log(condition) ** 2
    samples = Samples(codes, np.array([0, 1, 1]), np.zeros(3))
    rules = rules_of(MANIFOLD, RSLVQ(), samples.targets, np.array([0, 1]), 1.0, (1.0, 10.0), (1.0, *CONSTANT))
    _, sqdist, _, _ = run_block(kernels[0](), MANIFOLD, codes[:2], samples, rules)
    assert_allclose(sqdist, wanted, rtol=1e-7, atol=1e-9)
    with connection(MANIFOLD, 3) as connect:
        geodesics = connect(codes[:2], codes)
    assert_allclose(geodesics.sqdist, wanted, rtol=1e-7, atol=1e-9)
    moved = MANIFOLD.move(connect(codes[:1], codes[1:2]), np.ones((1, 1)))
    assert MANIFOLD.sqdist(moved, codes[1:2])[0, 0] < 1e-10


@KERNELS
@KINDS
@pytest.mark.parametrize("scale", [1e-250, 1e-160, 1e160, 1e250])
def test_a_step_on_a_sample_of_another_scale_is_that_of_the_plain_path(kernels, dtype, scale):
    codes = spd(np.random.default_rng(2), 3, 3, dtype=dtype)
    codes[2] *= scale
    samples, labels = Samples(codes[2:], np.array([0])), np.array([0, 1])
    rules = rules_of(MANIFOLD, RSLVQ(), samples.targets, labels, 1e4, (1.0, np.inf), (50.0, *CONSTANT))
    moved, sqdist, _, _ = run_block(kernels[0](), MANIFOLD, codes[:2], samples, rules)
    geodesics = MANIFOLD.connect(codes[:2], codes[2:])
    assert_allclose(sqdist, geodesics.sqdist, rtol=1e-12)
    assert_allclose(MANIFOLD.sqdist(codes[:2], codes[2:]), sqdist, rtol=1e-12)
    weights = 2 * 50.0 * RSLVQ()(sqdist, np.array([0]), labels, 1e4).slope
    plain = MANIFOLD.move(geodesics, weights)
    assert_allclose(np.asarray(moved), np.asarray(plain), rtol=1e-9)
    assert np.abs(np.log(np.asarray(moved)[:, 0, 0].real)).max() > 1e-3
