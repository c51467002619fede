"""Prediction of 1000 matrices against pyRiemann, scikit-learn and LAPACK alone.

    OMP_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/predict.py --out tests/benchmarks/results/predict.json

The same prototypes for everybody, SynI (n = 10), the EEG data (n = 22) and small random matrices (n = 2, 3, 5 and 8),
all run in turn on one BLAS thread, each call several times per turn; the ratios are medians over the turns of the
other's processor time to ours, and labels are compared.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pyriemann.classification import MDM
from sklearn.neighbors import NearestCentroid

from examples.paper.data import find, unpack_symmetric
from rplvq import RiemannianLVQ
from rplvq.arrays import logm
from rplvq.datasets import make_syn1
from tests.benchmarks.machine import compile_at_once, machine

PACKAGES = ("numpy", "scipy", "scikit-learn", "pyriemann", "numba")
SMALL = (2, 3, 5, 8)


def problems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Matrices and labels of both data sets."""
    data = np.load(find("bci2a_cov22.npz"), allow_pickle=False)
    eeg = np.concatenate([unpack_symmetric(data[f"s{k}_cov"].astype(float), 22) for k in (1, 2)])
    return {"SynI": make_syn1(500, random_state=0), "EEG": (eeg, np.concatenate([data["s1_y"], data["s2_y"]]))}


def small(n: int) -> tuple[np.ndarray, np.ndarray]:
    """1000 matrices n x n of four classes that differ in their scales."""
    rng = np.random.default_rng(n)
    y = np.arange(1000) % 4
    vectors = rng.normal(size=(1000, n, 3 * n)) * (1 + 0.5 * rng.random((4, n)))[y][..., None]
    return vectors @ vectors.swapaxes(1, 2) / (3 * n), y


TURN = 0.02
"""Seconds for which a call is repeated in a turn, so that short calls are not measured with empty caches."""


def seconds(call: Callable[[], object]) -> float:
    """Processor time of one call, the mean over a turn."""
    began, count = time.process_time(), 0
    while count == 0 or time.process_time() - began < TURN:
        call()
        count += 1
    return (time.process_time() - began) / count


def in_turn(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, Any]:
    """Median seconds of each call, and median ratios of its time to the first's."""
    times = np.array([[seconds(call) for call in calls.values()] for _ in range(repeats + 1)][1:])
    medians, ratios = np.median(times, axis=0), np.median(times / times[:, :1], axis=0)
    named = {name: round(float(value), 5) for name, value in zip(calls, medians, strict=True)}
    return {"seconds": named, "ratios": {k: round(float(r), 2) for k, r in zip(calls, ratios, strict=True)}}


def mdm(metric: str, prototypes: np.ndarray) -> MDM:
    """pyRiemann's classifier with these prototypes as its means."""
    model = MDM(metric=metric)
    model.fit(prototypes, np.arange(len(prototypes)))
    model.covmeans_ = prototypes
    return model


def case(X: np.ndarray, y: np.ndarray, metric: str, n_prototypes: int, repeats: int) -> dict[str, Any]:
    """One row: our predict, the others', and LAPACK's time."""
    model = RiemannianLVQ(
        metric, prototypes_per_class=n_prototypes // 4, init="kmeans", max_epochs=2, random_state=0
    ).fit(X, y)
    prototypes = model.prototypes_
    samples = X[np.random.default_rng(0).permutation(len(X))[:1000]]
    other = mdm("riemann" if metric == "affine_invariant" else "logeuclid", prototypes)
    calls: dict[str, Callable[[], object]] = {
        "rplvq": lambda: model.predict(samples),
        "pyriemann": lambda: other.predict(samples),
    }
    if metric == "affine_invariant":
        calls["eigvalsh of every pair"] = lambda: [np.linalg.eigvalsh(samples) for _ in prototypes]
    else:
        centroids = NearestCentroid().fit(logm(prototypes).reshape(n_prototypes, -1), np.arange(n_prototypes))
        calls["NearestCentroid on log-vectors"] = lambda: centroids.predict(logm(samples).reshape(len(samples), -1))
        calls["eigh of every sample"] = lambda: np.linalg.eigh(samples)
    same = np.mean(model.prototype_labels_[other.predict(samples)] == model.predict(samples))
    return {"metric": metric, "n": X.shape[-1], "K": n_prototypes, "same_labels": float(same)} | in_turn(calls, repeats)


def main() -> None:
    """Print a line for each case, and write all figures where ``--out`` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="turns")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    compile_at_once()
    rows = []
    for name, (X, y) in problems().items():
        for metric in ("affine_invariant", "log_euclidean"):
            for n_prototypes in (4, 12, 40):
                row = {"data": name} | case(X, y, metric, n_prototypes, arguments.repeats)
                print(row, flush=True)
                rows.append(row)
    for n in SMALL:
        row = {"data": "random"} | case(*small(n), "log_euclidean", 4, arguments.repeats)
        print(row, flush=True)
        rows.append(row)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"machine": machine(*PACKAGES), "cases": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
