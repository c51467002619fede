"""Sealed archives: .npz files that hold a JSON header and plain arrays.

The comment of the zip archive ends with the SHA-256 of all bytes before it, so that any changed, missing or added byte
is found. The seal finds damage; it does not prove who wrote the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import platform
import secrets
import shutil
import struct
import tokenize
import zipfile
import zlib
from typing import Any, NamedTuple

import numpy as np

from rplvq.exceptions import ModelFileError
from rplvq.parts import library_version
from rplvq.protocols import Array

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


class Kind(NamedTuple):
    """A kind of file: its name in messages, and the name and newest version of its format, which the header states."""

    name: str
    form: str
    version: int


MODEL = Kind("model", "rplvq-model", 1)
CHECKPOINT = Kind("checkpoint", "rplvq-checkpoint", 1)


def seal_archive(header: dict[str, Any], arrays: dict[str, Array], kind: Kind = MODEL) -> bytes:
    """Return the bytes of an archive with a JSON header and arrays by name.

    No array may have the dtype object or the name ``header``. The format, its version, and the dtypes and shapes of the
    arrays are added to the header.
    """
    whole = {"format": kind.form, "format_version": kind.version, "arrays": _shapes(arrays)} | header
    text = json.dumps(whole, allow_nan=False).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in {**arrays, "header": np.frombuffer(text, dtype=np.uint8)}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        archive.comment = SEAL + b"0" * DIGEST_SIZE
    body = buffer.getvalue()[:-DIGEST_SIZE]
    return body + hashlib.sha256(body).hexdigest().encode()


def open_archive(
    path: str | os.PathLike[str], data: bytes, kind: Kind = MODEL
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Check the seal and the format of a file with content ``data``; return its header and its arrays.

    ModelFileError is raised if the seal does not match or the content has another format. ``path`` is only used in
    messages.
    """
    name = os.fspath(path)
    if not data.startswith(b"PK"):
        raise ModelFileError(f"{name} is not a {kind.name} file: it is no .npz archive")
    body, digest = data[:-DIGEST_SIZE], data[-DIGEST_SIZE:]
    if not body.endswith(SEAL):
        raise ModelFileError(f"{name} has no seal of rplvq at its end: it is cut off, or rplvq did not save it")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ModelFileError(f"{name} is damaged or was changed: its SHA-256 checksum does not match its content")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as members:
            arrays = {member: members[member] for member in members.files}
        header = json.loads(arrays.pop("header").tobytes())
        _check_format(header, arrays, kind)
    except UNREADABLE as error:
        raise ModelFileError(f"{name} cannot be read as a {kind.name}: {error or type(error).__name__}") from error
    return header, arrays


def _check_format(header: dict[str, Any], arrays: dict[str, Array], kind: Kind) -> None:
    form, version = header["format"], header["format_version"]
    if form != kind.form or type(version) is not int or version < 1:
        raise ValueError(f"its format is {form!r}, version {version!r}")
    if version > kind.version:
        raise ValueError(
            f"it has format version {version}, newer than {kind.version}, the newest that this "
            "version of rplvq reads. Update rplvq"
        )
    if header["arrays"] != _shapes(arrays):
        raise ValueError("its arrays are not those that its header lists")


def _shapes(arrays: dict[str, Array]) -> dict[str, list[Any]]:
    return {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}


def replace_file(path: pathlib.Path, data: bytes) -> None:
    """Write a file under a temporary name, then rename it to ``path``, so that ``path`` never holds half a file.

    A file that exists at ``path`` is replaced, and its permissions are kept. If writing fails (OSError), it stays.
    """
    temporary = path.with_name(f".rplvq-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if path.exists():
                shutil.copymode(path, temporary)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
