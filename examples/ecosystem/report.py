"""The page docs/experiments/ecosystem.md, made from its template and the records."""

from __future__ import annotations

import pathlib

from examples.ecosystem.moabb import beside_published
from examples.paper.report import by_method, fill, spread, table
from examples.paper.runner import load

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def write(folder: pathlib.Path, docs: pathlib.Path = DOCS) -> None:
    """Write docs/experiments/ecosystem.md from the records in ``folder``."""
    parts = {"published": beside_published()} | {name: accuracies(folder, name) for name in ("vowels", "motions")}
    (docs / "experiments").mkdir(exist_ok=True)
    fill(pathlib.Path(__file__).parent / "ecosystem.template.md", parts, docs / "experiments" / "ecosystem.md")


def accuracies(folder: pathlib.Path, dataset: str) -> str:
    """Return the table of test accuracies, sorted by the name of the method."""
    found = by_method(load(folder, dataset), "accuracy")
    rows = [
        [name.replace(" a class", " per class"), spread(list(runs.values()), digits=3)]
        for name, runs in sorted(found.items())
    ]
    return table(["method", "test accuracy [seeds]"], rows)
