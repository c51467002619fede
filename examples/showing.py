"""What the examples share: writing or showing the figure, and finding real data."""

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
    """Return the path of a real data file; without the file, say so and end the script.

    The folder is given by the environment variable RPLVQ_DATA. Without it, ``shared/data`` beside the repository is
    used.
    """
    folder = Path(os.environ.get("RPLVQ_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not (folder / name).is_file():
        print(f"Skipped: no {name} in the data folder. Set RPLVQ_DATA to the folder that holds it.")
        raise SystemExit(0)
    return folder / name


def coherency_matrices(planes: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return Hermitian matrices (..., 3, 3) from nine real planes (...), as polarimetric radar stores them.

    Some pixels are singular or indefinite because the stored numbers are rounded. A hundredth of the identity, in units
    of the power of the pixel, makes all of them positive definite.
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
