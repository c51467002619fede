"""The facts without which nobody can judge or repeat a comparison: data, chance level, folds, seed, versions."""

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from rplvq.parts import library_version
from rplvq.protocols import Array

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
MOST_CLASSES = 30  # whose sizes are listed one by one


def describe_run(
    X: Any, y: Array, folds: Sequence[tuple[int, int]], named_folds: str, seed: Any, call: str
) -> dict[str, str]:
    """Return the facts of a comparison as they are printed; ``folds`` are numbers of training and test samples."""
    classes, counts = np.unique(y, return_counts=True)
    each = f"of {_range(counts.tolist())} samples"
    if len(classes) <= MOST_CLASSES:
        each = ", ".join(f"{label}: {count}" for label, count in zip(classes.tolist(), counts.tolist(), strict=True))
    sizes = [_range(values) for values in zip(*folds, strict=True)]
    return {
        "samples": f"{len(y)} of shape {tuple(X.shape[1:])}",
        "classes": f"{len(classes)} ({each})",
        "chance": f"accuracy {counts.max() / len(y):.4f} (every sample is given the largest class), kappa 0",
        "splits": f"{named_folds}; {sizes[0]} training and {sizes[1]} test samples",
        "seed": str(seed),
        "versions": versions(),
        "command": call,
    }


def _range(values: Sequence[int]) -> str:
    low = min(values)
    high = max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def versions() -> str:
    """Return the versions of rplvq, Python and the libraries that may change a result."""
    found = {"rplvq": library_version(), "Python": platform.python_version()}
    used = [name for name in ("pyriemann",) if name in sys.modules]
    for name in (*LIBRARIES, *used):
        try:
            found[name] = "not installed" if sys.modules.get(name, sys) is None else version(name)  # None forbids it
        except PackageNotFoundError:
            found[name] = "not installed"
    return ", ".join(f"{name} {number}" for name, number in found.items())
