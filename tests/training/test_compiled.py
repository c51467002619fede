"""Compiled steps are the plain steps: same distances, losses, caps and prototypes, to rounding.

The kernel is plain Python that numba compiles, so its arithmetic is tested with and without numba.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rplvq.lanes
import rplvq.training.compiled
from rplvq import PLVQ, RSLVQ, AffineInvariant, ClassMeans, LogEuclidean, RiemannianLVQ, StepSize, Trainer
from rplvq.arrays import Samples
from rplvq.datasets import load_digits_covariances
from rplvq.lanes import PLAIN_LANES, lane_kernels, source_hash
from rplvq.training.compiled import PLAIN, Kernels, compiled_kernels, decomposes, is_worthwhile
from rplvq.training.compiled._kernels import _build, lane_width

KERNELS = [
    "python",
    pytest.param("numba", marks=pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")),
]

FOLDER = Path(rplvq.training.compiled.__file__).parent


def matrices(n, n_samples=24, seed=0, imaginary=False):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n_samples, n, 3 * n)) + (1j * rng.normal(size=(n_samples, n, 3 * n)) if imaginary else 0)
    return vectors @ vectors.conj().swapaxes(1, 2) / (3 * n), rng.integers(0, 3, n_samples)


@pytest.fixture(params=KERNELS)
def kernel(request, monkeypatch):
    steps, lanes = (PLAIN, PLAIN_LANES) if request.param == "python" else (compiled_kernels(), lane_kernels())
    monkeypatch.setattr("rplvq.training.compiled._runs.compiled_kernels", lambda: steps)
    monkeypatch.setattr("rplvq.manifolds._logarithms.lane_kernels", lambda: lanes)


@pytest.fixture(params=[4, 8])
def way(request, monkeypatch):
    """Lanes of each width, whatever the sizes would choose."""
    for module in ("_kernels", "_runs"):
        monkeypatch.setattr(f"rplvq.training.compiled.{module}.lane_width", lambda *_: request.param)
        monkeypatch.setattr(f"rplvq.training.compiled.{module}.is_worthwhile", lambda *_: True)


def sweep(X, y, compiled, weights=None, initializer=None, n_classes=3, max_step_length=10.0, **settings):
    initializer, manifold = initializer or ClassMeans((2, 1, 3)), AffineInvariant(max_step_length, compiled)
    trainer = Trainer(manifold, initializer=initializer, **settings)
    state = trainer.init(Samples(X, y), n_classes, np.random.default_rng(1)).at_epoch(1, 10)
    return trainer.sweep(state, Samples(X, y, weights), np.random.default_rng(2))


@pytest.mark.parametrize(
    ("n", "imaginary", "weighted", "settings"),
    [
        (5, False, False, {"sigma2": 1.0}),
        (4, True, False, {"sigma2": 1.0}),
        (1, False, False, {"sigma2": 0.1}),
        (3, False, True, {"sigma2": 0.5}),
        (5, False, False, {"sigma2": 0.01, "step_size": 0.5}),  # weights are cut
        (5, False, False, {"sigma2": 0.05, "step_size": StepSize(0.5, max_weight=None), "max_step_length": 0.3}),
        (5, False, False, {"sigma2": 1e-4, "step_size": 1e-6}),  # own classes underflow
        (5, False, False, {"sigma2": 1.0, "cost": PLVQ()}),
        (5, False, True, {"sigma2": 1.0, "batch_size": 7}),
        (4, True, False, {"sigma2": 1.0, "batch_size": 24, "cost": RSLVQ(priors=(0.5, 0.2, 0.3))}),
    ],
)
def test_a_sweep_is_the_same_compiled(kernel, way, n, imaginary, weighted, settings):
    X, y = matrices(n, imaginary=imaginary)
    weights = np.random.default_rng(3).uniform(0, 2.5, len(X)) if weighted else None
    (plain, plain_score, plain_capped), (fast, fast_score, fast_capped) = (
        sweep(X, y, compiled, weights, **settings) for compiled in (False, True)
    )
    assert_allclose(np.asarray(fast.prototypes), np.asarray(plain.prototypes), rtol=1e-9, atol=1e-11)
    assert_allclose(fast_score, plain_score, rtol=1e-9)
    assert fast_capped == plain_capped
    assert (fast_capped > 0) == ("max_step_length" in settings or settings["sigma2"] == 0.01)


def test_a_fit_is_the_same_compiled(kernel, way):
    X, y = matrices(5)
    plain, fast = (
        RiemannianLVQ(AffineInvariant(compiled=compiled), sigma2=1.0, max_epochs=3, random_state=0).fit(X, y)
        for compiled in (False, True)
    )
    assert_allclose(fast.prototypes_, plain.prototypes_, rtol=1e-8, atol=1e-10)
    assert_array_equal(fast.predict(X), plain.predict(X))


@pytest.mark.parametrize("compiled", KERNELS[1:])
def test_the_first_model_of_the_readme_is_the_same_compiled(compiled):
    """Ten epochs with the defaults; its steps are small enough to damp differences by rounding."""
    X, y = load_digits_covariances()
    plain, fast = (
        RiemannianLVQ(AffineInvariant(compiled=way), prototypes_per_class=2, max_epochs=10, random_state=0)
        for way in (False, True)
    )
    plain.fit(X[:1000], y[:1000])
    fast.fit(X[:1000], y[:1000])
    assert fast.n_epochs_ == plain.n_epochs_ == 10
    assert_allclose(fast.prototypes_, plain.prototypes_, rtol=1e-6, atol=1e-6 * np.abs(plain.prototypes_).max())
    assert_array_equal(fast.predict(X[1000:]), plain.predict(X[1000:]))
    assert fast.choice_.chosen == plain.choice_.chosen
    assert [one.n_folds for one in fast.choice_.tried] == [one.n_folds for one in plain.choice_.tried]


def test_the_initial_prototypes_are_not_written_to(kernel, way):
    trainer, samples = Trainer(AffineInvariant(compiled=True), sigma2=1.0), Samples(*matrices(4))
    state = trainer.init(samples, 3, np.random.default_rng(0)).at_epoch(1, 10)
    first, _, _ = trainer.sweep(state, samples, np.random.default_rng(0))
    before = np.array(first.prototypes.factors)
    trainer.sweep(first, samples, np.random.default_rng(0))
    assert_array_equal(first.prototypes.factors, before)


def test_other_parts_take_the_plain_path(kernel):
    X, y = matrices(4)
    with pytest.raises(ValueError, match=r"compiled=True, but no kernel knows these parts.*batches of 1"):
        sweep(X, y, True, sigma2=1.0, cost=lambda *arguments: RSLVQ()(*arguments))


def test_batches_are_known_under_any_cost():
    assert decomposes(AffineInvariant(), 2)
    assert not decomposes(AffineInvariant(), 1)
    assert not decomposes(LogEuclidean(), 2)


def test_without_numba_auto_is_plain_and_true_says_what_to_install(monkeypatch):
    monkeypatch.setattr("rplvq.training.compiled._runs.compiled_kernels", lambda: None)
    monkeypatch.setattr("rplvq.manifolds._logarithms.lane_kernels", lambda: None)
    X, y = matrices(4)
    auto, plain = (sweep(X, y, compiled, sigma2=1.0)[0] for compiled in ("auto", False))
    assert_array_equal(np.asarray(auto.prototypes), np.asarray(plain.prototypes))
    with pytest.raises(ValueError, match=r"numba is not installed: pip install '\.\[fast\]' in the folder"):
        sweep(X, y, True, sigma2=1.0)


def test_the_kernel_is_there_exactly_where_numba_is():
    assert (compiled_kernels() is None) == (find_spec("numba") is None)


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_kernels_need_no_folder_to_write_to(monkeypatch):
    import numba.core.caching

    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(lambda: None)
    assert all(callable(kernel) for kernel in compiled_kernels.__wrapped__())


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize(
    ("machine", "name", "features", "expected"),
    [("arm64", "generic", None, True), ("x86_64", "generic", None, False), ("AMD64", "old", "+sse2,+fma", True)],
)
def test_operations_are_fused_where_the_processor_can(monkeypatch, machine, name, features, expected):
    from rplvq.lanes import _registers as registers

    monkeypatch.setattr(registers.platform, "machine", lambda: machine)
    monkeypatch.setattr(registers.config, "CPU_NAME", name)
    monkeypatch.setattr(registers.config, "CPU_FEATURES", features)
    assert registers.fuses() == expected


def test_lanes_serve_small_matrices_and_lapack_large_ones():
    assert lane_width(5, 48, False) == lane_width(3, 24, True) == lane_width(22, 40, False) == 8
    assert lane_width(10, 4, False) == lane_width(22, 4, False) == lane_width(3, 12, True) == 4
    for size in ((5, 48, False), (3, 12, True), (22, 40, False), (10, 1, False), (40, 4, False), (40, 4, True)):
        assert is_worthwhile(*size)
    for size in ((22, 1, False), (64, 4, False), (64, 40, True)):
        assert not is_worthwhile(*size)


@pytest.mark.parametrize("imaginary", [False, True])
@pytest.mark.parametrize("condition", [1e2, 1e10])
def test_ill_conditioned_samples_move_prototypes_as_on_the_plain_path(kernel, way, imaginary, condition):
    """One congruence of condition 1e5 gives all samples condition 1e10: known to eps times that, and no better."""
    X, y = matrices(5, imaginary=imaginary)
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(5, 5)) + 1j * imaginary * rng.normal(size=(5, 5)))[0]
    stretch = (basis if imaginary else basis.real) * np.geomspace(1, condition**-0.5, 5)
    X, y = stretch @ X @ stretch.conj().T, np.arange(24) % 3
    X = 0.5 * (X + X.conj().swapaxes(1, 2))

    def first(manifold, codes, targets, n_classes, rng):
        return codes[:3], targets[:3]

    (plain, plain_score, _), (fast, fast_score, _) = (
        sweep(X, y, compiled, initializer=first, sigma2=5.0, step_size=0.05) for compiled in (False, True)
    )
    manifold = AffineInvariant()
    apart = np.sqrt(np.diag(manifold.sqdist(np.asarray(plain.prototypes), np.asarray(fast.prototypes))))
    assert (apart < 1e-15 * condition + 1e-12).all()
    assert_allclose(fast_score, plain_score, rtol=1e-15 * condition + 1e-12)


def test_matrices_that_are_not_numbers_end_training_as_on_the_plain_path(kernel, way):
    X, y = matrices(4)
    X[7, 0, 0] = np.nan
    trainer = Trainer(AffineInvariant(compiled=True), sigma2=1.0)
    first = Samples(X[:7], np.array([0, 1, 2, 0, 1, 2, 0]))
    state = trainer.init(first, 3, np.random.default_rng(0)).at_epoch(1, 10)
    with pytest.raises(FloatingPointError, match="training diverged"):
        trainer.sweep(state, Samples(X, y), np.random.default_rng(0))


# --- where compiled code is stored


def test_the_hash_changes_with_the_source_of_any_kernel(tmp_path):
    """numba itself only notices a change of a kernel's own file, not of a file with functions that it calls."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    first = source_hash(tmp_path)
    assert source_hash(tmp_path) == first
    (tmp_path / "notes.txt").write_text("no source")
    assert source_hash(tmp_path) == first
    (tmp_path / "b.py").write_text("# b.py, changed\n")
    second = source_hash(tmp_path)
    (tmp_path / "c.py").write_text("x = 1\n")
    assert len({first, second, source_hash(tmp_path)}) == 3
    assert source_hash(tmp_path, FOLDER) != source_hash(FOLDER)


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_compiled_code_is_stored_under_the_hash_of_its_source():
    names = [[kernel.py_func.__qualname__ for kernel in _build(wanted, cache=False)] for wanted in ("first", "second")]
    assert names == [[f"{function.__qualname__}_{wanted}" for function in PLAIN] for wanted in ("first", "second")]


