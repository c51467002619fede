"""Tables on ways to more from one session's trials: two prototypes or a variance per class, and votes."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from examples.beyond import more as more_runs
from examples.beyond.report_default import METRICS, TITLES, split_title
from examples.paper.report import results, table

__all__ = ["by_split", "summary"]

COMPOSED = {"SynI": "SynI, 60 per class", "SynII": "SynII, 60 per class", "digits": "digits, 300 in all"}
FIRST = more_runs.METRICS[0]
SHOWN = (
    f"{FIRST}, one", f"{FIRST}, two", f"{FIRST}, two if clear", f"{FIRST}, spread", f"{FIRST}, spread if clear",
    f"{FIRST}, doubled while clear", f"{FIRST}, doubled or spread",
    f"vote {more_runs.VOTES[0]}", f"vote {more_runs.VOTES[-1]}", "TS + LR", "TS + SVC",
)  # fmt: skip
"""The ways in the table by split."""


class Cell(NamedTuple):
    """A split with its title, the number of its repetitions, and mean accuracies by way."""

    title: str
    is_of_nine: bool
    count: int
    accuracy: dict[str, float]


def _title(data: str, size: object) -> str:
    if data == "composed":
        return COMPOSED[str(size)]
    if data == "cifar10":
        return f"CIFAR-10, {size} in all"
    return f"{TITLES[data]}, {split_title(data, size)}"


def _cells(folder: pathlib.Path) -> list[Cell]:
    cells = []
    for data, size in more_runs.SIZES:
        found = results(folder, f"more-{data}-{size}")
        if found:
            means = {way: float(np.mean([result[way]["accuracy"] for result in found])) for way in found[0]}
            cells.append(Cell(_title(data, size), (data, size) in more_runs.NINE, len(found), means))
    return cells


def by_split(folder: pathlib.Path) -> str:
    """Return the table of accuracies by split."""
    rows = [
        [f"{cell.title} [{cell.count}]", *(f"{cell.accuracy[way]:.3f}" for way in SHOWN)] for cell in _cells(folder)
    ]
    return table(["data, training samples", *(way.removeprefix(f"{FIRST}, ") for way in SHOWN)], rows)


def summary(folder: pathlib.Path) -> str:
    """Return the table of gains on the default under the same metric: the mean and the lowest over the splits."""
    cells = _cells(folder)
    nine = [cell for cell in cells if cell.is_of_nine]
    others = [cell for cell in cells if not cell.is_of_nine]
    rows = []
    for way in more_runs.CHOICES[1:]:
        gains = [_gains(nine, f"{metric}, {way}", metric) for metric in more_runs.METRICS]
        rows.append([way, *gains, _gains(others, f"{FIRST}, {way}", FIRST)])
    for way in (*(f"vote {name}" for name in more_runs.VOTES), "TS + LR", "TS + SVC"):
        rows.append([way, _gains(nine, way, FIRST), "", "", _gains(others, way, FIRST)])
    return table(["way", *(METRICS[metric] for metric in more_runs.METRICS), "other splits, affine-invariant"], rows)


def _gains(cells: Sequence[Cell], way: str, metric: str) -> str:
    gains = [cell.accuracy[way] - cell.accuracy[f"{metric}, one"] for cell in cells]
    return f"{np.mean(gains):+.3f} / {min(gains):+.3f}" if gains else ""
