"""The command line: report, exit status, one line for every wrong argument."""

from __future__ import annotations

import csv
import os
import pathlib
import runpy
import subprocess
import sys

import numpy as np
import pytest

from rplvq.cli import main
from rplvq.cli._data import load_data
from rplvq.datasets import load_digits_covariances, make_syn1, make_syn2
from tests.commands import FAST, fails

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def data(tmp_path):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    return str(tmp_path / "data.npz")


def test_default_methods_stand_side_by_side(data, capsys):
    assert main(["compare", "--data", data, *FAST]) == 0
    captured = capsys.readouterr()
    assert "36 samples of shape (4, 4)" in captured.out
    for metric in ("affine_invariant", "log_euclidean", "euclidean"):
        for kind in ("rslvq", "MDM"):
            assert f" {metric} {kind} " in captured.out
    assert "/18" in captured.err  # progress: 6 methods in 3 folds
    assert "/18" not in captured.out


def test_report_holds_tables_and_picture(data, tmp_path, capsys):
    out = tmp_path / "new" / "report"
    options = ["--metrics", "riemann,log_euclidean", "euclid", "--costs", "plvq", "rslvq", "--repeats", "2"]
    assert main(["compare", "--data", data, *FAST, *options, "--out", str(out), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert f"written to {out}: comparison.csv, folds.csv, comparison.md, comparison.png" in captured.out
    with open(out / "comparison.csv", newline="", encoding="utf-8") as file:
        names = [row["estimator"] for row in csv.DictReader(file)]
    assert names == [f"{m} {c}" for m in ("riemann", "log_euclidean", "euclid") for c in ("plvq", "rslvq", "MDM")]
    with open(out / "folds.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 9 * 3 * 2
    assert "| euclid MDM |" in (out / "comparison.md").read_text(encoding="utf-8")
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_seeds_repeat_a_run(data, tmp_path, capsys):
    scores = {}
    for name, seed in [("a", "1"), ("b", "1"), ("c", "2")]:
        out = tmp_path / name
        options = ["--metrics", "euclid", "--sigma2", "0.5", "--seed", seed, "--out", str(out)]
        assert main(["compare", "--data", data, *FAST, *options]) == 0
        with open(out / "folds.csv", newline="", encoding="utf-8") as file:
            scores[name] = [(row["estimator"], row["accuracy"], row["kappa"]) for row in csv.DictReader(file)]
    assert scores["a"] == scores["b"] != scores["c"]


def test_without_matplotlib_only_the_picture_is_missing(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    out = tmp_path / "report"
    assert main(["compare", "--data", data, *FAST, "--metrics", "euclid", "--out", str(out), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.err == 'rplvq: no comparison.png: plotting needs matplotlib: pip install "rplvq[plot]"\n'
    assert sorted(path.name for path in out.iterdir()) == ["comparison.csv", "comparison.md", "folds.csv"]


def test_runs_as_a_module_in_a_process_of_its_own(data, tmp_path):
    command = [
        sys.executable,
        "-m",
        "rplvq",
        "compare",
        "--data",
        data,
        *FAST,
        "--metrics",
        "euclid",
        "--sigma2",
        "0.5",
    ]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "euclid rslvq" in done.stdout
    assert "Traceback" not in done.stderr


def test_module_exits_with_the_status_of_main(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rplvq", "compare", "--epochs", "-1"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(REPOSITORY / "rplvq" / "__main__.py"), run_name="__main__")
    assert caught.value.code == 2
    assert "--epochs: must be an integer of at least 0, got '-1'" in capsys.readouterr().err


def test_help_shows_examples_and_defaults(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["compare", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "--data digits --out report" in text
    assert "default: 20" in text


def test_datasets_go_by_name_and_seed():
    for name, make in [("syn1", make_syn1), ("syn2", make_syn2)]:
        X, y = load_data(name, 3)
        np.testing.assert_array_equal(X, make(random_state=3)[0])
        assert len(y) == 1000
    np.testing.assert_array_equal(load_data("digits", 3)[0], load_digits_covariances()[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: {compare,fit,predict,info}"),
        (["train"], "invalid choice: 'train'"),
        (["compare", "--wrong"], "unrecognized arguments: --wrong"),
        (["compare", "--epoch", "3"], "unrecognized arguments: --epoch 3"),
        (["compare", "--metrics", "riemann,manhattan"], "'manhattan' is not one of affine_invariant"),
        (["compare", "--metrics", ","], "',' is not one of"),
        (["compare", "--costs", "hinge"], "'hinge' is not one of rslvq, plvq"),
        (["compare", "--prototypes", "0"], "--prototypes: must be an integer of at least 1, got '0'"),
        (["compare", "--splits", "1"], "--splits: must be an integer of at least 2, got '1'"),
        (["compare", "--repeats", "x"], "--repeats: must be an integer of at least 1, got 'x'"),
        (["compare", "--seed", "4294967296"], "from 0 to 4294967295, got '4294967296'"),
        (["compare", "--jobs", "0"], "--jobs: must be a number of processes up to 9999, or -1"),
        (["compare", "--jobs", "1" + "0" * 30], "--jobs: must be a number of processes up to 9999, or -1"),
        (["compare", "--jobs", "two"], "got 'two'"),
        (["compare", "--sigma2", "-1"], "--sigma2: must be auto or a positive number, got '-1'"),
        (["compare", "--sigma2", "inf"], "got 'inf'"),
        (["compare", "--sigma2", "wide"], "got 'wide'"),
        (["compare", "--data", "absent.npz"], "'absent.npz' is neither a file nor one of syn1, syn2, digits"),
        (["compare", "--data", "."], "'.' is neither a file nor one of"),
    ],
)
def test_wrong_arguments_take_one_line(capsys, arguments, message):
    assert message in fails(capsys, arguments)


def test_more_prototypes_than_samples_take_one_line(data, capsys):
    line = fails(capsys, ["compare", "--data", data, *FAST, "--prototypes", "7", "--quiet"])
    assert "estimator 'affine_invariant rslvq' failed in fold 0: class 0 has 6 sample(s)" in line


def test_training_that_fails_takes_one_line_and_status_one(data, capsys, monkeypatch):
    def diverge(self, X, y):
        raise FloatingPointError("training diverged\nin epoch 3")

    monkeypatch.setattr("rplvq.RiemannianLVQ.fit", diverge)
    line = fails(capsys, ["compare", "--data", data, *FAST, "--quiet"], status=1)
    assert "failed in fold 0: FloatingPointError: training diverged in epoch 3" in line


def test_an_interrupt_takes_one_line(data, capsys, monkeypatch):
    def interrupt(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr("rplvq.RiemannianLVQ.fit", interrupt)
    assert "interrupted" in fails(capsys, ["compare", "--data", data, *FAST, "--quiet"], status=130)


def test_a_report_can_not_replace_a_file(data, capsys):
    assert "is a file, not a folder" in fails(capsys, ["compare", "--data", data, *FAST, "--out", data, "--quiet"])
    below = os.path.join(data, "report")
    assert "data.npz" in fails(capsys, ["compare", "--data", data, *FAST, "--out", below, "--quiet"])
