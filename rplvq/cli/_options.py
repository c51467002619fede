"""The options of the command line, the parsers of their values, and what it prints."""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from sklearn.base import BaseEstimator

from rplvq.cli._data import BY_FILE, DATASETS
from rplvq.costs import COSTS
from rplvq.evaluation import BASELINES, METRICS, TESTS
from rplvq.features import CommonSubspace, TrialCovariances
from rplvq.manifolds import MANIFOLDS
from rplvq.parts import plain_name
from rplvq.preprocessing import Recenter, SPDProjection

EXAMPLES = {
    "compare": """\
examples:
  python -m rplvq compare
      two metrics, each trained and with its class means, on 900 images of digits; about a minute on two cores
  python -m rplvq compare --out report figure.pdf
      also writes tables and a picture into the folder report, and the picture as figure.pdf
  python -m rplvq compare --data mine.npz --groups subject --metrics riemann,logeuclid,euclid --baselines mdm
      your own: numpy.savez("mine.npz", X=X, y=y, subject=subject) with X of shape (N, n, n), and y and subject of
      shape (N,); all samples of a subject are in one fold

"MDM" is the classifier of minimum distance to the class means, from which training starts.
""",
    "train": """\
examples:
  python -m rplvq train --data digits --prototypes 2 --model digits.npz
  python -m rplvq train --data mine.npz --metric log_euclidean --model mine-model.npz --coverage 0.9
  python -m rplvq train --data sessions/ --groups @file --steps recenter --model pipeline.npz
      a pipeline that re-centres each file of the folder sessions, then classifies

mine.npz comes from numpy.savez("mine.npz", X=X, y=y) with X of shape (N, n, n) and y of shape (N,).
rplvq.load_model reads the model file in Python. "fit" is another name of this command.
""",
    "predict": """\
examples:
  python -m rplvq predict --model digits.npz --data digits
  python -m rplvq predict --model digits.npz --data new.npy --proba --out labels.csv
  python -m rplvq predict --model mine-model.npz --data new.npy --reject
  python -m rplvq predict ground.npz --data scene/T3 --window 5 --out map.tif --novelty

Prints CSV with a header: label, then with --proba one column per class, and with --reject the reason of each rejection.
Of a folder T3, C3, C2 ... of PolSARpro, it writes a map instead, as GeoTIFF or as .bin with a header of ENVI.
""",
    "stream": """\
examples:
  python -m rplvq train --data monday.npz --steps recenter --set recenter__online=true --model monday-model.npz
  python -m rplvq stream --model monday-model.npz --data tuesday.npz --groups @file --batch 10 --save tuesday-model.npz

Each batch is predicted first, and learned from afterwards: by the whole model if the data have labels, and otherwise by
its transformers. Prints CSV as predict does; the accuracy is that before learning.
""",
    "info": """\
examples:
  python -m rplvq info digits.npz --json
""",
}


STEPS: dict[str, Callable[[], BaseEstimator]] = {
    "trials": TrialCovariances, "subspace": CommonSubspace, "recenter": Recenter, "projection": SPDProjection,
}  # fmt: skip
"""Transformers by the name of their step."""


class UsageError(ValueError):
    """An invalid argument, or a file that cannot be used; the user sees one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: object = None) -> None:
        say(self.format_help())


class _Flat(argparse.Action):
    """Join the lists of several values, without repetitions."""

    def __call__(self, _: object, namespace: argparse.Namespace, values: Any, __: str | None = None) -> None:
        setattr(namespace, self.dest, list(dict.fromkeys(name for part in values for name in part)))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of ``python -m rplvq``, which raises UsageError at invalid arguments."""
    parser = _Parser(
        prog="python -m rplvq", description="Prototype learning on Riemannian manifolds.", allow_abbrev=False
    )
    parser.set_defaults(seed=0)  # for the commands without this option
    commands = parser.add_subparsers(dest="command", metavar="{compare,train,predict,stream,info}", required=True)
    _add_compare(_command(commands, "compare", "compare metrics and costs by cross-validation on the same folds"))
    _add_train(_command(commands, "train", "train one model or pipeline and write it to a file", ["fit"]))
    _add_predict(_command(commands, "predict", "predict the labels of samples by a model file"))
    _add_stream(_command(commands, "stream", "predict samples in their order, and learn from them"))
    info = _command(commands, "info", "describe a model file: its card, in Markdown")
    info.add_argument("model", metavar="FILE.npz", help="file that train wrote, or save_model in Python")
    return parser


