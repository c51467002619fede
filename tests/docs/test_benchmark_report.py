"""The pages on performance and scale are what their command writes from the result files."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def report():
    """The module tests/benchmarks/report.py; its folder is no package."""
    spec = importlib.util.spec_from_file_location("benchmark_report", BENCHMARKS / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results(report, monkeypatch, tmp_path):
    """A folder of result files of which some can be replaced."""
    for path in report.RESULTS.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["performance", "scale"])
def test_committed_pages_are_what_the_command_writes(report, name):
    assert (report.DOCS / f"{name}.md").read_text() == report.page(name)


def test_the_command_writes_the_pages_and_finds_stale_ones(report, monkeypatch, tmp_path):
    monkeypatch.setattr(report, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["report.py"])
    report.main()
    monkeypatch.setattr(sys, "argv", ["report.py", "--check"])
    report.main()
    (tmp_path / "scale.md").write_text("by hand")
    with pytest.raises(SystemExit, match="stale: scale"):
        report.main()


def test_the_extrapolation_follows_the_model(report, results):
    row = {"N": 100, "n": 10, "K": 4, "parts": 2, "workers": 1, "down": 4000, "up": 3000}
    models = {"path": [0.7, 0.01, 1e-6, 1e-9, 1e-9], "means": [0.0, 0.1, 1e-5, 0.0, 0.0]}
    (results / "distributed.json").write_text(json.dumps({"rows": [row], "models": models}))
    # A round: 0.7 + 0.01 * 1000 + (1 + 4 * (0.1 + 1)) 10^-6 * 10^9 / 100 seconds; 1000 * 3000 + 100 * 4000 bytes.
    # The class means: 0.1 * 1000 + 10^-5 * 10^9 / 100 seconds.
    assert report.extrapolated().splitlines()[-1] == "| 100 | 200 | 65 | 0.1 | 3.4 |"


def test_results_of_training_replace_the_printed_table(report, results):
    (results / "training.json").unlink(missing_ok=True)
    assert "training_epoch.txt" in report.training()
    case = {"data": "SynI", "n": 10, "K": 4, "steps": "compiled", "batch": 1, "ratio": 0.8714}
    others = [{"steps": "plain", "ratio": 2.5}, {"steps": "pymanopt", "ratio": 20.0}, {"threads": 2, "ratio": 0.5}]
    record = {"machine": "abacus", "cases": [case, *(case | other for other in others)]}
    (results / "training.json").write_text(json.dumps(record))
    assert report.training().splitlines()[0] == "| data | n | K | compiled, batch 1 | plain, batch 1 |"
    assert report.training().splitlines()[2:] == ["| SynI | 10 | 4 | 0.871 | 2.5 |"]


def test_machines_of_several_files_are_told_once(report, results):
    for name, numpy in (("goals", "2.4.6"), ("predict", "2.5.0")):
        machine = {"processor": "abacus", "cores": 2, "python": "3.11.7", "numpy": numpy, "blas_threads": "1"}
        (results / f"{name}.json").write_text(json.dumps({"machine": machine}))
    expected = "abacus, 2 cores, Python 3.11.7, NumPy 2.4.6 and 2.5.0, one BLAS thread"
    assert report.machines("goals", "predict") == expected


def test_goals_of_one_kind_share_a_row_with_the_figure_nearest_to_the_limit(report, results):
    row = {"topic": "fit", "what": "SynI", "limit": 5, "unit": "times", "at_most": True, "figure": 4.0, "met": True}
    other = row | {"what": "EEG", "figure": 5.5, "met": False}
    fast = row | {"what": "digits", "limit": 2, "at_most": False, "figure": 3.0}
    (results / "goals.json").write_text(json.dumps({"rows": [row, other, fast]}))
    assert report.goals().splitlines()[2:] == [
        "| fit: EEG (2 goals) | at most 5 times | 5.50 | no |",
        "| fit: digits | at least 2 times | 3.00 | yes |",
    ]


def test_the_table_of_memory_has_one_column_per_call_and_mapped_data_only(report, results):
    case = {"data": "real 3 x 3", "N": 1_000_000, "call": "predict", "metric": "affine_invariant", "mapped": True}
    case |= {"data_megabytes": 72.0, "result_megabytes": 8.0, "above_megabytes": 30.6, "seconds": 25.2}
    others = [{"call": "fit", "above_megabytes": 243.2}, {"mapped": False}, {"metric": "log_euclidean"}]
    cases = [case, *(case | other for other in others)]
    (results / "memory.json").write_text(json.dumps({"machine": "abacus", "cases": cases}))
    assert report.memory().splitlines()[2:] == [
        "| real 3 x 3, N = 1,000,000, 72 MB | affine-invariant | 31 | 243 |",
        "| real 3 x 3, N = 1,000,000, 72 MB | log-euclidean | 31 |  |",
    ]


def test_an_unknown_directive_of_a_template_is_an_error(report, monkeypatch, tmp_path):
    (tmp_path / "scale.template.md").write_text("{{ nonsense }}")
    monkeypatch.setattr(report, "HERE", tmp_path)
    with pytest.raises(ValueError, match="nonsense"):
        report.page("scale")
