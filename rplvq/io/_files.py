"""Files that must not be lost, and files that are not trusted: writing by renaming, and reading within bounds."""

import errno
import math
import os
import pathlib
import secrets
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from rplvq.protocols import Array

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has no locks of folders
    fcntl = None

MOST_MEMBERS = 4096  # number of members of an archive that are read
MOST_HEADER = 1 << 24  # number of bytes of its JSON header that are read
MOST_INFLATION = 100  # a compressed archive may claim this multiple of its size, or as many bytes as the next number
ALWAYS_FINE = 1 << 26  # small files may be compressed at any rate


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that :func:`replace_file` would raise, before anything is computed for the file."""
    with _naming(path), _temporary(_target(path)):
        pass


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file under a temporary name, then rename it to ``path``, so that ``path`` never holds half a file.

    A regular file that exists at ``path`` is replaced, and its permissions are kept. If writing fails, it stays, and an
    OSError names ``path``. Anything else at ``path``, such as a folder or a device, is refused.
    """
    with _naming(path):
        target = _target(path)
        with _temporary(target) as temporary:
            if target.exists():
                shutil.copymode(target, temporary)
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)  # in the same folder, where renaming is one step


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error into an OSError that names the path of the user instead of that of a temporary file."""
    try:
        yield
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        text = f"{os.fsdecode(path)!r} cannot be written: {getattr(error, 'strerror', None) or error}"
        if number is None:
            raise OSError(text) from error
        raise OSError(number, text) from error


def _target(path: str | os.PathLike[str]) -> pathlib.Path:
    """Return the real path of a file that may be written; raise OSError if it cannot be a regular file in a folder."""
    name = os.fsdecode(path)
    if not os.path.basename(name):
        raise IsADirectoryError(errno.EISDIR, "it names no file")
    target = pathlib.Path(os.path.realpath(name))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"its folder does not exist, {str(target.parent)!r}")
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(mode := target.stat().st_mode):
            number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(number, "it is no regular file, but a folder, a device or a pipe")
    return target


@contextmanager
def _temporary(target: pathlib.Path) -> Iterator[pathlib.Path]:
    """Make an empty file beside ``target``, which is removed at the end unless it was renamed.

    Processes hold a shared lock on the folder as long as they have such a file in it. One that gets the folder for
    itself alone knows therefore that all such files are those of killed processes, and removes them.
    """
    handle = None
    temporary = target.with_name(f".rplvq-{secrets.token_hex(8)}.tmp")
    try:
        with suppress(OSError, AttributeError):  # a folder that cannot be locked is not cleaned
            handle = os.open(target.parent, os.O_RDONLY)
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for leftover in target.parent.glob(".rplvq-*.tmp"):
                    with suppress(OSError):
                        leftover.unlink()
            fcntl.flock(handle, fcntl.LOCK_SH)
        temporary.touch(exist_ok=False)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


@contextmanager
def open_members(file: BinaryIO, *, deflated: bool = False) -> Iterator[dict[str, Callable[[], Array]]]:
    """Give the members of a .npz archive by name, each as a function that reads its array, without pickle.

    ValueError is raised, before a member is read, if the archive could take more memory than a file of its size needs:
    if it has too many members, if they claim more bytes than the file has, or if a member is compressed. ``deflated``
    allows what numpy.savez_compressed writes, up to a usual rate of compression.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - (1 << 16) - 22))
    tail = file.read()
    end = tail.rfind(b"PK\5\6")
    if end < 0 or len(tail) < end + 22:
        raise ValueError("it is not a .npz file; write one by numpy.savez(path, X=X, y=y)")
    is_long = tail[max(0, end - 20) :].startswith(b"PK\6\7") and size < 1 << 31  # zipfile then reads another directory
    too_many = f"it has more than {MOST_MEMBERS} members, or members of long names"
    if is_long or struct.unpack_from("<L", tail, end + 12)[0] > 256 * MOST_MEMBERS:
        raise ValueError(too_many)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if len(entries) > MOST_MEMBERS:
            raise ValueError(too_many)
        formats = {zipfile.ZIP_STORED}
        most = size
        if deflated:
            formats.add(zipfile.ZIP_DEFLATED)
            most = max(MOST_INFLATION * size, ALWAYS_FINE)
        for entry in entries:
            if entry.compress_type not in formats:
                raise ValueError(f"its member {entry.filename!r} is compressed: store it as numpy.savez does")
        if sum(entry.file_size for entry in entries) > most:
            raise ValueError(f"its members claim more bytes than a file of {size} bytes holds")
        yield {entry.filename.removesuffix(".npy"): partial(_read_array, archive, entry) for entry in entries}


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    form: Any = np.lib.format
    try:
        with archive.open(entry) as member:  # NumPy would allocate the shape before it finds the data missing
            read_header = form.read_array_header_1_0 if form.read_magic(member)[0] == 1 else form.read_array_header_2_0
            shape, _, dtype = read_header(member)
        if math.prod(shape) * dtype.itemsize > entry.file_size:
            raise ValueError(f"it has {entry.file_size} bytes, too few for shape {shape} of {dtype}")
        with archive.open(entry) as member:
            return form.read_array(member, allow_pickle=False)  # type: ignore[no-any-return]
    except ValueError as error:
        raise ValueError(f"its member {entry.filename!r} is not an array of NumPy: {error}") from error
