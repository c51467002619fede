"""One training epoch of the affine-invariant manifold against LAPACK alone, and against a loop over pymanopt.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/training_epoch.py \
        --out tests/benchmarks/results/training.json

The bound is numpy's batched eigh of what an epoch decomposes: each sample, whitened by each prototype. All are run in
turn on one BLAS thread; ratios are medians over the turns. Steps by single samples (batch 1) and mini-batches of 16,
plain and, with the extra ``fast``, compiled, the batches on one thread and on two. The pymanopt loop takes the same
steps by its dist, log and exp, for a tenth of the samples. Rows whose data are absent are left out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from pymanopt.manifolds import SymmetricPositiveDefinite

from examples.paper.data import find, is_available, unpack_symmetric
from rplvq import RSLVQ, AffineInvariant, ClassMeans, Trainer
from rplvq.arrays import Samples
from rplvq.datasets import make_syn1
from rplvq.manifolds import inverse_factors
from rplvq.manifolds._affine_invariant import whiten
from tests.benchmarks.machine import machine

Data = tuple[np.ndarray, np.ndarray]
Calls = dict[tuple[str, int, int], Callable[[], object]]


def eeg() -> Data:
    """Trials of one subject, n = 22."""
    data = np.load(find("bci2a_cov22.npz"), allow_pickle=False)
    return unpack_symmetric(data["s1_cov"].astype(float), 22), data["s1_y"] - 1


def eth80() -> Data:
    """Images of eight objects, n = 5."""
    data = np.load(find("eth80_cov5.npz"), allow_pickle=False)
    return data["full256"], np.unique(data["y"], return_inverse=True)[1]


def tensors() -> Data:
    """Tensors as of diffusion, n = 3."""
    vectors = np.random.default_rng(0).normal(size=(2000, 3, 9))
    return vectors @ vectors.swapaxes(1, 2) / 9, np.arange(2000) % 4


def syn1() -> Data:
    """The paper's first synthetic data, n = 10."""
    X, y = make_syn1(500, random_state=0)
    return X, np.unique(y, return_inverse=True)[1]


CASES: list[tuple[str, Callable[[], Data], str | None, int]] = [
    ("SynI", syn1, None, 4),
    ("SynI", syn1, None, 12),
    ("EEG", eeg, "bci2a_cov22.npz", 4),
    ("ETH-80", eth80, "eth80_cov5.npz", 48),
    ("3 x 3 tensors", tensors, None, 12),
]
LOOP = 10
"""The loop over pymanopt sees one sample in so many."""
TARGETS = [
    ("EEG", 4, "plain", 1, 1, 1.5),
    ("SynI", 4, "compiled", 1, 1, 1.25),
    ("EEG", 4, "compiled", 1, 1, 1.25),
    ("SynI", 12, "compiled", 1, 1, 0.8),
    ("ETH-80", 48, "compiled", 1, 1, 0.6),
    ("3 x 3 tensors", 12, "compiled", 1, 1, 0.6),
    ("EEG", 4, "compiled", 16, 2, 0.65),
]
"""Data, prototypes, steps, samples a batch, threads, and the largest ratio that is good enough."""


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def pymanopt_epoch(X: np.ndarray, y: np.ndarray, prototypes: np.ndarray, labels: np.ndarray, sigma2: float) -> None:
    """Step through the samples with pymanopt's dist, log and exp, pair by pair."""
    manifold, cost, step = SymmetricPositiveDefinite(X.shape[1]), RSLVQ(), 0.1
    prototypes = list(prototypes)
    for sample, target in zip(X, y, strict=True):
        sqdist = np.array([[manifold.dist(w, sample) ** 2 for w in prototypes]])
        slope = cost(sqdist, np.array([target]), labels, sigma2).slope[0]
        prototypes = [
            manifold.exp(w, 2 * step * weight * manifold.log(w, sample))
            for w, weight in zip(prototypes, slope, strict=True)
        ]


