"""The options of the command line, and the parsers of their values."""

import argparse
import math
import sys
from collections.abc import Callable, Collection
from typing import Any, NoReturn

from rplvq.cli._data import DATASETS
from rplvq.cli._streams import say
from rplvq.costs import COSTS
from rplvq.evaluation import BASELINES, METRICS, TESTS
from rplvq.manifolds import MANIFOLDS
from rplvq.parts import plain_name

EXAMPLES = {
    "compare": """\
examples:
  python -m rplvq compare
      two metrics, each trained and with its class means, on 900 images of digits; about a minute on two cores
  python -m rplvq compare --out report figure.pdf
      the same; also writes tables and a picture into the folder report, and the picture as figure.pdf
  python -m rplvq compare --data mine.npz --groups subject --metrics riemann,logeuclid,euclid --baselines mdm
      your own: numpy.savez("mine.npz", X=X, y=y, subject=subject) with X of shape (N, n, n), and y and subject of
      shape (N,); all samples of a subject are in one fold

Folds are shared by all methods. "MDM" is the classifier of minimum distance to the class means, which is what
training starts from. Seconds are wall time; several processes share the cores.
""",
    "fit": """\
examples:
  python -m rplvq fit --data digits --prototypes 2 --model digits.npz
  python -m rplvq fit --data mine.npz --metric log_euclidean --epochs 50 --model mine-model.npz --json
  python -m rplvq fit --data mine.npz --model mine-model.npz --coverage 0.9

mine.npz comes from numpy.savez("mine.npz", X=X, y=y) with X of shape (N, n, n) and y of shape (N,).
rplvq.load_model reads the model file in Python.
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
    "info": """\
examples:
  python -m rplvq info digits.npz
  python -m rplvq info digits.npz --json
""",
}


class UsageError(ValueError):
    """An invalid argument, or a file that cannot be used; the user sees one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: Any = None) -> None:
        say(self.format_help())


class _Flat(argparse.Action):
    """Join the lists of several values, without repetitions."""

    def __call__(self, _: Any, namespace: argparse.Namespace, values: Any, __: str | None = None) -> None:
        setattr(namespace, self.dest, list(dict.fromkeys(name for part in values for name in part)))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of ``python -m rplvq``, which raises UsageError at invalid arguments."""
    parser = _Parser(
        prog="python -m rplvq", description="Prototype learning on Riemannian manifolds.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", metavar="{compare,fit,predict,info}", required=True)
    _add_compare(_command(commands, "compare", "compare metrics and costs by cross-validation on the same folds"))
    _add_fit(_command(commands, "fit", "train one model and write it to a file"))
    _add_predict(_command(commands, "predict", "predict the labels of samples by a model file"))
    info = _command(commands, "info", "describe a model file")
    info.add_argument("model", metavar="FILE.npz", help="file that fit wrote")
    return parser


def _command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    if name in ("compare", "fit"):
        names = f"{', '.join(DATASETS)}, or a file with X and y (default: digits)"
        parser.add_argument("--data", default="digits", metavar="NAME|FILE.npz", help=names)
    return parser


def _add_compare(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    files = "folder for tables and a picture, made if absent, or files .txt .csv .md .tex .png .svg .pdf; "
    files += "old ones are replaced"
    add("--out", metavar="PATH", nargs="+", default=[], help=f"{files} (default: none)")
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
    add("--test", choices=TESTS, default=TESTS[0], help=f"test of the differences (default: {TESTS[0]})")
    add("--jobs", type=_jobs, default=-1, metavar="J", help="processes; -1 takes all cores (default: -1)")
    _add_seed_and_quiet(command, "seed of data, folds and training (default: 0)")


def _add_fit(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    checkpoint = "file that keeps the progress of training; if it exists, training continues from there. It is removed "
    checkpoint += "when the model is complete (default: none)"
    add("--model", required=True, metavar="FILE.npz", help="file to write; an old file is replaced")
    add("--checkpoint", metavar="FILE.npz", help=checkpoint)
    coverage = "share of samples like the training samples that predict --reject labels; it fits five more models, and "
    coverage += "the file keeps their limits (default: none)"
    add("--coverage", type=_share, metavar="C", help=coverage)
    add(
        "--metric",
        type=plain_name,
        choices=list(MANIFOLDS),
        default="affine_invariant",
        help="default: affine_invariant",
    )
    add("--cost", type=plain_name, choices=list(COSTS), default="rslvq", help="default: rslvq")
    _add_model_options(command)
    _add_groups(command, "whole groups are held out to choose sigma2, the step size and whether to train")
    _add_seed_and_quiet(command, "seed of the bundled data and of training (default: 0)")


def _add_predict(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    data = f"{', '.join(DATASETS)}, a .npz file with X, or a .npy file; with y in it, the accuracy is printed, too. Or "
    data += "the folder of a radar scene"
    model = command.add_mutually_exclusive_group(required=True)
    model.add_argument("model", nargs="?", default=argparse.SUPPRESS, metavar="MODEL", help="file that fit wrote")
    model.add_argument("--model", metavar="FILE.npz", default=argparse.SUPPRESS, help="the same, by an option")
    add("--data", required=True, metavar="NAME|FILE", help=data)
    add("--proba", action="store_true", help="class probabilities beside the labels")
    reject = "no label for samples between classes or far from all training samples; needs a model of fit --coverage"
    add("--reject", action="store_true", help=reject)
    add("--out", metavar="FILE", help="file to write instead of standard output")
    add("--novelty", action="store_true", help="of a scene, also a map of how unusual the pixels are")
    window = "of a scene, odd width of the moving average, as for the pixels of training (default: 1)"
    add("--window", type=_integer(1), default=1, metavar="W", help=window)
    looks = "of a scene, rows and columns averaged to a pixel (default: 1 1)"
    add("--looks", type=_integer(1), nargs=2, default=[1, 1], metavar=("R", "C"), help=looks)
    add("--jobs", type=_jobs, default=1, metavar="J", help="threads; -1 takes all cores (default: 1)")


def _add_model_options(command: argparse.ArgumentParser) -> None:
    add, sigma2 = command.add_argument, "variance of the mixture: a positive number or auto (default: auto)"
    add("--prototypes", type=_integer(1), default=1, metavar="K", help="prototypes per class (default: 1)")
    add("--epochs", type=_integer(0), default=20, metavar="T", help="sweeps over the training data (default: 20)")
    add("--sigma2", type=_sigma2, default="auto", help=sigma2)


def _add_groups(command: argparse.ArgumentParser, effect: str) -> None:
    groups = "array of the data file, or a .npy file, with the group of each sample, such as its subject"
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
    if text.removeprefix("-").isdecimal() and len(text) < 5 and int(text) != 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a number of processes up to 9999, or -1 for all cores, got {text!r}")


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be a number above 0 and at most 1, got {text!r}")
    return value


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
