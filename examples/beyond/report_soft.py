"""Tables of the pages in docs/experiments on annotators who disagree."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import numpy as np

from examples.beyond.soft_labels import METHODS, SCENES
from examples.paper.report import by_method, paired, table
from examples.paper.runner import Record, load

__all__ = ["scores", "tests", "title_of"]

MEASURES = {
    "lost": "log-likelihood lost",
    "lost_at_best": "lost at the best sigma2",
    "accuracy": "true label found",
    "distance": "distance of prototypes",
}
SHOWN = ("lost", "accuracy")
"""The measures whose means are shown; the second table has differences of all."""
VOTED = METHODS[:-1]
"""The methods that learn from votes; the last one knows the probabilities."""
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
    """Return the table of means by scene and method: log-likelihood lost and true labels found."""
    rows = []
    for scene, settings in SCENES.items():
        records = load(folder, f"soft-{scene}")
        if records:
            lost, right = (by_method(records, name) for name in SHOWN)
            cells = [f"{_mean(lost[method])} / {_mean(right[method])}" for method in VOTED]
            rows.append([f"{title_of(settings)} [{len(lost[VOTED[0]])}]", *cells])
    return table([f"scene: {' / '.join(MEASURES[name] for name in SHOWN)}", *VOTED], rows)


def _mean(runs: Mapping[int, float]) -> str:
    return f"{np.mean(list(runs.values())):.3f}"


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
