"""Files that must not be lost, files that are not trusted, and sealed archives: .npz files of a JSON header and arrays.

The comment of the zip archive ends with the SHA-256 of all bytes before it, so that any changed, missing or added byte
is found. The seal finds damage; it does not prove who wrote the file.
"""

import errno
import hashlib
import io
import json
import math
import os
import pathlib
import platform
import secrets
import shutil
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from rplvq.arrays import LazyRows, parts_of
from rplvq.exceptions import ModelFileError
from rplvq.parts import library_version
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
MODEL = "model"
CHECKPOINT = "checkpoint"
NEWEST = {MODEL: 2, CHECKPOINT: 2}
"""Newest version of the format of each kind of file. The header states it, and the name ``rplvq-`` and the kind."""
SEAL = b"rplvq-model sha256 "
DIGEST_SIZE = 64
UNREADABLE = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError),
    *(OSError, EOFError, SyntaxError, tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""Exceptions that NumPy, zipfile and json raise for bytes that are not what they seem to be."""


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
        if not dtype.hasobject and math.prod(shape) * dtype.itemsize > entry.file_size:
            raise ValueError(f"it has {entry.file_size} bytes, too few for shape {shape} of {dtype}")
        with archive.open(entry) as member:
            return form.read_array(member, allow_pickle=False)  # type: ignore[no-any-return]
    except ValueError as error:
        raise ValueError(f"its member {entry.filename!r} is not an array of NumPy: {error}") from error


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that every kind of file states."""
    return {"rplvq": library_version(), "numpy": np.__version__, "python": platform.python_version()}


def seal_archive(header: dict[str, object], arrays: dict[str, Array], kind: str = MODEL) -> bytes:
    """Return the bytes of an archive with a JSON header and arrays by name.

    No array may have the dtype object or the name ``header``. The format, its version, and the dtypes and shapes of the
    arrays are added to the header. ValueError is raised if :func:`open_archive` would refuse the size.
    """
    whole = {"format": f"rplvq-{kind}", "format_version": NEWEST[kind], "arrays": _shapes(arrays)} | header
    text = json.dumps(whole, allow_nan=False).encode()
    if len(arrays) >= MOST_MEMBERS or len(text) > MOST_HEADER:
        size = f"it has {len(arrays) + 1} arrays and a header of {len(text)} bytes"
        raise ValueError(f"the {kind} cannot be saved: {size}, above {MOST_MEMBERS} or {MOST_HEADER}")
    buffer = io.BytesIO()
    archive = zipfile.ZipFile(buffer, "w")
    try:
        for name, array in {**arrays, "header": np.frombuffer(text, dtype=np.uint8)}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        archive.comment = SEAL + b"0" * DIGEST_SIZE
        archive.close()
    except BaseException:  # Ctrl-C
        archive.fp = None  # otherwise the half-written archive complains on standard error when it is deleted
        raise
    body = buffer.getvalue()[:-DIGEST_SIZE]
    return body + hashlib.sha256(body).hexdigest().encode()


def open_archive(path: str | os.PathLike[str], kind: str = MODEL) -> tuple[dict[str, Any], dict[str, Array]]:
    """Check the seal and the format of a file; return its header and its arrays.

    ModelFileError is raised if the seal does not match, if the content has another format, or if it claims more memory
    than a file of its size needs. OSError is raised if the file cannot be read.
    """
    name = os.fspath(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # reading a device or a pipe may never end
            raise ValueError("it is no regular file")
        with open(path, "rb") as file:
            _check_seal(name, file, kind)
            with open_members(file) as members:
                text = members.pop("header")().tobytes()
                if len(text) > MOST_HEADER:
                    raise ValueError(f"its header has {len(text)} bytes, more than {MOST_HEADER}")
                arrays = {member: read() for member, read in members.items()}
                header = json.loads(text)
        _check_format(header, arrays, kind)
    except (OSError, ModelFileError):
        raise
    except UNREADABLE as error:
        raise ModelFileError(f"{name} cannot be read as a {kind}: {error or type(error).__name__}") from error
    return header, arrays


def _check_seal(name: str, file: BinaryIO, kind: str) -> None:
    """Raise ModelFileError unless a file begins as an archive and ends with the seal of its content."""
    if file.read(4) != b"PK\3\4":
        raise ModelFileError(f"{name} is not a {kind} file: it is no .npz archive")
    left = file.seek(0, os.SEEK_END) - DIGEST_SIZE
    file.seek(max(0, left - len(SEAL)))
    end = file.read()
    if not end.startswith(SEAL):
        raise ModelFileError(f"{name} has no seal of rplvq at its end: it is cut off, or rplvq did not save it")
    file.seek(0)
    digest = hashlib.sha256()
    while left and (part := file.read(min(left, 1 << 20))):
        digest.update(part)
        left -= len(part)
    if digest.hexdigest().encode() != end[len(SEAL) :]:
        raise ModelFileError(f"{name} is damaged or was changed: its SHA-256 checksum does not match its content")


def _check_format(header: dict[str, object], arrays: dict[str, Array], kind: str) -> None:
    form = header["format"]
    version = header["format_version"]
    if form != f"rplvq-{kind}" or type(version) is not int or version < 1:  # True is an int, and no version
        raise ValueError(f"its format is {form!r}, version {version!r}")
    if version > NEWEST[kind]:
        newest = f"{NEWEST[kind]}, the newest that this version of rplvq reads. Update rplvq"
        raise ValueError(f"it has format version {version}, newer than {newest}")
    if version < NEWEST[kind]:
        raise ValueError(f"it has format version {version}, of a time before the first release: train the model again")
    if header["arrays"] != _shapes(arrays):
        raise ValueError("its arrays are not those that its header lists")


def _shapes(arrays: dict[str, Array]) -> dict[str, list[object]]:
    return {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}


def digest_of(values: list[Array | str | None]) -> str:
    """Return the SHA-256 of arrays (dtypes, shapes and values) and of texts, in hexadecimal digits."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, (np.ndarray, LazyRows)):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            for rows in parts_of(value) if value.ndim else [...]:
                digest.update(np.ascontiguousarray(value[rows]).tobytes())
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()
