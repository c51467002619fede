"""The pages docs/reproduction.md and docs/reproduction/*.md with their figures, made from the records."""

from __future__ import annotations

import pathlib

from examples.paper import (
    report_bci2a,
    report_cifar10,
    report_eth80,
    report_figures,
    report_later,
    report_overview,
    report_synthetic,
)
from examples.paper.report import fill

__all__ = ["PAGES", "write"]

DOCS = pathlib.Path(__file__).parents[2] / "docs"
TEMPLATES = pathlib.Path(__file__).parent / "templates"
PAGES = {
    "reproduction.md": report_overview.parts,
    "reproduction/synthetic.md": report_synthetic.parts,
    "reproduction/eth80.md": report_eth80.parts,
    "reproduction/cifar10.md": report_cifar10.parts,
    "reproduction/bci2a.md": report_bci2a.parts,
    "reproduction/later.md": report_later.parts,
}


def write(folder: pathlib.Path, docs: pathlib.Path = DOCS) -> None:
    """Write all pages and their figures from the records in ``folder``."""
    report_figures.draw(folder, docs / "assets" / "reproduction")
    (docs / "reproduction").mkdir(parents=True, exist_ok=True)
    for name, parts in PAGES.items():
        fill(TEMPLATES / name, parts(folder), docs / name)
