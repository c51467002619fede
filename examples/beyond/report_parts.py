"""Tables of the pages in docs/experiments on costs, geometries and dimension reduction."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from examples.beyond import costs as cost_runs
from examples.beyond import geometries as geometry_runs
from examples.beyond import reduction as reduction_runs
from examples.beyond.problems import TITLES
from examples.paper.report import by_method, paired, spread, table
from examples.paper.runner import Record, load

__all__ = ["NOTHING", "costs", "geometries", "over_subjects", "reduction"]

COSTS = {cost_runs.PAPER: "RSLVQ, the paper's", "SpreadRSLVQ": "SpreadRSLVQ, sigma2 of its own"}
NOTHING = ("", "")  # in the place of a difference and its p-value
Found = Mapping[str, Mapping[int, Any]]


def over_subjects(found: Found) -> dict[str, dict[int, float]]:
    """Return means over the seeds by method and subject, from lists over the subjects by method and seed."""
    return {name: dict(enumerate(np.mean(list(runs.values()), axis=0), start=1)) for name, runs in found.items()}


def _scores(records: Sequence[Record], data: str, prefix: str = "") -> tuple[Found, Found]:
    """Return the scores that the table shows and those that the test pairs.

    Both are accuracies by repetition. On BCI 2a the table shows kappas by seed, and the test pairs kappas by subject.
    """
    if data != "bci2a":
        found = by_method(records, f"{prefix}accuracy")
        return found, found
    return by_method(records, f"mean_{prefix}kappa"), over_subjects(by_method(records, f"{prefix}kappa"))


def _values(found: Found, name: str) -> list[Any]:
    return list(found[name].values())


def _title(data: str) -> str:
    return f"{TITLES[data]}{', kappa' if data == 'bci2a' else ''}"


def costs(folder: pathlib.Path) -> str:
    """Return the table of scores by data set and cost, with p against the paper's cost and against the class means."""
    rows = []
    for data in ("syn1", "syn2", "full256", "mask256", "bci2a"):
        shown, tested = _scores(load(folder, f"costs-{data}"), data)
        for name in (name for name in cost_runs.METHODS if name in shown):
            against: list[str] = []
            for other in (cost_runs.PAPER, "start"):
                against += NOTHING if name in (other, "start") else paired(tested, name, other)
            rows.append([f"{_title(data)}, {COSTS.get(name, name)}", spread(_values(shown, name), digits=3), *against])
    head = ["data, cost", "accuracy or kappa [repetitions]", "difference to RSLVQ", "p", "difference to the start", "p"]
    return table(head, rows)


def geometries(folder: pathlib.Path) -> str:
    """Return the table of scores before and after training by geometry, with p against the paper's and seconds."""
    rows = []
    for data in ("syn1", "syn2", "full256", "mask256", "bci2a"):
        records = load(folder, f"geometries-{data}")
        shown, tested = _scores(records, data)
        start = _scores(records, data, "start_")[0]
        seconds = by_method(records, "mean_fit_cpu_seconds" if data == "bci2a" else "fit_cpu_seconds")
        for name in (name for name in geometry_runs.METHODS if name in shown):
            rows.append(
                [
                    f"{_title(data)}, {name}",
                    f"{np.mean(_values(start, name)):.3f}",
                    spread(_values(shown, name), digits=3),
                    *(NOTHING if name == geometry_runs.PAPER else paired(tested, name, geometry_runs.PAPER)),
                    f"{np.median(_values(seconds, name)):.2f}",
                ]
            )
    head = ["data, geometry", "class means", "trained [repetitions]", "difference to AffineInvariant", "p"]
    head.append("seconds to fit")
    return table(head, rows)


def reduction(folder: pathlib.Path) -> str:
    """Return the table of kappas by size, with p against full size over the subjects, and seconds."""
    records = load(folder, "reduction")
    shown, tested = by_method(records, "mean_kappa"), over_subjects(by_method(records, "kappa"))
    fit, predict = (by_method(records, f"mean_{part}_cpu_seconds") for part in ("fit", "predict"))
    rows = []
    for name in (name for name in reduction_runs.METHODS if name in shown):
        rows.append(
            [
                name,
                spread(_values(shown, name), digits=3),
                *(NOTHING if name == reduction_runs.PAPER else paired(tested, name, reduction_runs.PAPER)),
                f"{np.median(_values(fit, name)):.2f}",
                f"{1000 * np.median(_values(predict, name)):.0f}",
                *(f"{kappa:.2f}" for kappa in tested[name].values()),
            ]
        )
    head = ["size", "mean kappa [seeds]", "difference to full size", "p", "seconds to fit", "ms to predict"]
    return table([*head, *(f"S{k}" for k in range(1, 10))], rows)
