"""Memory above the data: fit, predict, transform, means and re-centring of many matrices, in memory and on disk.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/memory.py \
        --out tests/benchmarks/results/memory.json

Each case is a process of its own, on Linux: it makes the data, does the same on few of them first, so that libraries
are loaded and kernels compiled, and then watches its anonymous memory 500 times a second while it works (pages of a
mapped file don't count: the system can drop them).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rplvq import AffineInvariant, Recenter, RiemannianLVQ
from rplvq.manifolds import riemannian_mean
from tests.benchmarks.machine import machine
from tests.benchmarks.predict import PACKAGES

KEYS = ("data", "call", "metric", "mapped")
WARM = 500
PER_CLASS, CLASSES = 3, 4  # twelve prototypes
SETS = {
    "real 3 x 3": (1_000_000, 3, False),
    "Hermitian 3 x 3": (1_000_000, 3, True),
    "real 22 x 22": (20_000, 22, False),
}


def matrices(n_samples: int, n: int, is_complex: bool) -> tuple[np.ndarray, np.ndarray]:
    """Wishart matrices around four centers, and their labels; made in parts, to leave little memory behind."""
    rng = np.random.default_rng(0)
    labels = np.arange(n_samples) % CLASSES
    result = np.empty((n_samples, n, n), dtype=complex if is_complex else float)
    scales = np.exp(0.5 * rng.normal(size=(CLASSES, n, 1)))
    for rows in np.array_split(np.arange(n_samples), max(1, n_samples * n * n // 200_000)):
        roots = scales[labels[rows]] * rng.normal(size=(len(rows), n, 2 * n))
        roots = roots + 1j * rng.normal(size=roots.shape) if is_complex else roots
        result[rows] = roots @ roots.conj().swapaxes(1, 2) / (2 * n)
        result[rows] = 0.5 * (result[rows] + result[rows].conj().swapaxes(1, 2))
    return result, labels


def work(name: str, metric: str, X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray, np.ndarray], object]:
    """The call whose memory is measured, as a function of the data; what must come before it is done here."""
    few = RiemannianLVQ(metric, prototypes_per_class=PER_CLASS, max_epochs=2, random_state=0)
    if name == "fit":
        return lambda X, y: few.fit(X, y)
    if name == "mean":
        manifold = AffineInvariant()
        return lambda X, y: riemannian_mean(manifold, X, max_iter=3)
    if name == "Recenter":
        return lambda X, y: Recenter(max_iter=3).fit(X).transform(X)
    few.fit(X[:WARM], y[:WARM])
    return lambda X, y: getattr(few, name)(X)


def anonymous() -> float:
    """Resident anonymous memory in MB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1000


@contextmanager
def watched() -> Iterator[list[float]]:
    """Collects the memory before, the peak within, and the seconds."""
    found, done = [anonymous(), 0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            found[1] = max(found[1], anonymous())

    watcher, began = threading.Thread(target=watch), time.perf_counter()
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()
        found[1] = max(found[1], anonymous())
        found.append(time.perf_counter() - began)


def measure(data: str, name: str, metric: str, mapped: bool) -> dict[str, Any]:
    """One row: what one call needs beside the data."""
    X, y = matrices(*SETS[data])
    size = X.nbytes / 1e6
    with tempfile.TemporaryDirectory() as folder:
        if mapped:
            np.save(Path(folder) / "X.npy", X)
            X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        call = work(name, metric, X, y)
        call(X[:WARM], y[:WARM])
        with watched() as found:
            result = call(X, y)
    out = result.nbytes / 1e6 if isinstance(result, np.ndarray) else 0.0
    row = {"data": data, "N": len(X), "call": name, "metric": metric, "mapped": mapped, "data_megabytes": size}
    above = {"result_megabytes": out, "above_megabytes": found[1] - found[0], "seconds": found[2]}
    return row | {key: round(value, 1) for key, value in above.items()}


def cases() -> list[tuple[str, str, str, bool]]:
    """Data, call, metric, whether the data are a mapped file."""
    calls = ["predict", "predict_proba", "transform", "mean", "Recenter", "fit"]
    rows = [(data, call, "affine_invariant", True) for call in calls for data in SETS]
    rows += [(data, call, "log_euclidean", True) for data in SETS for call in ("predict", "fit")]
    return rows + [("real 3 x 3", call, "affine_invariant", False) for call in calls]


def main() -> None:
    """Print a line for each case, and write all figures where ``--out`` says; cases that the file holds are kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs=4, help="measure one: data, call, metric, 1 or 0 for a mapped file")
    parser.add_argument("--out", type=Path, help="JSON file to write, after each case")
    arguments = parser.parse_args()
    if arguments.case is not None:
        *names, mapped = arguments.case
        print(json.dumps(measure(*names, mapped == "1")))
        return
    known = json.loads(arguments.out.read_text())["cases"] if arguments.out and arguments.out.exists() else []
    rows = []
    for case in cases():
        row = next((row for row in known if tuple(row[key] for key in KEYS) == case), None)
        rows.append(row or measured_alone(*case))
        print(rows[-1], flush=True)
        if arguments.out:
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps({"machine": machine(*PACKAGES), "cases": rows}, indent=2) + "\n")


def measured_alone(data: str, name: str, metric: str, mapped: bool) -> dict[str, Any]:
    """One row, from a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), "--case", data, name, metric, str(int(mapped))]
    row: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return row


if __name__ == "__main__":
    main()
