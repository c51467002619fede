"""What the examples share: a figure goes to the file that --out names, or to the screen; where real data lie."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def show(figure: Any) -> None:
    """Write the figure to the path given by ``--out``, or open a window."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", metavar="FILE", help="image file to write; without it, the figure is shown")
    out = parser.parse_args().out
    if out is None:
        import matplotlib.pyplot as plt

        plt.show()
    else:
        figure.savefig(out, dpi=110)


def real_data(name: str) -> Path:
    """Path of a real data file, or the end of the script with a sentence that says what is missing.

    The folder is the one that the environment variable RPLVQ_DATA names, else ``shared/data`` beside the repository.
    """
    folder = Path(os.environ.get("RPLVQ_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not (folder / name).is_file():
        print(f"Skipped: no {name} in the data folder. Set RPLVQ_DATA to the folder that holds it.")
        raise SystemExit(0)
    return folder / name


def coherency_matrices(planes: Mapping[str, np.ndarray]) -> np.ndarray:
    """Hermitian matrices (..., 3, 3) from nine real planes (...), as polarimetric radar stores them.

    Rounding left some pixels singular or worse: a hundredth of the identity, in units of their power, mends them.
    """
    scene = np.zeros((*planes["T11"].shape, 3, 3), dtype=complex)
    for i in range(3):
        scene[..., i, i] = planes[f"T{i + 1}{i + 1}"]
        for j in range(i + 1, 3):
            entry = planes[f"T{i + 1}{j + 1}_re"] + 1j * planes[f"T{i + 1}{j + 1}_im"]
            scene[..., i, j], scene[..., j, i] = entry, entry.conj()
    power = np.trace(scene, axis1=-2, axis2=-1).real / 3
    for i in range(3):
        scene[..., i, i] += 1e-2 * power
    return scene
