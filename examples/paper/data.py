"""Find the files of the real data and unpack them.

The environment variable RPLVQ_DATA names the folder; its default is ``shared/data`` beside the repository.
"""

from __future__ import annotations

import os
import pathlib
from typing import NamedTuple

import numpy as np

from rplvq.protocols import Array

__all__ = [
    "Split", "coherency_matrices", "data_folder", "find", "is_available", "load_arrays", "load_bci2a",
    "unpack_symmetric",
]  # fmt: skip

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
N_CHANNELS = 22


class Split(NamedTuple):
    """Training and test samples (N, n, n) with their labels (N,)."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


def data_folder() -> pathlib.Path:
    """Return the folder of the real data, which need not exist."""
    return pathlib.Path(os.environ.get("RPLVQ_DATA") or REPOSITORY.parent / "shared" / "data")


def is_available(name: str) -> bool:
    """Return whether a data file exists."""
    return (data_folder() / name).is_file()


def find(name: str) -> pathlib.Path:
    """Return the path of a data file.

    Raises
    ------
    FileNotFoundError
        If it is absent.
    """
    path = data_folder() / name
    if not path.is_file():
        raise FileNotFoundError(f"no {name} in {data_folder()}: set RPLVQ_DATA to the folder that holds it")
    return path


def load_arrays(name: str, *keys: str) -> tuple[Array, ...]:
    """Load arrays of a data file by name, or all of them in the order of the file if no name is given."""
    with np.load(find(name), allow_pickle=False) as data:
        return tuple(data[key] for key in keys or data.files)


def unpack_symmetric(flat: Array, n: int) -> Array:
    """Return symmetric matrices (..., n, n) from their upper triangles (..., n (n + 1) / 2), row by row.

    Raises
    ------
    ValueError
        If the last axis does not have n (n + 1) / 2 entries.
    """
    rows, columns = np.triu_indices(n)
    if flat.shape[-1] != len(rows):
        raise ValueError(f"flat has {flat.shape[-1]} entries per matrix, but n={n} needs {len(rows)}")
    matrices = np.empty((*flat.shape[:-1], n, n), dtype=flat.dtype)
    matrices[..., rows, columns] = flat
    matrices[..., columns, rows] = flat
    return matrices


def coherency_matrices(planes: Array, names: Array) -> Array:
    """Return the coherency matrices (..., 3, 3) of pixels whose nine numbers are planes (9, ...) of these names."""
    value = dict(zip(map(str, names), planes, strict=True))
    matrices = np.zeros((*planes.shape[1:], 3, 3), dtype=complex)
    for i in range(3):
        matrices[..., i, i] = value[f"T{i + 1}{i + 1}"]
        for j in range(i + 1, 3):
            entry = value[f"T{i + 1}{j + 1}_re"] + 1j * value[f"T{i + 1}{j + 1}_im"]
            matrices[..., i, j], matrices[..., j, i] = entry, entry.conj()
    return matrices


def load_bci2a(subject: int) -> Split:
    """Load a subject of BCI Competition IV 2a: session 1 trains, session 2 tests.

    Parameters
    ----------
    subject : int
        1 to 9.

    Returns
    -------
    Split
        288 covariances (288, 22, 22) in each part, from 0.5 to 2.5 s after the cue and 10 to 30 Hz, in the units of the
        file; labels are 1 to 4 (left hand, right hand, feet, tongue).
    """
    if subject not in range(1, 10):
        raise ValueError(f"subject must be 1 to 9, got {subject!r}")
    flat, y, test = load_arrays("bci2a_cov22.npz", *(f"s{subject}_{key}" for key in ("cov", "y", "test")))
    X = unpack_symmetric(flat, N_CHANNELS)
    return Split(X[~test], y[~test], X[test], y[test])
