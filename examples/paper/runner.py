"""Runs repetitions x methods in parallel and keeps each result in a small JSON file of its own.

A file that is there, with the settings now asked for, is not computed again: an interrupted run goes on where
it stopped, and tables are rebuilt without running anything.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import re
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

__all__ = ["Job", "Record", "load", "path_of", "pending", "run", "versions"]

Record = dict[str, Any]
PACKAGES = ("rplvq", "numpy", "scipy", "scikit-learn", "pyriemann")


@attrs.frozen
class Job:
    """One method in one repetition of one experiment.

    Parameters
    ----------
    experiment : str
        Name of the experiment, also of its folder.
    method : str
        Name of the method, as in the tables.
    repetition : int
        Number of the repetition, also its seed.
    settings : dict
        Arguments of ``call`` by name, of types that JSON knows.
    call : callable
        ``call(repetition=..., method=..., **settings)`` returns a dict of results that JSON can hold. A function
        at the top level of a module, so that workers can import it.
    """

    experiment: str
    method: str
    repetition: int
    settings: dict[str, Any]
    call: Callable[..., Record]


def run(jobs: Iterable[Job], *, folder: str | os.PathLike[str], n_jobs: int = 1, verbose: int = 1) -> list[Record]:
    """Run those jobs whose result is absent or was made with other settings.

    Parameters
    ----------
    jobs : iterable of Job
        What is wanted.
    folder : path
        Where results are kept, as ``<experiment>/<method>-<repetition>.json``.
    n_jobs : int, default=1
        Processes; each computes with one BLAS thread.
    verbose : int, default=1
        1 shows a progress bar on standard error.

    Returns
    -------
    list of dict
        A record for each job, in their order: experiment, method, repetition, settings, result, seconds,
        versions, command. Each is on disk as soon as it is computed, whatever happens afterwards.

    Raises
    ------
    ValueError
        If two jobs have one experiment, method and repetition, or a result is not JSON.
    """
    jobs = list(jobs)
    root = pathlib.Path(folder)
    _require_different(jobs)
    waiting = pending(jobs, root)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    results = parallel(delayed(_execute)(job, path_of(root, job), _command()) for job in waiting)
    with tqdm(total=len(jobs), initial=len(jobs) - len(waiting), disable=not verbose, unit="job") as bar:
        for name in results:
            bar.set_postfix_str(name)
            bar.update()
    return [_read(path_of(root, job)) for job in jobs]


def pending(jobs: Sequence[Job], folder: str | os.PathLike[str]) -> list[Job]:
    """Return the jobs whose result is absent, unreadable, or was made with other settings."""
    root = pathlib.Path(folder)
    return [job for job in jobs if not _is_done(job, path_of(root, job))]


def load(folder: str | os.PathLike[str], experiment: str, method: str | None = None) -> list[Record]:
    """Read the records of an experiment, of one method or all, by method and repetition.

    Returns
    -------
    list of dict
        Empty if nothing was run.
    """
    records = [_read(path) for path in sorted((pathlib.Path(folder) / experiment).glob("*.json"))]
    wanted = [record for record in records if method in (None, record["method"])]
    return sorted(wanted, key=lambda record: (record["method"], record["repetition"]))


def path_of(folder: str | os.PathLike[str], job: Job) -> pathlib.Path:
    """Return the file of a job's record below ``folder``."""
    name = re.sub(r"[^A-Za-z0-9.=]+", "-", job.method).strip("-")
    return pathlib.Path(folder) / job.experiment / f"{name}-{job.repetition:03d}.json"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on, where installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            if package == "rplvq":
                import rplvq

                found[package] = rplvq.__version__
    return found


def _require_different(jobs: Sequence[Job]) -> None:
    seen: dict[pathlib.Path, Job] = {}
    for job in jobs:
        other = seen.setdefault(path_of("", job), job)
        if other is not job:
            raise ValueError(
                f"jobs {other.experiment}/{other.method} and {job.experiment}/{job.method}, repetition "
                f"{job.repetition}, have the same file {path_of('', job)}: give one another name"
            )


def _is_done(job: Job, path: pathlib.Path) -> bool:
    """Whether the file holds a record of this job with these settings."""
    try:
        record = _read(path)
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    same_job = (record["method"], record["repetition"]) == (job.method, job.repetition)
    return same_job and record["settings"] == json.loads(_dumps(job.settings))


def _execute(job: Job, path: pathlib.Path, command: str) -> str:
    """Run one job, write its record, return its name."""
    with threadpool_limits(limits=1):
        start = time.perf_counter()
        result = job.call(repetition=job.repetition, method=job.method, **job.settings)
        seconds = time.perf_counter() - start
    record = attrs.asdict(job, filter=lambda attribute, _: attribute.name != "call", recurse=False)
    _write(
        path,
        record | {"result": result, "seconds": round(seconds, 3), "versions": versions(), "command": command},
    )
    return f"{job.experiment} {job.method} {job.repetition}"


def _write(path: pathlib.Path, record: Record) -> None:
    """Write a record, a line for each of its entries: under another name first, so that no half file is left."""
    lines = ",\n".join(f"{json.dumps(key)}: {_dumps(value)}" for key, value in record.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    partial.replace(path)


def _read(path: pathlib.Path) -> Record:
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def _dumps(value: Any) -> str:
    """JSON of a value; NumPy's numbers and arrays become plain ones, NaN and infinity are refused."""
    return json.dumps(value, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ValueError(f"results and settings must be of types that JSON knows, got {type(value).__name__}: {value!r}")


def _command() -> str:
    """Return the command line of this run, to be typed in a shell, without the paths of this machine."""
    arguments = [os.path.basename(word) if os.path.isabs(word) else word for word in sys.orig_argv[1:]]
    return shlex.join(["python", *arguments])
