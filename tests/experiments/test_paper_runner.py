"""The runner of examples/paper: records are kept, runs continue, settings are compared, and data are found."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from examples.paper import data
from examples.paper.__main__ import main
from examples.paper.runner import Job, load, path_of, pending, run


def counted(*, repetition, method, log, value=1.0):
    """Leave a line in ``log`` and return something simple."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{method} {repetition}\n")
    return {"accuracy": value + repetition, "curve": np.arange(3)}


def fails_at_two(*, repetition, method, log):
    if repetition == 2:
        raise RuntimeError("interrupted")
    return counted(repetition=repetition, method=method, log=log)


def not_a_number(*, repetition, method):
    return {"accuracy": float("nan")}


def blas_threads(*, repetition, method):
    np.linalg.eigvalsh(np.eye(4))
    return {"threads": [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]}


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.txt"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "results"


def lines(log):
    return log.read_text().split("\n")[:-1] if log.exists() else []


def make_jobs(log, n=3, call=counted, **settings):
    return [Job("exp", "A method", repetition, {"log": str(log)} | settings, call) for repetition in range(n)]


def test_a_record_says_what_was_run_with_what_and_how_long(folder, log):
    (record,) = run(make_jobs(log, 1), folder=folder, verbose=0)
    assert list(record) == [
        "experiment",
        "method",
        "repetition",
        "settings",
        "result",
        "seconds",
        "versions",
        "command",
    ]
    assert record["experiment"] == "exp"
    assert record["settings"] == {"log": str(log)}
    assert record["result"] == {"accuracy": 1.0, "curve": [0, 1, 2]}
    assert record["seconds"] >= 0
    assert {"python", "rplvq", "numpy"} <= set(record["versions"])
    assert record["command"].startswith("python ")


def test_the_command_names_no_absolute_path(folder, log, monkeypatch):
    monkeypatch.setattr(
        "sys.orig_argv", ["/somewhere/bin/python", "-m", "examples.paper", "--results", "/a/b", "a word"]
    )
    (record,) = run(make_jobs(log, 1), folder=folder, verbose=0)
    assert record["command"] == "python -m examples.paper --results b 'a word'"


def test_what_is_done_is_not_done_again(folder, log):
    first = run(make_jobs(log), folder=folder, verbose=0)
    assert run(make_jobs(log), folder=folder, verbose=0) == first
    assert lines(log) == ["A method 0", "A method 1", "A method 2"]


def test_records_come_in_the_order_of_the_jobs(folder, log):
    jobs = make_jobs(log)
    run(jobs[1:2], folder=folder, verbose=0)
    assert [record["repetition"] for record in run(jobs[::-1], folder=folder, verbose=0)] == [2, 1, 0]


def test_an_interrupted_run_goes_on_where_it_stopped(folder, log):
    with pytest.raises(RuntimeError, match="interrupted"):
        run(make_jobs(log, 4, fails_at_two), folder=folder, verbose=0)
    assert lines(log) == ["A method 0", "A method 1"]
    assert [record["repetition"] for record in load(folder, "exp")] == [0, 1]
    run(make_jobs(log, 4), folder=folder, verbose=0)
    assert lines(log) == [f"A method {repetition}" for repetition in range(4)]


def test_other_settings_run_again(folder, log):
    run(make_jobs(log), folder=folder, verbose=0)
    changed = make_jobs(log, 1, value=5.0) + make_jobs(log)[1:]
    assert pending(changed, folder) == changed[:1]
    records = run(changed, folder=folder, verbose=0)
    assert [record["result"]["accuracy"] for record in records] == [5.0, 2.0, 3.0]
    assert len(lines(log)) == 4


def test_settings_are_compared_as_json(folder, log):
    as_list = run(make_jobs(log, 1, value=np.float64(2.0)), folder=folder, verbose=0)
    assert run(make_jobs(log, 1, value=2.0), folder=folder, verbose=0) == as_list
    assert len(lines(log)) == 1


def test_a_broken_file_is_computed_again(folder, log):
    jobs = make_jobs(log, 1)
    run(jobs, folder=folder, verbose=0)
    path_of(folder, jobs[0]).write_text('{"experiment": "exp", ')
    assert run(jobs, folder=folder, verbose=0)[0]["result"]["accuracy"] == 1.0
    assert len(lines(log)) == 2


