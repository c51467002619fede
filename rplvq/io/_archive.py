"""Sealed archives: a .npz of a JSON header and plain arrays, checksummed, never half written.

The archive's comment ends in the SHA-256 of all bytes before it, so that any changed, missing or
added byte is found. It finds damage; it does not tell who wrote a file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import secrets
import shutil
import struct
import tokenize
import zipfile
import zlib
from typing import Any, NamedTuple

import numpy as np

from rplvq.exceptions import ModelFileError
from rplvq.protocols import Array

__all__ = [
    "CHECKPOINT",
    "MODEL",
    "UNREADABLE",
    "Kind",
    "open_archive",
    "replace_file",
    "seal_archive",
]

FORMAT = "rplvq-model"
FORMAT_VERSION = 1
SEAL = b"rplvq-model sha256 "
DIGEST_SIZE = 64
UNREADABLE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    OSError,
    EOFError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy, zipfile and json raise at bytes that only look like theirs."""


class Kind(NamedTuple):
    """A kind of file: what it is called in messages, and the format and version that its header names."""

    name: str
    form: str
    version: int


MODEL = Kind("model", FORMAT, FORMAT_VERSION)
CHECKPOINT = Kind("checkpoint", "rplvq-checkpoint", 1)


def seal_archive(header: dict[str, Any], arrays: dict[str, Array], kind: Kind = MODEL) -> bytes:
    """Bytes of a model file or a checkpoint.

    Parameters
    ----------
    header : dict
        JSON; the format, its version, and type and shape of the arrays are added.
    arrays : dict of str to ndarray
        Of any shape, none of dtype object, none named ``header``.
    kind : Kind, default=MODEL
        What the file is.

    Returns
    -------
    bytes
        The archive, whose comment ends in the digest of all before it.

    Examples
    --------
    >>> data = seal_archive({"of": "two zeros"}, {"x": np.zeros(2)})
    >>> header, arrays = open_archive("example.npz", data)
    >>> header["of"], header["format_version"], arrays
    ('two zeros', 1, {'x': array([0., 0.])})
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
    """Check the seal and the format of a model file or a checkpoint.

    Parameters
    ----------
    path : str or path-like
        Name of the file, for messages.
    data : bytes
        All of its content.
    kind : Kind, default=MODEL
        What the file must be.

    Returns
    -------
    header : dict
        JSON.
    arrays : dict of str to ndarray
        As they were saved.

    Raises
    ------
    ModelFileError
        If the seal does not match, or the content is none of this format's.

    Examples
    --------
    See :func:`seal_archive`.

    >>> open_archive("notes.txt", b"hello")
    Traceback (most recent call last):
    rplvq.exceptions.ModelFileError: notes.txt is not a model file: it is no .npz archive
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
    """Write a file beside ``path``, then rename it: at no moment is ``path`` a part of a file.

    Parameters
    ----------
    path : pathlib.Path
        Where the file goes; one that is there is replaced and lends its permissions.
    data : bytes
        The content.

    Raises
    ------
    OSError
        If it cannot be written; what was there stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x")
    ...     replace_file(path, b"old")
    ...     replace_file(path, b"new")
    ...     path.read_bytes(), len(os.listdir(folder))
    (b'new', 1)
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
