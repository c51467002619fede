"""Tables of the pages in docs/experiments on step sizes."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from examples.beyond import batches as batches_
from examples.beyond import compositions as compositions_
from examples.beyond.steps import FACTORS, RULES
from examples.paper.report import by_method, table
from examples.paper.runner import load

__all__ = ["amounts", "batches", "compositions", "few_compositions", "steps"]

TITLES = {"syn1": "SynI", "syn2": "SynII", "full256": "ETH-80, whole image", "bci2a": "BCI 2a"}


def _mean(found: Mapping[int, Any], digits: int) -> str:
    return f"{np.mean(list(found.values())):.{digits}f}" if found else ""


def steps(folder: pathlib.Path) -> str:
    """Return the table of final cost per sample and test accuracy by rule and factor on the paper's start value."""
    rows = []
    for data, title in TITLES.items():
        records = load(folder, f"steps-{data}")
        cost, accuracy = by_method(records, "cost"), by_method(records, "accuracy")
        for rule in RULES:
            names = [f"{rule}, x {factor:g}" for factor in FACTORS]
            if any(name in cost for name in names):
                count = max(len(cost.get(name, {})) for name in names)
                cells = [_mean(cost.get(name, {}), 3) for name in names]
                rows.append(
                    [f"{title}, {rule} [{count}]", *cells, *(_mean(accuracy.get(name, {}), 3) for name in names)]
                )
    shown = [f"x {factor:g}" for factor in FACTORS]
    return table(["data, rule", *(f"cost, {x}" for x in shown), *(f"accuracy, {x}" for x in shown)], rows)


def batches(folder: pathlib.Path) -> str:
    """Return the table of cost per sample and test accuracy for single samples and batches."""
    rows = []
    for data, title in TITLES.items():
        records = load(folder, f"batches-{data}")
        cost, accuracy = by_method(records, "cost"), by_method(records, "accuracy")
        for name in (name for name in batches_.METHODS if name in cost):
            rows.append([f"{title}, {name} [{len(cost[name])}]", _mean(cost[name], 3), _mean(accuracy[name], 3)])
    return table(["data, steps", "cost", "accuracy"], rows)


def _fits(folder: pathlib.Path, names: Sequence[str]) -> list[tuple[str, tuple[float, bool]]]:
    """Return the fits of some experiments: their setting, the gain over the class means, and whether they warned."""
    return [fit for name in names for record in load(folder, name) for fit in record["result"].items()]


def compositions(folder: pathlib.Path) -> str:
    """Return the table of bad fits by setting, over all costs, metrics, data and numbers of epochs of the grid."""
    names = [f"compositions-{data}-{metric}" for data, metric in product(compositions_.GRID, compositions_.METRICS)]
    fits = _fits(folder, names)
    rows = []
    for setting in compositions_.SCHEDULES:
        wanted = [f"{setting}, {epochs}" for epochs in compositions_.EPOCHS]
        rows.append([setting, *_outcome([fit for name, fit in fits if name in wanted])])
    rows.append([f"all {len(fits):,} fits", *_outcome([fit for _, fit in fits])])
    return table(["setting", *OUTCOME], rows)


def few_compositions(folder: pathlib.Path) -> str:
    """Return the table of bad fits on four data sets, over all settings of a few."""
    rows = []
    for data in compositions_.DATA:
        names = [f"compositions-few-{data}-{metric}" for metric in compositions_.FEW_METRICS]
        fits = [fit for _, fit in _fits(folder, names)]
        if fits:
            rows.append([f"{data}, {len(fits)} fits", *_outcome(fits)])
    return table(["data", *OUTCOME], rows)


def amounts(folder: pathlib.Path) -> str:
    """Return the table of gains by amount of training: mean / worst, and how many are bad without a warning."""
    rows = []
    for data in compositions_.DATA:
        names = [f"compositions-amounts-{data}-{metric}" for metric in compositions_.FEW_METRICS]
        fits = _fits(folder, names)
        by_amount = [
            [fit for name, fit in fits if name.startswith(f"amount {amount:g},")] for amount in compositions_.AMOUNTS
        ]
        if fits:
            _, silent, *_ = zip(*map(_outcome, by_amount), strict=True)
            rows.append([data, *map(_gains, by_amount), ", ".join(silent)])
    return table(["data", *(f"{amount:g}" for amount in compositions_.AMOUNTS), "silent"], rows)


def _gains(fits: Sequence[tuple[float, bool]]) -> str:
    gains = [gain for gain, _ in fits]
    return f"{np.mean(gains):+.2f} / {min(gains):+.2f}"


OUTCOME = ("bad", "bad, no warning", "better, warned", "worst", "mean gain")


def _outcome(fits: Sequence[tuple[float, bool]]) -> list[str]:
    """Return the cells of :data:`OUTCOME` for fits with their gain over the class means, and whether they warned."""
    bad = [warned for gain, warned in fits if gain < -compositions_.BAD]
    alarms = sum(warned for gain, warned in fits if gain >= 0)
    gains = [gain for gain, _ in fits]
    return [str(len(bad)), str(bad.count(False)), str(alarms), f"{min(gains):.3f}", f"{np.mean(gains):+.3f}"]
