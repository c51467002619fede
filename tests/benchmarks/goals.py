"""The goals of speed, each beside its figure, measured in pairs in one run.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/goals.py \
        --out tests/benchmarks/results/goals.json

Both sides of a ratio take turns, and the median of the ratios counts. Fits, steps and predictions of one thread are
measured in processor time, which other processes of the machine change less than wall time. The other benchmarks say
how their parts work: this one takes fewer turns of each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pyriemann.tangentspace import TangentSpace
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import threadpool_limits

from rplvq import RiemannianLVQ
from rplvq.datasets import load_digits_covariances, make_syn2
from tests.benchmarks import cold_start, metrics, predict, threads, training_epoch
from tests.benchmarks.machine import compile_at_once, machine

FITTED = 300
"""Number of samples of the fits with default settings."""
MANY = 20_000
"""Number of samples of the largest fit."""
SIZES = (2, 3, 5, 8, 10, 16, 22, 32)
REGIONS = (116, 200)
"""Numbers of brain regions of the fits of few large matrices."""
FEW = 80
"""Number of samples of these fits."""
LARGE_METRICS = ("affine_invariant", "tangent", "whitened_tangent", "log_euclidean", "log_cholesky", "wasserstein",
                 "euclidean")  # fmt: skip


class Row(NamedTuple):
    """One goal: what is compared with what, the figure, its limit, and whether the limit is met."""

    topic: str
    what: str
    unit: str
    figure: float
    limit: float
    at_most: bool = True

    def record(self) -> dict[str, Any]:
        """Return the row as it is written."""
        met = self.figure <= self.limit if self.at_most else self.figure >= self.limit
        return self._asdict() | {"figure": round(self.figure, 3), "met": bool(met)}


def seconds(call: Callable[[], object]) -> float:
    """Processor time of one call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def ratio(call: Callable[[], object], other: Callable[[], object], repeats: int) -> float:
    """Return the median ratio of the times of two calls, after one call of each that does not count.

    Both have one BLAS thread: processor time would count idle threads of the one call, which wait busily, in the other.
    """
    with threadpool_limits(1, "blas"):
        pairs = np.array([[seconds(call), seconds(other)] for _ in range(repeats + 1)][1:])
    return float(np.median(pairs[:, 0] / pairs[:, 1]))


