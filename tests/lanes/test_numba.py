"""numba is used if it works; a numba that is disabled, broken or interrupted while it is imported changes nothing."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from rplvq.lanes import _compile

FIT = """
import warnings
from rplvq import Recenter, RiemannianLVQ
from rplvq.datasets import make_syn1
X, y = make_syn1(n_per_class=15, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    Recenter().fit_transform(X)
    for metric in ("affine_invariant", "log_euclidean", "euclid"):
        model = RiemannianLVQ(metric, sigma2=1.0, max_epochs=2, random_state=0).fit(X, y)
        print(model.predict(X.repeat(20, axis=0)).sum())
print([str(each.message) for each in caught])
"""
INTERRUPTED = """
import signal, sys
class Interrupt:
    def find_spec(self, name, *others):
        if name == "numba.core.typing":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from rplvq import AffineInvariant, RiemannianLVQ
from rplvq.datasets import make_syn1
X, y = make_syn1(n_per_class=15, random_state=0)
model = RiemannianLVQ(AffineInvariant(compiled=True), sigma2=1.0, max_epochs=2, random_state=0)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted")
print(model.fit(X, y).score(X, y) > 0.9)
"""
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


def run(code: str, **environment: str) -> list[str]:
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@needs_numba
def test_a_numba_that_is_told_not_to_compile_leaves_the_plain_steps() -> None:
    lines = run(FIT, NUMBA_DISABLE_JIT="1")
    assert len(lines) == 4
    assert lines[-1] == "[]"


WORDS = "numba is installed but cannot be used, so steps are not compiled: {}: it needs an older NumPy"


def broken_numba(folder: Path, error: str) -> None:
    (folder / "numba.py").write_text(f"raise {error}('it needs an older NumPy')")


def test_a_numba_that_cannot_be_imported_leaves_the_plain_steps_and_one_warning(tmp_path) -> None:
    broken_numba(tmp_path, "ImportError")
    assert run(FIT, PYTHONPATH=str(tmp_path))[-1] == str([WORDS.format("ImportError")])


@pytest.mark.parametrize("error", ["RuntimeError", "OSError"])
def test_a_numba_that_fails_in_another_way_is_not_used_either(tmp_path, monkeypatch, error) -> None:
    broken_numba(tmp_path, error)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    with pytest.warns(RuntimeWarning, match=WORDS.format(error)):
        assert not _compile.can_compile.__wrapped__()


@needs_numba
def test_interrupting_the_import_of_numba_leaves_a_process_that_can_fit() -> None:
    assert run(INTERRUPTED)[-1] == "True"