FIT = """
import hashlib
import sys
from rplvq import RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.lanes import _compile
_compile.COMPILING = -1.0
X, y = make_syn1(n_per_class=25, random_state=0)
if sys.argv[1].endswith("vectors"):
    X = X.reshape(len(X), -1)
settings = {"sigma2": 2.0, "prototypes_per_class": 2, "max_epochs": 3, "random_state": 0}
model = RiemannianLVQ(sys.argv[1], **settings).fit(X, y)
print(hashlib.sha256(model.prototypes_.tobytes()).hexdigest())
"""


def real(name, real_data, unpack):
    data = np.load(real_data(name), allow_pickle=False)
    if name.startswith("eth80"):
        return data["full256"][::8], np.unique(data["y"][::8], return_inverse=True)[1]
    if name.startswith("bci2a"):
        return unpack(data["s1_cov"].astype(float), 22)[:200], data["s1_y"][:200] - 1
    planes = data["planes"][:, 200:700:20, 200:800:20].reshape(9, -1).astype(float)
    upper = planes[3::2] + 1j * planes[4::2]
    X = np.empty((planes.shape[1], 3, 3), dtype=complex)
    X[:, range(3), range(3)] = planes[:3].T
    for entry, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        X[:, i, j], X[:, j, i] = upper[entry], upper[entry].conj()
    y = data["labels"][200:700:20, 200:800:20].ravel()
    spectra = np.linalg.eigvalsh(X)
    kept = (y > 0) & (spectra[:, 0] > 1e-6 * spectra[:, 2])
    assert kept.sum() > 300
    return X[kept], np.unique(y[kept], return_inverse=True)[1]


