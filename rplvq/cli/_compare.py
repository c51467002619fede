"""The command that compares methods: it reads data, calls the library, and writes reports."""

import argparse
import os
import shlex
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import numpy as np

from rplvq.cli._data import DATASETS, check_samples, draw
from rplvq.cli._models import read_data, write_json
from rplvq.cli._options import UsageError, say
from rplvq.evaluation import Comparison, baseline_estimators, compare, default_estimators
from rplvq.exceptions import interrupts_deferred
from rplvq.io import replace_file, require_writable
from rplvq.plotting import save_comparison

BUNDLED_SAMPLES = 900  # with the other defaults, they take about a minute on two cores
Writer = Callable[[Comparison, Path], None]


def _text(make: Callable[[Comparison], str]) -> Writer:
    return lambda result, path: replace_file(path, make(result).encode())


FORMATS: dict[str, Writer] = {  # what writes a file, by its suffix
    ".txt": _text(lambda result: f"{result}\n"),
    ".csv": lambda result, path: result.to_csv(path),
    ".md": _text(Comparison.to_markdown),
    ".tex": _text(lambda result: result.to_latex(table=True)),
    ".png": save_comparison,
    ".svg": save_comparison,
    ".pdf": save_comparison,
}

REPORT: dict[str, Writer] = {  # what writes the files of a folder, by their names
    **{f"comparison{suffix}": FORMATS[suffix] for suffix in (".txt", ".csv", ".md", ".tex", ".png")},
    "comparison.tex": _text(Comparison.to_latex),
    "folds.csv": lambda result, path: result.to_csv(path, folds=True),
    "differences.csv": lambda result, path: result.differences_to_csv(path),
}


def compare_methods(arguments: argparse.Namespace) -> None:
    """Compare metrics and costs with the class means and with baselines, print a report, and write files."""
    targets = [target for name in arguments.out for target in _targets(name)]
    baselines = baseline_estimators(arguments.baselines) if arguments.baselines else {}
    loaded, metadata = read_data(arguments, labelled=True)
    n_samples = len(loaded.X)
    wanted = arguments.samples
    if wanted is None:  # by default at most BUNDLED_SAMPLES of a bundled set, and all of a file
        is_bundled = all(source in DATASETS for source in arguments.data)
        wanted = min(BUNDLED_SAMPLES, n_samples) if is_bundled else n_samples
    X, y, groups = draw(loaded.X, np.asarray(loaded.y), metadata.get("groups"), wanted, arguments.seed)
    check_samples(X, y, arguments.metrics, arguments.splits)
    model = {"prototypes_per_class": arguments.prototypes, "max_epochs": arguments.epochs, "sigma2": arguments.sigma2}
    estimators = default_estimators(arguments.metrics, arguments.costs, **model) | baselines
    folds: Any = {"cv": arguments.splits, "repeats": arguments.repeats, "groups": groups}
    run: Any = {"n_jobs": arguments.jobs, "verbose": not arguments.quiet, "random_state": arguments.seed}
    result = compare(X, y, estimators, test=arguments.test, **folds, **run)
    drawn = "" if len(X) == n_samples else f", {len(X)} of {n_samples} samples, drawn by class"
    about = {"data": f"{' '.join(arguments.data)}{drawn}", **result.about}
    result = attrs.evolve(result, about=about | {"command": shlex.join(["python", "-m", "rplvq", *arguments.given])})
    with interrupts_deferred(raised=False):
        written = _write(result, targets)
        if arguments.json:
            write_json(_plain_result(result))
        else:
            say((f"written: {', '.join(written)}\n\n" if written else "") + f"{result}\n")


def _plain_result(result: Comparison) -> dict[str, object]:
    testable = min(len(result.names), len(result.folds)) > 1
    differences = [row for metric in result.metrics if testable for row in result.differences(metric)]
    tables = {"rows": result.rows, "folds": result.fold_rows, "differences": differences}
    return {"about": result.about, **tables, "test": result.test, "conclusions": result.conclusions()}


def _targets(name: str) -> list[tuple[Path, Writer]]:
    """Return the files of an ``--out``, which can be written; a name without a suffix is a folder, made if absent."""
    path = Path(name)
    writer = FORMATS.get(path.suffix.lower())
    if not name or (path.suffix and writer is None and not path.exists()):
        raise UsageError(f"--out {name!r} is no folder, and its suffix is not one of {', '.join(FORMATS)}")
    if writer is not None and not path.is_dir():
        require_writable(path)
        return [(path, writer)]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"--out {name!r} is a file, not a folder, and not one of {', '.join(FORMATS)}") from error
    for file in REPORT:
        require_writable(path / file)
    return [(path / file, write) for file, write in REPORT.items()]


def _write(result: Comparison, targets: list[tuple[Path, Writer]]) -> list[str]:
    """Write all files beside the old ones before any of these is replaced; return their names."""
    written = []
    with ExitStack() as stack:
        beside = {
            parent: Path(stack.enter_context(TemporaryDirectory(prefix=".rplvq-", dir=parent)))
            for parent in {path.parent for path, _ in targets}
        }
        for path, write in targets:
            try:
                write(result, beside[path.parent] / path.name)
                written.append(path)
            except ImportError as error:
                say(f"rplvq: no {path.name}: {error}\n", is_error=True)
        for path in written:
            os.replace(beside[path.parent] / path.name, path)
    return [str(path) for path in written]
