"""One fit per metric, in turns, as multiples of the fit under the affine-invariant metric.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/metrics.py \
        --out tests/benchmarks/results/metrics.json

The data are real matrices of four classes, with one prototype per class, and for vectors the entries of the matrices.
All fits run on one BLAS thread and, with the extra ``fast``, compiled; the first turn compiles and is not counted.
Ratios are medians over the turns of the ratio of processor times in the same turn. All fits train, because sigma2 is
half the median squared distance and not chosen by trials. ``max_epochs`` is smaller than the default, for which
it scales the time of all metrics alike.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from rplvq import RiemannianLVQ
from tests.benchmarks.machine import compile_at_once, machine

METRICS = (
    "affine_invariant", "log_euclidean", "log_cholesky", "euclidean_vectors", "euclidean", "learned_log_euclidean",
    "bures_wasserstein",
)  # fmt: skip
SIZES = (2, 3, 5, 8, 10, 16, 22, 32)
LIMITS = {"log_euclidean": 1.0, "bures_wasserstein": 3.0}
"""Largest ratio that is good enough; 2 for the other metrics."""


def matrices(n: int, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return covariance matrices (N, n, n) of vectors that each class mixes in its own way, and class indices."""
    rng = np.random.default_rng(0)
    mixing = np.linalg.qr(rng.normal(size=(4, n, n)))[0] * np.exp(0.35 * rng.normal(size=(4, 1, n)))
    y = np.arange(n_samples) % 4
    vectors = mixing[y] @ rng.normal(size=(n_samples, n, 3 * n))
    return vectors @ vectors.swapaxes(1, 2) / (3 * n), y


def seconds(metric: str, X: np.ndarray, y: np.ndarray, epochs: int) -> float:
    """Processor time of one fit, which trains under every metric."""
    if metric == "euclidean_vectors":
        X = X[:, *np.triu_indices(X.shape[1])]
    model = RiemannianLVQ(metric, sigma2="half_median", max_epochs=epochs, random_state=0)
    began = time.process_time()
    model.fit(X, y)
    return time.process_time() - began


def measure(n: int, n_samples: int, epochs: int, repeats: int) -> list[dict[str, Any]]:
    """Return one row per metric for matrices of size n."""
    X, y = matrices(n, n_samples)
    times = np.array([[seconds(metric, X, y, epochs) for metric in METRICS] for _ in range(repeats + 1)][1:])
    medians, ratios = np.median(times, axis=0), np.median(times / times[:, :1], axis=0)
    return [
        {
            "metric": metric,
            "n": n,
            "milliseconds": round(1000 * float(median), 1),
            "ratio": round(float(ratio), 2),
            "met": bool(ratio <= LIMITS.get(metric, 2.0)),
        }
        for metric, median, ratio in zip(METRICS, medians, ratios, strict=True)
    ]


def main() -> None:
    """Print a table, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=240, help="number of matrices")
    parser.add_argument("--epochs", type=int, default=30, help="max_epochs of each fit")
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="sizes n of the matrices")
    parser.add_argument("--out", type=Path, help="file to write")
    arguments = parser.parse_args()
    compile_at_once()
    rows: list[dict[str, Any]] = []
    for n in arguments.sizes:
        rows += measure(n, arguments.samples, arguments.epochs, arguments.repeats)
        for row in rows[-len(METRICS) :]:
            print(*row.values(), sep="\t", flush=True)
    settings = {"samples": arguments.samples, "epochs": arguments.epochs, "prototypes": 4}
    if arguments.out:
        record = {"machine": machine("numpy", "scipy", "numba"), "settings": settings, "cases": rows}
        arguments.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
