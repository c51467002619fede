"""Tables on products: accuracy and relevances by method, for objects and for EEG."""

from __future__ import annotations

import pathlib

import numpy as np

from examples.beyond import products as runs
from examples.paper.report import by_method, paired, spread, table
from examples.paper.runner import load

__all__ = ["eeg", "means", "objects", "own"]

BANDS = [f"{low:g}-{high:g} Hz" for low, high in runs.BANDS]


def means(folder: pathlib.Path) -> dict[str, str]:
    """Return the mean accuracy of each method on ETH-80, with three digits, by the name of its place on the page."""
    found = by_method(load(folder, "products-eth80"), "accuracy")
    return {f"products: {name}": f"{np.mean(list(values.values())):.3f}" for name, values in found.items()}


def objects(folder: pathlib.Path) -> str:
    """Return the table of ETH-80, with p against both parts under equal relevances."""
    relevances = by_method(load(folder, "products-eth80"), "relevances")
    shown = {}
    for name, values in relevances.items():
        if name.endswith("learned"):
            shown[name] = {part: np.mean([run[part] for run in values.values()]) for part in runs.OBJECTS[name]}
    return _table(folder, "products-eth80", tuple(runs.OBJECTS), "both, equal", shown)


def eeg(folder: pathlib.Path) -> str:
    """Return the table of the EEG recording; differences are those to one band."""
    relevances = by_method(load(folder, "products-eegmmi"), "relevances").get("filter bank, learned", {})
    shown = {}
    if relevances:
        mean = np.mean(list(relevances.values()), axis=0)
        shown["filter bank, learned"] = dict(zip(BANDS, mean, strict=True))
    return _table(folder, "products-eegmmi", runs.EEG, "one band", shown)


def own(folder: pathlib.Path) -> str:
    """Return the table of classes with parts of their own; relevances of prototypes are those of each class's part."""
    shown = {}
    for name, values in by_method(load(folder, "products-own"), "relevances").items():
        mean = np.mean(list(values.values()), axis=0)
        if mean.ndim == 2:
            shown[name] = {
                "own part": float(np.diag(mean).mean()),
                "others": float(np.mean(mean[~np.eye(3, dtype=bool)])),
            }
        elif name != "equal":
            shown[name] = {f"part {i}": value for i, value in enumerate(mean)}
    return _table(folder, "products-own", tuple(runs.OWN), "one set", shown)


def _table(
    folder: pathlib.Path, experiment: str, methods: tuple[str, ...], base: str, relevances: dict[str, dict[str, float]]
) -> str:
    found = by_method(load(folder, experiment), "accuracy")
    rows = []
    for name in methods:
        if name in found:
            p_value = "" if name == base else paired(found, name, base)[1]
            told = ", ".join(f"{part} {value:.2f}" for part, value in relevances.get(name, {}).items())
            rows.append([name, spread(list(found[name].values()), digits=3), p_value, told])
    return table(["method", "accuracy [repetitions]", f"p against {base}", "learned relevances"], rows)
