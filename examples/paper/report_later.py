"""The page on the authors' other methods: GLRSQ beside its paper's figures, and three learned Log-Euclidean metrics."""

from __future__ import annotations

import pathlib

import numpy as np

from examples.paper.leml import PROBLEMS
from examples.paper.published import GLRSQ, GLRSQ_KAPPAS
from examples.paper.report import by_method, results, spread, table
from examples.paper.report_overview import verdict
from examples.paper.runner import load

__all__ = ["glrsq", "leml", "mdrm_folds", "parts", "subjects"]

SUBJECTS = [f"S{subject}" for subject in range(1, 10)]


def parts(folder: pathlib.Path) -> dict[str, str]:
    """Return the tables by the name that the template gives them."""
    return {
        "glrsq": glrsq(folder),
        "glrsq-subjects": subjects(folder),
        "mdrm-folds": mdrm_folds(folder),
        "leml": leml(folder),
    }


def glrsq(folder: pathlib.Path) -> str:
    """Return the table of GLRSQ's figures, ours, and verdicts by our deviation or that of the subjects' differences."""
    rows = []
    for name, (experiment, published, note) in GLRSQ.items():
        values, deviation = _accuracies(folder, experiment)
        judged = verdict([(published, deviation, float(np.mean(values)))] if values else [])
        judged = "one repetition" if values and not deviation else judged
        rows.append([name, note, f"{published:.4f}", spread(values, absent="not run"), judged])
    for note, runs in _kappas(folder).items():
        means = [float(np.mean(run)) for run in runs]
        ours = np.mean(runs, axis=0) if runs else np.zeros(9)
        deviation = float(np.std(ours - GLRSQ_KAPPAS, ddof=1))
        judged = verdict([(float(np.mean(GLRSQ_KAPPAS)), deviation, float(np.mean(means)))] if runs else [])
        rows.append(["BCI 2a, kappa", note, "0.586", spread(means, digits=3, absent="not run"), judged])
    return table(["figure", "our settings", "published", "ours [repetitions]", "verdict"], rows)


def _accuracies(folder: pathlib.Path, experiment: str) -> tuple[list[float], float]:
    """Return the accuracy of each repetition and their deviation; in 30 folds, the standard error over the subjects."""
    kind, _, title = experiment.partition(":")
    values = list(by_method(load(folder, kind), "accuracy").get(f"GLRSQ{title}", {}).values())
    deviation = 0.0
    if values and title:
        deviation = float(np.std(values[0], ddof=1)) / 3
    elif len(values) > 1:
        deviation = float(np.std(values, ddof=1))
    return [float(np.mean(value)) for value in values], deviation


def mdrm_folds(folder: pathlib.Path) -> str:
    """Return the accuracies of MDRM in the 30 folds of session 1 and of both sessions, or "not run"."""
    found = by_method(load(folder, "bci2a-folds"), "accuracy")
    runs = [found.get(f"MDRM, {title}", {}).values() for title in ("session 1", "both sessions")]
    return " and ".join(f"{np.mean(list(run)):.3f}" if run else "not run" for run in runs)


def _kappas(folder: pathlib.Path) -> dict[str, list[list[float]]]:
    """Return the kappas of the subjects in each repetition, with the settings of PLRSQ's paper and with chosen ones."""
    fixed = by_method(load(folder, "bci2a"), "kappa").get("GLRSQ", {})
    runs = [results(folder, "bci2a-selection", f"GLRSQ, {subject}") for subject in SUBJECTS]
    whole = zip(*([result["kappa"] for result in run] for run in runs), strict=False)
    return {
        "K and epochs of PLRSQ's paper": list(fixed.values()),
        "chosen by five folds of session 1": [list(seed) for seed in whole],
    }


def subjects(folder: pathlib.Path) -> str:
    """Return the table of kappas by subject."""
    rows = [["published", "0.586", *(f"{value:.2f}" for value in GLRSQ_KAPPAS)]]
    for note, runs in _kappas(folder).items():
        cells = [f"{value:.2f}" for value in np.mean(runs, axis=0)] if runs else [""] * 9
        rows.append([note, spread([float(np.mean(run)) for run in runs], digits=3, absent="not run"), *cells])
    return table(["GLRSQ", "mean [seeds]", *SUBJECTS], rows)


def leml(folder: pathlib.Path) -> str:
    """Return the table of mean accuracies by metric, at its best rate, problem and cost."""
    columns = {
        f"{problem}, {cost.upper()}": f"leml-{problem}-{cost}" for cost in ("glvq", "rslvq") for problem in PROBLEMS
    }
    rows: dict[str, list[str]] = {}
    for i, experiment in enumerate(columns.values()):
        best: dict[str, float] = {}
        for name, runs in by_method(load(folder, experiment), "accuracy").items():
            metric = name.partition(" [rate")[0].replace(" [fixed]", ", fixed")
            best[metric] = max(best.get(metric, 0.0), float(np.mean(list(runs.values()))))
        for metric, accuracy in best.items():
            rows.setdefault(metric, [""] * len(columns))[i] = f"{accuracy:.3f}"
    names = sorted(rows, key=lambda name: (name != "vector, fixed", name))
    return table(["metric", *columns], [[name, *rows[name]] for name in names])