def epochs(X: np.ndarray, y: np.ndarray, n_prototypes: int) -> tuple[Calls, np.ndarray]:
    """Ways to train for an epoch, by name, samples a batch and threads; and the prototypes where all begin."""
    n_classes, sigma2 = int(y.max()) + 1, X.shape[1] / 4
    rng = np.random.default_rng(0)
    start = Trainer(AffineInvariant(), initializer=ClassMeans(n_prototypes // n_classes), sigma2=sigma2)
    samples = Samples(X, y)
    state = start.init(samples, n_classes, rng).at_epoch(1, 100)

    def sweep(compiled: bool, size: int, threads: int) -> Callable[[], object]:
        trainer = Trainer(AffineInvariant(compiled=compiled), sigma2=sigma2, batch_size=size, n_jobs=threads)
        return lambda: trainer.sweep(state, samples, np.random.default_rng(0))

    known = {"plain": False} | ({"compiled": True} if find_spec("numba") else {})
    ways: Calls = {
        (name, size, threads): sweep(compiled, size, threads)
        for name, compiled in known.items()
        for size, threads in ((1, 1), (16, 1), (16, 2))
    }
    matrices, few = np.asarray(state.prototypes), len(X) // LOOP
    if (X.shape[1], n_prototypes) == (10, 4):
        ways["pymanopt", 1, 1] = lambda: pymanopt_epoch(X[:few], y[:few], matrices, state.labels, sigma2)
    return ways, matrices


def measure(
    name: str, load: Callable[[], Data], n_prototypes: int, n_samples: int, repeats: int
) -> list[dict[str, Any]]:
    """Rows of one case."""
    X, y = load()
    order = np.random.default_rng(0).permutation(len(X))[:n_samples]
    X, y = X[order], y[order]
    ways, prototypes = epochs(X, y, n_prototypes)
    stack = whiten(inverse_factors(prototypes), X).reshape(-1, *X.shape[1:])
    calls: Calls = {("eigh", 0, 0): lambda: np.linalg.eigh(stack), **ways}
    times = np.array([[seconds(call) for call in calls.values()] for _ in range(repeats + 1)][1:])
    times = times * np.array([LOOP if steps == "pymanopt" else 1 for steps, _, _ in calls])
    medians, ratios = 1e6 * np.median(times, axis=0) / len(stack), np.median(times / times[:, :1], axis=0)
    return [
        {
            "steps": steps,
            "data": name,
            "n": X.shape[1],
            "K": n_prototypes,
            "batch": size,
            "threads": threads,
            "microseconds_a_pair": round(float(microseconds), 3),
            "eigh": round(float(medians[0]), 3),
            "ratio": round(float(ratio), 3),
        }
        for (steps, size, threads), microseconds, ratio in zip(calls, medians, ratios, strict=True)
        if steps != "eigh"
    ]


def targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tell which targets were met; against pymanopt both ways of ours must be 8 times faster."""
    ratio = {(r["data"], r["K"], r["steps"], r["batch"], r["threads"]): r["ratio"] for r in rows}
    met = [
        {"case": list(case), "wanted": wanted, "found": ratio[case], "met": ratio[case] <= wanted}
        for *key, wanted in TARGETS
        if (case := tuple(key)) in ratio
    ]
    loop = ratio["SynI", 4, "pymanopt", 1, 1]
    for steps in ("plain", "compiled"):
        own = ratio.get(("SynI", 4, steps, 1, 1))
        if own:
            found = round(loop / own, 1)
            met.append({"case": ["SynI", 4, f"pymanopt over {steps}"], "wanted": 8, "found": found, "met": found >= 8})
    return met


def main() -> None:
    """Print a table, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=320, help="matrices in an epoch")
    parser.add_argument("--repeats", type=int, default=9, help="turns")
    parser.add_argument("--out", type=Path, help="file to write")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, load, file, n_prototypes in CASES:
        if file is None or is_available(file):
            rows += measure(name, load, n_prototypes, arguments.samples, arguments.repeats)
    record = {"machine": machine("numpy", "scipy", "numba", "pymanopt"), "cases": rows, "targets": targets(rows)}
    for row in [*rows, *record["targets"]]:
        print(*row.values(), sep="\t")
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
