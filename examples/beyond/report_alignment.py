"""The table of kappas after Recenter, Rescale and Rotate, for the page on sessions."""

from __future__ import annotations

import pathlib

import numpy as np

from examples.beyond import alignment as runs
from examples.beyond.report_parts import over_subjects
from examples.paper.report import by_method, paired, table
from examples.paper.runner import load

__all__ = ["alignment"]


def alignment(folder: pathlib.Path) -> str:
    """Return the table of mean kappas by setting, with the difference to Recenter and p for each further step."""
    found = over_subjects(by_method(load(folder, "alignment"), "kappa"))
    settings = dict.fromkeys(job.method.removesuffix(f", {job.settings['view']}") for job in runs.jobs())
    base, *others = runs.VIEWS
    rows = []
    for setting in settings:
        row = [setting, f"{np.mean(list(found[f'{setting}, {base}'].values())):.3f}"]
        for view in others:
            known = f"{setting}, {view}" in found
            row += paired(found, f"{setting}, {view}", f"{setting}, {base}") if known else ["", ""]
        rows.append(row)
    head = ["data, labels per class, classifier", base]
    for view in others:
        head += [view.removeprefix("Recenter").replace(",", " +").strip(), "p"]
    return table(head, rows)
