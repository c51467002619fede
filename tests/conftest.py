"""Fixtures shared by all tests, and deterministic settings for property tests."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from rplvq.protocols import Array

# The same examples in every run, and no test that fails because a machine is slow.
settings.register_profile(
    "deterministic",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("deterministic")

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]


def find_real_data(name: str) -> pathlib.Path:
    """Path of a real data file, or skip the test.

    The folder is the one that the environment variable RPLVQ_DATA names, else ``shared/data``
    beside the repository.
    """
    default = REPOSITORY.parent / "shared" / "data"
    folder = pathlib.Path(os.environ.get("RPLVQ_DATA") or default)
    path = folder / name
    if not path.is_file():
        pytest.skip(f"real data absent: no {name} in {folder} (set RPLVQ_DATA to its folder)")
    return path


def unpack_upper_triangles(flat: Array, n: int) -> Array:
    """Symmetric matrices (..., n, n) from upper triangles (..., n (n + 1) / 2) in triu order."""
    rows, columns = np.triu_indices(n)
    if flat.shape[-1] != len(rows):
        raise ValueError(f"flat has {flat.shape[-1]} entries a matrix, but n={n} needs {len(rows)}")
    matrices = np.empty((*flat.shape[:-1], n, n), dtype=flat.dtype)
    matrices[..., rows, columns] = flat
    matrices[..., columns, rows] = flat
    return matrices


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], pathlib.Path]:
    """Function from a file's name to its path; it skips the test where the file is absent."""
    return find_real_data


@pytest.fixture(scope="session")
def unpack_symmetric() -> Callable[[Array, int], Array]:
    """Function from upper triangles (..., n (n + 1) / 2) to symmetric matrices (..., n, n)."""
    return unpack_upper_triangles
