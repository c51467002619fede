"""Recorded results: one file of JSON lines per family of experiments, and a cache of single records.

The family of an experiment is its name up to the first hyphen: the records of ``syn1`` and ``syn1-curves`` are in
``syn1.jsonl``. The first line of a family file lists the versions and the commands that its records were made with.
Every other line is one record, which refers to both by their index; the lines are sorted by experiment, method and
repetition.

A run writes each new record into a file of its own below ``results-cache``, which git ignores, so that an interrupted
run loses nothing. :func:`compact` moves these records into the family files.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["Key", "Record", "cache_path", "compact", "dumps", "key_of", "load", "save", "write_family"]

Record = dict[str, Any]
Key = tuple[str, str, int]
CACHE = "results-cache"
SHARED = {"versions": "versions", "command": "commands"}  # entry of a record: list of its values in the first line


def key_of(record: Record) -> Key:
    """Return experiment, method and repetition, which identify a record."""
    return record["experiment"], record["method"], record["repetition"]


def load(folder: str | os.PathLike[str], experiment: str, method: str | None = None) -> list[Record]:
    """Read the records of an experiment, of one method or all, sorted by method and repetition.

    A record in the cache replaces the one in the family file. A file of the cache that is not valid JSON is ignored.

    Returns
    -------
    list of dict
        Empty if nothing was run.
    """
    records = _read_family(_family_path(folder, experiment))[1]
    records += _read_cache(sorted((pathlib.Path(folder) / CACHE / experiment).glob("*.json"))).values()
    merged = {key_of(record): record for record in records if record["experiment"] == experiment}
    return [merged[key] for key in sorted(merged) if method in (None, merged[key]["method"])]


def save(folder: str | os.PathLike[str], record: Record) -> None:
    """Write one record into the cache, under another name first, so that no half-written file is left."""
    path = cache_path(folder, *key_of(record))
    lines = ",\n".join(f"{json.dumps(name)}: {dumps(value)}" for name, value in record.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, "{\n" + lines + "\n}\n")


def cache_path(folder: str | os.PathLike[str], experiment: str, method: str, repetition: int) -> pathlib.Path:
    """Return the file of a record in the cache."""
    name = re.sub(r"[^A-Za-z0-9.=]+", "-", method).strip("-")
    return pathlib.Path(folder) / CACHE / experiment / f"{name}-{repetition:03d}.json"


def compact(folder: str | os.PathLike[str]) -> list[pathlib.Path]:
    """Move all records of the cache into the family files; return the files that were written."""
    cached = _read_cache(sorted((pathlib.Path(folder) / CACHE).glob("*/*.json")))
    families: dict[pathlib.Path, list[Record]] = {}
    for record in cached.values():
        families.setdefault(_family_path(folder, record["experiment"]), []).append(record)
    for path, records in families.items():
        write_family(path, records)
    for path in cached:
        path.unlink()
    return list(families)


def write_family(path: pathlib.Path, new: Iterable[Record]) -> None:
    """Add records to a family file; a new record replaces the old one of the same key.

    Versions and commands that the file already lists keep their index, so that the lines of old records stay the same.
    """
    shared, old = _read_family(path)
    merged = {key_of(record): record for record in (*old, *new)}
    lines = []
    for key in sorted(merged):
        line = dict(merged[key])
        for name, plural in SHARED.items():
            if line[name] not in shared[plural]:
                shared[plural].append(line[name])
            line[name] = shared[plural].index(line[name])
        lines.append(dumps(line))
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, "\n".join([dumps(shared), *lines]) + "\n")


def dumps(value: Any) -> str:
    """Return the JSON of a value. NumPy's numbers and arrays become plain ones; NaN and infinity are refused."""
    return json.dumps(value, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ValueError(f"results and settings must be of types that JSON knows, got {type(value).__name__}: {value!r}")


def _family_path(folder: str | os.PathLike[str], experiment: str) -> pathlib.Path:
    return pathlib.Path(folder) / f"{experiment.split('-')[0]}.jsonl"


def _read_family(path: pathlib.Path) -> tuple[dict[str, list[Any]], list[Record]]:
    """Return the shared values of a family file, and its records with these values filled in."""
    if not path.exists():
        return {plural: [] for plural in SHARED.values()}, []
    shared, *records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    for record in records:
        record.update({name: shared[plural][record[name]] for name, plural in SHARED.items()})
    return shared, records


def _read_cache(paths: Sequence[pathlib.Path]) -> dict[pathlib.Path, Record]:
    """Read the files that hold valid JSON."""
    found = {}
    for path in paths:
        try:
            found[path] = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError:
            continue
    return found


def _replace(path: pathlib.Path, text: str) -> None:
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
