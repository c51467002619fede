"""Checkpoints: a fit that is killed goes on from its last one, to the same bits.

A checkpoint is a sealed archive like a model file (see :mod:`rplvq.io`): one .npz without pickle,
replaced at once or not at all. It holds where the run stands (:class:`rplvq.training.Progress`: prototypes as training
carries them, schedules, random bits, history, the best state of early stopping), and fingerprints of the data and
of the parameters, so that it is not continued with others.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import platform
import time
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.arrays import LazyRows, parts_of
from rplvq.exceptions import ModelFileError
from rplvq.io._archive import CHECKPOINT, UNREADABLE, open_archive, replace_file, seal_archive
from rplvq.io._codec import Packer, Unpacker
from rplvq.parts import count_from, library_version, positive_or_none
from rplvq.protocols import Array
from rplvq.training import EpochReport, Origin, Progress, State, columns

__all__ = ["Checkpoint", "LoadedCheckpoint", "load_checkpoint", "require_same_origin"]

UNTOUCHED = {"callbacks", "decision", "n_jobs", "random_state", "verbose"}
"""Parameters that training does not depend on; of random_state the seed counts that was drawn from it."""


def _real_path(path: str | os.PathLike[str]) -> str:
    """Where a file is, whatever the working directory becomes."""
    return os.path.realpath(path)


@attrs.define
class Checkpoint:
    """Callback that writes where training stands, so that ``fit(X, y, resume=path)`` goes on from there.

    The file is replaced at once or not at all: whoever kills the process at whatever moment loses the epochs
    since the last checkpoint, never the checkpoint. A process that dies while it writes can leave
    ``.rplvq-*.tmp`` beside it. Put it last among the callbacks: it then knows whether another one stopped training.

    Parameters
    ----------
    path : path-like
        File to write; one file a fit.
    every : int, optional
        Write after each epoch that is a multiple of this number; 1 if ``seconds`` is not given either.
    seconds : float, optional
        Write after an epoch that ends this long after the last checkpoint. The first epoch that is seen is
        always written: what cannot be written is then known at the start.

    Raises
    ------
    ValueError
        If a setting is invalid; when called, if a part cannot be stored: see :func:`rplvq.parts.register_part`.
    OSError
        When called, if the file cannot be written; the fit ends, and the last checkpoint stays.

    Examples
    --------
    >>> import os, tempfile
    >>> from rplvq import Checkpoint, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=5, random_state=0)
    >>> def lightning(report):
    ...     if report.state.epoch == 3:
    ...         raise RuntimeError
    >>> whole = RiemannianLVQ(max_epochs=4, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.npz")
    ...     model = RiemannianLVQ(max_epochs=4, random_state=0, callbacks=[Checkpoint(path, every=2), lightning])
    ...     try:
    ...         model.fit(X, y)
    ...     except RuntimeError:
    ...         again = model.set_params(callbacks=()).fit(X, y, resume=path)  # from epoch 2
    >>> bool((again.prototypes_ == whole.prototypes_).all())
    True
    """

    path: str = attrs.field(converter=_real_path)
    every: int | None = attrs.field(default=None, validator=count_from(1, or_none=True))
    seconds: float | None = attrs.field(default=None, validator=positive_or_none)
    _written: float | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __call__(self, report: EpochReport) -> None:
        """Write a checkpoint if one is due."""
        if not self._is_due(report.state.epoch):
            return
        packer = Packer()
        header = _describe(report.progress, report.origin, packer)
        replace_file(pathlib.Path(self.path), seal_archive(header, packer.arrays, CHECKPOINT))
        self._written = time.monotonic()

    def _is_due(self, epoch: int) -> bool:
        if self._written is None or (self.every is None and self.seconds is None):
            return True
        by_epoch = self.every is not None and epoch % self.every == 0
        return by_epoch or (self.seconds is not None and time.monotonic() - self._written >= self.seconds)


class LoadedCheckpoint(NamedTuple):
    """Content of a checkpoint.

    Parameters
    ----------
    progress : rplvq.training.Progress
        Where the run stood.
    origin : dict or None
        ``seed``, ``data`` (SHA-256) and ``parameters`` (a text each) of the fit; None for a bare trainer's.
    versions : dict of str to str
        Of the libraries that wrote it.
    """

    progress: Progress
    origin: dict[str, Any] | None
    versions: dict[str, str]


def load_checkpoint(path: str | os.PathLike[str]) -> LoadedCheckpoint:
    """Read what a :class:`Checkpoint` wrote; ``fit(X, y, resume=path)`` does it for you.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    LoadedCheckpoint
        Its ``progress`` goes into :meth:`rplvq.Trainer.epochs`.

    Raises
    ------
    rplvq.exceptions.ModelFileError
        If the file is no checkpoint, is damaged, has a newer format, or holds a part that is not known here.
        It is a ValueError.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> from rplvq import Checkpoint, RiemannianLVQ
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.npz")
    ...     model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=3, callbacks=[Checkpoint(path)])
    ...     model = model.fit([[0.0], [1.0]], ["no", "yes"])
    ...     load_checkpoint(path).progress.state.epoch
    3
    """
    header, arrays = open_archive(path, pathlib.Path(path).read_bytes(), CHECKPOINT)
    unpacker = Unpacker(arrays)
    try:
        fields = {name: unpacker.unpack(value) for name, value in header["progress"].items()}
        history = fields.pop("history")
        lines = zip(*(column.tolist() for column in history.values()), strict=True)
        rows = tuple(dict(zip(history, line, strict=True)) for line in lines)
        progress, origin = Progress(rows=rows, **fields), header["origin"]
        if not (isinstance(progress.state, State) and isinstance(progress.best, State)):
            raise ValueError("it holds no state of a trainer")
        known = None if origin is None else {name: origin[name] for name in ("seed", "data", "parameters")}
        return LoadedCheckpoint(progress, known, dict(header["versions"]))
    except UNREADABLE as error:
        raise ModelFileError(f"{os.fspath(path)}: {error or type(error).__name__}") from error


def require_same_origin(path: str | os.PathLike[str], loaded: LoadedCheckpoint, origin: Origin) -> None:
    """Raise ValueError if a checkpoint is of a fit with other parameters or other data."""
    name, found = os.fspath(path), loaded.origin
    if found is None:
        raise ValueError(f"{name} was written by a Trainer, not by a fit: go on with Trainer.epochs")
    wanted = _fingerprints(origin)
    for parameter in sorted({*wanted["parameters"], *found["parameters"]} - UNTOUCHED):
        then, now = (texts["parameters"].get(parameter, "absent") for texts in (found, wanted))
        if then != now:
            raise ValueError(
                f"{name} was written by a fit with {parameter}={then}, this one has {now}: set the same to resume it"
            )
    if found["seed"] != wanted["seed"]:
        raise ValueError(f"{name} was written by a fit with another random_state: set the same to resume it")
    if found["data"] != wanted["data"]:
        other = {key: value for key, value in _versions().items() if loaded.versions.get(key) != value}
        why = f" (or other versions than {loaded.versions} round otherwise)" if other else ""
        raise ValueError(f"{name} was written by a fit on other samples, labels or weights{why}: pass the same")


def _describe(progress: Progress, origin: Origin | None, packer: Packer) -> dict[str, Any]:
    """Header of a checkpoint; its arrays are left in ``packer``."""
    fields = progress._asdict() | {"history": columns(list(progress.rows))}
    del fields["rows"]
    return {
        "versions": _versions(),
        "origin": None if origin is None else _fingerprints(origin),
        "progress": {name: packer.pack(value, name) for name, value in fields.items()},
    }


def _versions() -> dict[str, str]:
    return {"rplvq": library_version(), "numpy": np.__version__, "python": platform.python_version()}


def _fingerprints(origin: Origin) -> dict[str, Any]:
    """Seed, digest of the data, and a text for each parameter."""
    data = [origin.samples.codes, origin.samples.targets, origin.samples.weights]
    parameters = {name: value for name, value in origin.parameters.items() if name not in UNTOUCHED}
    return {
        "seed": origin.seed,
        "data": digest_of([repr(origin.classes.tolist()), *data]),
        "parameters": {name: _text(value, name) for name, value in parameters.items()},
    }


def _text(value: Any, name: str) -> str:
    """Write a parameter as JSON, or if that is long or holds arrays, as its digest."""
    packer = Packer()
    text = json.dumps(packer.pack(value, name), sort_keys=True)
    if packer.arrays or len(text) > 200:
        return f"sha256 {digest_of([text, *packer.arrays.values()])}"
    return text


def digest_of(values: list[Array | str | None]) -> str:
    """SHA-256, in hexadecimal digits, of arrays: their types, shapes and values."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, (np.ndarray, LazyRows)):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            for rows in parts_of(value) if value.ndim else [...]:
                digest.update(np.ascontiguousarray(value[rows]).tobytes())
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()
