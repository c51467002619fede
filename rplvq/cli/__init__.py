"""The command line: options, data, and the command itself."""

from rplvq.cli._command import main

__all__ = ["main"]
