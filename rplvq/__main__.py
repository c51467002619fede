"""Runs the command line: ``python -m rplvq``, or the command ``rplvq``."""

import signal
import sys

from rplvq.cli import main


def run() -> int:
    """Run the command line for a process of its own, which Ctrl-C ends; return the exit status."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the result is complete, so nothing is left to interrupt
    return status


if __name__ == "__main__":
    sys.exit(run())
