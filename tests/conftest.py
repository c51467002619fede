"""Fixtures shared by all tests, and deterministic settings for property tests."""

from __future__ import annotations

import os
import pathlib
import re
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
# HYPOTHESIS_PROFILE=nightly python -m pytest --no-cov -m hypothesis: at least 2000 new examples of every property.
settings.register_profile("nightly", settings.get_profile("deterministic"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))

EXAMPLES = pytest.StashKey[dict[str, int]]()
NIGHTLY = 2000


def pytest_configure(config: pytest.Config) -> None:
    config.stash[EXAMPLES] = {}


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Note how many examples of a property passed, from the statistics that Hypothesis leaves on it."""
    statistics = getattr(item, "hypothesis_statistics", None)
    if statistics is not None:
        item.config.stash[EXAMPLES][item.nodeid] = sum(map(int, re.findall(r"(\d+) passing", statistics)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the number of examples of each property in the nightly profile."""
    counts = config.stash[EXAMPLES]
    if settings().max_examples < NIGHTLY or not counts:
        return
    terminalreporter.section("examples that passed, by property")
    for name, count in sorted(counts.items()):
        terminalreporter.line(f"{count:6d} {name}{'' if count >= NIGHTLY else f'  (fewer than {NIGHTLY})'}")
    terminalreporter.line(f"{sum(counts.values()):6d} of {len(counts)} properties; fewest: {min(counts.values())}")


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
