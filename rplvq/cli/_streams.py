"""What the command line prints, whatever its standard streams are."""

import os
import sys


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
