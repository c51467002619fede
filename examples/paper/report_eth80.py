"""The page on ETH-80: the paper's table, selection by cross-validation, clusterings, and the objects' masks."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from examples.paper.published import ETH80, ETH80_SELECTED
from examples.paper.report import best_of_grids, by_method, mean_of, spread, table
from examples.paper.runner import load

__all__ = ["chosen_by_folds", "parts"]

CLASSES = range(3, 9)
HEAD = ["method", *(f"C = {c}" for c in CLASSES)]
# The rows beside the paper's; a second table has all methods.
FIRST = ("MDRM", "PLRSQ-AN", "PLRSQ-Const", "LE k-means", "LE kernel k-means")


def parts(folder: pathlib.Path) -> dict[str, str]:
    """Return the tables by the name that the template gives them."""
    whole = scores(folder, "full256")
    published = [[f"{name}, paper", *(f"{values[c]:.2f}" for c in CLASSES)] for name, values in ETH80.items()]
    return {
        "table": table(HEAD, [*published, *([name, *_deviating(whole[name])] for name in FIRST if name in whole)]),
        "more": more(folder, whole),
        "selection": selected(folder),
        "clusters": clusters(folder),
    }


def scores(folder: pathlib.Path, descriptor: str) -> dict[str, list[str]]:
    """Return the accuracies in percent by method, one cell per number of classes."""
    found: dict[int, dict[str, dict[int, Any]]] = {}
    for c in CLASSES:
        found[c] = by_method(load(folder, f"eth80-{descriptor}-C{c}"), "accuracy")
    names = sorted({name for methods in found.values() for name in methods})
    return {name: [spread(found[c].get(name, {}).values(), 100, 1) for c in CLASSES] for name in names}


def more(folder: pathlib.Path, whole: Mapping[str, Sequence[str]]) -> str:
    """Return the table of all methods with eight classes, on whole images and on the objects alone."""
    masked = scores(folder, "mask256")
    rows = [[name, *(_means(runs.get(name, [""])[-1:])[0] for runs in (whole, masked))] for name in whole]
    return table(["method, C = 8", "whole image", "object alone"], rows)


def _deviating(cells: Sequence[str]) -> list[str]:
    """Return cells without their number of repetitions, which the page states once."""
    return [cell.split(" [")[0] for cell in cells]


def _means(cells: Sequence[str]) -> list[str]:
    """Return the means of cells that also state a deviation and a number of repetitions."""
    return [cell.split(" ")[0] for cell in cells]


def selected(folder: pathlib.Path) -> str:
    """Return the table of what cross-validation chose, over the splits that have all six numbers of prototypes."""
    rows = []
    for c in CLASSES:
        results = chosen_by_folds(folder, c)
        means = [mean_of([r["chosen"] for r in results], name, ".2f") for name in ("prototypes_per_class", "sigma2")]
        published = [f"{value:.2f}" for value in (*ETH80_SELECTED[c], ETH80["PLRSQ"][c])]
        rows.append([str(c), *published, *means, spread([r["accuracy"] for r in results], 100, 1, "not run")])
    head = ["C", "K, paper", "sigma2, paper", "PLRSQ, paper", "K, ours", "sigma2, ours", "PLRSQ-AN, ours [splits]"]
    return table(head, rows)


def chosen_by_folds(folder: pathlib.Path, c: int) -> list[dict[str, Any]]:
    """Return the results of the splits whose grid is complete, for C classes, at the settings that the folds chose."""
    return [record["result"] for record in best_of_grids(load(folder, f"eth80-selection-C{c}"), 6)]


def clusters(folder: pathlib.Path) -> str:
    """Return the table of mean accuracies of the clusterings in raw units under several readings, in percent."""
    records = load(folder, "eth80-clusters")
    accuracy, purity = by_method(records, "accuracy"), by_method(records, "purity")
    rows = [[f"{name}, quoted in the paper", f"{ETH80[name][8]:.2f}", ""] for name in ("KM", "KKM")]
    names = [name for name in accuracy if "raw units" in name]
    for name in sorted(names, key=lambda name: ("kernel" in name, name)):
        several = " 2 C" in name or " 4 C" in name  # more clusters than classes have no assignment one to one
        cells = _means([spread(runs[name].values(), 100, 1) for runs in (accuracy, purity)])
        rows.append([name.replace("raw units, ", ""), "" if several else cells[0], cells[1]])
    return table(["clustering of the test images, C = 8", "one cluster per class", "majority of each cluster"], rows)
