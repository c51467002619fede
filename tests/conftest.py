"""Fixtures shared by all tests, and deterministic settings for property tests."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

from examples.paper import data
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
# python -m pytest --hypothesis-profile=nightly: at least 2000 new examples of every property.
settings.register_profile("nightly", settings.get_profile("deterministic"), derandomize=False, max_examples=2000)
settings.load_profile("deterministic")


def find_real_data(name: str) -> pathlib.Path:
    """Path of a real data file, or skip the test."""
    if not data.is_available(name):
        pytest.skip(f"real data absent: no {name} in {data.data_folder()} (set RPLVQ_DATA to its folder)")
    return data.find(name)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], pathlib.Path]:
    """Function from a file's name to its path; it skips the test where the file is absent."""
    return find_real_data


@pytest.fixture(scope="session")
def unpack_symmetric() -> Callable[[Array, int], Array]:
    """Function from upper triangles (..., n (n + 1) / 2) to symmetric matrices (..., n, n)."""
    return data.unpack_symmetric
