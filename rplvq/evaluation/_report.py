"""A comparison as text: aligned for a terminal, or as Markdown."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

Table = list[list[str]]
CAUTION = 'Folds share training data, so these p-values are optimistic; test="corrected_t" allows for that.'
FEW_FOLDS = "With so few folds none of them can be below {least:.3g}, whatever the scores."


def as_text(comparison: Any) -> str:
    """Return the summary, and the p-values of the first metric if there are any, as aligned tables."""
    blocks = [f"{_heading(comparison)}\n\n{_aligned(_summary_table(comparison.rows, comparison.metrics))}"]
    if _is_testable(comparison):
        metric = comparison.metrics[0]
        table = _aligned(_p_value_table(comparison.names, comparison.p_values(metric)))
        blocks.append(f"{_test_heading(comparison, metric)}\n{table}\n{_caution(comparison)}")
    return "\n\n".join(blocks)


def as_markdown(comparison: Any) -> str:
    """Return the summary, and the p-values of every metric if there are any, as Markdown tables."""
    table = _markdown(_summary_table(comparison.rows, comparison.metrics, sign="±"))
    blocks = [f"{_heading(comparison)}\n\n{table}"]
    if _is_testable(comparison):
        for metric in comparison.metrics:
            table = _markdown(_p_value_table(comparison.names, comparison.p_values(metric), named_rows=True))
            blocks.append(f"{_test_heading(comparison, metric)}:\n\n{table}")
        blocks.append(_caution(comparison))
    return "\n\n".join(blocks) + "\n"


def mean_and_deviation(row: Mapping[str, Any], metric: str, sign: str, digits: int) -> str:
    """Return ``mean +- std`` of a row as text, or the mean alone if there is only one fold."""
    mean, deviation = row[f"{metric}_mean"], row[f"{metric}_std"]
    tail = "" if math.isnan(deviation) else f" {sign} {deviation:.{digits}f}"
    return f"{mean:.{digits}f}{tail}"


def _is_testable(comparison: Any) -> bool:
    return len(comparison.names) > 1 and len(comparison.folds) > 1


def _heading(comparison: Any) -> str:
    counts = f"{_count(len(comparison.names), 'estimator')}, {_count(len(comparison.folds), 'fold')}"
    return f"{counts}: mean +- standard deviation of the scores, mean seconds per fold"


def _test_heading(comparison: Any, metric: str) -> str:
    pairs = _count(math.comb(len(comparison.names), 2), "pair")
    return f"{metric}: p-values of Wilcoxon's signed-rank test, with Holm's correction for {pairs}"


def _caution(comparison: Any) -> str:
    least = min(1.0, math.comb(len(comparison.names), 2) * 2.0 ** (1 - len(comparison.folds)))
    return CAUTION if least <= 0.05 else f"{CAUTION}\n{FEW_FOLDS.format(least=least)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _summary_table(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str], sign: str = "+-") -> Table:
    """Return a table with a header and one row per estimator: number, name, ``mean +- std`` of each metric, seconds."""
    table = [["", "estimator", *metrics, "fit [s]", "predict [s]"]]
    for number, row in enumerate(rows, start=1):
        scores = [mean_and_deviation(row, m, sign, digits=4) for m in metrics]
        seconds = [f"{row[key]:.3g}" for key in ("fit_seconds", "predict_seconds")]
        table.append([str(number), str(row["estimator"]), *scores, *seconds])
    return table


def _p_value_table(names: Sequence[str], p_values: Mapping[Any, float], *, named_rows: bool = False) -> Table:
    """Return the p-values of all pairs as a lower triangle, with the numbers of the estimators as labels."""
    table = [["", *(["estimator"] if named_rows else []), *map(str, range(1, len(names)))]]
    for i, name in enumerate(names[1:], start=1):
        values = [p_values[other, name] for other in names[:i]]
        cells = ["<0.001" if p < 0.001 else f"{p:.3f}" for p in values] + [""] * (len(names) - 1 - i)
        table.append([str(i + 1), *([name] if named_rows else []), *cells])
    return table


def _aligned(table: Table) -> str:
    """Align columns by spaces: names to the left, numbers to the right."""
    columns = [
        [f"{cell:{'<' if column[0] == 'estimator' else '>'}{max(map(len, column))}}" for cell in column]
        for column in zip(*table, strict=True)
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def _markdown(table: Table) -> str:
    """Write a table in GitHub's Markdown, with bars in cells escaped."""
    escaped = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in table]
    lines = [escaped[0], ["---"] * len(table[0]), *escaped[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
