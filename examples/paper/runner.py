"""Run the jobs of experiments in parallel and record each result as soon as it is computed.

A job whose record exists with the same settings is not run again. An interrupted run therefore continues where it
stopped, and the tables are rebuilt without running anything.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from typing import Any

import attrs
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from examples.paper.records import Key, Record, cache_path, dumps, key_of, load, save

__all__ = ["Job", "Record", "load", "path_of", "pending", "run", "versions"]

PACKAGES = ("rplvq", "numpy", "scipy", "scikit-learn", "pyriemann")


@attrs.frozen
class Job:
    """One method in one repetition of one experiment.

    Parameters
    ----------
    experiment : str
        Name of the experiment. Its part up to the first hyphen names the family, the file of its records.
    method : str
        Name of the method, as in the tables.
    repetition : int
        Number of the repetition, which is also its seed.
    settings : dict
        Arguments of ``call`` by name, of types that JSON supports.
    call : callable
        ``call(repetition=..., method=..., **settings)`` returns a dict of results that JSON can represent. It must be
        a function at the top level of a module, so that workers can import it.
    """

    experiment: str
    method: str
    repetition: int
    settings: dict[str, Any]
    call: Callable[..., Record]

    @property
    def key(self) -> Key:
        """Experiment, method and repetition, which identify the job and its record."""
        return self.experiment, self.method, self.repetition


def run(jobs: Iterable[Job], *, folder: str | os.PathLike[str], n_jobs: int = 1, verbose: int = 1) -> list[Record]:
    """Run those jobs whose result is absent or was made with other settings.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs whose records are wanted.
    folder : path
        Folder of the records (see :mod:`examples.paper.records`). New ones go into its cache.
    n_jobs : int, default=1
        Number of processes; each computes with one BLAS thread.
    verbose : int, default=1
        1 shows a progress bar on standard error.

    Returns
    -------
    list of dict
        One record per job, in the order of the jobs: experiment, method, repetition, settings, result, seconds,
        versions, command. Each record is on disk as soon as it is computed.

    Raises
    ------
    ValueError
        If two jobs share experiment, method and repetition, or if a result is not JSON.
    """
    jobs = list(jobs)
    _require_different(jobs)
    waiting = pending(jobs, folder)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    results = parallel(delayed(_execute)(job, folder, _command()) for job in waiting)
    with tqdm(total=len(jobs), initial=len(jobs) - len(waiting), disable=not verbose, unit="job") as bar:
        for name in results:
            bar.set_postfix_str(name)
            bar.update()
    records = _by_key(jobs, folder)
    return [records[job.key] for job in jobs]


def pending(jobs: Sequence[Job], folder: str | os.PathLike[str]) -> list[Job]:
    """Return the jobs whose result is absent, unreadable, or was made with other settings."""
    done = {key: record["settings"] for key, record in _by_key(jobs, folder).items()}
    return [job for job in jobs if done.get(job.key) != json.loads(dumps(job.settings))]


def path_of(folder: str | os.PathLike[str], job: Job) -> pathlib.Path:
    """Return the file of a job's record in the cache below ``folder``."""
    return cache_path(folder, *job.key)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            if package == "rplvq":
                import rplvq

                found[package] = rplvq.__version__
    return found


def _by_key(jobs: Iterable[Job], folder: str | os.PathLike[str]) -> dict[Key, Record]:
    """Return the records of all experiments that the jobs belong to."""
    experiments = {job.experiment for job in jobs}
    return {key_of(record): record for experiment in experiments for record in load(folder, experiment)}


def _require_different(jobs: Sequence[Job]) -> None:
    seen: dict[pathlib.Path, Job] = {}
    for job in jobs:
        path = path_of("", job)
        other = seen.setdefault(path, job)
        if other is not job:
            raise ValueError(
                f"jobs {other.experiment}/{other.method} and {job.experiment}/{job.method}, repetition "
                f"{job.repetition}, have the same file {path}: give one another name"
            )


def _execute(job: Job, folder: str | os.PathLike[str], command: str) -> str:
    """Run one job, save its record, return its name."""
    with threadpool_limits(limits=1):
        start = time.perf_counter()
        result = job.call(repetition=job.repetition, method=job.method, **job.settings)
        seconds = time.perf_counter() - start
    record = attrs.asdict(job, filter=lambda attribute, _: attribute.name != "call", recurse=False)
    save(folder, record | {"result": result, "seconds": round(seconds, 3), "versions": versions(), "command": command})
    return f"{job.experiment} {job.method} {job.repetition}"


def _command() -> str:
    """Return the command line of this run as it is typed in a shell, without absolute paths."""
    arguments = [os.path.basename(word) if os.path.isabs(word) else word for word in sys.orig_argv[1:]]
    return shlex.join(["python", *arguments])
