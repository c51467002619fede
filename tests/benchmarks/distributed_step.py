"""What a distributed step costs: seconds against samples and partitions, bytes on the wire, and what follows for more.

    python tests/benchmarks/distributed_step.py --out tests/benchmarks/results/distributed.json

Two worker processes on this machine with one BLAS thread each; medians of repeated full-batch steps on SynI-like
matrices. The model is ``seconds = a + b P + c N / W`` for P partitions, N samples and W workers: a step's latency, the
scheduler's work a partition, and the computation, which workers share.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import time

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

CASES = [(4000, 2), (8000, 2), (16000, 2), (32000, 2), (16000, 4), (16000, 8), (16000, 16), (16000, 32)]
WORKERS = 2


def measure(n_samples: int, n_partitions: int, n: int, repeats: int) -> tuple[float, int]:
    """Median seconds of a full-batch step, and the bytes that a partition returns."""
    import dask.array as da

    from rplvq import RiemannianLVQ
    from rplvq.datasets import make_syn1
    from rplvq.distributed._parts import encoded_blocks
    from rplvq.distributed._training import DistributedTrainer, share_of
    from rplvq.manifolds import AffineInvariant
    from rplvq.training import Trainer

    X, y = make_syn1(n_per_class=n_samples // 4, n=n, random_state=0)
    chunks = (-(-n_samples // n_partitions), n, n)
    _, partitions = encoded_blocks(da.from_array(X, chunks=chunks), y, None, None, AffineInvariant(), persist=True)
    trainer = Trainer(AffineInvariant(), sigma2=1.0, step_size=1.0, batch_size=None)
    few = RiemannianLVQ(max_epochs=0).fit(X[:: max(1, n_samples // 400)], y[:: max(1, n_samples // 400)])
    state = few.state_.at_epoch(1, 100)
    runner = DistributedTrainer(trainer, partitions, n_samples, float(n_samples))
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        state, *_ = runner.step(state)
        seconds.append(time.perf_counter() - began)
    shared = (trainer.manifold, trainer.cost, state, 1.0, n_samples)
    (share,) = partitions.__class__(partitions.blocks[:1], partitions.sizes[:1]).map(share_of, *shared)
    return float(np.median(seconds)), len(pickle.dumps(share))


def fit_model(rows: list[dict[str, float]]) -> tuple[float, float, float]:
    """Least squares of ``seconds = a + b P + c N / W``, none of them negative."""
    from scipy.optimize import nnls

    matrix = np.array([[1.0, row["partitions"], row["samples"] / WORKERS] for row in rows])
    seconds = np.array([row["seconds"] for row in rows])
    # Relative errors count, so that small cases tell the latency.
    solution, _ = nnls(matrix / seconds[:, None], np.ones(len(rows)))
    return tuple(float(value) for value in solution)


def main() -> None:
    """Measure, fit, write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="tests/benchmarks/results/distributed.json")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--size", type=int, default=10, help="n of the n x n matrices")
    options = parser.parse_args()
    from dask.distributed import Client, LocalCluster

    import rplvq

    rows = []
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        for n_samples, n_partitions in CASES:
            seconds, returned = measure(n_samples, n_partitions, options.size, options.repeats)
            rows.append(
                {"samples": n_samples, "partitions": n_partitions, "seconds": seconds, "bytes_returned": returned}
            )
            print(rows[-1], flush=True)
    latency, scheduling, compute = fit_model(rows)
    found = {
        "command": "python tests/benchmarks/distributed_step.py",
        "versions": {"rplvq": rplvq.__version__, "numpy": np.__version__, "python": platform.python_version()},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "n": options.size,
        "prototypes": 4,
        "workers": WORKERS,
        "rows": rows,
        "model": {"latency": latency, "a_partition": scheduling, "a_sample": compute},
    }
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    print(found["model"])


if __name__ == "__main__":
    main()
