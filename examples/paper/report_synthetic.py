"""The page on SynI and SynII: accuracies, p-values, learning rates, selection, and readings of SynII."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from examples.paper.published import RATES, SYNTHETIC, SYNTHETIC_P
from examples.paper.report import best_of_grids, by_method, mean_of, paired, results, spread, table
from examples.paper.runner import load

__all__ = ["TITLES", "chosen_by_validation", "parts"]

TITLES = {"syn1": "SynI", "syn2": "SynII"}
PLRSQ = ("PLRSQ-Const", "PLRSQ-AN")


def parts(folder: pathlib.Path) -> dict[str, str]:
    """Return the tables by the name that the template gives them."""
    tables = {f"{problem}-{kind.__name__}": kind(folder, problem) for problem in TITLES for kind in (accuracies, tests)}
    return tables | {"rates": learning_rates(folder), "selection": selected(folder), "readings": readings(folder)}


def accuracies(folder: pathlib.Path, problem: str) -> str:
    """Return the table of accuracies, with the paper's beside them."""
    found = by_method(load(folder, problem), "accuracy")
    published = SYNTHETIC[problem]
    order = [*published, *sorted(set(found) - set(published))]
    rows = [
        [
            name,
            f"{published[name][0]:.4f} ± {published[name][1]:.4f}" if name in published else "",
            spread(found[name].values()),
        ]
        for name in order
        if name in found
    ]
    return table(["method", "paper", "ours [repetitions]"], rows)


def tests(folder: pathlib.Path, problem: str) -> str:
    """Return the table of Wilcoxon's tests: sign and p-value of each pair, the paper's and ours."""
    found = by_method(load(folder, problem), "accuracy")
    published = SYNTHETIC[problem]
    rows = []
    for (first, second), p in SYNTHETIC_P[problem].items():
        sign = "+" if published[first][0] > published[second][0] else "-"
        difference, ours = paired(found, first, second, digits=4)
        rows.append([f"{first} against {second}", sign, f"{p:.3g}", difference[:1], difference[1:], ours])
    return table(["methods", "sign, paper", "p, paper", "sign, ours", "difference, ours", "p, ours"], rows)


def learning_rates(folder: pathlib.Path) -> str:
    """Return the table of learning rates: accuracy in percent by the start of the step size."""
    columns = list(RATES["syn1"])
    rows = []
    for problem, title in TITLES.items():
        found = by_method(load(folder, f"{problem}-step"), "accuracy")
        published = [f"{RATES[problem][name]:.2f}" if RATES[problem][name] else "" for name in columns]
        cells = [spread(found.get(f"PLRSQ-Const, {name}", {}).values(), 100, 2) for name in columns]
        rows += [[f"{title}, paper", *published], [f"{title}, ours", *cells]]
    return table(["start of the step size", *columns], rows)


def selected(folder: pathlib.Path) -> str:
    """Return the table of settings that validation data chose, by the search and from the whole grid."""
    rows = []
    for problem, title in TITLES.items():
        for method in PLRSQ:
            searched = results(folder, f"{problem}-selection", method)
            whole = chosen_by_validation(load(folder, f"{problem}-grid"), method)
            for name, chosen in (
                ("one setting at a time", [result["chosen"] | {"accuracy": result["accuracy"]} for result in searched]),
                ("whole grid", whole),
            ):
                if chosen:
                    means = [mean_of(chosen, key) for key in ("sigma2", "prototypes_per_class", "max_epochs")]
                    accuracy = spread([row["accuracy"] for row in chosen])
                    rows.append([f"{title}, {method}, {name}", *means, accuracy])
    return table(["method", "mean sigma2", "mean K", "mean epochs", "test accuracy [repetitions]"], rows)


def chosen_by_validation(records: Sequence[Mapping[str, Any]], method: str) -> list[dict[str, float]]:
    """Return the best settings of each repetition whose grid (3 numbers of prototypes, 3 of epochs) is complete.

    Of equal validation accuracies, the first in the order of prototypes, epochs and sigma2 is taken.
    """
    keys = ("prototypes_per_class", "max_epochs")
    curves = [record for record in records if record["method"].split(",")[0] == method]
    curves.sort(key=lambda record: [record["settings"][key] for key in keys])
    chosen = []
    for record in best_of_grids(curves, 9, lambda curve: max(curve["result"]["validation_accuracy"])):
        result, settings = record["result"], record["settings"]
        best = int(np.argmax(result["validation_accuracy"]))
        cell = {name: result[name][best] for name in ("sigma2", "validation_accuracy", "accuracy")}
        chosen.append(cell | {key: settings[key] for key in keys})
    return chosen


def readings(folder: pathlib.Path) -> str:
    """Return the table of MDRM on SynII under other readings of the description."""
    found = by_method(load(folder, "syn2-readings"), "accuracy")
    rows = [[name, spread(runs.values(), digits=3)] for name, runs in found.items()]
    rows.sort(key=lambda row: (row[0] != "as described", row[1]))
    return table(["reading", "accuracy of MDRM [repetitions]"], [["the paper's figure", "0.907 ± 0.009"], *rows])
