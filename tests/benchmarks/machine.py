"""What the figures of a benchmark depend on."""

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rplvq.lanes import _compile


def machine(*packages: str) -> dict[str, Any]:
    """Return processor, cores, BLAS threads, load, and the versions of Python and of those packages that are there."""
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    found: dict[str, Any] = {
        "processor": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "blas_threads": os.environ.get("OMP_NUM_THREADS", "not set"),
        "load": round(os.getloadavg()[0], 1),
    }
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def compile_at_once() -> None:
    """Compile every kernel when it could first be used: a benchmark is about later calls of an installation."""
    _compile.COMPILING = 0.0
