"""rplvq inside MOABB and on aeon's time series, through the experiments of examples/ecosystem."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn

from examples.ecosystem.__main__ import EXPERIMENTS, RESULTS
from examples.ecosystem.report import write
from examples.paper.runner import run
from rplvq import RiemannianLVQ


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.filterwarnings("ignore")  # of MOABB's dependencies
def test_moabb_evaluates_every_pipeline(tmp_path, routing):
    pytest.importorskip("moabb", reason='needs moabb: pip install ".[eeg]" in the folder of rplvq')
    from examples.ecosystem import eeg

    # MOABB calls all pipelines alike, so that one of them stands for all in the evaluations between sessions.
    every = eeg.jobs(quick=True)
    jobs = [job for job in every if job.settings["kind"] == "WithinSession" or job.method == eeg.NAMES[2]]
    assert {job.settings["kind"] for job in jobs} == {"WithinSession", "CrossSession", "CrossSubject"}
    assert {job.method for job in jobs} == {*eeg.NAMES}
    jobs = [job for job in jobs if not routing or "filter bank" in job.method]
    with sklearn.config_context(enable_metadata_routing=routing):
        records = run(jobs, folder=tmp_path, verbose=0)
    for record in records:
        scores = record["result"]["scores"]
        assert len(scores) == 4  # two subjects with two sessions each
        assert all(0 <= score <= 1 for score in scores)


def test_the_folder_of_pipelines_is_read_by_moabb():
    pytest.importorskip("moabb", reason='needs moabb: pip install ".[eeg]" in the folder of rplvq')
    from moabb.pipelines.utils import parse_pipelines_from_directory

    from examples.ecosystem import eeg

    read = parse_pipelines_from_directory(str(eeg.PIPELINES))
    assert sorted(entry["name"] for entry in read) == sorted(eeg.NAMES)


def cells(table, dataset, source):
    """The row of a data set and a source in the table of the page."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    (found,) = [row[2:] for row in rows if len(row) > 2 and row[0].startswith(dataset) and row[1] == source]
    return found


@pytest.mark.filterwarnings("ignore")  # of MOABB's dependencies
def test_stand_ins_of_moabbs_data_sets_go_on_and_stand_beside_the_published_rows(tmp_path, capsys, monkeypatch):
    pytest.importorskip("moabb", reason='needs moabb: pip install ".[eeg]" in the folder of rplvq')
    from examples.ecosystem import moabb

    arguments = ["--stand-ins", "--folder", str(tmp_path), "--datasets"]
    assert moabb.main([*arguments, "Zhou2016"]) == 0
    assert moabb.main([*arguments, "Kalunga2016"]) == 0  # steady-state potentials have a paradigm of their own
    table = capsys.readouterr().out.split("| data set")[-1]
    path = tmp_path / "stand-ins.csv"
    rows = moabb.read_rows(path)
    assert {row["dataset"] for row in rows} == {"Zhou2016", "Kalunga2016"}  # the second run keeps what was there
    assert {row["pipeline"] for row in rows} == set(moabb.NAMES)
    assert cells(table, "Zhou2016", "published")[:3] == ["76.05", "83.07", "84.88"]
    assert cells(table, "Kalunga2016", "published")[1] == ""
    here = [float(value) for value in cells(table, "Zhou2016", "simulated")[:7]]
    assert all(0 < value < 70 for value in here)  # of three classes, on noise
    # A run that was interrupted computes nothing again: each score is read from MOABB's file.
    monkeypatch.setattr(RiemannianLVQ, "fit", None)
    assert moabb.main([*arguments, "Zhou2016"]) == 0
    again = capsys.readouterr().out
    assert [float(value) for value in cells(again, "Zhou2016", "simulated")[:7]] == here


