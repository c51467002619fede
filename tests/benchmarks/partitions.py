"""Test accuracy of one process, and of distributed fits in 4 and in 16 partitions, over five seeds.

    OMP_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/partitions.py --out tests/benchmarks/results/partitions.json

The small data sets are joined to one part. "SynII, 400,000" has as many parts as partitions. Rows that the file holds
already are kept. The seed deals the samples into training and test, and is that of the fit.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

from rplvq import RiemannianLVQ
from rplvq.datasets import load_digits_covariances, make_syn2, random_bases
from rplvq.distributed import DistributedLVQ
from tests.benchmarks.machine import machine
from tests.benchmarks.training_epoch import eth80

PARTITIONS, SEEDS = (4, 16), range(5)
SYN2 = {"SynII, 20,000": 20_000, "SynII, 400,000": 400_000}
NAMES = ("digits", "ETH-80", *SYN2)


def problem(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return matrices and labels that train, and those that test."""
    if name in SYN2:
        bases = random_bases(10, n_bases=1, random_state=0)
        train = make_syn2(SYN2[name] // 4, bases=bases, random_state=2 * seed + 1)
        return (*train, *make_syn2(5_000, bases=bases, random_state=2 * seed + 2))
    if name == "digits":
        X, y = load_digits_covariances()
    else:
        X, y = eth80()
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[: 2 * len(X) // 3], order[2 * len(X) // 3 :]
    return X[train], y[train], X[test], y[test]


def row(name: str, seed: int) -> dict[str, Any]:
    """Return the accuracies of one data set and seed."""
    X, y, test, labels = problem(name, seed)
    result: dict[str, Any] = {"data": name, "seed": seed}
    if len(X) <= 20_000:
        result["one process"] = RiemannianLVQ(random_state=seed).fit(X, y).score(test, labels)
    for count in PARTITIONS:
        blocks = da.from_array(X, chunks=(-(-len(X) // count), *X.shape[1:]), name=False)
        model = DistributedLVQ(RiemannianLVQ(random_state=seed)).fit(blocks, y)
        result[str(count)] = model.estimator_.score(test, labels)
    return result


def main() -> None:
    """Print a line for each data set and seed, and write all where ``--out`` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write, after each row")
    out = parser.parse_args().out
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"] if out.is_file() else []
    with dask.config.set(scheduler="synchronous"):
        for name in NAMES:
            for seed in SEEDS:
                if any((one["data"], one["seed"]) == (name, seed) for one in rows):
                    continue
                rows.append(row(name, seed))
                print(rows[-1], flush=True)
                record = {"machine": machine("numpy", "rplvq", "numba"), "rows": rows}
                out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
