"""Options of the command line, and the types of their values."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Collection
from typing import Any, NoReturn

from rplvq.cli.data import DATASETS
from rplvq.compare import METRICS
from rplvq.names import COSTS, MANIFOLDS

__all__ = ["UsageError", "make_parser"]

EXAMPLES = """\
examples:
  python -m rplvq compare
      three metrics and their class-mean baselines on SynI; about a minute on two cores
  python -m rplvq compare --data digits --out report
      the same on real data; also writes report/comparison.csv, folds.csv, comparison.md and comparison.png
  python -m rplvq compare --data mine.npz --metrics affine_invariant,log_euclidean --costs rslvq,plvq
      your own: numpy.savez("mine.npz", X=X, y=y) with X of shape (N, n, n) and y of shape (N,)

Folds are shared by all methods. "MDM" is the classifier of minimum distance to the class means, which is what
training starts from. Seconds are wall time; with several processes they share the cores.
"""


class UsageError(ValueError):
    """A wrong argument or a file that can't be used: one line to the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


class _Flat(argparse.Action):
    """Joins the lists of several values, without repetitions."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, list(dict.fromkeys(name for part in values for name in part)))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of ``python -m rplvq``; it raises UsageError at wrong arguments."""
    parser = _Parser(
        prog="python -m rplvq", description="Prototype learning on Riemannian manifolds.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", metavar="compare", required=True)
    command = commands.add_parser(
        "compare",
        help="compare metrics and costs by cross-validation",
        description="Compare metrics and costs by cross-validation on the same folds.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_data_options(command)
    _add_model_options(command)
    _add_run_options(command)
    return parser


def _add_data_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--data",
        default="syn1",
        metavar="NAME|FILE.npz",
        help=f"{', '.join(DATASETS)}, or a file with X and y (default: syn1)",
    )
    add("--out", metavar="DIR", help="folder for CSV, Markdown and PNG files, which are overwritten (default: none)")


def _add_model_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    metrics, costs = _one_of(MANIFOLDS), _one_of(COSTS)
    known, shown = ", ".join(MANIFOLDS), ",".join(METRICS)
    add(
        "--metrics",
        type=metrics,
        nargs="+",
        action=_Flat,
        default=list(METRICS),
        metavar="NAME",
        help=f"separated by commas or spaces: {known}; default: {shown}",
    )
    add(
        "--costs",
        type=costs,
        nargs="+",
        action=_Flat,
        default=["rslvq"],
        metavar="NAME",
        help=f"likewise: {', '.join(COSTS)} (default: rslvq)",
    )
    add("--prototypes", type=_integer(1), default=1, metavar="K", help="prototypes a class (default: 1)")
    add("--epochs", type=_integer(0), default=20, metavar="T", help="sweeps over the training data (default: 20)")
    add(
        "--sigma2",
        type=_sigma2,
        default="auto",
        help="variance of the mixture: a positive number or auto (default: auto)",
    )


def _add_run_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--splits",
        type=_integer(2),
        default=10,
        metavar="F",
        help="folds of the stratified cross-validation (default: 10)",
    )
    add("--repeats", type=_integer(1), default=1, metavar="R", help="repetitions of it with other folds (default: 1)")
    add("--jobs", type=_jobs, default=-1, metavar="J", help="processes; -1 takes all cores (default: -1)")
    add("--seed", type=_integer(0, 2**32 - 1), default=0, help="seed of data, folds and training (default: 0)")
    add("--quiet", action="store_true", help="no progress bar")


def _one_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Make a parser of comma-separated names."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError(f"{(unknown or [text])[0]!r} is not one of {', '.join(known)}")
        return names

    return parse


def _integer(least: int, most: float = math.inf) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            limit = f"from {least} to {most}" if most < math.inf else f"of at least {least}"
            raise argparse.ArgumentTypeError(f"must be an integer {limit}, got {text!r}")
        return value

    return parse


def _jobs(text: str) -> int:
    if text.removeprefix("-").isdecimal() and int(text) != 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a number of processes, or -1 for all cores, got {text!r}")


def _sigma2(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be auto or a positive number, got {text!r}")
    return value