def _command(
    commands: "argparse._SubParsersAction[_Parser]", name: str, summary: str, aliases: Sequence[str] = ()
) -> _Parser:
    parser = commands.add_parser(
        name,
        aliases=aliases,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--json", action="store_true", help="print the result as JSON")
    if name != "info":
        default = ["digits"] if name in ("compare", "train") else None
        text = f"{', '.join(DATASETS)}, or files with X and y, or folders of such files, read one after the other"
        text += " (default: digits)" if default else "; .npy files hold X alone. With y, the accuracy is printed, too"
        add("--data", nargs="+", default=default, required=not default, metavar="NAME|PATH", help=text)
        add("--x-name", default="X", metavar="NAME", help="array of the samples in .npz files (default: X)")
        add("--y-name", default="y", metavar="NAME", help="array of the labels in .npz files (default: y)")
    return parser


def _add_compare(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    files = "folder for tables and a picture, made if absent, or files .txt .csv .md .tex .png .svg .pdf; a .tex file "
    files += "holds one table alone, comparison.tex in a folder the whole report; old ones are replaced"
    add("--out", metavar="PATH", nargs="+", default=[], help=f"{files} (default: none)")
    lists: dict[str, tuple[Collection[str], list[str]]]
    lists = {"--metrics": (MANIFOLDS, list(METRICS)), "--costs": (COSTS, ["rslvq"]), "--baselines": (BASELINES, [])}
    for option, (known, default) in lists.items():
        names = f"separated by commas or spaces: {', '.join(known)} (default: {','.join(default) or 'none'})"
        names += "; baselines are pyRiemann's" if option == "--baselines" else ""
        add(option, type=_one_of(known), nargs="+", action=_Flat, default=default, metavar="NAME", help=names)
    _add_model_options(command)
    samples = "draw N samples with the shares of the classes (default: 900 of a bundled set, all of a file)"
    add("--samples", type=_integer(4), metavar="N", help=samples)
    _add_groups(command, "a group is never split between training and test")
    add("--splits", type=_integer(2), default=5, metavar="F", help="folds, stratified by class (default: 5)")
    add("--repeats", type=_integer(1), default=2, metavar="R", help="divisions into folds (default: 2)")
    add("--test", choices=TESTS, default="corrected_t", help="test of the differences (default: corrected_t)")
    add("--jobs", type=_jobs, default=-1, metavar="J", help="processes; -1 takes all cores (default: -1)")
    _add_seed_and_quiet(command, "seed of data, folds and training (default: 0)")


def _add_train(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--model", required=True, metavar="FILE.npz", help="file to write; an old file is replaced")
    checkpoint = "file that keeps the progress of training, which continues from there; removed when the model is there"
    add("--checkpoint", metavar="FILE.npz", help=f"{checkpoint} (default: none)")
    coverage = "share of samples like those of training that predict --reject labels; it fits five more models"
    add("--coverage", type=_share, metavar="C", help=f"{coverage} (default: none)")
    steps = f"transformers before the classifier, separated by commas or spaces: {', '.join(STEPS)} (default: none)"
    add("--steps", type=_one_of(STEPS), nargs="+", action=_Flat, default=[], metavar="NAME", help=steps)
    value = "parameter as JSON or text, such as recenter__online=true, or lvq__NAME of a classifier; may be repeated"
    add("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help=value)
    for option, known, default in (("--metric", MANIFOLDS, "affine_invariant"), ("--cost", COSTS, "rslvq")):
        add(option, type=plain_name, choices=list(known), default=default, help=f"default: {default}")
    _add_model_options(command)
    _add_groups(command, "whole groups are held out to choose sigma2, the step size and whether to train")
    _add_seed_and_quiet(command, "seed of the bundled data and of training (default: 0)")


def _add_predict(command: argparse.ArgumentParser) -> None:
    _add_use(command)
    add = command.add_argument
    add("--proba", action="store_true", help="class probabilities beside the labels")
    add("--novelty", action="store_true", help="of a scene, also a map of how unusual the pixels are")
    window = "of a scene, odd width of the moving average, as for the pixels of training (default: 1)"
    add("--window", type=_integer(1), default=1, metavar="W", help=window)
    looks = "of a scene, rows and columns averaged to a pixel (default: 1 1)"
    add("--looks", type=_integer(1), nargs=2, default=[1, 1], metavar=("R", "C"), help=looks)
    add("--jobs", type=_jobs, default=1, metavar="J", help="threads; -1 takes all cores (default: 1)")


def _add_stream(command: argparse.ArgumentParser) -> None:
    _add_use(command)
    command.add_argument("--batch", type=_integer(1), default=1, metavar="B", help="samples per batch (default: 1)")
    command.add_argument("--save", metavar="FILE.npz", help="file for the model that learned (default: none)")


def _add_use(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    reject = "no label for samples between classes or far from all training samples; needs a model of train --coverage"
    model = command.add_mutually_exclusive_group(required=True)
    file = "file that train wrote, or save_model in Python"
    model.add_argument("model", nargs="?", default=argparse.SUPPRESS, metavar="MODEL", help=file)
    model.add_argument("--model", default=argparse.SUPPRESS, metavar="FILE.npz", help="the same, by an option")
    _add_groups(command, "a pipeline with recenter re-centres each group")
    add("--reject", action="store_true", help=reject)
    add("--out", metavar="FILE", help="file to write instead of standard output")


def _add_model_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--prototypes", type=_integer(1), default=1, metavar="K", help="prototypes per class (default: 1)")
    add("--epochs", type=_integer(0), default=20, metavar="T", help="sweeps over the training data (default: 20)")
    add("--sigma2", type=_sigma2, default="auto", help="variance of the mixture: a positive number, or auto (default)")


def _add_groups(command: argparse.ArgumentParser, effect: str) -> None:
    groups = "array of the data files, or a .npy file, with the group of each sample, such as its subject; "
    groups += f"{BY_FILE} makes each file a group"
    command.add_argument("--groups", metavar="NAME|FILE.npy", help=f"{groups}; {effect} (default: none)")


def _add_seed_and_quiet(command: argparse.ArgumentParser, seed: str) -> None:
    command.add_argument("--seed", type=_integer(0, 2**32 - 1), default=0, help=seed)
    # A progress bar cannot be written to a standard error that is closed.
    command.add_argument("--quiet", action="store_true", default=sys.stderr is None, help="no progress bar")


def _one_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Make a parser of comma-separated names."""

    def parse(text: str) -> list[str]:
        names = [plain_name(name.strip()) for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError(f"{(unknown or [text])[0]!r} is not one of {', '.join(known)}")
        return names

    return parse


def _value(
    kind: Callable[[str], float], fits: Callable[[float], bool], wanted: str, *words: str
) -> Callable[[str], object]:
    """Make a parser of numbers of a kind that fit, or of some words."""

    def parse(text: str) -> object:
        if text in words:
            return text
        with suppress(ValueError):
            if fits(value := kind(text)):
                return value
        raise argparse.ArgumentTypeError(f"must be {wanted}, got {text!r}")

    return parse


def _integer(least: int, most: float = math.inf) -> Callable[[str], object]:
    limit = f"from {least} to {most}" if most < math.inf else f"of at least {least}"
    return _value(int, lambda value: least <= value <= most, f"an integer {limit}")


_jobs = _value(int, lambda value: 0 < abs(value) < 10000, "a number of processes up to 9999, or -1 for all cores")
_share = _value(float, lambda value: 0 < value <= 1, "a number above 0 and at most 1")
_sigma2 = _value(float, lambda value: 0 < value < math.inf, "auto or a positive number", "auto")


def _setting(text: str) -> tuple[str, object]:
    name, is_pair, value = text.partition("=")
    if not name or not is_pair:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def say(text: str, *, is_error: bool = False) -> None:
    """Write to standard output, or to standard error; a stream that is closed takes nothing.

    Characters that the encoding of the stream lacks become backslash escapes. OSError is raised if writing fails.
    """
    stream = sys.stderr if is_error else sys.stdout
    if stream is None:  # it was closed before Python started
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError:
        # What is left in the buffer goes nowhere. Otherwise Python would try again at exit, and fail with other words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise
