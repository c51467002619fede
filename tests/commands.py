"""Runs of the command line for its tests."""

from __future__ import annotations

from rplvq.cli import main

FAST = ["--epochs", "1", "--sigma2", "0.5", "--splits", "3", "--repeats", "1", "--jobs", "1"]


def fails(capsys, arguments, status=2):
    """The one line that a failing command writes to standard error."""
    assert main(arguments) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("rplvq: error: ")
    return line
