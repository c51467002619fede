"""Under compiled="auto" a fit is compiled or plain as a whole, and a process compiles once compiling pays."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from rplvq import AffineInvariant, RiemannianLVQ, Trainer
from rplvq.arrays import Samples
from rplvq.datasets import make_syn1
from rplvq.training.compiled import PLAIN, Decision, Kernels, _build, _decision, one_decision, runs_compiled

X, Y = make_syn1(n_per_class=5, random_state=0)
X = X[:, :3, :3]
KIND = "run_steps", 1, 4


@pytest.fixture(autouse=True)
def called(monkeypatch):
    """Nothing is stored, and compiling takes as long as 2.5 fits save; returns the kernels that were called."""
    found = []

    def noted(name):
        def kernel(*arguments):
            found.append(name)
            return getattr(PLAIN, name)(*arguments)

        return kernel

    kernels = Kernels(*map(noted, Kernels._fields))
    for module in ("_step", "compiled._batches"):
        monkeypatch.setattr(f"rplvq.training.{module}.compiled_kernels", lambda: kernels)
    monkeypatch.setattr(_decision, "can_run_at_once", lambda *kind: False)
    saved = 2 * len(X) * _decision.saved_seconds(3, 4, False)
    assert saved > 0
    monkeypatch.setattr(_decision, "COMPILING", 2.5 * saved)
    _decision.forget()
    yield found
    _decision.forget()


def fit(**settings):
    return RiemannianLVQ(sigma2=1.0, max_epochs=2, random_state=0, **settings).fit(X, Y)


def test_fits_are_plain_until_they_would_have_saved_the_time_of_compiling(called):
    counts = []
    for _ in range(4):
        fit()
        counts.append(len(called))
    assert counts == [0, 0, 2, 4]  # one call per epoch


def test_plain_fits_give_the_bits_of_compiled_false(called):
    expected = fit(manifold=AffineInvariant(compiled=False)).prototypes_
    np.testing.assert_array_equal(fit().prototypes_, expected)


def test_what_is_stored_is_used_at_once(called, monkeypatch):
    asked = []
    monkeypatch.setattr(_decision, "can_run_at_once", lambda *kind: asked.append(kind) or True)
    fit()
    assert called == ["run_steps"] * 2
    assert asked == [KIND]


def test_what_another_process_stores_later_does_not_change_a_process(called, monkeypatch):
    fit()
    monkeypatch.setattr(_decision, "can_run_at_once", lambda *kind: True)
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
    monkeypatch.setattr("rplvq.training.compiled._batches.is_worthwhile", lambda *_: True)
    fit(batch_size=5)
    assert not called
    monkeypatch.setattr(_decision, "COMPILING", -1.0)
    _decision.forget()
    fit(batch_size=5)
    assert set(called) == {"batch_spectra"}


def test_true_compiles_at_once_and_false_never(called):
    fit(manifold=AffineInvariant(compiled=True))
    assert len(called) == 2
    fit(manifold=AffineInvariant(compiled=False))
    assert len(called) == 2


def test_verbose_says_when_a_fit_compiles(called, capsys):
    for verbose in (0, 1, 1, 1):
        fit(verbose=verbose)
    assert capsys.readouterr().err.count("rplvq: compiles the training steps") == 1


def test_an_outer_decision_has_precedence():
    with one_decision(Decision(0.0, is_compiled=True)), one_decision(Decision(0.0, is_compiled=False)):
        assert runs_compiled("run_steps", 3, 4, False, 1)
    assert not runs_compiled("run_steps", 3, 4, False, 1)


def test_the_estimate_grows_with_the_work_and_is_zero_where_lapack_is_faster():
    assert 0 < _decision.saved_seconds(3, 4, False) < _decision.saved_seconds(10, 4, False)
    assert _decision.saved_seconds(10, 4, False) < _decision.saved_seconds(10, 8, False)
    assert _decision.saved_seconds(60, 4, False) == 0


def test_a_kernel_that_ran_is_known_to_this_process_and_to_later_ones(monkeypatch, tmp_path):
    pytest.importorskip("numba")
    for name, value in {"_called": set(), "_folders": [tmp_path], "source_hash": lambda: "a"}.items():
        monkeypatch.setattr(_build, name, value)
    assert not _build.can_run_at_once(*KIND)
    _build.note_call(tmp_path, "a", KIND)
    assert _build.can_run_at_once(*KIND)
    _build._called.clear()
    assert _build.can_run_at_once(*KIND)
    assert not _build.can_run_at_once("run_steps", 2, 4)
    monkeypatch.setattr(_build, "version", lambda name: "another")
    assert not _build.can_run_at_once(*KIND)


def test_a_folder_that_is_not_writable_is_no_error(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(_build, "_called", set())
    _build.note_call(_build.Path(os.devnull), "a", KIND)
    assert KIND in _build._called


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
