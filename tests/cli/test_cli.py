"""The command line: report, exit status, one line for every wrong argument."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest

from rplvq.cli import main
from rplvq.cli._data import load_data
from rplvq.datasets import load_digits_covariances, make_syn1, make_syn2
from rplvq.evaluation import compare
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
    assert "samples: 36 of shape (4, 4)" in captured.out
    for metric in ("affine_invariant", "log_euclidean"):
        for kind in ("rslvq", "MDM"):
            assert f" {metric} {kind} " in captured.out
    assert "/12" in captured.err  # progress: 4 methods in 3 folds
    assert "/12" not in captured.out
    assert f"command: python -m rplvq compare --data {data} --epochs 1" in " ".join(captured.out.split())
    *_, training, metrics = captured.out.strip().split("\n\n")
    assert " MDM" in training
    assert "metrics" in metrics
    for sentence in (training, metrics):
        number = r"[+-]\d\.\d{4}"
        facts = rf"difference {number} \(95% confidence interval {number} to {number}, p [=<] [01]\.\d{{3}}\)"
        assert re.search(facts, " ".join(sentence.split()))
        assert sentence.endswith(".")


def test_report_holds_tables_and_picture(data, tmp_path, capsys):
    out = tmp_path / "new" / "report"
    options = ["--metrics", "riemann,log_euclidean", "euclid", "--costs", "plvq", "rslvq", "--repeats", "2"]
    assert main(["compare", "--data", data, *FAST, *options, "--out", str(out), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    names = ["comparison.txt", "comparison.csv", "comparison.md", "comparison.tex", "comparison.png", "folds.csv"]
    names.append("differences.csv")
    assert captured.out.startswith("written: " + ", ".join(str(out / name) for name in names))
    assert sorted(path.name for path in out.iterdir()) == sorted(names)
    assert (out / "comparison.txt").read_text(encoding="utf-8") in captured.out
    with open(out / "comparison.csv", newline="", encoding="utf-8") as file:
        names = [row["estimator"] for row in csv.DictReader(file)]
    assert names == [f"{m} {c}" for m in ("riemann", "log_euclidean", "euclid") for c in ("plvq", "rslvq", "MDM")]
    with open(out / "folds.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 9 * 3 * 2
    assert "| euclid MDM |" in (out / "comparison.md").read_text(encoding="utf-8")
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_files_are_written_by_their_suffix(data, tmp_path, capsys):
    begins = {"a.txt": b"data:", "a.csv": b"estimator,", "a.md": b"- data", "A.TEX": b"\\begin{tabular}"}
    begins |= {"a.png": b"\x89PNG", "a.svg": b"<?xml", "a.pdf": b"%PDF"}
    paths = [str(tmp_path / name) for name in begins]
    assert main(["compare", "--data", data, *FAST, "--metrics", "logeuclid", "--quiet", "--out", *paths]) == 0
    for name, begin in begins.items():
        content = (tmp_path / name).read_bytes()
        assert content.startswith(begin)
        if name[-3:] not in ("png", "svg", "pdf"):
            assert b"logeuclid MDM" in content
    assert {path.name for path in tmp_path.iterdir()} == {"data.npz", *begins}


def test_an_unknown_suffix_is_refused_before_training(data, tmp_path, capsys):
    line = fails(capsys, ["compare", "--data", data, *FAST, "--out", str(tmp_path / "a.xlsx")])
    assert "a.xlsx' is no folder, and its suffix is not one of .txt, .csv, .md" in line


def test_wilcoxon_is_used_if_it_is_named(data, capsys):
    command = ["compare", "--data", data, *FAST, "--metrics", "logeuclid", "--quiet", "--json"]
    found = {}
    for test in ("corrected_t", "wilcoxon"):
        assert main([*command, "--test", test]) == 0
        found[test] = json.loads(capsys.readouterr().out)
        assert found[test]["test"] == test
    assert found["wilcoxon"]["differences"][0]["p"] in (0.25, 0.5, 0.75, 1.0)  # of three folds
    assert found["wilcoxon"]["rows"][0]["accuracy_mean"] == found["corrected_t"]["rows"][0]["accuracy_mean"]


def test_groups_stay_together(tmp_path, capsys):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    subject = np.array([f"s{i}" for i in range(3)])[np.arange(36) % 3]
    np.savez(tmp_path / "data.npz", X=X, y=y, subject=subject)
    np.save(tmp_path / "subject.npy", subject)
    tables = []
    for groups in ("subject", str(tmp_path / "subject.npy")):
        command = ["compare", "--data", str(tmp_path / "data.npz"), *FAST, "--metrics", "logeuclid", "--quiet"]
        assert main([*command, "--json", "--groups", groups]) == 0
        tables.append(json.loads(capsys.readouterr().out))
    splits = (
        "3 folds stratified by class, with the samples of each of 3 groups together; 24 training and 12 test samples"
    )
    assert tables[0]["about"]["splits"] == splits
    scores = [[(row["estimator"], row["accuracy"]) for row in table["folds"]] for table in tables]
    assert scores[0] == scores[1]
    wanted = compare(X, y, ["logeuclid"], cv=3, groups=subject, random_state=0)
    mdm = [score for name, score in scores[0] if name.endswith("MDM")]
    np.testing.assert_array_equal(mdm, wanted.of("accuracy")[1])


def test_a_metric_without_a_reference_yet_is_checked_and_compared(tmp_path, capsys):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    command = ["compare", "--data", str(tmp_path / "data.npz"), *FAST, "--metrics", "tangent", "--quiet"]
    np.savez(tmp_path / "data.npz", X=X, y=y)
    assert main([*command, "--json"]) == 0
    found = {row["estimator"]: row["accuracy_mean"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert found.keys() == {"tangent rslvq", "tangent MDM"}
    assert min(found.values()) > 0.7
    X[5] *= -1
    np.savez(tmp_path / "data.npz", X=X, y=y)
    assert main(command) != 0
    assert "metric tangent: X[5] is not positive definite" in capsys.readouterr().err


def test_samples_are_drawn_by_class(capsys):
    command = ["compare", *FAST, "--metrics", "logeuclid", "--quiet", "--json", "--samples", "100"]
    assert main(command) == 0
    about = json.loads(capsys.readouterr().out)["about"]
    assert about["data"] == "digits, 100 of 1797 samples, drawn by class"
    assert about["samples"] == "100 of shape (5, 5)"
    counts = [int(count) for count in re.findall(r": (\d+)", about["classes"])]
    assert sum(counts) == 100
    assert set(counts) <= {9, 10, 11}


def test_baselines_stand_beside(data, capsys):
    pytest.importorskip("pyriemann")
    command = ["compare", "--data", data, *FAST, "--metrics", "riemann", "--baselines", "mdm,tangent_space", "--quiet"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["estimator"]: row for row in found["rows"]}
    assert rows["pyRiemann MDM"]["accuracy_mean"] == rows["riemann MDM"]["accuracy_mean"]
    assert rows["pyRiemann MDM"]["sigma2"] is None
    assert "tangent space + logistic regression" in found["conclusions"][-1]
    assert "pyriemann" in found["about"]["versions"]


def test_baselines_without_pyriemann_take_one_line(data, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyriemann.classification", None)
    line = fails(capsys, ["compare", "--data", data, *FAST, "--baselines", "mdm"])
    assert line.endswith("the baselines 'mdm' need pyRiemann: pip install \".[paper]\" in the folder of rplvq")


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
    assert (
        captured.err
        == 'rplvq: no comparison.png: plotting needs matplotlib: pip install ".[plot]" in the folder of rplvq\n'
    )
    written = ["comparison.csv", "comparison.md", "comparison.tex", "comparison.txt", "differences.csv", "folds.csv"]
    assert sorted(path.name for path in out.iterdir()) == written


def test_runs_as_a_module_in_a_process_of_its_own(data, tmp_path):
    command = [sys.executable, "-m", "rplvq", "compare", "--data", data, *FAST, "--metrics", "euclid"]
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
    assert "compare --out report figure.pdf" in text
    assert "default: 20" in text


def test_datasets_go_by_name_and_seed():
    for name, make in [("syn1", make_syn1), ("syn2", make_syn2)]:
        X, y, _ = load_data([name], 3)
        np.testing.assert_array_equal(X, make(random_state=3)[0])
        assert len(y) == 1000
    np.testing.assert_array_equal(load_data(["digits"], 3)[0], load_digits_covariances()[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: {compare,train,predict,stream,info}"),
        (["learn"], "invalid choice: 'learn'"),
        (["compare", "--wrong"], "unrecognized arguments: --wrong"),
        (["compare", "--epoch", "3"], "unrecognized arguments: --epoch 3"),
        (["compare", "--metrics", "riemann,manhattan"], "'manhattan' is not one of affine_invariant"),
        (["compare", "--metrics", ","], "',' is not one of"),
        (["compare", "--costs", "hinge"], "'hinge' is not one of rslvq, plvq"),
        (["compare", "--prototypes", "0"], "--prototypes: must be an integer of at least 1, got '0'"),
        (["compare", "--splits", "1"], "--splits: must be an integer of at least 2, got '1'"),
        (["compare", "--repeats", "x"], "--repeats: must be an integer of at least 1, got 'x'"),
        (["compare", "--seed", "4294967296"], "from 0 to 4294967295, got '4294967296'"),
        (["compare", "--test", "sign"], "argument --test: invalid choice: 'sign'"),
        (["compare", "--baselines", "lda"], "'lda' is not one of mdm, tangent_space"),
        (["compare", "--samples", "1798"], "--samples 1798 is more than the 1797 samples of --data"),
        (["compare", "--samples", "5"], "--samples 5: "),
        (["compare", "--groups", "subject"], "--groups 'subject': digits holds no groups, give a .npy file"),
        (["compare", "--groups", "absent.npy"], "--groups 'absent.npy' is not a file"),
        (["compare", "--jobs", "0"], "--jobs: must be a number of processes up to 9999, or -1"),
        (["compare", "--jobs", "1" + "0" * 30], "--jobs: must be a number of processes up to 9999, or -1"),
        (["compare", "--jobs", "two"], "got 'two'"),
        (["compare", "--sigma2", "-1"], "--sigma2: must be auto or a positive number, got '-1'"),
        (["compare", "--sigma2", "inf"], "got 'inf'"),
        (["compare", "--sigma2", "wide"], "got 'wide'"),
        (["compare", "--data", "absent.npz"], "'absent.npz' is neither a file nor a folder nor one of syn1, syn2"),
        (["compare", "--data", "."], "'.' is a folder without .npz and .npy files"),
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


def test_groups_that_do_not_fit_take_one_line(data, tmp_path, capsys):
    command = ["compare", "--data", data, *FAST, "--quiet", "--groups"]
    assert "it has no member 'subject', only ['X', 'y']" in fails(capsys, [*command, "subject"])
    np.save(tmp_path / "short.npy", np.arange(5))
    assert "groups must have shape (36,)" in fails(capsys, [*command, str(tmp_path / "short.npy")])
    np.save(tmp_path / "two.npy", np.arange(36) % 2)
    assert "cv=3 folds need as many groups, but groups has 2" in fails(capsys, [*command, str(tmp_path / "two.npy")])


def test_a_report_can_not_replace_a_file(data, capsys):
    assert "is a file, not a folder" in fails(capsys, ["compare", "--data", data, *FAST, "--out", data, "--quiet"])
    below = os.path.join(data, "report")
    assert "data.npz" in fails(capsys, ["compare", "--data", data, *FAST, "--out", below, "--quiet"])
