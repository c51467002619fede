"""The table at the head of the reproduction: every table and figure of the paper, with a verdict from the records.

The verdict compares numbers. What was found, and the reason if a result is not reproduced, is text of the template.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np

from examples.paper.published import BCI, ETH80, ETH80_DEVIATIONS, RATES, SYNTHETIC, SYNTHETIC_P, SYNTHETIC_SELECTED
from examples.paper.report import by_method
from examples.paper.report_synthetic import chosen_by_validation
from examples.paper.runner import load
from rplvq.evaluation import wilcoxon_p_value

__all__ = ["Comparison", "verdict", "verdicts"]

Comparison = tuple[float, float, float]  # the paper's number, a standard deviation, our number
OURS = {"PLRSQ": "PLRSQ-AN"}  # rows of the paper that have another name in our records


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


def verdicts(folder: pathlib.Path) -> dict[str, str]:
    """Return the verdicts that numbers decide, by their name in the template."""
    found: dict[str, str] = {}
    for problem in SYNTHETIC:
        found[f"verdict-{problem}"] = verdict(_accuracies(folder, problem))
        found[f"verdict-{problem}-tests"] = _tests(folder, problem)
        found[f"verdict-{problem}-rates"] = verdict(_rates(folder, problem))
        found[f"verdict-{problem}-selection"] = _selection(folder, problem)
    own = [_eth80(folder, method) for method in ("MDRM", "PLRSQ")]
    for method in ("MDRM", "PLRSQ", "KM", "KKM"):
        cells = _eth80(folder, method)
        found[f"verdict-eth80-{method}"] = verdict(cells, list(zip(cells, *own, strict=False)))
    for method in ("PLRSQ", "TSSM+LDA", "TSLDA", "MDRM"):
        found[f"verdict-bci2a-{method}"] = verdict(_bci2a(folder, method))
    return found


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
    searched = [r["result"]["chosen"]["sigma2"] for r in load(folder, f"{problem}-selection", "PLRSQ-AN")]
    values = whole if len(whole) > len(searched) else searched
    if len(values) < 2:
        return "not run"
    return verdict([((low + high) / 2, (high - low) / 2 + float(np.std(values, ddof=1)), float(np.mean(values)))])


def _eth80(folder: pathlib.Path, method: str) -> list[Comparison]:
    ours = {"KM": "LE k-means", "KKM": "LE kernel k-means"} | OURS
    cells = []
    for number, c in enumerate(range(3, 9)):
        runs = by_method(load(folder, f"eth80-full256-C{c}"), "accuracy").get(ours.get(method, method), {})
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
