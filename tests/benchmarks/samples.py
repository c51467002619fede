"""The cost of a sample against the number of samples: generated matrices in a mapped file, from 1000 to 10 million.

    OMP_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/samples.py --out tests/benchmarks/results/samples.json

Each row runs in its own process: class means, one epoch from them, and predict, with one prototype for each of four
classes under the affine-invariant metric, and the memory that the process held beyond what it held before. Rows that
the file holds already are kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rplvq import Constant, RiemannianLVQ
from tests.benchmarks.machine import compile_at_once, machine
from tests.benchmarks.memory import watched

CASES = [(3, 10**power) for power in (3, 4, 5, 6, 7)] + [(10, 10**power) for power in (3, 4, 5, 6)]
CLASSES, CHUNK = 4, 100_000


def write(path: Path, n: int, count: int) -> np.ndarray:
    """Write matrices (N, n, n) around one center per class, chunk by chunk; return their labels (N,)."""
    rng, y = np.random.default_rng(0), np.arange(count) % CLASSES
    roots = np.eye(n) + 0.3 * rng.normal(size=(CLASSES, n, n))
    out = np.lib.format.open_memmap(path, "w+", float, (count, n, n))
    for start in range(0, count, CHUNK):
        labels = y[start : start + CHUNK]
        noise = rng.normal(size=(len(labels), n, 2 * n)) / np.sqrt(2 * n)
        factors = roots[labels] @ noise
        out[start : start + len(labels)] = factors @ factors.swapaxes(1, 2)
    out.flush()
    return y


def row(n: int, count: int) -> dict[str, Any]:
    """Measure one number of samples; times are microseconds per sample."""
    with tempfile.TemporaryDirectory() as folder:
        y = write(Path(folder) / "X.npy", n, count)
        X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        compile_at_once()
        warm = RiemannianLVQ(sigma2=1.0, step_size=0.01, max_epochs=1).fit(X[:1000], y[:1000])
        warm.predict(X[:1000])  # as many as compiled predictions need
        seconds = {}
        with watched() as found:
            began = time.perf_counter()
            model = RiemannianLVQ(sigma2=float(n), step_size=Constant(1e-4), max_epochs=1, random_state=0).fit(X, y)
            whole = time.perf_counter() - began
            seconds["epoch"] = float(model.history_["seconds"][0])
            seconds["means"] = whole - seconds["epoch"]
            began = time.perf_counter()
            right = float(np.mean(model.predict(X) == y))
            seconds["predict"] = time.perf_counter() - began
    times = {name: round(value / count * 1e6, 2) for name, value in seconds.items()}
    size = {"n": n, "N": count, "data_megabytes": round(X.nbytes / 1e6, 2)}
    return size | times | {"above_megabytes": round(found[1] - found[0], 1), "accuracy": round(right, 3)}


def main() -> None:
    """Print a line for each case, and write all figures where ``--out`` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs=2, type=int, help="measure one: n and N")
    parser.add_argument("--out", type=Path, help="JSON file to write, after each case")
    arguments = parser.parse_args()
    if arguments.case is not None:
        print(json.dumps(row(*arguments.case)))
        return
    rows: list[dict[str, Any]] = []
    if arguments.out is not None and arguments.out.is_file():
        rows = json.loads(arguments.out.read_text(encoding="utf-8"))["rows"]
    for case in CASES:
        if any((found["n"], found["N"]) == case for found in rows):
            continue
        command = [sys.executable, __file__, "--case", *map(str, case)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(rows[-1], flush=True)
        if arguments.out is not None:
            record = {"machine": machine("numpy", "rplvq"), "rows": rows}
            arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