@pytest.mark.parametrize("compiled", KERNELS[1:])
@pytest.mark.parametrize("batch_size", [1, 16])
@pytest.mark.parametrize("name", ["eth80_cov5.npz", "bci2a_cov22.npz", "polsar_sf_airsar_T3.npz"])
def test_an_epoch_on_real_data_is_the_same_compiled(name, batch_size, compiled, real_data, unpack_symmetric):
    X, y = real(name, real_data, unpack_symmetric)
    (plain, plain_score, plain_capped), (fast, fast_score, fast_capped) = (
        sweep(X, y, compiled, initializer=ClassMeans(2), sigma2=1.0, batch_size=batch_size, n_classes=y.max() + 1)
        for compiled in (False, True)
    )
    apart = AffineInvariant().sqdist(np.asarray(plain.prototypes), np.asarray(fast.prototypes))
    assert (np.sqrt(np.diag(apart)) < 1e-9).all()
    assert_allclose(fast_score, plain_score, rtol=1e-9)
    assert fast_capped == plain_capped


class Stored:
    """A kernel whose machine code cannot be loaded, or not be stored."""

    def __init__(self, error, folder):
        self.error, self.stats = error, SimpleNamespace(cache_path=folder and str(folder))

    def __call__(self, *arguments):
        raise self.error


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize(
    "error",
    [
        EOFError(),
        pickle.UnpicklingError("pickle data was truncated"),
        OSError(28, "No space left"),
        ValueError("noise"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_code_that_cannot_be_loaded_or_stored_is_compiled_in_memory(error, tmp_path, monkeypatch):
    """The stored code is removed, and that of other sources at once, so that the folder does not grow."""
    ours, others = (
        [tmp_path / f"_steps.run_steps_{source}-1.py311.{suffix}" for suffix in ("nbi", "1.nbc", "nbi.tmp.1")]
        for source in (source_hash(Path(rplvq.lanes.__file__).parent, FOLDER), "0" * 16)
    )
    for path in [*ours, *others, tmp_path / "_steps.cpython-311.pyc"]:
        path.touch()
    broken = Kernels(*[Stored(error, tmp_path)] * len(Kernels._fields))
    working = Kernels(*[lambda *arguments: 7] * len(Kernels._fields))
    monkeypatch.setattr("rplvq.training.compiled._kernels._build", lambda source, cache: broken if cache else working)
    kernels = compiled_kernels.__wrapped__()
    assert [path.exists() for path in (*ours, *others)] == [True] * 3 + [False] * 3
    assert kernels.run_steps(1, 2) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["_steps.cpython-311.pyc"]


@pytest.mark.slow  # it compiles kernels of steps several times
@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_stored_code_gives_the_same_bits_and_is_replaced_where_it_is_damaged(tmp_path):
    """A checkpoint of a process that compiles is resumed by one that loads its code."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(metric):
        program = [sys.executable, "-c", FIT, metric]
        return subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout

    first = run("affine_invariant")
    assert any(tmp_path.rglob("*.nbc"))
    assert run("affine_invariant") == first
    # All kernels are loaded by the same function, and that of flat steps is the fastest one to compile.
    first = run("euclidean_vectors")
    for suffix, length in (("nbi", 100), ("nbc", 1000)):
        if not any(tmp_path.rglob("*run_flat*.nbc")):  # nothing is left of the damaged code: it is stored anew
            assert run("euclidean_vectors") == first
        paths = list(tmp_path.rglob(f"*run_flat*.{suffix}"))
        assert paths
        for path in paths:
            path.write_bytes(path.read_bytes()[:length])
        assert run("euclidean_vectors") == first
        assert not any(tmp_path.rglob("*run_flat*.nb[ci]")), "the damaged code was not removed"
