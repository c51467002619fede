"""Tables of text: aligned for a terminal, or Markdown."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

__all__ = ["aligned", "markdown", "mean_and_deviation", "p_value_table", "summary_table"]

Table = list[list[str]]


def summary_table(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str], sign: str = "+-") -> Table:
    """Lay out the rows of a comparison: number, name, ``mean +- std`` of each metric, seconds."""
    table = [["", "estimator", *metrics, "fit [s]", "predict [s]"]]
    for number, row in enumerate(rows, start=1):
        scores = [mean_and_deviation(row, m, sign, digits=4) for m in metrics]
        seconds = [f"{row[key]:.3g}" for key in ("fit_seconds", "predict_seconds")]
        table.append([str(number), str(row["estimator"]), *scores, *seconds])
    return table


def mean_and_deviation(row: Mapping[str, Any], metric: str, sign: str, digits: int) -> str:
    """Write ``mean +- std`` of a row; the mean alone where there is no deviation, with one fold."""
    mean, deviation = row[f"{metric}_mean"], row[f"{metric}_std"]
    tail = "" if math.isnan(deviation) else f" {sign} {deviation:.{digits}f}"
    return f"{mean:.{digits}f}{tail}"


def p_value_table(
    names: Sequence[str], p_values: Mapping[tuple[str, str], float], *, named_rows: bool = False
) -> Table:
    """Lay out p-values of pairs as a lower triangle, with the numbers of :func:`summary_table` as labels."""
    n = len(names)
    cells = {(i, j): _p_value(p_values[names[i], names[j]]) for i, j in combinations(range(n), 2)}
    table = [["", *(["estimator"] if named_rows else []), *[str(j + 1) for j in range(n - 1)]]]
    for i in range(1, n):
        label = [str(i + 1), *([names[i]] if named_rows else [])]
        table.append(label + [cells.get((j, i), "") for j in range(n - 1)])
    return table


def _p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def aligned(table: Table, text: Collection[str] = ("estimator",)) -> str:
    """Align columns by spaces: those with headers in ``text`` to the left, numbers to the right.

    Examples
    --------
    >>> print(aligned([["estimator", "score"], ["a", "0.5"], ["long name", "0.25"]]))
    estimator  score
    a            0.5
    long name   0.25
    """
    columns = list(zip(*table, strict=True))
    widths = [max(map(len, column)) for column in columns]
    left = [header in text for header in table[0]]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(row, widths, left, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown(table: Table) -> str:
    r"""Write a table in GitHub's Markdown, with bars in cells escaped.

    Examples
    --------
    >>> print(markdown([["name", "score"], ["a|b", "0.5"]]))
    | name | score |
    | --- | --- |
    | a\|b | 0.5 |
    """
    escaped = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in table]
    lines = [escaped[0], ["---"] * len(table[0]), *escaped[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
