"""Parts that all pages made from records share: scores by method, Markdown tables, paired differences, templates."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from examples.paper.runner import Record, load
from rplvq.evaluation import wilcoxon_p_value

__all__ = ["best_of_grids", "by_method", "fill", "mean_of", "paired", "results", "spread", "table"]

COUNTED = re.compile(r"(.+) \[(\d+)\]")
"""A cell that ends with a number of values in brackets."""
COUNTED_TITLE = re.compile(r"(.+) \[(\w+)\]")
"""The head of a column of such cells, with what is counted in brackets."""


def results(folder: pathlib.Path, experiment: str, method: str | None = None) -> list[Record]:
    """Return the results of an experiment, of one method or all, by method and repetition."""
    return [record["result"] for record in load(folder, experiment, method)]


def by_method(records: Sequence[Mapping[str, Any]], name: str) -> dict[str, dict[int, Any]]:
    """Return one result by method and repetition; methods without it are left out."""
    table: dict[str, dict[int, Any]] = {}
    for record in records:
        if name in record["result"]:
            table.setdefault(record["method"], {})[record["repetition"]] = record["result"][name]
    return table


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is aligned to the left, the others to the right.

    A number of values in brackets that is the same in all cells of a column is shown in its head only.
    """
    columns = [_with_count(title, cells) for title, *cells in zip(head, *rows, strict=True)]
    titles, *cells = zip(*columns, strict=True)
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + " --: |" * (len(titles) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in cells)])


def _with_count(title: str, cells: Sequence[str]) -> list[str]:
    """Return the head of a column and its cells, with the number of values of three cells or more in the head."""
    found = [COUNTED.fullmatch(cell) for cell in cells if cell]
    counts = {match[2] for match in found if match}
    if len(found) < 3 or None in found or len(counts) > 1:
        return [title, *cells]
    (count,) = counts
    unit = COUNTED_TITLE.fullmatch(title)
    head = f"{unit[1]} [{count} {unit[2]}]" if unit else f"{title} [{count}]"
    return [head, *(COUNTED.sub(r"\1", cell) for cell in cells)]


def spread(values: Iterable[float], factor: float = 1.0, digits: int = 4, absent: str = "") -> str:
    """Return mean and sample standard deviation, with the number of values in brackets; ``absent`` without values."""
    array = np.array(list(values)) * factor
    if not len(array):
        return absent
    deviation = f" ± {array.std(ddof=1):.{digits}f}" if len(array) > 1 else ""
    return f"{array.mean():.{digits}f}{deviation} [{len(array)}]"


def mean_of(results: Sequence[Mapping[str, Any]], name: str, form: str = ".3g") -> str:
    """Return the mean of one entry of all results, or nothing without results."""
    return f"{np.mean([result[name] for result in results]):{form}}" if results else ""


def _score_of_folds(record: Mapping[str, Any]) -> float:
    """Return the best mean accuracy over the folds that a selection found."""
    return max(float(row[-1]) for row in record["result"]["tried"])


def best_of_grids(
    records: Iterable[Mapping[str, Any]], n_jobs: int, score: Callable[[Mapping[str, Any]], float] = _score_of_folds
) -> list[Mapping[str, Any]]:
    """Return the record with the highest score of each repetition whose grid is complete.

    Parameters
    ----------
    records : iterable of dict
        Each one is a part of the grid of its repetition. The first one wins among equal scores.
    n_jobs : int
        How many records the complete grid of one repetition has.
    score : callable, optional
        ``score(record)`` is maximized.

    Examples
    --------
    >>> parts = [{"repetition": 0, "n": 1}, {"repetition": 0, "n": 2}, {"repetition": 1, "n": 3}]
    >>> best_of_grids(parts, 2, lambda record: record["n"])
    [{'repetition': 0, 'n': 2}]
    """
    grids: dict[int, list[Mapping[str, Any]]] = {}
    for record in records:
        grids.setdefault(record["repetition"], []).append(record)
    return [max(grids[repetition], key=score) for repetition in sorted(grids) if len(grids[repetition]) == n_jobs]


def paired(
    found: Mapping[str, Mapping[int, float]], first: str, second: str, factor: float = 1.0, digits: int = 3
) -> tuple[str, str]:
    """Return the mean difference over the repetitions that both methods have, and Wilcoxon's p-value, as two cells."""
    shared = sorted(set(found.get(first, {})) & set(found.get(second, {})))
    if not shared:
        return "", "too few"
    a, b = (np.array([found[name][k] for k in shared]) for name in (first, second))
    difference = f"{factor * (a.mean() - b.mean()):+.{digits}f}"
    return difference, f"{wilcoxon_p_value(a, b):.2g}" if len(shared) >= 6 else "too few"


def fill(template: pathlib.Path, parts: Mapping[str, str], page: pathlib.Path) -> None:
    """Write a page, which is the template with each ``{{ name }}`` replaced by the part of that name."""
    text = template.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace("{{ " + name + " }}", part)
    page.write_text(text, encoding="utf-8")
