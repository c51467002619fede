"""Tables on ways to more from one session's trials: two prototypes or a variance per class, and votes."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from examples.beyond import more as more_runs
from examples.beyond.report_default import METRICS, TITLES, split_title
from examples.paper.report import results, table
from examples.paper.runner import Record

__all__ = ["by_split", "summary"]

COMPOSED = {"SynI": "SynI, 60 per class", "SynII": "SynII, 60 per class", "digits": "digits, 300 in all"}
FIRST = more_runs.METRICS[0]
SHOWN = (
    f"{FIRST}, one", f"{FIRST}, two", f"{FIRST}, auto", f"{FIRST}, spread", f"vote {more_runs.VOTES[0]}", "TS + LR",
    "TS + SVC",
)  # fmt: skip
"""The ways in the table by split."""


class Cell(NamedTuple):
    """A split with its title, whether it is one of the nine, its number of repetitions, and its mean scores by way."""

    title: str
    is_of_nine: bool
    count: int
    accuracy: dict[str, float]
    log_loss: dict[str, float]


def _title(data: str, size: object) -> str:
    if data == "composed":
        return COMPOSED[str(size)]
    if data in ("objects", "grouped"):
        return f"{TITLES['eth80']}, {split_title('eth80', size)}, new objects{', groups' if data == 'grouped' else ''}"
    if data == "cifar10":
        return f"CIFAR-10, {size} in all"
    return f"{TITLES[data]}, {split_title(data, size)}"


def _cells(folder: pathlib.Path) -> list[Cell]:
    cells = []
    for data, size in more_runs.SIZES:
        found = results(folder, f"more-{data}-{size}")
        if found:
            scores = [_means(found, column) for column in ("accuracy", "log_loss")]
            cells.append(Cell(_title(data, size), (data, size) in more_runs.NINE, len(found), *scores))
    return cells


def _means(found: Sequence[Record], column: str) -> dict[str, float]:
    ways = [way for way, scores in found[0].items() if column in scores]
    return {way: float(np.mean([result[way][column] for result in found])) for way in ways}


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
        rows.append([way, *gains, _gains(others, f"{FIRST}, {way}"), _losses(nine, f"{FIRST}, {way}")])
    for way in (*(f"vote {name}" for name in more_runs.VOTES), "TS + LR", "TS + SVC"):
        rows.append([way, _gains(nine, way), "", "", _gains(others, way), _losses(nine, way)])
    head = ["way", *(METRICS[metric] for metric in more_runs.METRICS)]
    return table([*head, "other splits, affine-invariant", "log-loss, affine-invariant"], rows)


def _gains(cells: Sequence[Cell], way: str, metric: str = FIRST) -> str:
    """Return the mean and the lowest gain of accuracy on the default."""
    gains = [cell.accuracy[way] - cell.accuracy[f"{metric}, one"] for cell in cells]
    return f"{np.mean(gains):+.3f} / {min(gains):+.3f}" if gains else ""


def _losses(cells: Sequence[Cell], way: str) -> str:
    """Return the mean and the largest change of the log-loss of the default."""
    changes = [cell.log_loss[way] - cell.log_loss[f"{FIRST}, one"] for cell in cells if way in cell.log_loss]
    return f"{np.mean(changes):+.3f} / {max(changes):+.3f}" if changes else ""
