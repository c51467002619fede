"""The experiments of examples/beyond: small runs of each, and the page made from the records."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from examples.beyond import recentering, rejection, report, report_default, report_summary, stream, transfer, votes
from examples.beyond.__main__ import EXPERIMENTS, RESULTS
from examples.paper import data
from examples.paper.runner import load, pending, run

pytestmark = pytest.mark.slow  # trains experiments or examples, which takes minutes in all

needs_bci = pytest.mark.skipif(not data.is_available("bci2a_cov22.npz"), reason="needs bci2a_cov22.npz")


@needs_bci
def test_views_of_the_second_session_differ_and_are_kept(tmp_path):
    jobs = recentering.smoke()
    records = {record["method"]: record["result"] for record in run(jobs, folder=tmp_path, verbose=0)}
    assert list(records) == list(recentering.VIEWS)
    kappas = [record["mean_kappa"] for record in records.values()]
    assert len(set(kappas)) == 3
    assert min(kappas) > 0.4
    assert pending(jobs, tmp_path) == []


@needs_bci
def test_transfer_runs_with_and_without_own_labels(tmp_path):
    jobs = transfer.smoke()
    records = {record["method"]: record["result"] for record in run(jobs, folder=tmp_path, verbose=0)}
    assert list(records) == [*transfer.NONE, *(f"{name}, 5" for name in transfer.FEW)]
    kappas = {name: record["mean_kappa"] for name, record in records.items()}
    assert len(set(kappas.values())) > 5
    assert kappas["TransferClassifier, 5"] > kappas["own trials alone, 5"] > 0.5
    assert kappas["and own session 1 without labels"] > kappas["other subjects"]
    assert records["TransferClassifier, 5"]["weight"] == [15.0]


@needs_bci
def test_refusing_and_calibrating_run(tmp_path):
    refused, calibrated = (record["result"] for record in run(rejection.smoke(), folder=tmp_path, verbose=0))
    assert refused["error_at_coverage"] < refused["error"]
    assert 0.5 < refused["reached_coverage"] <= 1
    assert calibrated["ece"] < 0.2


@pytest.mark.skipif(not data.is_available("eth80_cov5.npz"), reason="needs eth80_cov5.npz")
def test_a_vote_scores_differently_from_its_members(tmp_path):
    records = {record["method"]: record["result"] for record in run(votes.smoke(), folder=tmp_path, verbose=0)}
    assert list(records) == list(votes.METHODS)
    accuracies = [record["accuracy"] for record in records.values()]
    assert len(set(accuracies)) == 3
    assert min(accuracies) > 0.5


def test_full_runs_have_ten_seeds_for_every_trained_view():
    counts = {}
    for job in recentering.jobs():
        counts[job.method] = counts.get(job.method, 0) + 1
    assert set(counts.values()) == {1, 10}
    assert len(counts) == len(recentering.VIEWS) * len(recentering.SETTINGS)


@needs_bci
def test_a_stream_is_followed_and_learns_the_class_that_is_late(tmp_path):
    jobs = stream.smoke()
    frozen, grown, three, four = (record["result"] for record in run(jobs, folder=tmp_path, verbose=0))
    assert grown["kappa"] != frozen["kappa"]
    assert min(frozen["mean_kappa"], grown["mean_kappa"]) > 0.5
    assert three["mean_recall"] == 0
    assert four["mean_recall"] > 0.25
    assert four["mean_kappa"] > three["mean_kappa"] + 0.05
    assert pending(jobs, tmp_path) == []


def test_the_stream_has_every_rule_in_every_view():
    methods = {job.method for job in stream.jobs()}
    assert len(methods) == len(stream.METHODS) * len(stream.VIEWS) + 2
    assert len(stream.jobs()) == 3 * len(methods)
    assert all(job.settings["max_epochs"] == 2 for job in stream.jobs(quick=True))


@needs_bci
def test_views_show_what_they_say():
    """Online and transductive views differ only in the mean of session 2: session 1 is the same in both."""
    whole = data.load_bci2a(1)
    online, transductive = (recentering.seen(whole, view, 10.0) for view in ("online", "transductive"))
    assert (online.X_train == transductive.X_train).all()
    assert not (online.X_test == transductive.X_test).all()
    assert recentering.seen(whole, "as measured", 10.0) is whole


def test_the_pages_are_made_from_the_records(tmp_path):
    report.write(RESULTS / "full", tmp_path)
    pages = {path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md")}
    assert pages.keys() >= {"beyond.md", "experiments/index.md", "experiments/default.md"}
    for name, text in pages.items():
        assert "{{" not in text
        committed = (report.DOCS / name).read_text(encoding="utf-8")
        assert text == committed, "run `python -m examples.beyond report`"
    assert "\n|" not in pages["beyond.md"], "tables belong to the pages behind the summary"
    text = "".join(pages.values())
    for row in ("| one for all [", "| BCI 2a, posterior |", "| ETH-80, whole images ["):
        assert row in text
    assert (tmp_path / "assets" / "beyond.png").is_file()
    assert (tmp_path / "assets" / "home.png").is_file()


def test_the_summary_has_a_dot_for_each_data_set():
    found = report_summary.differences(RESULTS / "full")
    n_default = len(report_default.gains(RESULTS / "full"))
    assert n_default == 6
    assert len(found) == n_default + sum(len(data) or len(report_summary.SCENES) for *_, data in report_summary.ROWS)
    assert {where for _, where, _ in found} == set(report_summary.LOOK)
    default = {where: value for label, where, value in found if label == report_summary.DEFAULT}
    results = [
        record["result"]
        for record in load(RESULTS / "full", "default-digits-1000")
        if record["method"] == "affine_invariant"
    ]
    expected = [result["default"]["accuracy"] - result["class means"]["accuracy"] for result in results]
    assert default["digits"] == pytest.approx(np.mean(expected))


def test_groups_of_the_command_are_those_of_the_modules():
    """The test also finds a tuple of one name without its comma, whose letters would be taken as groups."""
    for module, (groups, files) in EXPERIMENTS.modules.items():
        assert isinstance(groups, tuple), module
        assert isinstance(files, tuple), module
        found = {
            job.experiment.split("-")[0] for job in importlib.import_module(f"examples.beyond.{module}").jobs(True)
        }
        assert found <= set(groups), module
    names = {job.experiment.split("-")[0] for job in EXPERIMENTS.collect(quick=True, only=[])}
    assert {"default", "costs", "geometries", "soft"} <= names


@needs_bci
def test_one_group_alone_can_be_asked_for():
    assert {job.experiment for job in EXPERIMENTS.collect(quick=True, only=["recentering"])} == {"recentering"}
