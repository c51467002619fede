"""Mkdocs hook: a table at the head of each page of the API, with the first sentence of each entry's docstring."""

from __future__ import annotations

import inspect
import pydoc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ENTRY = re.compile(r"^::: (\S+)$", flags=re.M)
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?(?:[\w.]+\.)?(\w+)`")
FEWEST = 3
"""Pages with fewer entries have no table."""

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def entries(markdown: str) -> Iterator[tuple[str, Any]]:
    """Yield path and object of the functions and classes of a page; an entry that is a module stands for its own."""
    for path in ENTRY.findall(markdown):
        found = pydoc.locate(path)
        if inspect.ismodule(found):
            own = ((f"{path}.{name}", part) for name, part in vars(found).items() if not name.startswith("_"))
            yield from ((name, part) for name, part in own if callable(part) and part.__module__ == path)
        elif callable(found):
            yield path, found


def first_sentence(part: Any) -> str:
    """Return the first sentence of a docstring as Markdown."""
    head = " ".join((inspect.getdoc(part) or "").partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.:])\s+(?=[A-Z])", head)[0].rstrip(":")
    return ROLE.sub(r"`\1`", sentence).replace("``", "`")


def with_table(markdown: str) -> str:
    """Insert the table before the first entry or heading of second level."""
    summaries = [(path, first_sentence(part)) for path, part in entries(markdown)]
    rows = [f"| [`{path.rpartition('.')[2]}`][{path}] | {summary} |" for path, summary in summaries if summary]
    place = re.search(r"^(:::|## )", markdown, flags=re.M)
    if place is None or len(rows) < FEWEST:
        return markdown
    table = "\n".join(["| name | what it is |", "| --- | --- |", *rows])
    return f"{markdown[: place.start()]}{table}\n\n{markdown[place.start() :]}"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mkdocs event: a page's text before it is rendered."""
    return with_table(markdown) if page.file.src_uri.startswith("api/") else markdown