def some(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return as many samples as the fits take."""
    rows = np.random.default_rng(0).permutation(len(X))[:FITTED]
    return X[rows], y[rows]


def tangent_space() -> Pipeline:
    """Return the baseline of the fits: logistic regression in the tangent space."""
    return make_pipeline(TangentSpace(), LogisticRegression(max_iter=1000))


def default_fits(repeats: int, limit: float = 3.0, note: str = "") -> Iterator[Row]:
    """Compare the fit with default settings with logistic regression in the tangent space."""
    problems = {"SynI, n = 10": training_epoch.syn1, "EEG, n = 22": training_epoch.eeg}
    problems |= {"ETH-80, n = 5": training_epoch.eth80, "random, n = 3": lambda: metrics.matrices(3, FITTED)}
    for name, load in problems.items():
        X, y = some(*load())
        tangent = tangent_space()
        found = ratio(
            lambda: RiemannianLVQ(random_state=0).fit(X, y),  # noqa: B023
            lambda: tangent.fit(X, y),  # noqa: B023
            repeats,
        )
        yield Row("default fit", f"{name}{note}, over tangent space and logistic regression", "times", found, limit)


def large_fit(repeats: int) -> Iterator[Row]:
    """Compare the fit of 20,000 samples with logistic regression in the tangent space, in time and in accuracy."""
    X, y = make_syn2(n_per_class=(MANY + MANY // 4) // 4, random_state=0)
    rows = np.random.default_rng(0).permutation(len(X))
    train = rows[:MANY]
    test = rows[MANY:]
    model = RiemannianLVQ(random_state=0)
    tangent = tangent_space()
    found = ratio(lambda: model.fit(X[train], y[train]), lambda: tangent.fit(X[train], y[train]), max(repeats // 2, 1))
    what = "SynII, n = 10, 20,000 samples"
    yield Row("default fit", f"{what}, over tangent space and logistic regression", "times", found, 3.0)
    gain = model.score(X[test], y[test]) - tangent.score(X[test], y[test])
    what = f"accuracy of {what}, above tangent space and logistic regression"
    yield Row("default fit", what, "difference", gain, -0.002, at_most=False)


def plain_fits(repeats: int) -> Iterator[Row]:
    """Compare the fits without compiled steps, in a process of their own."""
    command = [sys.executable, __file__, "--plain", "--repeats", str(repeats)]
    lines = subprocess.run(command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True, capture_output=True).stdout
    for line in lines.decode().splitlines():
        row = json.loads(line)
        row.pop("met")
        yield Row(**row)


def regions(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return covariances (80, n, n) of mixed signals, and which of two classes has more power in a tenth of them."""
    rng, y = np.random.default_rng(0), np.arange(FEW) % 2
    mixing = np.eye(n) + 0.5 * rng.normal(size=(n, n)) / np.sqrt(n)
    signals = rng.normal(size=(FEW, n, 2 * n))
    signals[:, : n // 10] += np.where(y, 0.5, 0.2)[:, None, None] * rng.normal(size=(FEW, 1, 2 * n))
    mixed = mixing @ signals
    return mixed @ mixed.swapaxes(1, 2) / (2 * n), y


def region_fits(repeats: int) -> Iterator[Row]:
    """Compare fits of few large matrices with logistic regression in the tangent space, one BLAS thread each."""
    for n in REGIONS:
        X, y = regions(n)
        tangent = tangent_space()
        for metric in LARGE_METRICS:
            found = ratio(
                lambda: RiemannianLVQ(metric, random_state=0).fit(X, y),  # noqa: B023
                lambda: tangent.fit(X, y),  # noqa: B023
                min(repeats, 3),
            )
            what = f"{metric.replace('_', ' ')}, n = {n}, {FEW} samples, over tangent space and logistic regression"
            yield Row("few large matrices", what, "times", found, 3.0)


def steps(repeats: int) -> Iterator[Row]:
    """Measure compiled steps of an epoch under the affine-invariant metric, in the fastest turn."""
    cases = [("SynI", training_epoch.syn1, 4, 2.0), ("SynI", training_epoch.syn1, 12, 2.0)]
    cases.append(("EEG", training_epoch.eeg, 4, 15.0))
    for name, load, n_prototypes, limit in cases:
        X, y = some(*load())
        epoch = training_epoch.epochs(X, y, n_prototypes)[0]["compiled", 1, 1]
        found = min([seconds(epoch) for _ in range(4 * repeats + 1)][1:]) / (len(X) * n_prototypes)
        what = f"step of a pair, {name}, n = {X.shape[1]}, K = {n_prototypes}"
        yield Row("training", what, "microseconds", 1e6 * float(found), limit)


def all_metrics(repeats: int) -> Iterator[Row]:
    """Compare fits under every metric with those under the affine-invariant one."""
    cases = [case for n in SIZES for case in metrics.measure(n, 240, 30, repeats)]
    for metric in metrics.METRICS[1:]:
        worst = max((case for case in cases if case["metric"] == metric), key=lambda case: case["ratio"])
        what = f"{metric.replace('_', ' ')}, worst of n = 2 to 32 (n = {worst['n']}), over affine-invariant"
        yield Row("metrics", what, "times", worst["ratio"], metrics.LIMITS.get(metric, 2.0))
    X, y = some(*load_digits_covariances())
    trained: dict[str, Any] = {"sigma2": "half_median", "max_epochs": 20, "random_state": 0}

    def fit(*args: Any, **more: Any) -> Callable[[], object]:
        return lambda: RiemannianLVQ(*args, **trained, **more).fit(X, y)

    yield Row("metrics", "euclidean, digits, over affine-invariant", "times", ratio(fit("euclid"), fit(), repeats), 2.0)
    adaptive = ratio(fit(step_size="adaptive"), fit(step_size="paper"), repeats)  # neither ends before the last epoch
    yield Row("metrics", 'step_size="adaptive", digits, over step_size="paper"', "times", adaptive, 2.0)


def predictions(repeats: int) -> Iterator[Row]:
    """Compare predictions with LAPACK's decompositions and with pyRiemann."""
    for n in predict.SMALL:
        found = predict.case(*predict.small(n), "log_euclidean", 4, repeats)["ratios"]["eigh of every sample"]
        what = f"eigh alone, over Log-Euclidean predict, n = {n}, 1000 matrices"
        yield Row("prediction", what, "times", found, 3.0, at_most=False)
    for name, (X, y) in predict.problems().items():
        found = predict.case(X, y, "affine_invariant", 4, repeats)["ratios"]["pyriemann"]
        what = f"pyRiemann, over affine-invariant predict, {name}, K = 4"
        yield Row("prediction", what, "times", found, 4.0, at_most=False)


def processes(repeats: int) -> Iterator[Row]:
    """Compare whole processes: BLAS threads at their default with one thread, the first fit with later ones."""
    for name, loaded in (("", False), (", one busy process more per core", True)):
        rows = threads.summary(name, threads.rounds(2 * repeats, loaded=loaded, kinds=("default", "one")))
        found = max(row["default"] for row in rows)
        what = f"fit with default threads, worst of n = 22 to 40{name}, over one thread"
        yield Row("BLAS threads", what, "times", found, 1.2)
    with tempfile.TemporaryDirectory() as warm:
        cold_start.seconds(cold_start.FIT.format(compiled=True), warm)
        fitted = [cold_start.fits(warm) for _ in range(repeats)]
        imported = [cold_start.imports(warm) for _ in range(repeats)]
    extra = float(np.median([turn["cold"] - turn["warm"] for turn in fitted]))
    yield Row("first fit", "first fit after installation, beyond a later one", "seconds", extra, 3.0)
    times = float(np.median([turn["rplvq"] / turn["scikit-learn"] for turn in imported]))
    yield Row("first fit", "import, over that of scikit-learn", "times", times, 1.5)


def main() -> None:
    """Print a line for each goal, and write all of them where ``--out`` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--plain", action="store_true", help="only the default fits, as they are without numba")
    arguments = parser.parse_args()
    compile_at_once()
    rows = []
    parts = (steps, default_fits, large_fit, region_fits, plain_fits, predictions, all_metrics, processes)
    if arguments.plain:
        parts = (lambda repeats: default_fits(repeats, 8.0, " without numba"),)
    for part in parts:
        for row in part(arguments.repeats):
            rows.append(row.record())
            print(json.dumps(rows[-1]), flush=True)
    if arguments.out:
        record = {"machine": machine("numpy", "scipy", "scikit-learn", "pyriemann", "numba"), "rows": rows}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
