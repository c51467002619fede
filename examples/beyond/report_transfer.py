"""Tables on transfer between the subjects of BCI 2a: with own labelled trials, and without any."""

from __future__ import annotations

import pathlib

import numpy as np

from examples.beyond import transfer as runs
from examples.paper.report import by_method, paired, table
from examples.paper.runner import load

__all__ = ["few", "means", "without"]


def means(folder: pathlib.Path) -> dict[str, str]:
    """Return the mean score of each method, with three digits, by the name of its place on the page."""
    records = load(folder, "transfer")
    scores = by_method(records, "mean_accuracy"), by_method(records, "mean_kappa")
    found = {name: (scores[0] if name in runs.NONE else scores[1])[name] for name in scores[0]}
    draws = {"transfer: draws": str(max((len(values) for values in found.values()), default=0))}
    return draws | {f"transfer: {name}": _mean(values) for name, values in found.items()}


def few(folder: pathlib.Path) -> str:
    """Return the table of mean kappa by method and number of own labelled trials per class."""
    found = by_method(load(folder, "transfer"), "mean_kappa")
    rows = [[name, *(_mean(found.get(f"{name}, {count}", {})) for count in runs.COUNTS)] for name in runs.FEW]
    return table(["mean kappa, by own labelled trials per class", *map(str, runs.COUNTS)], rows)


def without(folder: pathlib.Path) -> str:
    """Return the table of accuracies without own labels, with p over the subjects against the other subjects alone."""
    records = load(folder, "transfer")
    found = {
        name: dict(enumerate(np.mean(list(values.values()), axis=0).tolist()))
        for name, values in by_method(records, "accuracy").items()
        if name in runs.NONE
    }
    base, rows = "other subjects", []
    for name in runs.NONE:
        if name in found:
            against = ("", "") if name == base else paired(found, name, base)
            rows.append([name, _mean(found[name]), *against])
    return table(["no own labels", "mean accuracy", "difference to other subjects", "p"], rows)


def _mean(values: dict[int, float]) -> str:
    return f"{np.mean(list(values.values())):.3f}" if values else ""
