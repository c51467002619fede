"""Figures of the pages on the reproduction, drawn from the records."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from examples.paper.report import by_method, results
from examples.paper.report_bci2a import selection_regret
from examples.paper.report_cifar10 import SIZES
from examples.paper.report_overview import PLRSQ
from examples.paper.report_synthetic import TITLES
from examples.paper.runner import Record, load
from rplvq import Annealed
from rplvq.datasets import make_syn1, make_syn2

__all__ = ["draw"]


def profiles(_: pathlib.Path, axes: Any) -> None:
    """Draw the mean eigenvalues of each class, in descending order, as they are in drawn samples."""
    for ax, (problem, make) in zip(axes, (("syn1", make_syn1), ("syn2", make_syn2)), strict=True):
        X, y = make(250, random_state=0)
        spectra = np.linalg.eigvalsh(X)[:, ::-1]
        for label, name in enumerate(("eta1, V1", "eta1, V2", "eta2, V1", "eta2, V2") if problem == "syn1" else
                                     ("eta1", "eta2", "eta3", "eta4")):  # fmt: skip
            low, middle, high = np.percentile(spectra[y == label], (0, 50, 100), axis=0)
            style = "--" if name.endswith("V2") else "-"
            ax.plot(range(1, 11), middle, style, label=name)
            ax.fill_between(range(1, 11), low, high, alpha=0.15)
        ax.set(yscale="log", xlabel="j", ylabel="eigenvalue", title=TITLES[problem])
        ax.legend()


def sigma2_sensitivity(folder: pathlib.Path, axes: Any) -> None:
    """Draw test accuracy against sigma2 for one prototype per class and 100 epochs."""
    for ax, problem in zip(axes, TITLES, strict=True):
        for method in PLRSQ:
            _curve(ax, results(folder, f"{problem}-grid", f"{method}, K=1, T=100"), "sigma2", method)
        ax.set(xscale="log", xlabel="sigma2 (squared distance)", ylabel="test accuracy", title=TITLES[problem])
        _legend(ax)


def convergence(folder: pathlib.Path, axes: Any) -> None:
    """Draw cost, training error and test error against the epoch, as means over the recorded repetitions."""
    for problem, row in zip(TITLES, axes, strict=True):
        for number, method in enumerate(("PLRSQ-AN", "PLRSQ-AN, beta fixed", "PLRSQ-Const")):
            runs = results(folder, f"{problem}-curves", method)
            if not runs:
                continue
            color, epochs = f"C{number}", runs[0]["epoch"]
            mean = {name: np.mean([r[name] for r in runs], axis=0) for name in ("cost", "training_error", "test_error")}
            row[0].plot(epochs, mean["cost"], color=color)
            row[1].plot(epochs, mean["training_error"], color=color, linestyle="--")
            row[1].plot(epochs, mean["test_error"], color=color, label=f"{method} [{len(runs)}]")
        row[0].set(yscale="log", xlabel="epoch", ylabel="cost (summed loss)", title=TITLES[problem])
        row[1].set(xlabel="epoch", ylabel="error rate", title="test (solid), training (dashed)")
        _legend(row[1])


def annealing(_: pathlib.Path, axes: Any) -> None:
    """Draw sigma2 against the epoch for both annealings, from the schedules themselves."""
    for ax, start in zip(axes, (0.45, 8.0), strict=True):
        for power, name in ((1.1, "beta grows to the power 1.1"), (1.0, "beta fixed at 0.99")):
            schedule = Annealed(start, power=power)
            ax.plot([schedule(epoch, 100) for epoch in range(101)], label=name)
        ax.set(xlabel="epoch", ylabel="sigma2 (squared distance)", title=f"from sigma2 = {start:g}")
        ax.legend()


def eth80(folder: pathlib.Path, axes: Any) -> None:
    """Draw accuracy against sigma2 and against the number of prototypes per class, for eight classes."""
    for ax, (name, label) in zip(axes, (("sigma2", "sigma2"), ("prototypes", "prototypes_per_class")), strict=True):
        for method in PLRSQ:
            _curve(ax, results(folder, "eth80-curves", f"{method}, {name}"), label, method)
        ax.set(xlabel=label.replace("_", " "), ylabel="test accuracy", title="ETH-80, C = 8")
        _legend(ax)
    axes[0].set(xscale="log", xticks=(0.5, 1, 2, 5), xticklabels=("0.5", "1", "2", "5"))
    axes[0].minorticks_off()


def cifar10(folder: pathlib.Path, axes: Any) -> None:
    """Draw accuracy, seconds per epoch and seconds for the test images against the number of training images."""
    found = {n: by_method(load(folder, f"cifar10-N{n}"), "accuracy") for n in SIZES}
    for method in sorted({name for methods in found.values() for name in methods}):
        points = {n: np.mean(list(found[n][method].values())) for n in SIZES if method in found[n]}
        if len(points) > 2:
            axes[0].plot(list(points), list(points.values()), marker="o", label=method)
    axes[0].set(xscale="log", ylabel="test accuracy")
    _legend(axes[0])
    timed = {n: runs[0] for n in SIZES if (runs := results(folder, f"cifar10-times-N{n}"))}
    for ax, key, title, scale in (
        (axes[1], "seconds_per_epoch", "seconds per epoch", {"yscale": "log"}),
        (axes[2], "predict_cpu_seconds", "seconds for the test images", {"ylim": (0, None)}),
    ):
        if timed:
            ax.plot(list(timed), [run[key] for run in timed.values()], marker="o")
        ax.set(xscale="log", ylabel=title, **scale)
    for ax in axes:
        ax.set(xlabel="training images")


def bci2a(folder: pathlib.Path, axes: Any) -> None:
    """Draw what session 1 says about sigma2 beside what session 2 says, one line per subject."""
    sigma2 = [line["sigma2"] for line in results(folder, "bci2a-sigma2", "PLRSQ-Const")]
    for number, subject in enumerate(selection_regret(folder)):
        for ax, name in zip(axes, ("folds", "kappa"), strict=True):
            ax.plot(sigma2[0], subject[name], marker="o", markersize=3, label=f"S{number + 1}")
    for ax, name in zip(axes, ("accuracy, 5 folds of session 1", "kappa on session 2"), strict=True):
        ax.set(xlabel="sigma2", ylabel=name)
    if sigma2:
        axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")


def _curve(ax: Axes, found: list[Record], x_name: str, method: str) -> None:
    """Draw the mean accuracy against one setting, and its deviation over the repetitions if there are several."""
    if not found:
        return
    x, runs = found[0][x_name], [result["accuracy"] for result in found]
    mean = np.mean(runs, axis=0)
    (line,) = ax.plot(x, mean, marker="o", markersize=3, label=f"{method} [{len(runs)}]")
    if len(runs) > 1:
        deviation = np.std(runs, axis=0, ddof=1)
        ax.fill_between(x, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.15)


def _legend(ax: Axes) -> None:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize="small")


# The drawing, its rows and columns, and its size in inches, by the name of the file.
FIGURES: dict[str, tuple[Callable[[pathlib.Path, Any], None], tuple[int, int], tuple[float, float]]] = {
    "profiles": (profiles, (1, 2), (9, 3.6)),
    "sigma2": (sigma2_sensitivity, (1, 2), (9, 3.6)),
    "convergence": (convergence, (2, 2), (9, 6.4)),
    "annealing": (annealing, (1, 2), (9, 3.6)),
    "eth80": (eth80, (1, 2), (9, 3.6)),
    "cifar10": (cifar10, (1, 3), (10.5, 3.6)),
    "bci2a": (bci2a, (1, 2), (9, 3.6)),
}


def draw(folder: pathlib.Path, target: pathlib.Path) -> None:
    """Write all figures as PNG files into ``target``."""
    target.mkdir(parents=True, exist_ok=True)
    for name, (paint, (rows, columns), size) in FIGURES.items():
        figure = Figure(figsize=size, layout="constrained")
        paint(folder, figure.subplots(rows, columns))
        figure.savefig(target / f"{name}.png", dpi=110)
