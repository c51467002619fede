"""Under compiled="auto" a fit is compiled or plain as a whole, and a process compiles once compiling pays."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from rplvq import AffineInvariant, LogEuclidean, RiemannianLVQ, Trainer
from rplvq.arrays import Samples
from rplvq.datasets import make_syn1
from rplvq.lanes import PLAIN_LANES, LaneKernels, _compile
from rplvq.training.compiled import PLAIN, Decision, Kernels, one_decision, runs_compiled
from rplvq.training.compiled._kernels import saved_seconds

X, Y = make_syn1(n_per_class=5, random_state=0)
X = X[:, :3, :3]
KIND = "run_steps", 1, 4


@pytest.fixture(autouse=True)
def called(monkeypatch):
    """Nothing is stored, and compiling takes as long as 2.5 fits save; returns the kernels that were called."""
    found = []

    def noted(plain, name):
        def kernel(*arguments):
            found.append(name)
            return getattr(plain, name)(*arguments)

        return kernel

    kernels = Kernels(*(noted(PLAIN, name) for name in Kernels._fields))
    lanes = LaneKernels(*(noted(PLAIN_LANES, name) for name in LaneKernels._fields))
    monkeypatch.setattr("rplvq.training.compiled._runs.compiled_kernels", lambda: kernels)
    monkeypatch.setattr("rplvq.manifolds._logarithms.lane_kernels", lambda: lanes)
    monkeypatch.setattr(_compile, "can_run_at_once", lambda kind: False)
    saved = 2 * len(X) * saved_seconds(3, 4, False)
    assert saved > 0
    monkeypatch.setattr(_compile, "COMPILING", 2.5 * saved)
    _compile.forget()
    yield found
    _compile.forget()


def fit(**settings):
    return RiemannianLVQ(sigma2=1.0, max_epochs=2, random_state=0, **settings).fit(X, Y)


def test_fits_are_plain_until_they_would_have_saved_the_time_of_compiling(called):
    counts = []
    for _ in range(4):
        fit()
        counts.append(len(called))
    assert counts == [0, 0, 2, 4]  # one call per epoch


def test_plain_fits_give_the_bits_of_compiled_false(called):
    expected = fit(metric=AffineInvariant(compiled=False)).prototypes_
    np.testing.assert_array_equal(fit().prototypes_, expected)


def test_what_is_stored_is_used_at_once(called, monkeypatch):
    asked = []
    monkeypatch.setattr(_compile, "can_run_at_once", lambda kind: asked.append(kind) or True)
    fit()
    assert called.count("run_steps") == 2
    assert set(called) == {"run_steps", "batch_eigenvalues"}
    assert set(asked) == {KIND, ("batch_eigenvalues", 1, 8)}


def test_what_another_process_stores_later_does_not_change_a_process(called, monkeypatch):
    fit()
    monkeypatch.setattr(_compile, "can_run_at_once", lambda kind: True)
    fit()
    assert not called


def test_a_decision_holds_for_the_whole_fit(called):
    """A fit that began plain stays plain, although other fits are compiled between its epochs."""
    samples, rng = Samples(X, Y), np.random.default_rng(0)
    trainer = Trainer(AffineInvariant(), sigma2=1.0, max_epochs=2)
    state = trainer.init(samples, 4, rng)
    for _ in trainer.epochs(trainer.begin(state, rng), samples, rng):
        fit()
        fit()
        fit()
    assert len(called) == 10  # two epochs of each inner fit but the first, and no outer epoch


def test_a_fit_whose_plain_steps_take_longer_than_compiling_compiles_at_once(called):
    trainer = Trainer(AffineInvariant(), sigma2=1.0, max_epochs=6)
    samples, rng = Samples(X, Y), np.random.default_rng(0)
    trainer.run(trainer.init(samples, 4, rng), samples, rng)
    assert len(called) == 6


def test_batches_decide_for_their_own_kernel(called, monkeypatch):
    monkeypatch.setattr("rplvq.manifolds._affine_invariant.FEW_PAIRS", 2)  # at least 20 / n pairs
    fit(batch_size=5)
    assert not called
    monkeypatch.setattr(_compile, "COMPILING", -1.0)
    _compile.forget()
    fit(batch_size=5)
    assert set(called) == {"batch_spectra", "batch_eigenvalues"}


def test_true_compiles_at_once_and_false_never(called):
    fit(metric=AffineInvariant(compiled=True))
    assert called.count("run_steps") == 2
    assert set(called) == {"run_steps", "batch_eigenvalues"}
    called.clear()
    fit(metric=AffineInvariant(compiled=False))
    assert not called


def test_verbose_says_when_a_fit_compiles(called, capsys):
    for verbose in (0, 1, 1, 1):
        fit(verbose=verbose)
    assert capsys.readouterr().err.count("rplvq: compiles steps") == 1


def test_an_outer_decision_has_precedence():
    with one_decision(Decision(0.0, is_compiled=True)), one_decision(Decision(0.0, is_compiled=False)):
        assert runs_compiled(KIND, 1e-5, 1)
    assert not runs_compiled(KIND, 1e-9, 1)


def test_the_estimate_grows_with_the_work_and_is_zero_where_lapack_is_faster():
    assert 0 < saved_seconds(3, 4, False) < saved_seconds(10, 4, False)
    assert saved_seconds(10, 4, False) < saved_seconds(10, 8, False)
    assert saved_seconds(60, 4, False) == 0


@pytest.fixture
def known(monkeypatch, called):
    """The real memory of which kernels can run, as in a new process."""
    monkeypatch.undo()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compile, "_called", set())
        patch.setattr(_compile, "_places", {})
        yield patch


def test_a_kernel_that_ran_is_known_to_this_process_and_to_later_ones(known, tmp_path):
    pytest.importorskip("numba")
    assert not _compile.can_run_at_once(KIND)
    _compile.note_place(("run_steps",), tmp_path, "a")
    assert not _compile.can_run_at_once(KIND)
    _compile.note_call(KIND)
    assert _compile.can_run_at_once(KIND)
    _compile._called.clear()
    assert _compile.can_run_at_once(KIND)
    assert not _compile.can_run_at_once(("run_steps", 2, 4))
    _compile.note_place(("run_steps",), tmp_path, "b")
    assert not _compile.can_run_at_once(KIND)
    _compile.note_place(("run_steps",), tmp_path, "a")
    known.setattr(_compile, "version", lambda name: "another")
    assert not _compile.can_run_at_once(KIND)


def test_a_folder_that_is_not_writable_is_no_error(known):
    pytest.importorskip("numba")
    _compile.note_place(("run_steps",), Path(os.devnull), "a")
    _compile.note_call(KIND)
    assert KIND in _compile._called


@pytest.mark.parametrize("call", ["encode", "nearest"])
def test_encoding_and_prediction_compile_once_that_pays(called, monkeypatch, call):
    many = np.repeat(X, 40, axis=0)
    manifold = LogEuclidean() if call == "encode" else AffineInvariant()

    def work():
        return manifold.encode(many) if call == "encode" else manifold.nearest(X[:8], many)

    first = work()
    assert not called
    monkeypatch.setattr(_compile, "COMPILING", -1.0)
    _compile.forget()
    np.testing.assert_allclose(work(), first, atol=1e-12)
    assert set(called) == ({"batch_logs"} if call == "encode" else {"batch_eigenvalues", "batch_inverses"})


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_a_short_script_compiles_nothing_and_ends_quietly(tmp_path):
    code = (
        "from rplvq import RiemannianLVQ\nfrom rplvq.datasets import make_syn1\n"
        "X, y = make_syn1(n_per_class=5, random_state=0)\nRiemannianLVQ(sigma2=1.0, max_epochs=2).fit(X, y)"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout == ran.stderr == ""
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".nbc", ".nbi", ".nbready")]
