"""The page docs/experiments/ecosystem.md, made from its template and the records."""

from __future__ import annotations

import pathlib

import numpy as np

from examples.ecosystem.moabb import beside_published
from examples.paper.report import by_method, fill, table
from examples.paper.runner import load

SERIES = {"vowels": "JapaneseVowels", "motions": "BasicMotions"}
DOCS = pathlib.Path(__file__).parents[2] / "docs"


def write(folder: pathlib.Path, docs: pathlib.Path = DOCS) -> None:
    """Write docs/experiments/ecosystem.md from the records in ``folder``."""
    parts = {"published": beside_published(), "series": accuracies(folder)}
    (docs / "experiments").mkdir(exist_ok=True)
    fill(pathlib.Path(__file__).parent / "ecosystem.template.md", parts, docs / "experiments" / "ecosystem.md")


def accuracies(folder: pathlib.Path) -> str:
    """Return the table of mean test accuracies: one row per method, one column per data set of time series."""
    by_name = {title: by_method(load(folder, name), "accuracy") for name, title in SERIES.items()}
    methods = sorted({method for runs in by_name.values() for method in runs})
    rows = [
        [
            method.replace(" a class", " per class"),
            *(f"{np.mean(list(runs[method].values())):.3f}" if method in runs else "" for runs in by_name.values()),
        ]
        for method in methods
    ]
    return table(["method", *by_name], rows)
