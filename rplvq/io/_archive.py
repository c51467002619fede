"""Sealed archives: .npz files that hold a JSON header and plain arrays.

The comment of the zip archive ends with the SHA-256 of all bytes before it, so that any changed, missing or added byte
is found. The seal finds damage; it does not prove who wrote the file.
"""

import hashlib
import io
import json
import os
import platform
import stat
import struct
import tokenize
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np

from rplvq.arrays import LazyRows, parts_of
from rplvq.exceptions import ModelFileError
from rplvq.io._files import MOST_HEADER, MOST_MEMBERS, open_members
from rplvq.parts import library_version
from rplvq.protocols import Array

MODEL = "model"
CHECKPOINT = "checkpoint"
NEWEST = {MODEL: 1, CHECKPOINT: 1}
"""Newest version of the format of each kind of file. The header states it, and the name ``rplvq-`` and the kind."""
SEAL = b"rplvq-model sha256 "
DIGEST_SIZE = 64
UNREADABLE = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError),
    *(OSError, EOFError, SyntaxError, tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""Exceptions that NumPy, zipfile and json raise for bytes that are not what they seem to be."""


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
