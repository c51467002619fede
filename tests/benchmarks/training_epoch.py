"""One training epoch of the affine-invariant manifold, sample by sample, against LAPACK alone.

    OMP_NUM_THREADS=1 python tests/benchmarks/training_epoch.py

The bound is numpy's batched eigh on as many matrices as the epoch decomposes (one for each sample and
prototype). Both are run in turn, and medians of the pairwise ratios are printed. Set one BLAS thread. With the
extra ``fast`` installed the compiled steps are measured too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from rplvq import AffineInvariant, ClassMeans, Trainer

SIZES = [(10, 4), (22, 4), (10, 12), (5, 48), (3, 12)]


def wishart(n_samples: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Sample covariances of shape (n_samples, n, n) from 3 n Gaussian vectors each."""
    vectors = rng.normal(size=(n_samples, n, 3 * n))
    return vectors @ vectors.swapaxes(1, 2) / (3 * n)


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def ratio(n: int, n_prototypes: int, n_samples: int, repeats: int, compiled: bool) -> tuple[float, float, float]:
    """Median microseconds a pair of the epoch and of eigh, and the median of their ratios."""
    rng = np.random.default_rng(0)
    matrices = wishart(n_samples, n, rng)
    targets = np.arange(n_samples) % 4
    trainer = Trainer(
        AffineInvariant(), initializer=ClassMeans(n_prototypes // 4), sigma2=n / 4, max_epochs=100, compiled=compiled
    )
    state = trainer.init(matrices, targets, 4, rng).at_epoch(1, 100)
    stack = np.repeat(matrices, n_prototypes, axis=0)
    pairs = [
        (seconds(lambda: trainer.sweep(state, matrices, targets, rng)), seconds(lambda: np.linalg.eigh(stack)))
        for _ in range(repeats + 1)
    ][1:]
    epoch, bound = np.array(pairs).T
    per_pair = 1e6 / len(stack)
    return float(np.median(epoch)) * per_pair, float(np.median(bound)) * per_pair, float(np.median(epoch / bound))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=400, help="matrices in an epoch")
    parser.add_argument("--repeats", type=int, default=15, help="pairs of runs")
    arguments = parser.parse_args()
    print(f"{'steps':>9} {'n':>4} {'K':>4} {'epoch, us a pair':>18} {'eigh, us a pair':>18} {'ratio':>7}")
    for compiled in [False, True] if find_spec("numba") else [False]:
        for n, n_prototypes in SIZES:
            epoch, bound, quotient = ratio(n, n_prototypes, arguments.samples, arguments.repeats, compiled)
            name = "compiled" if compiled else "plain"
            print(f"{name:>9} {n:>4} {n_prototypes:>4} {epoch:>18.2f} {bound:>18.2f} {quotient:>7.2f}")


if __name__ == "__main__":
    main()
