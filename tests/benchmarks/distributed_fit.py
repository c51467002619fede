"""Seconds of a distributed fit beside those of a local one, in pairs, and the phases that they consist of.

    OMP_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/distributed_fit.py --samples 20000 100000 --repeats 5

SynII under the default settings, two worker processes with one thread each. Both fits have run once before, so that
everything is compiled. A line per phase has wall seconds, and CPU seconds of the caller and of all workers.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from rplvq import RiemannianLVQ
from rplvq.datasets import make_syn2, random_bases
from rplvq.distributed import DistributedLVQ, _estimator
from rplvq.estimators import _classifier, _fitting
from rplvq.selection import _choice

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
    from dask.distributed import default_client

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
        print(f"  {phase:<24} {count:>3} x  wall {total[0]:6.2f}  caller {total[1]:6.2f}  workers "
              + " ".join(f"{value:6.2f}" for value in total[2:]), flush=True)


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        for count in options.samples:
            bases = random_bases(10, n_bases=1, random_state=0)
            X, y = make_syn2(count // 4, bases=bases, random_state=1)
            test, labels = make_syn2(5_000, bases=bases, random_state=2)
            makers = {"local": RiemannianLVQ, "distributed": lambda **own: DistributedLVQ(RiemannianLVQ(**own))}
            ratios = []
            for repeat in range(options.repeats + 2):
                is_timed = repeat == options.repeats + 1
                seconds, line = {}, []
                for name, make in makers.items():
                    times: Times = {}
                    began = np.array(list(clocks()))
                    with timed(times) if is_timed else nullcontext():
                        model = make(random_state=0).fit(X, y)
                    whole = np.array(list(clocks())) - began
                    seconds[name] = whole[0]
                    critical = whole[1] + whole[2:].max()
                    line.append(f"{name} {whole[0]:.2f} s (CPU path {critical:.2f})")
                    if is_timed:
                        show(f"{name}, N = {count}", whole, times)
                        print(f"  accuracy {getattr(model, 'estimator_', model).score(test, labels):.4f}")
                if 0 < repeat <= options.repeats:
                    ratios.append(seconds["distributed"] / seconds["local"])
                    print(", ".join(line), f"ratio {ratios[-1]:.2f}", flush=True)
            print(f"N = {count}: median ratio {np.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
