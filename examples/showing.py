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
    path = find_data(name)
    if path is None:
        print(f"Skipped: no {name} in the data folder. Set RPLVQ_DATA to the folder that holds it.")
        raise SystemExit(0)
    return path


def find_data(name: str) -> Path | None:
    """Return the path of a real data file in the folder of :func:`real_data`, or None if there is no such file."""
    folder = Path(os.environ.get("RPLVQ_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    return folder / name if (folder / name).is_file() else None


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


def generated_scene(n_rows: int = 225, n_columns: int = 256, n_looks: int = 25) -> tuple[np.ndarray, np.ndarray]:
    """Return a generated radar scene (n_rows, n_columns, 3, 3) and the kind of ground of each pixel, 1 to 5.

    The scene consists of fields of 15 x 16 pixels. Each of seven materials has its own mean coherency matrix, and two
    of the kinds of ground consist of two materials. A pixel averages ``n_looks`` looks, so it is complex Wishart.
    """
    rng = np.random.default_rng(0)
    fields = rng.integers(0, 7, (-(-n_rows // 15), -(-n_columns // 16)))
    materials = np.kron(fields, np.ones((15, 16), dtype=int))[:n_rows, :n_columns]
    roots = np.eye(3) + 0.5 * (rng.normal(size=(7, 3, 3)) + 1j * rng.normal(size=(7, 3, 3)))
    shape = (n_rows, n_columns, 3, n_looks)
    looks = roots[materials] @ (rng.normal(size=shape) + 1j * rng.normal(size=shape))
    scene = looks @ looks.conj().swapaxes(-1, -2) / (2 * n_looks)
    return scene, np.array([1, 1, 2, 2, 3, 4, 5])[materials]
