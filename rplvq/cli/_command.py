"""The command line, ``python -m rplvq``: compare metrics and costs, train models, use them."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from joblib import parallel_config
from sklearn.model_selection import RepeatedStratifiedKFold
from threadpoolctl import threadpool_limits

from rplvq.cli._data import check_samples, load_data
from rplvq.cli._models import fit, info, predict, write_json
from rplvq.cli._options import UsageError, make_parser
from rplvq.cli._streams import say
from rplvq.evaluation import Comparison, compare, default_estimators
from rplvq.exceptions import TrainingInterruptedWarning
from rplvq.io import require_writable
from rplvq.plotting import save_comparison

REPORT = ("comparison.csv", "folds.csv", "comparison.md", "comparison.png")
"""Names of the files of a report."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; by default those of the process.

    Returns
    -------
    int
        Exit status: 0 for success, 1 if training failed, 2 if an argument or a file is invalid, and 130 after Ctrl-C,
        which leaves all results of earlier commands as they were. One line on standard error then says why. The status
        is 141 if nobody reads standard output any more.

    Examples
    --------
    >>> from rplvq.cli import main
    >>> main(["compare", "--metrics", "euclid", "--epochs", "0", "--splits", "2", "--jobs", "1", "--quiet"])
    ... # doctest: +ELLIPSIS
    syn1: 1000 samples of shape (10, 10)
    2 estimators, 2 folds: mean +- standard deviation of the scores, mean seconds per fold
    ...
    0
    """
    try:
        arguments = make_parser().parse_args(argv)
        COMMANDS[arguments.command](arguments)
    except BrokenPipeError:
        return 141
    except (ValueError, OSError) as error:
        return _fail(error, 2)
    except (RuntimeError, ArithmeticError, MemoryError) as error:
        return _fail(error, 1)
    except (KeyboardInterrupt, TrainingInterruptedWarning):
        return _fail("interrupted before the result was complete, so none was written", 130)
    return 0


def _fail(error: object, status: int) -> int:
    line = " ".join(str(error).split()) or type(error).__name__
    say(f"rplvq: error: {line}\n", is_error=True)
    return status


def _compare(arguments: argparse.Namespace) -> None:
    X, y = load_data(arguments.data, arguments.seed)
    check_samples(X, y, arguments.metrics, arguments.splits)
    out = None if arguments.out is None else _make_folder(arguments.out)
    model = {"prototypes_per_class": arguments.prototypes, "max_epochs": arguments.epochs, "sigma2": arguments.sigma2}
    estimators = default_estimators(arguments.metrics, arguments.costs, **model)
    cv = RepeatedStratifiedKFold(n_splits=arguments.splits, n_repeats=arguments.repeats, random_state=arguments.seed)
    # Threads inside BLAS do not speed up small matrices, and they compete with the processes for the cores.
    with threadpool_limits(1, user_api="blas"), parallel_config("loky", inner_max_num_threads=1):
        settings = {"cv": cv, "n_jobs": arguments.jobs, "verbose": not arguments.quiet}
        result = compare(X, y, estimators, random_state=arguments.seed, **settings)
    if arguments.json:
        few = min(len(result.names), len(result.folds)) < 2
        tests = [] if few else [{"first": a, "second": b, "p": p} for (a, b), p in result.p_values().items()]
        write_json({"data": arguments.data, "rows": result.rows, "folds": result.fold_rows, "p_values": tests})
    else:
        say(f"{arguments.data}: {len(X)} samples of shape {X.shape[1:]}\n{result}\n")
    if out is not None:
        written = _write(result, out)
        if not arguments.json:
            say(f"written to {out}: {', '.join(written)}\n")


def _make_folder(name: str) -> Path:
    """Make the folder of the report before training, so that a folder or file that cannot be written is reported."""
    if not name:
        raise UsageError("--out '' names no folder")
    try:
        Path(name).mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"--out {name!r} is a file, not a folder") from error
    for file in REPORT:
        require_writable(Path(name) / file)
    return Path(name)


def _write(result: Comparison, out: Path) -> list[str]:
    """Write the files of the report, all of them beside the old ones, before any of these is replaced."""
    written = list(REPORT)
    with TemporaryDirectory(prefix=".rplvq-", dir=out) as name:
        new = Path(name)
        result.to_csv(new / "comparison.csv")
        result.to_csv(new / "folds.csv", folds=True)
        (new / "comparison.md").write_text(result.to_markdown(), encoding="utf-8")
        try:
            save_comparison(result, new / "comparison.png")
        except ImportError as error:
            written.remove("comparison.png")
            say(f"rplvq: no comparison.png: {error}\n", is_error=True)
        for file in written:
            os.replace(new / file, out / file)
    return written


COMMANDS = {"compare": _compare, "fit": fit, "predict": predict, "info": info}
