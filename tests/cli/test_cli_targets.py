"""Files that the command line writes: checked before training, then whole or untouched, also after Ctrl-C."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rplvq import RiemannianLVQ, Trainer, load_model
from rplvq.cli import _models as models
from rplvq.cli import main
from rplvq.datasets import make_syn1
from tests.commands import FAST, fails

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    RiemannianLVQ("log_euclidean", sigma2=1.0, max_epochs=1, random_state=0).fit(X, y).save(tmp_path / "old.npz")
    return tmp_path


def writing(folder, option, target):
    """A command that writes to ``target`` by an option."""
    data, model, new = (str(folder / name) for name in ("data.npz", "old.npz", "new.npz"))
    return {
        "fit --model": ["fit", "--data", data, "--model", target, "--epochs", "3", "--quiet"],
        "fit --checkpoint": ["fit", "--data", data, "--model", new, "--checkpoint", target, "--epochs", "3", "--quiet"],
        "predict --out": ["predict", "--data", data, "--model", model, "--out", target],
        "compare --out": ["compare", "--data", data, *FAST, "--metrics", "euclid", "--quiet", "--out", target],
    }[option]


OPTIONS = ["fit --model", "fit --checkpoint", "predict --out", "compare --out"]
BAD = {
    "an empty name": lambda folder: "",
    "a folder": lambda folder: str(folder),
    "a folder by its slash": lambda folder: f"{folder}/new/",
    "a name that is too long": lambda folder: str(folder / ("a" * 300)),
    "a folder that does not exist": lambda folder: str(folder / "absent" / "new"),
    "a file as a folder": lambda folder: str(folder / "data.npz" / "new"),
    "a device": lambda folder: os.devnull,
    "a read-only place": lambda folder: "/proc/new",
}


def never(*_, **__):
    raise AssertionError("it trained or predicted before the target was checked")


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", BAD)
def test_a_target_that_cannot_be_written_is_found_before_training(folder, capsys, monkeypatch, option, kind):
    if "read-only" in kind and not os.path.isdir("/proc"):
        pytest.skip("there is no /proc here")
    if option == "compare --out" and kind in ("a folder", "a folder by its slash", "a folder that does not exist"):
        pytest.skip("compare writes into a folder and makes it")
    target, before = BAD[kind](folder), sorted(folder.rglob("*"))
    for method in ("fit", "predict"):
        monkeypatch.setattr(RiemannianLVQ, method, never)
    monkeypatch.setattr(os, "replace", never)  # a device of this machine must survive a test that fails
    line = fails(capsys, writing(folder, option, target))
    assert target.rstrip("/") in line
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["comparison.csv", "folds.csv", "comparison.tex", "comparison.png"])
def test_a_file_of_a_report_that_cannot_be_written_is_found_before_training(folder, capsys, monkeypatch, name):
    (folder / "report" / name).mkdir(parents=True)
    monkeypatch.setattr(RiemannianLVQ, "fit", never)
    assert name in fails(capsys, writing(folder, "compare --out", str(folder / "report")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("option", OPTIONS)
def test_named_pipes_stay(folder, capsys, option):
    os.mkfifo(folder / "pipe")
    assert "pipe" in fails(capsys, writing(folder, option, str(folder / "pipe")))
    assert (folder / "pipe").is_fifo()


def test_the_model_and_the_checkpoint_are_two_files(folder, capsys):
    line = fails(capsys, [*writing(folder, "fit --model", "m.npz"), "--checkpoint", "./m.npz"])
    assert "--checkpoint and --model are the same file, 'm.npz'" in line


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("train --data d.npz --model d.npz", "--model and --data are the same file, 'd.npz'"),
        ("train --data d.npz --model m.npz --checkpoint ./d.npz", "--checkpoint and --data are the same file"),
        ("predict --data d.npz --model m.npz --out d.npz", "--out and --data are the same file"),
        ("predict --data d.npz --model m.npz --out m.npz", "--out and --model are the same file"),
        ("stream --data d.npz --model m.npz --save d.npz", "--save and --data are the same file"),
        ("stream --data d.npz --model m.npz --groups g.npy --out g.npy", "--out and --groups are the same file"),
    ],
)
def test_no_command_replaces_its_input(folder, capsys, monkeypatch, command, sentence):
    monkeypatch.chdir(folder)
    for name in ("d.npz", "m.npz", "g.npy"):
        (folder / name).write_bytes(b"as it was")
    assert sentence in fails(capsys, command.split())
    assert all(content == b"as it was" for name, content in contents(folder).items() if name in ("d.npz", "m.npz"))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_full_disk_leaves_the_old_files(folder, capsys, monkeypatch, option):
    target = folder / ("report" if "compare" in option else "target.npz")
    assert main(writing(folder, option, str(target))) == 0
    if option == "fit --checkpoint":
        (folder / "new.npz").write_bytes(b"an old model")
    capsys.readouterr()
    before = contents(folder)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert main(writing(folder, option, str(target))) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C in the third epoch, once."""
    sweep, calls = Trainer.sweep, []

    def sweep_or_stop(*arguments, **settings):
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return sweep(*arguments, **settings)

    monkeypatch.setattr(Trainer, "sweep", sweep_or_stop)


