"""Ctrl-C during the imports of ``python -m rplvq`` or ``rplvq``, before :func:`rplvq.cli.main` can answer it.

It ends the process as later, with one line and exit status 130. The root of the package imports this module first.
"""

import os
import signal
import sys

INTERRUPTED = "interrupted before the result was complete, so none was written"
"""What Ctrl-C on the command line is answered by."""


def leave(*_: object) -> None:
    """End the process at once; Ctrl-C within an import would otherwise raise an error of any type."""
    os.write(2, f"rplvq: error: {INTERRUPTED}\n".encode())
    os._exit(130)


# Python names the module that it will run only after it has imported the package of this module.
_is_module = sys.argv[0] == "-m" and "rplvq" in sys.orig_argv
_is_script = os.path.basename(sys.argv[0]) in ("rplvq", "rplvq.exe")
if (_is_module or _is_script) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, leave)