def test_nothing_half_written_is_left(folder, log):
    with pytest.raises(ValueError, match="JSON"):
        run([Job("exp", "nan", 0, {}, not_a_number)], folder=folder, verbose=0)
    assert load(folder, "exp") == []
    run(make_jobs(log, 1), folder=folder, verbose=0)
    assert [path.name for path in path_of(folder, make_jobs(log, 1)[0]).parent.iterdir()] == ["A-method-000.json"]


def test_files_are_json_with_a_line_for_each_entry(folder, log):
    jobs = make_jobs(log, 1)
    run(jobs, folder=folder, verbose=0)
    text = path_of(folder, jobs[0]).read_text()
    assert len(text.splitlines()) == 10
    assert json.loads(text)["method"] == "A method"


def test_two_jobs_for_one_file_are_refused_before_anything_runs(folder, log):
    jobs = make_jobs(log, 2)
    jobs.append(attrs.evolve(jobs[0], method="A-method"))
    with pytest.raises(ValueError, match="have the same file"):
        run(jobs, folder=folder, verbose=0)
    assert lines(log) == []


def test_processes_give_the_same_results_with_one_blas_thread_each(folder, log):
    jobs = [*make_jobs(log, 3), Job("exp", "threads", 0, {}, blas_threads)]
    records = run(jobs, folder=folder, n_jobs=2, verbose=0)
    assert [record["result"]["accuracy"] for record in records[:3]] == [1.0, 2.0, 3.0]
    assert set(records[3]["result"]["threads"]) == {1}


def test_load_takes_one_method_or_all_by_repetition(folder, log):
    other = [attrs.evolve(job, method="B") for job in make_jobs(log, 2)]
    run([*other, *make_jobs(log, 12)], folder=folder, verbose=0)
    assert [record["repetition"] for record in load(folder, "exp", "A method")] == list(range(12))
    assert len(load(folder, "exp")) == 14
    assert load(folder, "another") == []


def test_the_command_line_lists_what_is_missing(folder, capsys):
    assert main(["run", "--quick", "--only", "syn1", "--methods", "MDRM", "--list", "--results", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"syn1  MDRM  {repetition}" for repetition in range(3)]
    assert not folder.exists()


def test_the_command_line_takes_the_first_repetitions(folder, capsys):
    arguments = ["--only", "syn2", "--methods", "MDRM", "--repetitions", "2", "--list", "--results", str(folder)]
    assert main(["run", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == ["syn2  MDRM  0", "syn2  MDRM  1"]


def test_the_command_line_leaves_out_experiments_without_data(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RPLVQ_DATA", str(tmp_path))
    assert main(["run", "--quick", "--only", "bci2a", "--results", str(folder)]) == 0
    assert "left out bci2a: no bci2a_cov22.npz" in capsys.readouterr().out


def test_the_command_line_runs_and_writes_where_it_is_told(folder, capsys):
    assert main(["run", "--quick", "--only", "syn2", "--methods", "LE-MDM", "--results", str(folder)]) == 0
    assert [record["repetition"] for record in load(folder / "quick", "syn2")] == [0, 1, 2]
    assert "3 results" in capsys.readouterr().out


def test_data_that_are_absent_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RPLVQ_DATA", str(tmp_path))
    assert not data.is_available("bci2a_cov22.npz")
    with pytest.raises(FileNotFoundError, match="set RPLVQ_DATA"):
        data.load_bci2a(1)


def test_symmetric_matrices_are_unpacked_row_by_row():
    flat = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    assert data.unpack_symmetric(flat, 3).tolist() == [[[1, 2, 3], [2, 4, 5], [3, 5, 6]]]
    with pytest.raises(ValueError, match="n=4 needs 10"):
        data.unpack_symmetric(flat, 4)


@pytest.mark.parametrize("subject", [0, 10])
def test_subjects_are_one_to_nine(subject):
    with pytest.raises(ValueError, match="1 to 9"):
        data.load_bci2a(subject)
