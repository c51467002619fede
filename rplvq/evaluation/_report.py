"""A report on a comparison: its content in blocks, and these as text for a terminal, Markdown, LaTeX or CSV."""

import csv
import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rplvq.evaluation._questions import p_text
from rplvq.evaluation._significance import TESTS, Row

if TYPE_CHECKING:
    from rplvq.evaluation._comparison import Comparison

WIDTH = 80
NAMED = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater", "|": "bar"}
LATEX = {char: f"\\{char}" for char in "&%$#_{}"} | {char: f"\\text{name}{{}}" for char, name in NAMED.items()}
"""What LaTeX needs in place of a character."""
FEW_FOLDS = "With so few folds no p-value of Wilcoxon's test can be below {least:.3g}, whatever the scores."


class Table(NamedTuple):
    """A table of text: a header, rows, and the columns whose entries begin at the left."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: frozenset[str] = frozenset({"estimator", "question", "first", "second", "better", "95% CI", "settings"})


Block = str | Table | dict[str, str]  # a paragraph, a table, or facts by their names, one per line


def make_report(comparison: "Comparison", metrics: Sequence[str]) -> list[Block]:
    """Return facts, summary, differences by each of some metrics, and the conclusions by the first of them."""
    blocks: list[Block] = [comparison.about] if comparison.about else []
    counts = f"{_count(len(comparison.names), 'estimator')}, {_count(len(comparison.folds), 'fold')}"
    blocks.append(f"{counts}: mean +- standard deviation of the scores, median seconds per fold")
    blocks.append(_summary_table(comparison.rows, comparison.metrics, len(comparison.folds)))
    if comparison.settings:
        blocks.append({str(n): text for n, text in enumerate(comparison.settings, start=1)})
    if min(len(comparison.names), len(comparison.folds)) > 1:
        for metric in metrics:
            blocks += [_test_heading(comparison, metric), _difference_table(comparison.differences(metric))]
        least = min(1.0, _family_size(comparison) * 2.0 ** (1 - len(comparison.folds)))
        if comparison.test == "wilcoxon" and least > 0.05:
            blocks.append(FEW_FOLDS.format(least=least))
        blocks += comparison.conclusions(metrics[0])
    return blocks


def mean_and_deviation(row: Row, metric: str, sign: str, digits: int) -> str:
    """Return ``mean +- std`` of a row as text, or the mean alone if there is only one fold."""
    mean = row[f"{metric}_mean"]
    deviation = row[f"{metric}_std"]
    tail = "" if math.isnan(deviation) else f" {sign} {deviation:.{digits}f}"
    return f"{mean:.{digits}f}{tail}"


def _test_heading(comparison: "Comparison", metric: str) -> str:
    pairs = "the pairs of each question" if comparison.questions else _count(_family_size(comparison), "pair")
    by = "" if comparison.test == "corrected_t" else ", by the corrected t-test"
    what = f"{metric}: difference of each pair; {TESTS[comparison.test]}"
    return f"{what}; 95% confidence interval (CI) of each pair alone{by}; p after Holm's correction for {pairs}"


def _family_size(comparison: "Comparison") -> int:
    """Return the largest number of pairs that are corrected together."""
    if comparison.questions:
        return max(len(question.pairs) for question in comparison.questions)
    return math.comb(len(comparison.names), 2)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _summary_table(rows: Sequence[Row], metrics: Sequence[str], n_folds: int) -> Table:
    """Return one row per estimator: number, name, ``mean +- std`` of each metric, folds that trained, sigma2, times."""
    cells = []
    for number, row in enumerate(rows, start=1):
        scores = [mean_and_deviation(row, m, "+-", digits=4) for m in metrics]
        trained = "" if math.isnan(row["trained"]) else f"{row['trained']:.0f} of {n_folds}"
        numbers = [row[key] for key in ("sigma2", "fit_seconds", "predict_seconds")]
        texts = ["" if math.isnan(value) else f"{value:.3g}" for value in numbers]
        cells.append([str(number), str(row["estimator"]), *scores, trained, *texts])
    return Table(["", "estimator", *metrics, "trained", "sigma2", "fit [s]", "predict [s]"], cells)


def _difference_table(rows: Sequence[Row]) -> Table:
    """Return one row per pair; the sign and the p-value stand in separate columns."""
    cells = []
    for row in rows:
        interval = f"{row['ci_low']:+.4f} to {row['ci_high']:+.4f}"
        numbers = [f"{row['difference']:+.4f}", interval, row["better"], p_text(row["p"])]
        cells.append([row["question"], row["first"], row["second"], *numbers])
    return Table(["question", "first", "second", "difference", "95% CI", "better", "p"], cells)


def as_csv(rows: Sequence[Row], about: Mapping[str, str]) -> bytes:
    """Return rows with the same keys as CSV in UTF-8; each row ends with the facts of ``about``."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=[*(rows[0] if rows else ()), *about])
    writer.writeheader()
    writer.writerows({**row, **about} for row in rows)
    return text.getvalue().encode()


def as_text(blocks: Sequence[Block]) -> str:
    """Return lines of at most 80 characters, except in tables, with columns aligned by spaces."""
    return "\n\n".join(map(_text, blocks))


def _text(block: Block) -> str:
    if isinstance(block, Table):
        columns = [
            [f"{cell:{'<' if column[0] in block.left else '>'}{max(map(len, column))}}" for cell in column]
            for column in zip(block.header, *block.rows, strict=True)
        ]
        return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))
    if isinstance(block, dict):
        return "\n".join(_wrapped(f"{name}: {value}") for name, value in block.items())
    return _wrapped(block)


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)


def as_markdown(blocks: Sequence[Block]) -> str:
    """Return Markdown as GitHub shows it; characters with a meaning there are escaped."""
    return "\n\n".join(map(_markdown, blocks)) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Table):
        rule = ["---" if name in block.left else "---:" for name in block.header]
        lines = [list(map(_markdown_text, row)) for row in (block.header, *block.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (lines[0], rule, *lines[1:]))
    if isinstance(block, dict):
        return "\n".join(f"- {name}: {_markdown_text(value)}" for name, value in block.items())
    return _markdown_text(block)


def _markdown_text(text: str) -> str:
    escaped = re.sub(r"([\\`*_|<>])", r"\\\1", " ".join(text.split()))
    return escaped.replace("+-", "±")


def as_latex(blocks: Sequence[Block]) -> str:
    """Return paragraphs and tabulars for the body of a document; no package is needed."""
    return "\n\n".join(map(_latex, blocks)) + "\n"


def _latex(block: Block) -> str:
    if isinstance(block, Table):
        columns = "".join("l" if name in block.left else "r" for name in block.header)
        head, *body = (f"{' & '.join(map(_latex_text, row))} \\\\" for row in (block.header, *block.rows))
        lines = [f"\\begin{{tabular}}{{{columns}}}", "\\hline", head, "\\hline", *body, "\\hline", "\\end{tabular}"]
        return "\n".join(lines)
    if isinstance(block, dict):
        return " \\\\\n".join(f"{_latex_text(name)}: {_latex_text(value)}" for name, value in block.items())
    return _latex_text(block)


def _latex_text(text: str) -> str:
    escaped = "".join(LATEX.get(char, char) for char in " ".join(text.split()))
    return escaped.replace("+-", "$\\pm$").replace("--", "-{}-")  # two hyphens would become a dash
