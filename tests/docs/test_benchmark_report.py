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
    record = json.loads((results / "distributed.json").read_text())
    record["model"] = {"latency": 0.5, "a_partition": 0.01, "a_sample": 0.0001}
    record |= {"n": 10, "prototypes": 4}
    (results / "distributed.json").write_text(json.dumps(record))
    # 0.5 + 0.01 * 10^4 + 10^-4 * 10^9 / 100 seconds; 10^4 * 3232 + 100 * 3200 bytes.
    assert report.extrapolated().splitlines()[-1] == "| 100 | 1,100 | 0.3 | 91% | 32.6 |"


def test_results_of_training_replace_the_printed_table(report, results):
    (results / "training.json").unlink(missing_ok=True)
    assert "training_epoch.txt" in report.training()
    machine = {"processor": "abacus", "cores": 2, "blas_threads": "1"}
    record = {"machine": machine, "cases": [{"steps": "compiled", "n": 10, "K": 4, "ratio": 0.8714}]}
    (results / "training.json").write_text(json.dumps(record))
    assert "| compiled | 10 | 4 | 0.871 |" in report.training()
    assert "abacus, 2 cores, one BLAS thread" in report.training()


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
