"""Seconds of a distributed fit beside those of a local one, in pairs, and the phases of which they consist.

    OMP_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/distributed_fit.py --out tests/benchmarks/results/fits.json

SynII under the default settings, and worker processes with one thread each. A first pair compiles and does not count.
Then a line per phase has wall seconds, and CPU seconds of the caller and of all workers. "path_ratio" compares the CPU
seconds of the caller and of the worker with most of them with those of the local fit: what is left if other programs
delay nothing.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from dask.distributed import Client, LocalCluster, default_client

from rplvq import RiemannianLVQ
from rplvq.datasets import make_syn2, random_bases
from rplvq.distributed import DistributedLVQ, _estimator
from rplvq.estimators import _classifier, _fitting
from tests.benchmarks.machine import machine

Times = dict[str, list[float]]
PHASES = {
    "encode on the workers": [(_estimator, "encoded_blocks")],
    "join to parts": [(_estimator, "parts_of_blocks")],
    "collect the sample": [(_estimator, "_placed")],
    "class means": [(_estimator, "first_prototypes"), (_fitting.Trainer, "first_prototypes")],
    "evidence": [(_fitting, "initial_evidence")],
    "choice": [(_fitting, "choose")],
    "a round or epoch": [(_estimator.DistributedTrainer, "sweep"), (_fitting.Trainer, "sweep")],
    "store": [(_estimator, "store"), (_classifier, "store")],
}
"""The functions of each phase. Times of phases inside one another are counted in the outermost only."""


def clocks() -> Iterator[float]:
    """Yield wall seconds, CPU seconds of this process, and of each worker."""
    yield time.perf_counter()
    yield time.process_time()
    yield from default_client().run(time.process_time).values()


@contextmanager
def timed(times: Times) -> Iterator[None]:
    """Add the seconds of each phase while the block runs."""
    inside: list[str] = []
    originals = [(owner, name, getattr(owner, name)) for places in PHASES.values() for owner, name in places]

    def wrapped(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **settings: Any) -> Any:
            if inside:
                return function(*arguments, **settings)
            inside.append(phase)
            began = np.array(list(clocks()))
            try:
                return function(*arguments, **settings)
            finally:
                times.setdefault(phase, []).append(np.array(list(clocks())) - began)
                inside.pop()

        return call

    for phase, places in PHASES.items():
        for owner, name in places:
            setattr(owner, name, wrapped(phase, getattr(owner, name)))
    try:
        yield
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)


def show(title: str, whole: np.ndarray, times: Times) -> None:
    """Print a table of phases: count, wall, CPU of the caller and of each worker."""
    print(title)
    rows = {phase: (len(each), np.sum(each, axis=0)) for phase, each in times.items()}
    rows["rest"] = (1, whole - sum(total for _, total in rows.values()))
    rows["all"] = (1, whole)
    for phase, (count, total) in rows.items():
        print(
            f"  {phase:<24} {count:>3} x  wall {total[0]:6.2f}  caller {total[1]:6.2f}  workers "
            + " ".join(f"{value:6.2f}" for value in total[2:]),
            flush=True,
        )


def fitted(model: Any, X: np.ndarray, y: np.ndarray, times: Times | None) -> tuple[np.ndarray, Any]:
    """Return the clocks that a fit took, and its classifier; with ``times`` those of the phases, too."""
    began = np.array(list(clocks()))
    with nullcontext() if times is None else timed(times):
        model = model.fit(X, y)
    return np.array(list(clocks())) - began, getattr(model, "estimator_", model)


def compared(count: int, repeats: int) -> dict[str, Any]:
    """Compare the fits of so many samples, and print all."""
    bases = random_bases(10, n_bases=1, random_state=0)
    X, y = make_syn2(count // 4, bases=bases, random_state=1)
    test = make_syn2(5_000, bases=bases, random_state=2)
    models = {"local": RiemannianLVQ(random_state=0), "distributed": DistributedLVQ(RiemannianLVQ(random_state=0))}
    pairs = []
    for _ in range(repeats + 1):
        pairs.append([fitted(model, X, y, None)[0] for model in models.values()])
        (local, _, *_), (there, _, *_) = pairs[-1]
        print(f"local {local:.2f} s, distributed {there:.2f} s, ratio {there / local:.2f}", flush=True)
    local, there = np.array(pairs[1:]).transpose(1, 0, 2)  # the first pair compiles
    ratios, path = there[:, 0] / local[:, 0], there[:, 1] + there[:, 2:].max(axis=1)
    result: dict[str, Any] = {"N": count, "local": float(np.median(local[:, 0]))}
    result |= {"distributed": float(np.median(there[:, 0])), "ratio": float(np.median(ratios))}
    result |= {"least": float(ratios.min()), "most": float(ratios.max()), "load": round(os.getloadavg()[0], 1)}
    result["path_ratio"] = float(np.median(path / local[:, 1]))
    cpu = local[:, 1], there[:, 1], there[:, 2:].sum(axis=1)
    result |= dict(zip(("cpu_local", "cpu_caller", "cpu_workers"), map(float, np.min(cpu, axis=1)), strict=True))
    for name, model in models.items():
        times: Times = {}
        whole, classifier = fitted(model, X, y, times)
        show(f"{name}, N = {count}", whole, times)
        result[f"accuracy_{name}"] = float(classifier.score(*test))
    print(result, flush=True)
    return result


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        rows = [compared(count, options.repeats) for count in options.samples]
    if options.out is not None:
        record = {"machine": machine("numpy", "numba", "dask", "rplvq"), "workers": options.workers, "rows": rows}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
