"""What a round of local epochs costs against samples, size of matrices, prototypes, parts and workers; bytes as well.

    OMP_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/distributed_round.py \
        --out tests/benchmarks/results/distributed.json

Worker processes on this machine make the samples themselves, so none is in this process. Of repeated rounds the
fastest counts. "path" is the CPU time of this process and of the worker with most of it, which is what a round takes on
a machine with a free core for each. The model is ``path = a + b P + N / W (c + K (d n^2 + e n^3))`` for N samples, P
parts and W workers, and for the class means ``path = a + b P + N / W (c + d n^2 + e n^3)``, fitted to relative errors.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import dask
import numpy as np
from dask.distributed import Client, LocalCluster
from scipy.optimize import nnls

from rplvq.arrays import Samples
from rplvq.distributed._partitions import partitions_of
from rplvq.distributed._training import DistributedTrainer, means_of, swept
from rplvq.manifolds import AffineInvariant
from rplvq.schedules import Constant
from rplvq.training import Decision, Trainer
from tests.benchmarks.machine import machine

CASES = [
    (10_000, 10, 4, 4), (100_000, 10, 4, 4), (1_000_000, 10, 4, 16), (10_000, 3, 4, 4), (100_000, 3, 4, 4),
    (1_000_000, 3, 4, 16), (100_000, 3, 4, 64), (100_000, 3, 16, 4), (20_000, 10, 16, 4), (20_000, 22, 4, 4),
]  # fmt: skip
"""Numbers N of samples, n of rows of a matrix, K of prototypes, and P of parts."""
WORKERS = (1, 2)


def made(count: int, n: int, seed: int) -> Samples:
    """Make the samples of one part, on a worker."""
    roots = np.eye(n) + 0.3 * np.random.default_rng(0).normal(size=(4, n, n))
    y = np.arange(count) % 4
    factors = roots[y] @ np.random.default_rng(seed).normal(size=(count, n, 2 * n))
    return Samples(AffineInvariant().encode(factors @ factors.swapaxes(1, 2) / (2 * n)), y)


def fastest(client: Client, call: Callable[[], Any], repeats: int) -> tuple[dict[str, float], Any]:
    """Return the wall seconds and the path of the fastest of several calls, and the last result."""
    rows = []
    for _ in range(repeats):
        before = client.run(time.process_time)
        own, began = time.process_time(), time.perf_counter()
        result = call()
        seconds, own = time.perf_counter() - began, time.process_time() - own
        path = own + max(value - before[name] for name, value in client.run(time.process_time).items())
        rows.append((seconds, path))
    wall, path = np.min(rows, axis=0)
    return {"seconds": round(float(wall), 4), "path": round(float(path), 4)}, result


def row(client: Client, case: tuple[int, int, int, int], repeats: int) -> dict[str, Any]:
    """Measure rounds and class means of one case."""
    n_samples, n, n_prototypes, n_parts = case
    make = dask.delayed(made, pure=False)
    partitions = partitions_of([make(n_samples // n_parts, n, 1 + p) for p in range(n_parts)], persist=True)
    trainer = Trainer(AffineInvariant(), sigma2=float(n), step_size=Constant(1e-4), batch_size=1)
    means, parts = fastest(client, lambda: partitions.map(means_of, trainer.manifold, 4), 2)
    first = np.repeat(parts[0][0], n_prototypes // 4, axis=0)
    few = Samples(first, np.repeat(np.arange(4), n_prototypes // 4))
    state = trainer.start(first, few.targets, few, 4).at_epoch(1, 100)
    decision = Decision(n_samples * 100, is_compiled=True)
    runner = DistributedTrainer(trainer, partitions, n_samples, float(n_samples), decision=decision)
    runner.local_epoch(state, np.random.default_rng(0))  # everything is compiled
    epoch, _ = fastest(client, lambda: runner.local_epoch(state, np.random.default_rng(0)), repeats)
    down = swept, trainer, state, decision, (0, 1)
    up = swept(made(40, n, 0), trainer, state, decision, (0, 1), np.random.default_rng(0))
    size = {"N": n_samples, "n": n, "K": n_prototypes, "parts": n_parts, "workers": len(client.nthreads())}
    return size | epoch | {"means": means["path"], "down": len(pickle.dumps(down)), "up": len(pickle.dumps(up))}


def fitted(rows: list[dict[str, Any]], name: str) -> list[float]:
    """Fit the five terms of the model to a column, none of them negative."""
    terms = []
    for one in rows:
        each, count = one["N"] / one["workers"], one["K"] if name == "path" else 1
        terms.append([1, one["parts"], each, each * count * one["n"] ** 2, each * count * one["n"] ** 3])
    seconds = np.array([one[name] for one in rows])
    solution, _ = nnls(np.array(terms) / seconds[:, None], np.ones(len(rows)))
    return [float(value) for value in solution]


def main() -> None:
    """Measure, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most", type=int, default=10**6, help="leave out cases of more samples")
    options = parser.parse_args()
    rows = []
    for count in WORKERS:
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            for case in CASES:
                if case[0] <= options.most:
                    rows.append(row(client, case, options.repeats))
                    print(rows[-1], flush=True)
    models = {name: fitted(rows, name) for name in ("path", "means")}
    print(models)
    if options.out is not None:
        where = machine("numpy", "numba", "dask", "rplvq")
        record = {"machine": where, "rows": rows, "models": models}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
