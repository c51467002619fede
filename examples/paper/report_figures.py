"""Figures of docs/reproduction.md: sensitivity to sigma2, convergence, annealing, the sample-size curve."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from examples.paper.runner import load
from rplvq import Annealed

TITLES = {"syn1": "SynI", "syn2": "SynII"}


def sigma2_sensitivity(folder: pathlib.Path, problem: str, ax: Axes) -> None:
    """Draw test accuracy against sigma2, as the mean over the recorded repetitions."""
    curves: dict[str, list[Any]] = {}
    for record in load(folder, f"{problem}-sigma2"):
        curves.setdefault(record["method"], []).append(record["result"])
    for method, results in sorted(curves.items()):
        accuracy = np.mean([result["accuracy"] for result in results], axis=0)
        ax.plot(results[0]["sigma2"], accuracy, marker="o", markersize=3, label=f"{method} [{len(results)}]")
    ax.set(xscale="log", xlabel="sigma2 (squared distance)", ylabel="test accuracy", title=TITLES[problem])
    if curves:
        ax.legend()


def convergence(folder: pathlib.Path, problem: str, axes: np.ndarray) -> None:
    """Draw cost, training error and test error against the epoch, as means over the recorded repetitions."""
    curves: dict[str, list[Any]] = {}
    for record in load(folder, f"{problem}-curves"):
        curves.setdefault(record["method"], []).append(record["result"])
    for number, (method, results) in enumerate(sorted(curves.items())):
        mean = {
            name: np.mean([result[name] for result in results], axis=0)
            for name in ("cost", "training_error", "test_error")
        }
        color = f"C{number}"
        axes[0].plot(results[0]["epoch"], mean["cost"], color=color, label=f"{method} [{len(results)}]")
        axes[1].plot(results[0]["epoch"], mean["training_error"], color=color, linestyle="--")
        axes[1].plot(results[0]["epoch"], mean["test_error"], color=color)
    axes[0].set(yscale="log", xlabel="epoch", ylabel="cost (summed loss)", title=TITLES[problem])
    axes[1].set(xlabel="epoch", ylabel="error rate", title="test (solid), training (dashed)")
    if curves:
        axes[0].legend()


def annealing(ax: Axes) -> None:
    """sigma2 against the epoch for both annealings, from the schedules themselves."""
    for start in (0.45, 1.0):
        for power, style in ((1.1, "-"), (1.0, "--")):
            schedule = Annealed(start, power=power)
            values = [schedule(epoch, 100) for epoch in range(101)]
            name = "growing" if power > 1 else "constant"
            ax.plot(values, style, label=f"from {start}, {name} beta")
    ax.set(xlabel="epoch", ylabel="sigma2 (squared distance)", title="Annealing")
    ax.legend()


def sample_size(folder: pathlib.Path, ax: Axes) -> None:
    """Draw the accuracy on CIFAR-10 against the number of training images."""
    sizes = (200, 500, 1000, 5000, 10000, 20000)
    found: dict[str, dict[int, list[float]]] = {}
    for size in sizes:
        for record in load(folder, f"cifar10-N{size}"):
            found.setdefault(record["method"], {}).setdefault(size, []).append(record["result"]["accuracy"])
    for method, points in sorted(found.items()):
        if len(points) > 2:
            ax.plot(list(points), [np.mean(values) for values in points.values()], marker="o", label=method)
    ax.set(xscale="log", xlabel="training images", ylabel="test accuracy", title="CIFAR-10")
    if found:
        ax.legend()


def draw(folder: pathlib.Path, target: pathlib.Path) -> None:
    """Write all figures as PNG files into ``target``."""
    target.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for problem, ax in zip(TITLES, figure.subplots(1, 2), strict=True):
        sigma2_sensitivity(folder, problem, ax)
    figure.savefig(target / "sigma2.png", dpi=110)
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    for problem, row in zip(TITLES, figure.subplots(2, 2), strict=True):
        convergence(folder, problem, row)
    figure.savefig(target / "convergence.png", dpi=110)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    annealing(left)
    sample_size(folder, right)
    figure.savefig(target / "annealing_and_size.png", dpi=110)
