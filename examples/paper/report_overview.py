"""The table at the head of the reproduction: every table and figure of the paper, with a verdict from the records.

A verdict compares numbers, or it tests whether a figure without printed numbers shows what the paper's text says. The
number of repetitions is counted. What was found, and the reason if a result is not reproduced, is text of the template.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from itertools import product

import numpy as np

from examples.paper.published import (
    BCI,
    ETH80,
    ETH80_DEVIATIONS,
    ETH80_SELECTED,
    RATES,
    SYNTHETIC,
    SYNTHETIC_P,
    SYNTHETIC_SELECTED,
)
from examples.paper.report import by_method, results
from examples.paper.report_cifar10 import SIZES
from examples.paper.report_eth80 import chosen_by_folds
from examples.paper.report_synthetic import chosen_by_validation
from examples.paper.runner import Record, load
from examples.paper.synthetic_curves import POWERS
from rplvq.evaluation import wilcoxon_p_value

__all__ = ["PLRSQ", "Comparison", "parts", "repetitions", "verdict", "verdicts"]

Comparison = tuple[float, float, float]  # the paper's number, a standard deviation, our number
# Rows of the paper that have another name in our records.
OURS = {"PLRSQ": "PLRSQ-AN", "KM": "LE k-means", "KKM": "LE kernel k-means"}
PLRSQ = ("PLRSQ-AN", "PLRSQ-Const")
BCI_TABLE = ("PLRSQ", "TSSM+LDA", "TSLDA", "MDRM")


def verdict(cells: Sequence[Comparison], groups: Sequence[Sequence[Comparison]] | None = None) -> str:
    """Judge numbers that belong together.

    Parameters
    ----------
    cells : sequence of Comparison
        The numbers.
    groups : sequence of sequences of Comparison, optional
        Numbers whose order counts, each group for itself; by default the cells are one group.

    Returns
    -------
    str
        "reproduced" if every difference is at most one standard deviation; else "in order only" if in every group our
        numbers have the order of the paper's; else "not reproduced". "not run" if there is nothing to compare.

    Examples
    --------
    >>> verdict([(0.90, 0.01, 0.905), (0.80, 0.01, 0.795)])
    'reproduced'
    >>> verdict([(0.90, 0.01, 0.95), (0.80, 0.01, 0.85)])
    'in order only'
    >>> verdict([(0.90, 0.01, 0.85), (0.80, 0.01, 0.86)])
    'not reproduced'
    """
    if not cells:
        return "not run"
    if all(abs(ours - paper) <= deviation * (1 + 1e-9) for paper, deviation, ours in cells):
        return "reproduced"
    groups = [cells] if groups is None else groups
    pairs = [(a, b) for group in groups for a in group for b in group if a[0] > b[0]]
    return "in order only" if pairs and all(a[2] > b[2] for a, b in pairs) else "not reproduced"


def parts(folder: pathlib.Path) -> dict[str, str]:
    """Return the verdicts and the numbers of repetitions by the names that the template gives them."""
    named = {"verdict": verdicts(folder), "runs": repetitions(folder)}
    return {f"{kind}-{name}": text for kind, texts in named.items() for name, text in texts.items()}


def repetitions(folder: pathlib.Path) -> dict[str, str]:
    """Return how many repetitions all parts of a result have, and how many the paper has if that is known."""
    eth80 = [f"eth80-full256-C{c}" for c in ETH80_SELECTED]
    entries: dict[str, tuple[Sequence[str], Sequence[str], int | None]] = {
        "sigma2": (["syn1-grid", "syn2-grid"], [f"{method}, K=1, T=100" for method in PLRSQ], 30),
        "convergence": (["syn1-curves", "syn2-curves"], list(POWERS), 30),
        "eth80-curves": (["eth80-curves"], [f"{m}, {name}" for m in PLRSQ for name in ("sigma2", "prototypes")], 20),
        "cifar10": ([f"cifar10-N{n}" for n in SIZES], ["PLRSQ-AN", "MDRM"], 5),
        "bci2a-selection": (["bci2a-selection"], [f"PLRSQ-AN, S{subject}" for subject in range(1, 10)], None),
    }
    for problem in SYNTHETIC:
        entries[problem] = ([problem], list(SYNTHETIC[problem]), 30)
        entries[f"{problem}-rates"] = ([f"{problem}-step"], [f"PLRSQ-Const, {name}" for name in RATES[problem]], 30)
        entries[f"{problem}-selection"] = ([f"{problem}-selection"], list(PLRSQ), 30)
    for method in ETH80:
        entries[f"eth80-{method}"] = (eth80, [OURS.get(method, method)], 20 if method in ETH80_DEVIATIONS else None)
    for method in BCI_TABLE:
        entries[f"bci2a-{method}"] = (["bci2a"], [OURS.get(method, method)], None)
    counted = {
        name: (min(len(load(folder, experiment, method)) for experiment in experiments for method in methods), paper)
        for name, (experiments, methods, paper) in entries.items()
    }
    counted["eth80-selection"] = (min(len(chosen_by_folds(folder, c)) for c in ETH80_SELECTED), 20)
    return {name: f"{ours} of {paper}" if paper else f"{ours}" for name, (ours, paper) in counted.items()}


def verdicts(folder: pathlib.Path) -> dict[str, str]:
    """Return the verdicts that numbers decide, by their name in the template."""
    found: dict[str, str] = {}
    for problem in SYNTHETIC:
        found[problem] = verdict(_accuracies(folder, problem))
        found[f"{problem}-tests"] = _tests(folder, problem)
        found[f"{problem}-rates"] = verdict(_rates(folder, problem))
        found[f"{problem}-selection"] = _selection(folder, problem)
    own = [_eth80(folder, method) for method in ("MDRM", "PLRSQ")]
    for method in ("MDRM", "PLRSQ", "KM", "KKM"):
        cells = _eth80(folder, method)
        found[f"eth80-{method}"] = verdict(cells, list(zip(cells, *own, strict=False)))
    for method in BCI_TABLE:
        found[f"bci2a-{method}"] = verdict(_bci2a(folder, method))
    found["eth80-selection"] = _eth80_selection(folder)
    figures = {"sigma2": _sigma2, "convergence": _convergence, "eth80-curves": _eth80_curves, "cifar10": _cifar10}
    return found | {name: shown(test(folder)) for name, test in figures.items()}


def shown(claims: Sequence[bool]) -> str:
    """Judge a figure without printed numbers by whether ours shows each claim about it."""
    return ("in order only" if all(claims) else "not reproduced") if claims else "not run"


def _highest_at(found: Sequence[Record], name: str, low: float, high: float) -> list[bool]:
    """Return whether the accuracy where ``name`` is in an interval is at most one deviation below the highest."""
    if not found:
        return []
    x = np.array(found[0][name])
    runs = np.array([result["accuracy"] for result in found])
    mean, deviation = runs.mean(axis=0), runs.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(len(x))
    best = int(mean.argmax())
    return [bool(mean[(x >= low) & (x <= high)].max() >= mean[best] - deviation[best])]


def _sigma2(folder: pathlib.Path) -> list[bool]:
    """Return for each curve whether it is highest at the values that the paper selects."""
    curves = [(problem, results(folder, f"{problem}-grid", f"{m}, K=1, T=100")) for problem in SYNTHETIC for m in PLRSQ]
    return [claim for problem, runs in curves for claim in _highest_at(runs, "sigma2", *SYNTHETIC_SELECTED[problem])]


def _convergence(folder: pathlib.Path) -> list[bool]:
    """Return for each curve whether the cost, and whether the training error ends below its value before training."""
    claims = []
    for problem, method, name in product(SYNTHETIC, POWERS, ("cost", "training_error")):
        curves = [run[name] for run in results(folder, f"{problem}-curves", method)]
        if curves:
            mean = np.mean(curves, axis=0)
            claims.append(bool(mean[-1] < mean[0]))
    return claims


def _eth80_curves(folder: pathlib.Path) -> list[bool]:
    """Return whether PLRSQ-AN on eight classes is highest at the sigma2 and the K that the paper selects."""
    count, sigma2 = ETH80_SELECTED[8]
    by_sigma2, by_count = (results(folder, "eth80-curves", f"PLRSQ-AN, {name}") for name in ("sigma2", "prototypes"))
    return [
        *_highest_at(by_sigma2, "sigma2", sigma2, sigma2),
        *_highest_at(by_count, "prototypes_per_class", np.floor(count), np.ceil(count)),
    ]


def _cifar10(folder: pathlib.Path) -> list[bool]:
    """Return for each number of images whether PLRSQ is ahead of MDRM in the mean."""
    found = [by_method(load(folder, f"cifar10-N{n}"), "accuracy") for n in SIZES]
    both = [[runs[name] for name in ("PLRSQ-AN", "MDRM")] for runs in found if {"PLRSQ-AN", "MDRM"} <= set(runs)]
    return [bool(np.mean(list(a.values())) > np.mean(list(b.values()))) for a, b in both]


def _eth80_selection(folder: pathlib.Path) -> str:
    """Compare the mean K and the mean sigma2 of each number of classes, with deviations pooled over these numbers."""
    splits = {c: [result["chosen"] for result in chosen_by_folds(folder, c)] for c in ETH80_SELECTED}
    if not all(splits.values()) or max(map(len, splits.values())) < 2:
        return "not run"
    groups = []
    for position, name in enumerate(("prototypes_per_class", "sigma2")):
        values = {c: np.array([row[name] for row in rows]) for c, rows in splits.items()}
        within = np.concatenate([array - array.mean() for array in values.values()])
        deviation = float(np.sqrt(np.sum(within**2) / (len(within) - len(values))))
        groups.append([(ETH80_SELECTED[c][position], deviation, float(array.mean())) for c, array in values.items()])
    return verdict([*groups[0], *groups[1]], groups)


def _accuracies(folder: pathlib.Path, problem: str) -> list[Comparison]:
    found = by_method(load(folder, problem), "accuracy")
    return [
        (mean, deviation, float(np.mean(list(found[name].values()))))
        for name, (mean, deviation) in SYNTHETIC[problem].items()
        if name in found
    ]


def _tests(folder: pathlib.Path, problem: str) -> str:
    """Compare the signs of those differences that one side or the other finds significant at .05."""
    found = by_method(load(folder, problem), "accuracy")
    agree = []
    for (first, second), p in SYNTHETIC_P[problem].items():
        shared = sorted(set(found.get(first, {})) & set(found.get(second, {})))
        if len(shared) < 6:
            return "not run"
        a, b = (np.array([found[name][k] for k in shared]) for name in (first, second))
        ours = wilcoxon_p_value(a, b)
        same_sign = (a.mean() > b.mean()) == (SYNTHETIC[problem][first][0] > SYNTHETIC[problem][second][0])
        agree.append((p < 0.05) == (ours < 0.05) and (same_sign or ours >= 0.05))
    return "reproduced" if all(agree) else "not reproduced"


def _rates(folder: pathlib.Path, problem: str) -> list[Comparison]:
    found = by_method(load(folder, f"{problem}-step"), "accuracy")
    runs = {name: list(found.get(f"PLRSQ-Const, {name}", {}).values()) for name in RATES[problem]}
    return [
        (paper, 100 * float(np.std(runs[name], ddof=1)), 100 * float(np.mean(runs[name])))
        for name, paper in RATES[problem].items()
        if paper is not None and len(runs[name]) > 1
    ]


def _selection(folder: pathlib.Path, problem: str) -> str:
    low, high = SYNTHETIC_SELECTED[problem]
    whole = [row["sigma2"] for row in chosen_by_validation(load(folder, f"{problem}-grid"), "PLRSQ-AN")]
    searched = [run["chosen"]["sigma2"] for run in results(folder, f"{problem}-selection", "PLRSQ-AN")]
    values = whole if len(whole) > len(searched) else searched
    if len(values) < 2:
        return "not run"
    return verdict([((low + high) / 2, (high - low) / 2 + float(np.std(values, ddof=1)), float(np.mean(values)))])


def _eth80(folder: pathlib.Path, method: str) -> list[Comparison]:
    cells = []
    for number, c in enumerate(range(3, 9)):
        runs = by_method(load(folder, f"eth80-full256-C{c}"), "accuracy").get(OURS.get(method, method), {})
        if len(runs) > 1:
            values = 100 * np.array(list(runs.values()))
            deviation = ETH80_DEVIATIONS[method][number] if method in ETH80_DEVIATIONS else values.std(ddof=1)
            cells.append((ETH80[method][c], float(deviation), float(values.mean())))
    return cells


def _bci2a(folder: pathlib.Path, method: str) -> list[Comparison]:
    """Compare means over the subjects. The paper prints no deviation, so that of the nine differences is taken."""
    runs = by_method(load(folder, "bci2a"), "kappa").get(OURS.get(method, method), {})
    if not runs:
        return []
    ours, paper = np.mean(list(runs.values()), axis=0), np.array(BCI[method])
    return [(float(paper.mean()), float((ours - paper).std(ddof=1)), float(ours.mean()))]
