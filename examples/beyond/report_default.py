"""Tables on the default classifier: beside its class means, beside tangent space, and beside alternatives."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from examples.beyond import alternatives as alternative_runs
from examples.beyond import default as default_runs
from examples.beyond import discriminant as discriminant_runs
from examples.beyond import home as home_runs
from examples.paper.report import table
from examples.paper.runner import Record, load

__all__ = [
    "METRICS", "TITLES", "alternatives", "at_the_mean", "beside", "by_groups", "discriminant", "draw_home", "gains",
    "home", "split_title",
]  # fmt: skip

TITLES = {
    "syn1": "SynI",
    "syn2": "SynII",
    "digits": "digits",
    "bci2a": "BCI 2a",
    "eth80": "ETH-80",
    "airsar": "AIRSAR",
    "eegmmi": "eegmmi S001",
}
SPLITS = {
    "full256": "whole images",
    "mask256": "masks",
    "folds": "session 1, 5 folds",
    "regions": "left half to right half",
    "runs": "folds of runs",
}
"""Descriptions of the splits that are no number of samples."""
GROUPS = {
    "airsar": "AIRSAR, other half; cells of the scene",
    "eegmmi": "eegmmi S001; runs",
    "bci2a": "BCI 2a, session 2; runs",
    "full256": "ETH-80, whole images; objects",
    "mask256": "ETH-80, masks; objects",
}
COLUMNS = ("accuracy", "fit_seconds", "predict_seconds")
METRICS = {
    "affine_invariant": "affine-invariant",
    "log_euclidean": "Log-Euclidean",
    "tangent": "tangent",
    "tangent, whitened": "tangent, whitened",
}
HOME = {
    "digits": "Digits, 1000 images",
    "bci2a": "EEG, next day (BCI 2a)",
    "eth80": "Objects, other views (ETH-80)",
    "airsar": "Radar, other half of the scene",
}


def _cells(folder: pathlib.Path) -> Iterator[tuple[str, str, str, list[Record]]]:
    """Yield data set, description of the split, metric and results: the fewest and the most samples, other splits."""
    for data, sizes in default_runs.SIZES.items():
        numbers = [size for size in sizes if isinstance(size, int)]
        for size in (size for size in sizes if size not in numbers[1:-1]):
            records = load(folder, f"default-{data}-{size}")
            for metric in default_runs.METRICS:
                found = [record["result"] for record in records if record["method"] == metric]
                if found:
                    yield TITLES[data], split_title(data, size), metric, found


def split_title(data: str, size: Any) -> str:
    """Return how the tables describe the splits of a data set."""
    if data == "digits":
        return f"{size} in all"
    if data == "bci2a" and size != "folds":
        return f"{size} per class, session 1 to 2"
    return SPLITS.get(size, f"{size} per class")


def _mean(results: Sequence[Record], method: str, column: str) -> float:
    return float(np.mean([result[method][column] for result in results]))


def gains(folder: pathlib.Path) -> dict[str, float]:
    """Return the difference of the default to the class means by data set, with the most training samples of each."""
    names = {"syn1": "syn1-250", "syn2": "syn2-250", "digits": "digits-1000", "bci2a": "bci2a-72"}
    names |= {kind: f"eth80-{kind}" for kind in ("full256", "mask256")}
    found = {}
    for data, name in names.items():
        records = load(folder, f"default-{name}")
        results = [record["result"] for record in records if record["method"] == default_runs.BASELINE]
        if results:
            found[data] = _mean(results, "default", "accuracy") - _mean(results, "class means", "accuracy")
    return found


def beside(folder: pathlib.Path) -> str:
    """Return the table of the default beside its class means and logistic regression in the tangent space."""
    rows = []
    for title, split, metric, results in _cells(folder):
        if metric == default_runs.BASELINE:
            scores = [f"{_mean(results, 'class means', 'accuracy'):.3f}"]
            for column in ("accuracy", "log_loss", "ece"):
                scores += [f"{_mean(results, name, column):.3f}" for name in ("default", "tangent space")]
            trained = np.mean([result["trained"] for result in results])
            rows.append([f"{title}, {split} [{len(results)}]", *scores, f"{trained:.2f}"])
    head = ["data, training samples", "class means", "default", "TS + LR", "log-loss: default", "TS + LR"]
    return table([*head, "ECE: default", "TS + LR", "trained"], rows)


def at_the_mean(folder: pathlib.Path) -> str:
    """Return the table of the default under all metrics, from the repetitions that all of them have."""
    rows = []
    for data, sizes in default_runs.AT_THE_MEAN.items():
        for size in sizes:
            runs: dict[str, dict[int, Record]] = {metric: {} for metric in METRICS}
            for record in load(folder, f"default-{data}-{size}"):
                if record["method"] in runs:
                    runs[record["method"]][record["repetition"]] = record["result"]
            common = sorted(set.intersection(*(set(own) for own in runs.values())))
            if common:
                own = {metric: [runs[metric][i] for i in common] for metric in runs}
                cells = [f"{_mean(results, 'default', 'accuracy'):.3f}" for results in own.values()]
                rows.append([f"{TITLES[data]}, {split_title(data, size)} [{len(common)}]", *cells])
    return table(["data, training samples", *METRICS.values()], rows)


def by_groups(folder: pathlib.Path) -> str:
    """Return the table of the default whose trials hold out random samples or whole groups."""
    rows = []
    for data, title in GROUPS.items():
        results = [record["result"] for record in load(folder, f"groups-{data}")]
        if results:
            trained = " to ".join(f"{_mean(results, name, 'trained'):.2f}" for name in ("by samples", "by groups"))
            cells = [_triple(results, name) for name in ("by samples", "by groups")]
            behind = " ± ".join(f"{_mean(results, 'behind', part):.3f}" for part in ("difference", "standard_error"))
            rows.append([f"{title} [{len(results)}]", *cells, behind, trained])
    return table(["data; groups", "default", "default, with groups", "TS ahead by", "trained"], rows)


def _triple(results: Sequence[Record], method: str) -> str:
    return " / ".join(f"{_mean(results, method, column):.3f}" for column in ("accuracy", "log_loss", "ece"))


def alternatives(folder: pathlib.Path) -> str:
    """Return the table of accuracies of other ways to keep training from doing harm."""
    rows = []
    for data, size in alternative_runs.SIZES:
        records = load(folder, f"alternatives-{data}-{size}")
        scores = {
            name: [record["result"]["accuracy"] for record in records if record["method"] == name]
            for name in alternative_runs.METHODS
        }
        if all(scores.values()):
            n_runs = min(map(len, scores.values()))
            rows.append(
                [
                    f"{TITLES[data]}, {split_title(data, size)} [{n_runs}]",
                    *(f"{np.mean(own):.3f}" for own in scores.values()),
                ]
            )
    return table(["data, training samples", *alternative_runs.METHODS], rows)


def discriminant(folder: pathlib.Path) -> str:
    """Return the table of the default with and without the discriminant, and of discriminants alone."""
    rows = []
    for data, size, _ in discriminant_runs.SIZES:
        records = load(folder, f"discriminant-{data}-{size}")
        results = [record["result"] for record in records if record["method"] == default_runs.BASELINE]
        if results:
            cells = [f"{_mean(results, name, 'accuracy'):.3f}" for name in discriminant_runs.METHODS]
            rows.append([f"{TITLES[data]}, {split_title(data, size)} [{len(results)}]", *cells])
    head = ["data, training samples", "default without it", "default", "the discriminant alone"]
    return table([*head, "LDA of scikit-learn"], rows)


def _home(folder: pathlib.Path) -> dict[str, dict[str, list[float]]]:
    """Return accuracy, seconds to fit and seconds to predict by data set and method."""
    found = {}
    for data in HOME:
        results = [record["result"] for record in load(folder, f"home-{data}")]
        if results:
            found[data] = {name: [_mean(results, name, column) for column in COLUMNS] for name in home_runs.METHODS}
    return found


def home(folder: pathlib.Path) -> str:
    """Return the table of the first page: accuracy, with the seconds to fit and to predict in brackets."""
    rows = []
    for data, scores in _home(folder).items():
        rows.append([HOME[data], *(f"{a:.3f} ({fit:.2g}, {predict:.2g})" for a, fit, predict in scores.values())])
    return table(["accuracy (seconds to fit, to predict)", *_home_names()], rows)


def _home_names() -> list[str]:
    """Return the names of the methods as the first page shows them."""
    return [method.replace("tangent space", "tangent space + LR") for method in home_runs.METHODS]


def draw_home(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Draw the accuracies of the first page as a PNG file."""
    found = _home(folder)
    figure = Figure(figsize=(9.5, 3.6), layout="constrained")
    ax = figure.subplots()
    colors = ("#999999", "#56B4E9", "#D55E00", "#009E73", "#8C3B00")
    for i, (method, name, color) in enumerate(zip(home_runs.METHODS, _home_names(), colors, strict=True)):
        places = np.arange(len(found)) + (i - 2) * 0.17
        values = [scores[method][0] for scores in found.values()]
        bars = ax.bar(places, values, 0.16, color=color, label=name)
        ax.bar_label(bars, fmt="%.2f", fontsize=7)
    ax.set_xticks(range(len(found)), [HOME[data].replace(", ", ",\n").replace(" (", "\n(") for data in found])
    ax.set(ylabel="accuracy on test data", ylim=(0.5, 1))
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=5, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
