"""The page docs/ecosystem.md, made from its template and the records."""

from __future__ import annotations

import pathlib

from examples.ecosystem.eeg import EVALUATIONS, PARADIGMS
from examples.paper.report import by_method, fill, spread, table
from examples.paper.runner import load

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def write(folder: pathlib.Path, docs: pathlib.Path = DOCS) -> None:
    """Write docs/ecosystem.md from the records in ``folder``."""
    parts = {"moabb": moabb(folder)} | {name: accuracies(folder, name) for name in ("vowels", "motions")}
    fill(pathlib.Path(__file__).parent / "ecosystem.template.md", parts, docs / "ecosystem.md")


def moabb(folder: pathlib.Path) -> str:
    """Return the table of mean scores: one row per pipeline, and one column per evaluation and paradigm."""
    columns = [(kind, paradigm) for paradigm in PARADIGMS for kind in EVALUATIONS]
    found = [by_method(load(folder, f"moabb-{kind}-{paradigm}"), "accuracy") for kind, paradigm in columns]
    rows = [
        [name, *(f"{methods[name][0]:.3f}" if name in methods else "" for methods in found)]
        for name in sorted({name for methods in found for name in methods})
    ]
    return table(["pipeline", *(f"{kind}, {len(PARADIGMS[paradigm])} classes" for kind, paradigm in columns)], rows)


def accuracies(folder: pathlib.Path, dataset: str) -> str:
    """Return the table of test accuracies, sorted by the name of the method."""
    found = by_method(load(folder, dataset), "accuracy")
    rows = [
        [name.replace(" a class", " per class"), spread(list(runs.values()), digits=3)]
        for name, runs in sorted(found.items())
    ]
    return table(["method", "test accuracy [seeds]"], rows)
