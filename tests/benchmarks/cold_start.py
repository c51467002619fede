"""The first fit after installation against later ones, and the import of the library against that of scikit-learn.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/cold_start.py \
        --out tests/benchmarks/results/cold_start.json

Whole processes take turns. For the fits, which need the extra ``fast``, each process imports the library and fits 300
samples, n = 10, in 4 classes. "cold" starts with an empty cache of compiled code, "warm" with one in which all kernels
are stored, and "compiled at once" with an empty cache and ``compiled=True``. For the imports, "scikit-learn" is
``import sklearn.neighbors``, which loads what a user of a classifier of scikit-learn loads.

Seconds are processor time, which other processes of the machine change little. All processes compute on one thread, so
that on an idle machine the wall time is the same.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

FIT = """
from rplvq import AffineInvariant, RiemannianLVQ
from rplvq.datasets import make_syn1
X, y = make_syn1(n_per_class=75, random_state=0)
RiemannianLVQ(AffineInvariant(compiled={compiled!r}), random_state=0).fit(X, y)
"""
IMPORTS = {"scikit-learn": "import sklearn.neighbors", "sklearn.base": "import sklearn.base", "rplvq": "import rplvq"}


def seconds(code: str, cache: str) -> float:
    """Processor time of a process that runs ``code`` with its compiled code in the folder ``cache``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_CACHE_DIR": cache})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fits(warm: str) -> dict[str, float]:
    """Return the seconds of one turn; ``warm`` is a folder that holds all kernels."""
    found = {"warm": seconds(FIT.format(compiled="auto"), warm)}
    for name, compiled in (("cold", "auto"), ("compiled at once", True)):
        with tempfile.TemporaryDirectory() as empty:
            found[name] = seconds(FIT.format(compiled=compiled), empty)
    return found


def imports(cache: str) -> dict[str, float]:
    """Return the seconds of one turn of imports."""
    return {name: seconds(code, cache) for name, code in IMPORTS.items()}


def medians(turns: list[dict[str, float]]) -> dict[str, float]:
    """Return the median seconds of each kind."""
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def main() -> None:
    """Run all processes, print the figures and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as warm:
        seconds(FIT.format(compiled=True), warm)
        fitted = [fits(warm) for _ in range(arguments.turns)]
        imported = [imports(warm) for _ in range(arguments.turns)]
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    record: dict[str, Any] = {
        "machine": {
            "processor": names[0].split(":")[1].strip() if names else platform.processor(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "blas_threads": os.environ.get("OMP_NUM_THREADS", "not set"),
            "load": round(os.getloadavg()[0], 1),
        }
        | {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
        "fit": medians(fitted),
        "cold_minus_warm": statistics.median(turn["cold"] - turn["warm"] for turn in fitted),
        "import": medians(imported),
        "import_ratio": statistics.median(turn["rplvq"] / turn["scikit-learn"] for turn in imported),
    }
    print(json.dumps(record, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
