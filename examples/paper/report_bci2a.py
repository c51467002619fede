"""The page on BCI IV 2a: kappas of all subjects, the selection and why it loses, readings of TSSM+LDA."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from examples.paper.bci2a import PAPER_SETTINGS
from examples.paper.published import BCI, BCI_MEANS
from examples.paper.report import by_method, mean_of, results, spread, table
from examples.paper.runner import load
from rplvq.protocols import Array

__all__ = ["parts", "selection_regret"]

SETTINGS = (("sigma2", "sigma2"), ("K", "prototypes_per_class"), ("epochs", "max_epochs"))
OF_THE_PAPER = ("PLRSQ-AN", "PLRSQ-Const", "MDRM", "TSLDA", "TSSM+LDA")
"""Methods whose kappas are shown beside the paper's for each subject; the others have a table of means."""
SUBJECTS = [f"S{subject}" for subject in range(1, 10)]


def parts(folder: pathlib.Path) -> dict[str, str]:
    """Return the tables by the name that the template gives them."""
    return {
        "kappas": kappas(folder),
        "more-kappas": more_kappas(folder),
        "selection": selected(folder),
        "regret": regret(folder),
        "submanifolds": submanifolds(folder),
    }


def kappas(folder: pathlib.Path) -> str:
    """Return the table of kappas by subject."""
    rows = []
    for name, values in BCI.items():
        rows.append([f"{name}, paper", f"{np.mean(values):.2f}", *(f"{value:.2f}" for value in values)])
    rows += [[f"{name}, paper", f"{mean:.2f}", *[""] * 9] for name, mean in BCI_MEANS.items()]
    for name, values in _by_mean(folder):
        if name in OF_THE_PAPER:
            cells = (f"{value:.2f}" for value in values.mean(axis=0))
            rows.append([name, spread(values.mean(axis=1), digits=3), *cells])
    return table(["method", "mean [seeds]", *SUBJECTS], rows)


def more_kappas(folder: pathlib.Path) -> str:
    """Return the table of mean kappas of the methods that the paper's table does not have."""
    others = [(name, values) for name, values in _by_mean(folder) if name not in OF_THE_PAPER]
    return table(["method", "mean [seeds]"], [[name, spread(v.mean(axis=1), digits=3)] for name, v in others])


def _by_mean(folder: pathlib.Path) -> list[tuple[str, Array]]:
    """Return the kappas (seeds, 9) of each method, the best mean first."""
    runs = by_method(load(folder, "bci2a"), "kappa")
    kappas = {name: np.array(list(seeds.values())) for name, seeds in runs.items()}
    return sorted(kappas.items(), key=lambda item: -item[1].mean())


def selected(folder: pathlib.Path) -> str:
    """Return the table of what cross-validation on the first session chose, subject by subject, and the mean kappa."""
    rows = [
        ["sigma2, paper", "", *(f"{row[3]:g}" for row in PAPER_SETTINGS)],
        ["K, paper", "", *(f"{row[1]:g}" for row in PAPER_SETTINGS)],
        ["epochs, paper", "", *(f"{row[2]:g}" for row in PAPER_SETTINGS)],
    ]
    for method in ("PLRSQ-AN", "PLRSQ-Const"):
        runs = [results(folder, "bci2a-selection", f"{method}, {subject}") for subject in SUBJECTS]
        # Those of PLRSQ-Const hardly differ.
        for title, name in SETTINGS if any(runs) and method == "PLRSQ-AN" else ():
            rows.append([f"{title}, {method}", "", *(mean_of([r["chosen"] for r in run], name) for run in runs)])
        whole = zip(*([r["kappa"] for r in run] for run in runs), strict=False)  # seeds that all subjects have
        means = [float(np.mean(seed)) for seed in whole]
        cells = (mean_of(run, "kappa", ".2f") for run in runs)
        rows.append([f"kappa, {method}", spread(means, digits=3, absent="not run"), *cells])
    return table(["chosen by 5 folds of session 1", "mean [seeds]", *SUBJECTS], rows)


def selection_regret(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Compare what session 1 chose among values of sigma2 with what session 2 would have chosen.

    Both concern PLRSQ-Const with one prototype per class and 20 epochs, where the selection begins.

    Returns
    -------
    list of dict
        One per subject: accuracies on session 1 by 5 folds, kappas on session 2 (mean over seeds), the kappa at the
        value that session 1 chose, and the best kappa.
    """
    lines = results(folder, "bci2a-sigma2", "PLRSQ-Const")
    found = []
    for number, subject in enumerate(SUBJECTS):
        selections = [run["tried"] for run in results(folder, "bci2a-selection", f"PLRSQ-Const, {subject}")]
        if not (lines and selections):
            continue
        sigma2 = lines[0]["sigma2"]
        tried = {row[0]: row[-1] for row in selections[0] if row[1:3] == [1, 20]}
        folds = [tried[value] for value in sigma2 if value in tried]
        kappa = np.mean([line["kappa"][number] for line in lines], axis=0)
        if len(folds) == len(sigma2):
            chosen = float(kappa[int(np.argmax(folds))])
            found.append({"folds": folds, "kappa": kappa.tolist(), "chosen": chosen, "best": float(kappa.max())})
    return found


def regret(folder: pathlib.Path) -> str:
    """Return the table behind the reason why selection loses."""
    found = selection_regret(folder)
    if len(found) < len(SUBJECTS):
        return "The records of this table are not complete."
    ranges = {
        "range of the 5-fold accuracy over sigma2": [max(f["folds"]) - min(f["folds"]) for f in found],
        "range of kappa on session 2 over sigma2": [max(f["kappa"]) - min(f["kappa"]) for f in found],
        "correlation of the two": [float(np.corrcoef(f["folds"], f["kappa"])[0, 1]) for f in found],
        "kappa at the sigma2 that session 1 chose": [f["chosen"] for f in found],
        "kappa at the best sigma2 of session 2": [f["best"] for f in found],
    }
    rows = [[name, f"{np.mean(values):.3f}"] for name, values in ranges.items()]
    return table(["K = 1, 20 epochs, PLRSQ-Const", "mean over the subjects"], rows)


def submanifolds(folder: pathlib.Path) -> str:
    """Return the table of TSSM+LDA: mean kappa without projection, at the best size, and at that of each subject."""
    rows = [["the paper's figure", "", "", "0.59"]]
    for record in load(folder, "bci2a-tssm"):
        values = np.array(record["result"]["kappa"])
        means = values.mean(axis=0)
        rows.append([record["method"], *(f"{v:.3f}" for v in (means[-1], means.max(), values.max(axis=1).mean()))])
    return table(["how the submanifold is found", "m = 22", "best m", "best m of each subject"], rows)
