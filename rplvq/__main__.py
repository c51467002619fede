"""Runs the command line: ``python -m rplvq``."""

import sys

from rplvq.cli import main

if __name__ == "__main__":
    sys.exit(main())
