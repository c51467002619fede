"""The command line. It only reads arguments and files, calls the library, and prints."""

from rplvq.cli._command import main

__all__ = ["main"]
