"""The figure of docs/beyond.md: what each addition changes, one dot per data set."""

from __future__ import annotations

import pathlib

import numpy as np
from matplotlib.figure import Figure

from examples.beyond.report_default import gains
from examples.paper.report import by_method
from examples.paper.runner import load

__all__ = ["ROWS", "differences", "draw"]

FIVE = ("syn1", "syn2", "full256", "mask256", "bci2a")
FOUR = ("syn1", "syn2", "full256", "bci2a")
ROWS: list[tuple[str, str, str, str, tuple[str, ...]]] = [
    ("adaptive step, against the paper's", "steps", "adaptive, x 1", "paper, x 1", FOUR),
    (
        "batches of 16, 16 times the step,\nagainst single samples",
        "batches",
        "batches of 16, 16 times the step",
        "single samples",
        FOUR,
    ),
    ("24 prototypes per class,\nagainst the paper's number", "votes", "24 prototypes, adaptive", "the paper's", ("",)),
    ("SpreadRSLVQ, against RSLVQ", "costs", "SpreadRSLVQ, paper's sigma2", "RSLVQ", FIVE),
    ("GLVQ, against RSLVQ", "costs", "GLVQ", "RSLVQ", FIVE),
    ("Log-Euclidean metric,\nagainst affine-invariant", "geometries", "LogEuclidean", "AffineInvariant", FIVE),
    ("Bures-Wasserstein metric,\nagainst affine-invariant", "geometries", "BuresWasserstein", "AffineInvariant", FIVE),
    ("five votes as shares,\nagainst their majority", "soft", "PLVQ, shares of votes", "RSLVQ, majority", ()),
    ("12 of 22 channels,\nagainst all", "reduction", "12, jointly", "full size", ("",)),
    ("online re-centring,\nagainst none", "recentering", "one for all, online", "one for all, as measured", ("",)),
    (
        "learning in the second session,\nagainst none",
        "stream",
        "partial_fit, as measured",
        "frozen, as measured",
        ("",),
    ),
]
"""Label, experiment, method, the method to compare with, and the data sets; "" is the experiment's only one."""
DEFAULT = "default,\nagainst the class means"
"""Label of the row that is made from the experiment "default", with as many training samples as there are."""
SCENES = ("soft-overlap-5", "soft-digits-5", "soft-full256-5")
LOOK = {
    "SynI": ("#999999", "o"),
    "SynII": ("#000000", "s"),
    "ETH-80, whole image": ("#0072B2", "^"),
    "ETH-80, mask": ("#56B4E9", "v"),
    "BCI 2a": ("#D55E00", "D"),
    "digits": ("#009E73", "P"),
    "three Gaussian classes": ("#CC79A7", "X"),
}
NAMES = {"syn1": "SynI", "syn2": "SynII", "full256": "ETH-80, whole image", "mask256": "ETH-80, mask"}
NAMES |= {"bci2a": "BCI 2a", "digits": "digits", "votes": "ETH-80, whole image", "overlap": "three Gaussian classes"}
SCORES = ("mean_kappa", "mean_accuracy", "accuracy")


def differences(folder: pathlib.Path) -> list[tuple[str, str, float]]:
    """Return label, data set and difference of the mean scores (accuracy, or kappa where it was recorded)."""
    found = [(DEFAULT, NAMES[data], value) for data, value in gains(folder).items()]
    for label, experiment, method, other, data in ROWS:
        names = [f"{experiment}-{each}".rstrip("-") for each in data] or list(SCENES)
        for name in names:
            records = load(folder, name)
            for score in SCORES:
                means = {key: np.mean(list(runs.values())) for key, runs in by_method(records, score).items()}
                if method in means and other in means:
                    where = next((title for key, title in NAMES.items() if key in name.split("-")), "BCI 2a")
                    found.append((label, where, float(means[method] - means[other])))
                    break
    return found


def draw(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Write the figure as a PNG file."""
    rows = differences(folder)
    labels = [DEFAULT, *(label for label, *_ in ROWS)]
    figure = Figure(figsize=(8.5, 9), layout="constrained")
    ax = figure.subplots()
    for shift, (name, (color, marker)) in zip(np.linspace(-0.24, 0.24, len(LOOK)), LOOK.items(), strict=True):
        dots = [(value, labels.index(label) + shift) for label, where, value in rows if where == name]
        if dots:
            x, y = np.transpose(dots)
            ax.scatter(x, y, s=55, c=color, marker=marker, label=name, zorder=3, alpha=0.85)
    ax.axvline(0, color="0.3", lw=1)
    ax.set_yticks(range(len(labels)), labels)
    ax.invert_yaxis()
    ax.set(xlabel="difference of the mean scores on test data\n(accuracy; kappa on BCI 2a where it was recorded)")
    ax.grid(axis="x", color="0.9")
    ax.grid(axis="y", color="0.95")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