FIT = ["--epochs", "5", "--sigma2", "1.5", "--quiet", "--json"]


@pytest.mark.parametrize(
    "settings", [[], ["--metric", "log_euclidean"], ["--cost", "plvq", "--prototypes", "2"]], ids=str
)
@pytest.mark.parametrize("keeps", [False, True], ids=["without a checkpoint", "with a checkpoint"])
def test_an_interrupted_fit_keeps_the_old_model(folder, capsys, interrupted, settings, keeps):
    model, checkpoint = folder / "old.npz", folder / "checkpoint.npz"
    command = ["fit", "--data", str(folder / "data.npz"), "--model", str(model), *FIT, *settings]
    command += ["--checkpoint", str(checkpoint)] if keeps else []
    before = contents(folder)
    assert "interrupted" in fails(capsys, command, status=130)
    after = contents(folder)
    assert after.pop("checkpoint.npz", None) if keeps else True
    assert after == before
    assert main(command) == 0  # with the checkpoint it continues
    assert not checkpoint.exists()
    data = np.load(folder / "data.npz")
    loaded = load_model(model)
    whole = RiemannianLVQ(**loaded.get_params(deep=False)).fit(data["X"], data["y"])
    np.testing.assert_array_equal(loaded.prototypes_, whole.prototypes_)
    assert loaded.n_epochs_ == 5


def test_a_checkpoint_of_another_fit_stays_and_is_refused(folder, capsys, interrupted):
    command = [
        "fit",
        "--data",
        str(folder / "data.npz"),
        "--model",
        str(folder / "new.npz"),
        "--sigma2",
        "1",
        "--quiet",
    ]
    command += ["--checkpoint", str(folder / "c.npz"), "--epochs", "3"]
    assert "interrupted" in fails(capsys, command, status=130)
    assert "a fit with max_epochs=3" in fails(capsys, [*command[:-1], "7"])
    assert (folder / "c.npz").exists()
    assert not (folder / "new.npz").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends Ctrl-C in another way")
def test_ctrl_c_ends_the_process_with_status_130(folder):
    model, checkpoint = str(folder / "old.npz"), folder / "checkpoint.npz"
    before = (folder / "old.npz").read_bytes()
    command = [sys.executable, "-m", "rplvq", "fit", "--data", str(folder / "data.npz"), "--model", model]
    command += ["--epochs", "1000000", "--sigma2", "1", "--quiet", "--checkpoint", str(checkpoint)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    # A shell starts background jobs with an ignored SIGINT, and this test may run in one.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, preexec_fn=heed) as process:
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 130, errors
    assert len(errors.splitlines()) == 1
    assert (folder / "old.npz").read_bytes() == before
    assert checkpoint.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends Ctrl-C in another way")
@pytest.mark.parametrize("module", ["sklearn.base", "rplvq.cli._options"])
def test_ctrl_c_during_the_imports_says_one_line_and_leaves_the_old_model(folder, module):
    (folder / "sitecustomize.py").write_text(
        "import signal, sys\nclass Interrupt:\n    def find_spec(self, name, *others):\n"
        f"        if name == {module!r}:\n            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    before = (folder / "old.npz").read_bytes()
    command = [sys.executable, "-m", "rplvq", "fit", "--data", str(folder / "data.npz"), "--quiet", "--model"]
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{REPOSITORY}"}
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    ran = subprocess.run(
        [*command, "old.npz"], cwd=folder, env=environment, capture_output=True, check=False, preexec_fn=heed
    )
    assert (ran.returncode, len(ran.stderr.splitlines())) == (130, 1), ran.stderr
    assert (folder / "old.npz").read_bytes() == before


def test_ctrl_c_after_the_model_is_written_comes_too_late(folder, monkeypatch, capsys):
    def shown_late(*arguments):
        signal.raise_signal(signal.SIGINT)
        show(*arguments)

    show = models._say
    monkeypatch.setattr(models, "_say", shown_late)
    assert main(["fit", "--data", str(folder / "data.npz"), "--model", str(folder / "new.npz"), *FIT]) == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 5
    assert load_model(folder / "new.npz").n_epochs_ == 5
