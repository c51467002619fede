"""The records of examples/paper: from the cache into one file per family, without losing a digit."""

from __future__ import annotations

import json
import shutil

import pytest

from examples.paper import records, runner
from examples.paper.__main__ import main
from examples.paper.runner import Job


def make_record(experiment="exp", method="A", repetition=0, *, value=0.1, numpy="2.0", command="python -m x"):
    return {
        "experiment": experiment,
        "method": method,
        "repetition": repetition,
        "settings": {"b": 1, "a": [0.5]},
        "result": {"accuracy": value},
        "seconds": 1.5,
        "versions": {"python": "3.11", "numpy": numpy},
        "command": command,
    }


def save_all(folder, found):
    for record in found:
        records.save(folder, record)


def same(found, expected):
    """Whether records are equal, including the order of their entries and every digit."""
    return [json.dumps(record) for record in found] == [json.dumps(record) for record in expected]


def answer(*, repetition, method):
    return {"accuracy": 1.0 + repetition}


def test_compacted_records_are_the_same_to_the_last_digit(tmp_path):
    values = [0.1 + 0.2, 1 / 3, 1e-300, 5e-324, 123456789.123456789]
    expected = [make_record(repetition=number, value=value) for number, value in enumerate(values)]
    save_all(tmp_path, expected)
    assert records.compact(tmp_path) == [tmp_path / "exp.jsonl"]
    assert list((tmp_path / records.CACHE).glob("*/*")) == []
    assert same(records.load(tmp_path, "exp"), expected)


def test_a_family_is_one_sorted_file_with_a_line_per_record(tmp_path):
    keys = [("exp-b", "B", 0), ("exp", "B", 1), ("other", "A", 0), ("exp", "A", 10), ("exp", "A", 2), ("exp-b", "A", 0)]
    save_all(tmp_path, [make_record(*key) for key in keys])
    assert {path.name for path in records.compact(tmp_path)} == {"exp.jsonl", "other.jsonl"}
    header, *lines = map(json.loads, (tmp_path / "exp.jsonl").read_text().splitlines())
    assert header == {"versions": [{"python": "3.11", "numpy": "2.0"}], "commands": ["python -m x"]}
    assert [records.key_of(line) for line in lines] == sorted(key for key in keys if key[0] != "other")
    assert all((line["versions"], line["command"]) == (0, 0) for line in lines)
    assert [record["method"] for record in records.load(tmp_path, "exp-b")] == ["A", "B"]


def test_records_with_other_versions_or_commands_keep_theirs(tmp_path):
    old = [make_record(repetition=0), make_record(repetition=2, numpy="1.26")]
    save_all(tmp_path, old)
    records.compact(tmp_path)
    before = (tmp_path / "exp.jsonl").read_text().splitlines()
    new = make_record(repetition=1, numpy="3.0", command="python -m y")
    records.save(tmp_path, new)
    records.compact(tmp_path)
    assert same(records.load(tmp_path, "exp"), [old[0], new, old[1]])
    after = (tmp_path / "exp.jsonl").read_text().splitlines()
    assert [after[1], after[3]] == before[1:]  # the lines of other records did not change


def test_a_new_record_replaces_the_old_one_before_and_after_compaction(tmp_path):
    save_all(tmp_path, [make_record(value=0.1), make_record(method="B", value=0.2)])
    records.compact(tmp_path)
    records.save(tmp_path, make_record(value=0.3))
    for _ in range(2):
        found = records.load(tmp_path, "exp")
        assert [record["result"]["accuracy"] for record in found] == [0.3, 0.2]
        records.compact(tmp_path)


def test_a_file_of_the_cache_that_is_not_json_stays_there_and_is_ignored(tmp_path):
    save_all(tmp_path, [make_record(), make_record(method="B")])
    broken = records.cache_path(tmp_path, "exp", "B", 0)
    broken.write_text('{"experiment": "exp", ')
    records.compact(tmp_path)
    assert [record["method"] for record in records.load(tmp_path, "exp")] == ["A"]
    assert list((tmp_path / records.CACHE).glob("*/*")) == [broken]


def test_nothing_to_compact_writes_nothing(tmp_path):
    assert records.compact(tmp_path / "absent") == []
    assert list(tmp_path.iterdir()) == []


def test_a_job_in_a_family_file_is_not_run_again_unless_its_settings_differ(tmp_path):
    jobs = [Job("exp", "A", repetition, {}, answer) for repetition in range(2)]
    expected = runner.run(jobs, folder=tmp_path, verbose=0)
    records.compact(tmp_path)
    shutil.rmtree(tmp_path / records.CACHE)
    assert runner.pending(jobs, tmp_path) == []
    assert same(runner.run(jobs, folder=tmp_path, verbose=0), expected)
    assert not (tmp_path / records.CACHE).exists()
    other = [Job("exp", "A", 0, {"more": 1}, answer)]
    assert runner.pending(other, tmp_path) == other


def test_values_that_are_not_json_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        records.dumps({"a": float("nan")})
    with pytest.raises(ValueError, match="of types that JSON knows"):
        records.dumps({"a": object()})


def test_the_command_line_compacts(tmp_path, capsys):
    folder = tmp_path / "full"
    records.save(folder, make_record())
    assert main(["compact", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"wrote {folder / 'exp.jsonl'}"]
    assert same(records.load(folder, "exp"), [make_record()])
