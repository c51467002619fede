"""The command line, ``python -m rplvq``: compare metrics and costs, train models, use them."""

import sys
from collections.abc import Sequence

from rplvq._start import INTERRUPTED
from rplvq.cli._compare import compare_methods
from rplvq.cli._models import info, predict, stream, train
from rplvq.cli._options import make_parser, say
from rplvq.exceptions import TrainingInterruptedWarning

COMMANDS = {
    "compare": compare_methods, "train": train, "fit": train, "predict": predict, "stream": stream, "info": info,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with some arguments, by default those of the process; return the exit status.

    It is 0 for success, 1 if training failed, 2 if an argument or a file is invalid, and 130 after Ctrl-C, which leaves
    all results of earlier commands as they were. One line on standard error then says why. The status is 141 if nobody
    reads standard output any more.

    Examples
    --------
    >>> from rplvq.cli import main
    >>> main(["train", "--prototypes", "none"])
    2
    """
    try:
        words = sys.argv[1:] if argv is None else list(argv)
        arguments = make_parser().parse_args(words)
        arguments.given = words
        COMMANDS[arguments.command](arguments)
    except BrokenPipeError:
        return 141
    except (ValueError, OSError, ImportError) as error:
        return _fail(error, 2)
    except (RuntimeError, ArithmeticError, MemoryError) as error:
        return _fail(error, 1)
    except (KeyboardInterrupt, TrainingInterruptedWarning):
        return _fail(INTERRUPTED, 130)
    return 0


def _fail(error: object, status: int) -> int:
    line = " ".join(str(error).split()) or type(error).__name__
    say(f"rplvq: error: {line}\n", is_error=True)
    return status
