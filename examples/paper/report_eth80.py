"""The page on ETH-80: the paper's table, selection by cross-validation, clusterings, and the objects' masks."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from examples.paper.published import ETH80, ETH80_SELECTED
from examples.paper.report import by_method, spread, table
from examples.paper.runner import load

__all__ = ["parts"]

CLASSES = range(3, 9)
HEAD = ["method", *(f"C = {c}" for c in CLASSES)]
# The rows beside the paper's; the others follow in a second table.
FIRST = ("MDRM", "PLRSQ-AN", "PLRSQ-Const", "LE k-means", "LE kernel k-means")


def parts(folder: pathlib.Path) -> dict[str, str]:
    """Return the tables by the name that the template gives them."""
    whole = scores(folder, "full256")
    published = [[f"{name}, paper", *(f"{values[c]:.2f}" for c in CLASSES)] for name, values in ETH80.items()]
    return {
        "table": table(HEAD, [*published, *([name, *whole[name]] for name in FIRST if name in whole)]),
        "more": table(HEAD, [[name, *cells] for name, cells in whole.items() if name not in FIRST]),
        "masks": table(HEAD, [[name, *cells] for name, cells in scores(folder, "mask256").items()]),
        "selection": selected(folder),
        "clusters": clusters(folder),
    }


def scores(folder: pathlib.Path, descriptor: str) -> dict[str, list[str]]:
    """Return the accuracies in percent by method, one cell per number of classes."""
    found: dict[int, dict[str, dict[int, Any]]] = {}
    for c in CLASSES:
        records = load(folder, f"eth80-{descriptor}-C{c}")
        posterior = by_method(records, "posterior_accuracy")
        found[c] = by_method(records, "accuracy") | {f"{name}, posterior": runs for name, runs in posterior.items()}
    names = sorted({name for methods in found.values() for name in methods})
    return {
        name: [spread(list(found[c][name].values()), 100, 1) if name in found[c] else "" for c in CLASSES]
        for name in names
    }


def selected(folder: pathlib.Path) -> str:
    """Return the table of what cross-validation chose, over the splits that have all six numbers of prototypes."""
    coarse = [record["result"] for record in load(folder, "eth80-selection")]
    rows = [_selection(8, coarse, ", coarse grid")]
    for c in CLASSES:
        grids: dict[int, list[dict[str, Any]]] = {}
        for record in load(folder, f"eth80-selection-C{c}"):
            grids.setdefault(record["repetition"], []).append(record["result"])
        rows.append(_selection(c, [max(grid, key=_score_of_folds) for grid in grids.values() if len(grid) == 6]))
    head = ["C", "K, paper", "sigma2, paper", "PLRSQ, paper", "K, ours", "sigma2, ours", "PLRSQ-AN, ours [splits]"]
    return table(head, sorted(rows))


def _selection(c: int, results: list[dict[str, Any]], remark: str = "") -> list[str]:
    """Return a row: what the paper selected for C classes and its accuracy, and the same of our splits."""
    names = ("prototypes_per_class", "sigma2")
    means = [f"{np.mean([r['chosen'][name] for r in results]):.2f}" if results else "" for name in names]
    published = [f"{value:.2f}" for value in (*ETH80_SELECTED[c], ETH80["PLRSQ"][c])]
    return [
        f"{c}{remark}",
        *published,
        *means,
        spread([r["accuracy"] for r in results], 100, 1) if results else "not run",
    ]


def _score_of_folds(result: dict[str, Any]) -> float:
    return max(float(row[-1]) for row in result["tried"])


def clusters(folder: pathlib.Path) -> str:
    """Return the table of the clusterings under several readings, in percent."""
    records = load(folder, "eth80-clusters")
    accuracy, purity = by_method(records, "accuracy"), by_method(records, "purity")
    rows = [
        [name, *(spread(list(runs[name].values()), 100, 1) for runs in (accuracy, purity))]
        for name in sorted(accuracy, key=lambda name: ("kernel" in name, name))
        if " 1 C" in name or "kernel" in name
    ]
    rows += [
        [name, "", spread(list(purity[name].values()), 100, 1)]
        for name in sorted(accuracy)
        if " 2 C" in name or " 4 C" in name
    ]
    head = ["clustering of the test images, C = 8", "one cluster per class", "majority of each cluster"]
    quoted = [[f"{name}, quoted in the paper", f"{ETH80[name][8]:.2f}", ""] for name in ("KM", "KKM")]
    return table(head, [*quoted, *rows])
