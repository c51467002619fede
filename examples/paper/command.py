"""The command line that all folders of experiments share: run or list what is missing, compact, write the page."""

from __future__ import annotations

import argparse
import importlib
import pathlib
from collections.abc import Callable, Mapping, Sequence

import attrs

from examples.paper.data import data_folder, is_available
from examples.paper.records import compact
from examples.paper.runner import Job, pending, run

__all__ = ["Experiments"]


@attrs.frozen
class Experiments:
    """A package of experiments, each module with ``jobs(quick) -> list of Job``.

    Parameters
    ----------
    package : str
        Dotted name of the package, such as "examples.paper".
    modules : mapping of str to (tuple of str, tuple of str)
        For each module, the groups of experiments that it makes and the data files that it needs. A group is the name
        of an experiment up to the first hyphen.
    report : callable
        ``report(folder)`` writes the page from the records in ``folder``.
    results : path
        Folder of the records; its subfolders are ``full`` and ``quick``.
    """

    package: str
    modules: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    report: Callable[[pathlib.Path], None]
    results: pathlib.Path

    def collect(self, quick: bool, only: Sequence[str]) -> list[Job]:
        """Return the jobs of the groups in ``only``, or of all. A group without its data is left out with a message."""
        chosen: list[Job] = []
        for module, (groups, files) in self.modules.items():
            wanted = [group for group in groups if group in only or not only]
            absent = [file for file in files if not is_available(file)]
            if wanted and absent:
                print(f"left out {', '.join(wanted)}: no {absent[0]} in {data_folder()} (set RPLVQ_DATA to its folder)")
            elif wanted:
                jobs = importlib.import_module(f"{self.package}.{module}").jobs(quick)
                chosen += [job for job in jobs if job.experiment.split("-")[0] in wanted]
        return chosen

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Parse the command line, carry it out, and return the exit status."""
        options = self._parser().parse_args(arguments)
        folder = options.results / ("quick" if options.quick else "full")
        if options.command == "report":
            self.report(folder)
            return 0
        if options.command == "compact":
            for path in compact(folder):
                print(f"wrote {path}")
            return 0
        jobs = self.collect(options.quick, options.only)
        if options.experiments:
            jobs = [job for job in jobs if job.experiment in options.experiments]
        if options.methods:
            wanted = set(options.methods)  # "GLRSQ" also stands for "GLRSQ, S1"
            jobs = [job for job in jobs if {job.method, job.method.partition(",")[0]} & wanted]
        if options.repetitions is not None:
            jobs = [job for job in jobs if job.repetition < options.repetitions]
        if options.list:
            for job in pending(jobs, folder):
                print(f"{job.experiment}  {job.method}  {job.repetition}")
            return 0
        run(jobs, folder=folder, n_jobs=options.jobs)
        print(f"{len(jobs)} results in {folder}")
        return 0

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.package}",
            description="Run experiments, or write their page from the recorded results.",
        )
        groups = list(dict.fromkeys(group for names, _ in self.modules.values() for group in names))
        add = parser.add_argument
        add(
            "command",
            choices=("run", "compact", "report"),
            help="compute what is missing, move new results from the cache into the recorded files, or write the page",
        )
        add("--quick", action="store_true", help="few repetitions and epochs: minutes instead of hours")
        add("--only", nargs="+", default=[], choices=groups, metavar="GROUP", help=", ".join(groups))
        add("--experiments", nargs="+", default=[], metavar="NAME", help="only the experiments of these names")
        add(
            "--methods",
            nargs="+",
            default=[],
            metavar="NAME",
            help="only methods of these names, in all their variants",
        )
        add("--repetitions", type=int, metavar="N", help="only the first N repetitions of each experiment")
        add("--jobs", type=int, default=1, help="processes, -1 for all cores (default 1)")
        add("--list", action="store_true", help="list the jobs that have no result yet, and run nothing")
        add("--results", type=pathlib.Path, default=self.results, help="folder of the results")
        return parser
