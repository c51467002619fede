"""The page on CIFAR-10: accuracy, selection and seconds by the number of training images."""

from __future__ import annotations

import pathlib

import numpy as np

from examples.paper.report import best_of_grids, by_method, mean_of, results, spread, table
from examples.paper.runner import load

__all__ = ["SIZES", "parts"]

SIZES = (200, 500, 1000, 5000, 10000, 20000)
HEAD = ["method", *(f"N = {n}" for n in SIZES)]


def parts(folder: pathlib.Path) -> dict[str, str]:
    """Return the tables by the name that the template gives them."""
    return {"accuracies": accuracies(folder), "selection": selected(folder), "times": times(folder)}


def accuracies(folder: pathlib.Path) -> str:
    """Return the table of mean accuracies by number of training images."""
    found = {n: by_method(load(folder, f"cifar10-N{n}"), "accuracy") for n in SIZES}
    names = sorted({name for methods in found.values() for name in methods})
    rows = [
        [
            name.replace(" a class", " per class"),
            *(f"{np.mean(list(found[n][name].values())):.3f}" if name in found[n] else "" for n in SIZES),
        ]
        for name in names
    ]
    return table(HEAD, rows)


def selected(folder: pathlib.Path) -> str:
    """Return the table of what cross-validation chose for PLRSQ-AN; a draw counts if all numbers of prototypes ran."""
    rows: dict[str, list[str]] = {name: [] for name in ("mean sigma2", "mean K", "test accuracy")}
    for n in SIZES:
        best = [record["result"] for record in best_of_grids(load(folder, f"cifar10-selection-N{n}"), 3)]
        for name, key in (("mean sigma2", "sigma2"), ("mean K", "prototypes_per_class")):
            rows[name].append(mean_of([result["chosen"] for result in best], key))
        rows["test accuracy"].append(spread([r["accuracy"] for r in best], digits=3, absent="not run"))
    return table(["PLRSQ-AN", *HEAD[1:]], [[name, *cells] for name, cells in rows.items()])


def times(folder: pathlib.Path) -> str:
    """Return the table of seconds per epoch, and of seconds for the 10000 test images."""
    rows: dict[str, list[str]] = {"seconds per epoch": [], "seconds for 10000 test images": []}
    for n in SIZES:
        runs = results(folder, f"cifar10-times-N{n}")
        for cells, key in zip(rows.values(), ("seconds_per_epoch", "predict_cpu_seconds"), strict=True):
            cells.append(f"{runs[0][key]:.3f}" if runs else "not run")
    return table(["PLRSQ-AN, one prototype per class", *HEAD[1:]], [[name, *cells] for name, cells in rows.items()])
