"""The facts without which nobody can judge or repeat a comparison: data, chance level, folds, seed, versions."""

import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy as np

from rplvq.parts import library_version
from rplvq.protocols import Array

LIBRARIES = ("numpy", "scipy", "scikit-learn")
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
    found |= {name: _version(name) for name in LIBRARIES}
    found["numba"] = _version("numba") if _is_importable("numba") else "not installed"
    if "pyriemann" in sys.modules:
        found["pyriemann"] = _version("pyriemann")
    return ", ".join(f"{name} {number}" for name, number in found.items())


def _is_importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # it is loaded without a specification
        return False


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "of unknown version"


def settings_of(named: Mapping[str, Any]) -> list[str]:
    """Return each estimator as a call with its parameters that differ from the defaults, in one line."""
    return [" ".join(repr(estimator).split()) for estimator in named.values()]
