"""A fit with the default number of BLAS threads against one thread, on an idle and on a loaded machine.

    PYTHONPATH=. python tests/benchmarks/threads.py --out tests/benchmarks/results/threads.json

Each process fits 80 matrices, one epoch, for each size n several times and reports the medians. The processes take
turns: BLAS threads at their default, one thread by OMP_NUM_THREADS=1, and threads at their default without the limit
of the library. Then all is repeated beside one process per core that computes without pause. Other processes of the
machine run beside both; the load is noted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SIZES = (22, 28, 40)
REPEATS = 9
"""Fits of one size per process. On a loaded machine, ratios of medians of three were between .5 and 2.5."""
LONG = 15.0
"""Seconds for one size after which it is not repeated."""
KINDS = ("default", "one", "unlimited")
BUSY = "while True: pass"


def fits() -> dict[str, float]:
    """Return the median seconds of a fit for each size; the first fit of each is not counted, unless it takes long."""
    import numpy as np

    from rplvq import RiemannianLVQ

    found = {}
    for n in SIZES:
        signals = np.random.default_rng(0).normal(size=(80, n, 4 * n))
        X, y = signals @ signals.swapaxes(1, 2) / (4 * n), np.arange(80) % 4
        taken = []
        for _ in range(REPEATS + 1):
            model = RiemannianLVQ(max_epochs=1, sigma2=10.0, random_state=0)
            began = time.perf_counter()
            model.fit(X, y)
            taken.append(time.perf_counter() - began)
            if sum(taken) > LONG:
                break
        found[str(n)] = statistics.median(taken[1:] or taken)
    return found


def process(kind: str) -> dict[str, float]:
    """Run :func:`fits` in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment |= dict.fromkeys(VARIABLES, "1") if kind == "one" else {}
    command = [sys.executable, __file__, "--worker", kind]
    ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def rounds(count: int, *, loaded: bool, kinds: tuple[str, ...] = KINDS) -> list[dict[str, dict[str, float]]]:
    """Return the seconds of all kinds by size, for ``count`` rounds."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1 if loaded else 0)]
    try:
        return [{kind: process(kind) for kind in kinds} for _ in range(count)]
    finally:
        for other in others:
            other.kill()
            other.wait()


def summary(machine: str, found: list[dict[str, dict[str, float]]]) -> list[dict[str, Any]]:
    """Return one row per size: median seconds on one thread, and the medians of the ratios to it."""
    rows = []
    for n in map(str, SIZES):
        row: dict[str, Any] = {"machine": machine, "n": int(n)}
        row["one_thread_seconds"] = statistics.median(each["one"][n] for each in found)
        for kind in sorted({*found[0]} - {"one"}):
            row[kind] = statistics.median(each[kind][n] / each["one"][n] for each in found)
        rows.append(row)
    return rows


def main() -> None:
    """Run all processes, print the rows and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", choices=KINDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        if arguments.worker == "unlimited":
            from rplvq.arrays import _linalg

            _linalg.LARGEST_ON_ONE_THREAD = 0
        print(json.dumps(fits()))
        return
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    machine = {
        "processor": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    } | {name: version(name) for name in ("numpy", "scipy", "threadpoolctl")}
    rows = [
        row
        for name, loaded in (("as found", False), ("one busy process more per core", True))
        for row in summary(name, rounds(arguments.rounds, loaded=loaded))
    ]
    for row in rows:
        print(json.dumps(row))
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
