"""Tables of the pages in docs/experiments on costs, geometries, sigma2, lost rank and dimension reduction."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from examples.beyond import costs as cost_runs
from examples.beyond import geometries as geometry_runs
from examples.beyond import own_sigma2 as sigma2_runs
from examples.beyond import reduction as reduction_runs
from examples.beyond import reference as reference_runs
from examples.beyond.problems import TITLES
from examples.beyond.report_default import TITLES as DEFAULT_TITLES
from examples.beyond.report_default import split_title
from examples.paper.report import by_method, paired, results, spread, table
from examples.paper.runner import Record, load
from rplvq.protocols import Array

__all__ = ["NOTHING", "costs", "geometries", "over_subjects", "own_sigma2", "reduction", "reference"]

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
    """Return the table of scores by cost and data set; a bold one differs from the paper's cost at 0.05."""
    return _by_data(folder, "costs", cost_runs.METHODS, cost_runs.PAPER, COSTS)


def geometries(folder: pathlib.Path) -> str:
    """Return the table of scores by geometry and data set; a bold one differs from the paper's at 0.05."""
    return _by_data(folder, "geometries", geometry_runs.METHODS, geometry_runs.PAPER, {})


def _by_data(folder: pathlib.Path, group: str, methods: Sequence[str], reference: str, names: Mapping[str, str]) -> str:
    """Return a table with one row per method and one column per data set."""
    head = [group[:-1].replace("geometrie", "geometry")]
    cells: dict[str, list[str]] = {method: [] for method in methods}
    for data in ("syn1", "syn2", "full256", "mask256", "bci2a"):
        shown, tested = _scores(load(folder, f"{group}-{data}"), data)
        if shown:
            head.append(f"{_title(data)} [{len(shown[reference])}]")
            for method, row in cells.items():
                row.append(_score(shown, tested, method, reference) if method in shown else "")
    return table(head, [[names.get(method, method), *row] for method, row in cells.items()])


def _score(shown: Found, tested: Found, method: str, reference: str) -> str:
    """Return a mean score, in bold if it differs from that of the reference at 0.05."""
    score = f"{np.mean(_values(shown, method)):.3f}"
    if method == reference:
        return score
    p_value = paired(tested, method, reference)[1]
    return f"**{score}**" if p_value not in ("", "too few") and float(p_value) < 0.05 else score


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
            ]
        )
    head = ["size", "mean kappa [seeds]", "difference to full size", "p", "seconds to fit", "ms to predict"]
    return table(head, rows)


def own_sigma2(folder: pathlib.Path) -> str:
    """Return the table of accuracies / log-losses with a sigma2 that is learned, and how far it went."""
    rates = [f"learned, rate {rate:g}" for rate in sigma2_runs.RATES]
    ways = ["default", "rule", *rates, "learned where the default trains"]
    rows = []
    for data, size in sigma2_runs.SIZES:
        found = results(folder, f"sigma2-{data}")
        if found:
            cells = [" / ".join(_mean(found, way, name, ".3f") for name in ("accuracy", "log_loss")) for way in ways]
            factors = " and ".join(_mean(found, way, "factor", ".2g") for way in rates)
            rows.append([f"{DEFAULT_TITLES[data]}, {split_title(data, size)} [{len(found)}]", *cells, factors])
    return table(["data", *ways, "factor"], rows)


def _mean(found: Sequence[Record], way: str, name: str, form: str) -> str:
    return f"{np.mean([result[way][name] for result in found]):{form}}"


def reference(folder: pathlib.Path) -> str:
    """Return the table of accuracies at full rank, and of gains where a direction has been lost."""
    rows = []
    for data, title in reference_runs.TITLES.items():
        found = results(folder, f"reference-{data}")
        for kind in reference_runs.CLASSIFIERS if found else ():
            full, *others = reference_runs.INPUTS
            base = np.array([result[f"{kind}, {full}"] for result in found])
            cells = [_gain(np.array([result[f"{kind}, {name}"] for result in found]) - base) for name in others]
            rows.append([f"{title} [{len(found)}]", kind, f"{base.mean():.3f}", *cells])
    return table(["data", "classifier", *reference_runs.INPUTS], rows)


def _gain(gains: Array) -> str:
    """Return the mean gain with its standard errors over the repetitions and over the units (columns)."""
    errors = [_standard_error(gains.mean(axis=axis)) for axis in (1, 0)]
    return f"{gains.mean():+.3f} ± {errors[0]:.3f} / {errors[1]:.3f}"


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
