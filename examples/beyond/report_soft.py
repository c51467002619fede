"""Tables of the pages in docs/experiments on annotators who disagree."""

from __future__ import annotations

import pathlib

import numpy as np

from examples.beyond.soft_labels import METHODS, SCENES
from examples.paper.report import by_method, paired, spread, table
from examples.paper.runner import Record, load

__all__ = ["scores", "tests", "title_of"]

MEASURES = {
    "lost": "log-likelihood lost",
    "lost_at_best": "lost at the best sigma2",
    "calibration": "error of probability",
    "likeliest": "likeliest class found",
    "accuracy": "true label found",
    "distance": "distance of prototypes",
}
SHOWN = ("lost", "calibration", "accuracy")
"""The measures whose means are shown; the differences of all are in the second table."""
NAMES = {"digits": "digits", "full256": "ETH-80"}


def title_of(settings: Record) -> str:
    """Return the name of a scene from its settings."""
    if settings["data"] == "gaussians":
        name = f"centres {settings['separation']:g} sigma apart"
    else:
        name = NAMES[settings["data"]]
    votes = f"{settings['n_votes']} vote{'s' if settings['n_votes'] > 1 else ''}"
    share = settings.get("random_share", 0)
    return f"{name}, {votes}" + (f", {100 * share:.0f} % at random" if share else "")


def scores(folder: pathlib.Path) -> str:
    """Return the table of means by scene, method and measure, with the standard deviation of the first measure."""
    rows = []
    for scene, settings in SCENES.items():
        records = load(folder, f"soft-{scene}")
        found = {name: by_method(records, name) for name in SHOWN}
        for method in (method for method in METHODS if method in found["lost"]):
            values = [list(part[method].values()) for part in found.values()]
            rows.append(
                [
                    f"{title_of(settings)}: {method}",
                    spread(values[0], digits=3),
                    *(f"{np.mean(part):.3f}" for part in values[1:]),
                ]
            )
    first, *others = (MEASURES[name] for name in SHOWN)
    return table(["scene: method", f"{first} [repetitions]", *others], rows)


def tests(folder: pathlib.Path) -> str:
    """Return a table with a column per measure: PLVQ from shares against RSLVQ from the majority.

    A difference is bold if Wilcoxon's test finds it significant at 0.05.
    """
    rows = []
    for scene, settings in SCENES.items():
        records = load(folder, f"soft-{scene}")
        if records:
            pairs = [paired(by_method(records, name), METHODS[3], METHODS[1]) for name in MEASURES]
            rows.append([title_of(settings), *(_marked(*pair) for pair in pairs)])
    return table(["scene", *MEASURES.values()], rows)


def _marked(difference: str, p_value: str) -> str:
    """Return a difference, in bold if its p-value is below 0.05."""
    return f"**{difference}**" if p_value not in ("", "too few") and float(p_value) < 0.05 else difference
