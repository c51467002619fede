"""The Python blocks of README and CONTRIBUTING run, and README has exactly its two commands."""

import pathlib
import re
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / name).read_text(), flags=re.M | re.S)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_python_blocks_run_in_order(name, capsys, monkeypatch):
    found = blocks(name, "python")
    assert found
    module = types.ModuleType(f"blocks_of_{pathlib.Path(name).stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # classes are pickled by their module
    for block in found:
        exec(compile(block, name, "exec"), module.__dict__)
    if name == "README.md":
        score, shape, *_ = capsys.readouterr().out.splitlines()
        stated = re.search(r"# about (0\.\d+);", (ROOT / name).read_text())
        assert stated
        assert abs(float(score) - float(stated[1])) < 0.015  # training amplifies rounding
        assert shape == "(10, 5, 5)"


def test_readme_has_exactly_two_commands_that_set_themselves_up():
    (shell,) = blocks("README.md", "bash")
    commands = shell.strip().splitlines()
    assert len(commands) == 2
    assert all(command.startswith("python3 -m venv .venv && .venv/bin/pip install") for command in commands)
    assert commands[0].endswith(".venv/bin/python -m rplvq compare")
    assert commands[1].endswith(".venv/bin/python -m pytest -n 2")
