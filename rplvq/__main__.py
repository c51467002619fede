"""Runs the command line: ``python -m rplvq``."""

import signal
import sys

from rplvq.cli import main

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the result is complete, so nothing is left to interrupt
    sys.exit(status)
