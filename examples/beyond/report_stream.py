"""Tables of the pages in docs/experiments on the stream of BCI 2a's second session."""

from __future__ import annotations

import pathlib

import numpy as np

from examples.beyond.stream import LATE, METHODS, VIEWS
from examples.paper.report import by_method, paired, spread, table
from examples.paper.runner import load
from rplvq.protocols import Array

__all__ = ["late", "stream"]

FORMER = "partial_fit, horizon 200"
"""A rule that is no longer run, of which there are records: its step had a horizon instead of a share."""


def _subjects(runs: dict[int, list[float]]) -> Array:
    """Return the kappa (9,) of each subject as the mean over the seeds."""
    return np.array(list(runs.values())).mean(axis=0)


def stream(folder: pathlib.Path) -> str:
    """Return the table of kappas by rule and view, with p over the subjects against the frozen model."""
    records, rows = load(folder, "stream"), []
    means, counts = by_method(records, "mean_kappa"), by_method(records, "mean_prototypes")
    kappas = by_method(records, "kappa")
    subjects = {name: dict(enumerate(_subjects(runs).tolist())) for name, runs in kappas.items()}
    for view in VIEWS:
        for rule in dict.fromkeys(["frozen", "partial_fit", FORMER, *METHODS]):
            name, base = f"{rule}, {view}", f"frozen, {view}"
            if name in means:
                against = ("", "") if rule == "frozen" else paired(subjects, name, base)
                number = f"{np.mean(list(counts[name].values())):.1f}"
                rows.append([name, spread(list(means[name].values()), digits=3), *against, number])
    return table(["rule, view", "mean kappa [seeds]", "difference to frozen", "p", "prototypes"], rows)


def late(folder: pathlib.Path) -> str:
    """Return the table of mean kappa and recall of the late class, where session 1 lacks a class."""
    records = load(folder, "stream")
    means, recalls = by_method(records, "mean_kappa"), by_method(records, "mean_recall")
    rows = []
    for name in sorted(name for name in means if name.startswith(LATE)):
        values = [spread(list(part[name].values()), digits=3) for part in (means, recalls)]
        rows.append([name, *values])
    return table(["a class that session 1 lacks", "mean kappa [seeds]", "recall of that class"], rows)
