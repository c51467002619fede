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

PROPERTY = "hypothesis examples"
NIGHTLY = 2000


class PassedExamples:
    """Count the examples of each property that passed, also where worker processes of pytest-xdist run them."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Read the statistics that Hypothesis leaves on a test; its report takes the number to the main process."""
        statistics = getattr(item, "hypothesis_statistics", None)
        if statistics is not None:
            item.user_properties.append((PROPERTY, sum(map(int, re.findall(r"(\d+) passing", statistics)))))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the number of a report, which is from this process or from a worker."""
        for name, count in report.user_properties:
            if name == PROPERTY:
                self.counts[report.nodeid] = count

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the number of examples of each property in the nightly profile."""
        counts = self.counts
        if settings().max_examples < NIGHTLY or not counts:
            return
        terminalreporter.section("examples that passed, by property")
        for name, count in sorted(counts.items()):
            terminalreporter.line(f"{count:6d} {name}{'' if count >= NIGHTLY else f'  (fewer than {NIGHTLY})'}")
        terminalreporter.line(f"{sum(counts.values()):6d} of {len(counts)} properties; fewest: {min(counts.values())}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(PassedExamples())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that read real data, so that they can be run alone where the data are."""
    for item in items:
        reasons = [str(mark.kwargs.get("reason", "")) for mark in item.iter_markers("skipif")]
        if "real_data" in getattr(item, "fixturenames", ()) or any(".npz" in reason for reason in reasons):
            item.add_marker("data")


def find_real_data(name: str) -> pathlib.Path:
    """Path of a real data file, or skip the test."""
    if not data.is_available(name):
        pytest.skip(f"real data absent: no {name} in {data.data_folder()} (set RPLVQ_DATA to its folder)")
    return data.find(name)


@pytest.fixture(autouse=True)
def _compile_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first fit compile, so that no test depends on what earlier ones have compiled."""
    monkeypatch.setattr("rplvq.lanes._compile.COMPILING", -1.0)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], pathlib.Path]:
    """Function from a file's name to its path; it skips the test where the file is absent."""
    return find_real_data


@pytest.fixture(scope="session")
def unpack_symmetric() -> Callable[[Array, int], Array]:
    """Function from upper triangles (..., n (n + 1) / 2) to symmetric matrices (..., n, n)."""
    return data.unpack_symmetric