@pytest.mark.filterwarnings("ignore")  # of MOABB's dependencies
def test_trials_of_a_file_are_a_data_set_of_moabb(real_data):
    pytest.importorskip("moabb", reason='needs moabb: pip install ".[eeg]" in the folder of rplvq')
    real_data("eegmmi_s001_raw.npz")
    from examples.ecosystem import moabb
    from examples.paper.data import load_arrays

    dataset = moabb.dataset_of(moabb.LOCAL, moabb.LOCAL_ENTRY, stand_in=True)
    X, y, table = moabb.paradigm_of(moabb.LOCAL_ENTRY).get_data(dataset)
    trials, names = load_arrays("eegmmi_s001_raw.npz", "trials", "y")
    assert X.shape == trials.shape
    assert dict(table.session.value_counts()) == {"0executed": 90, "1imagined": 90}
    assert sorted(np.unique(y, return_counts=True)[1]) == sorted(np.unique(names, return_counts=True)[1])


def test_the_data_sets_of_the_command_are_named_in_its_help(capsys):
    from examples.ecosystem import moabb

    with pytest.raises(SystemExit):
        moabb.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert len(moabb.DATASETS) == 7
    assert all(f"{name} (" in text for name in moabb.DATASETS)


def test_steps_for_yaml_files_are_estimators_that_can_be_cloned():
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    from examples.ecosystem.steps import augmented_step, filter_bank_classifier, filter_bank_step

    rng = np.random.default_rng(0)
    trials, y = rng.normal(size=(12, 3, 200)), np.tile(["left", "right"], 6)
    trials[y == "left", 0] *= 4
    bank = filter_bank_step(sfreq=100, bands=[[8, 12], [12, 30]], shrinkage="oas")
    augmented = make_pipeline(augmented_step(order=2, lag=2, shrinkage="oas"), RiemannianLVQ("tangent", max_epochs=2))
    for model in (augmented, make_pipeline(bank, filter_bank_classifier(n_bands=2, max_epochs=2, random_state=0))):
        assert clone(model).fit(trials, y).score(trials, y) == 1


@pytest.mark.filterwarnings("ignore")
def test_moabb_tells_estimators_apart_that_differ_in_one_part():
    pytest.importorskip("moabb", reason='needs moabb: pip install ".[eeg]" in the folder of rplvq')
    from moabb.analysis.results import get_digest
    from sklearn.pipeline import make_pipeline

    from rplvq import AffineInvariant, Annealed

    estimators = [
        RiemannianLVQ(),
        RiemannianLVQ(sigma2=1.0),
        RiemannianLVQ(sigma2=Annealed(1.0)),
        RiemannianLVQ(sigma2=Annealed(1.0, beta=0.98)),
        RiemannianLVQ(AffineInvariant(max_step_length=5.0)),
    ]
    digests = {get_digest(make_pipeline(estimator)) for estimator in estimators}
    assert len(digests) == len(estimators)


@pytest.mark.filterwarnings("ignore")
def test_time_series_of_aeon(tmp_path):
    pytest.importorskip("aeon", reason='needs aeon: pip install ".[series]" in the folder of rplvq')
    from examples.ecosystem import series

    matrices, labels = series.covariances("vowels", "train")
    assert matrices.shape == (270, 12, 12)
    assert np.linalg.eigvalsh(matrices).min() > 0
    assert len(set(labels)) == 9
    jobs = [job for job in series.jobs(quick=True) if job.experiment == "vowels"]
    records = {record["method"]: record["result"]["accuracy"] for record in run(jobs, folder=tmp_path, verbose=0)}
    assert records["MDM, affine-invariant"] > 0.95 > records["MDM, projected Euclidean"]


def test_the_page_is_made_from_the_records(tmp_path):
    write(RESULTS / "full", tmp_path)
    text = (tmp_path / "experiments" / "ecosystem.md").read_text(encoding="utf-8")
    assert "{{" not in text
    committed = (RESULTS.parents[2] / "docs" / "experiments" / "ecosystem.md").read_text(encoding="utf-8")
    assert text == committed, "run `python -m examples.ecosystem report`"
    for method in ("| MDM |", "| RiemannianLVQ, Log-Euclidean, 1 per class |", "| 1-NN, dynamic time warping |"):
        assert method in text


def test_groups_of_the_command_are_those_of_the_modules():
    names = {job.experiment.split("-")[0] for job in EXPERIMENTS.collect(quick=True, only=[])}
    assert names == {"moabb", "vowels", "motions"}
