"""Run the paper's experiments, or rebuild the tables from their cached results.

python -m examples.paper run [--quick] [--only syn1 bci2a ...] [--jobs N]
python -m examples.paper report [--quick]
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
from collections.abc import Sequence

from examples.paper.runner import Job, pending, run

RESULTS = pathlib.Path(__file__).parent / "results"
# Module of each group of experiments, the groups it makes, and the data file it needs.
MODULES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "synthetic": (("syn1", "syn2"), None),
    "bci2a": (("bci2a",), "bci2a_cov22.npz"),
    "eth80": (("eth80",), "eth80_cov5.npz"),
    "cifar10": (("cifar10",), "cifar10_cov9.npz"),
}
GROUPS = [group for groups, _ in MODULES.values() for group in groups]


def collect(quick: bool, only: Sequence[str]) -> list[Job]:
    """Jobs of the groups asked for, or all; groups whose data are absent are left out with a message."""
    from examples.paper.data import data_folder, is_available

    chosen: list[Job] = []
    for module, (groups, file) in MODULES.items():
        wanted = [group for group in groups if group in only or not only]
        if not wanted:
            continue
        if file is not None and not is_available(file):
            print(f"left out {', '.join(wanted)}: no {file} in {data_folder()} (set RPLVQ_DATA to its folder)")
            continue
        jobs = importlib.import_module(f"examples.paper.{module}").jobs(quick)
        chosen += [job for job in jobs if job.experiment.split("-")[0] in wanted]
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do what it says; return the exit status."""
    options = _parser().parse_args(arguments)
    folder = options.results / ("quick" if options.quick else "full")
    if options.command == "report":
        from examples.paper import report

        report.write(folder)
        return 0
    jobs = collect(options.quick, options.only)
    if options.methods:
        jobs = [job for job in jobs if job.method in options.methods]
    if options.list:
        for job in pending(jobs, folder):
            print(f"{job.experiment}  {job.method}  {job.repetition}")
        return 0
    run(jobs, folder=folder, n_jobs=options.jobs)
    print(f"{len(jobs)} results in {folder}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.paper", description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=("run", "report"), help="compute what is missing, or write the tables")
    parser.add_argument("--quick", action="store_true", help="few repetitions and epochs: minutes instead of hours")
    parser.add_argument("--only", nargs="+", default=[], choices=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--methods", nargs="+", default=[], metavar="NAME", help="only the methods of these names")
    parser.add_argument("--jobs", type=int, default=1, help="processes, -1 for all cores (default 1)")
    parser.add_argument("--list", action="store_true", help="name the jobs that have no result yet, run nothing")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="folder of the results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
