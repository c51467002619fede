"""Renders the blocks of a report as text for a terminal, Markdown or LaTeX, and rows as CSV."""

import csv
import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rplvq.evaluation._report import Block, Table

WIDTH = 80
LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def as_csv(rows: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> bytes:
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
        return _aligned(block)
    if isinstance(block, dict):
        return "\n".join(_wrapped(f"{name}: {value}") for name, value in block.items())
    return _wrapped(block)


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)


def _aligned(table: Table) -> str:
    columns = [
        [f"{cell:{'<' if column[0] in table.left else '>'}{max(map(len, column))}}" for cell in column]
        for column in zip(table.header, *table.rows, strict=True)
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


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
