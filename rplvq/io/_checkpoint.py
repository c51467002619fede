"""Checkpoints: a fit that was killed continues from its last checkpoint and ends with the same bits.

A checkpoint is a sealed archive, like a model file. It holds the :class:`rplvq.training.Progress` of the run, and
fingerprints of the data and the parameters, so that the run is not continued with other ones.
"""

import json
import os
import time
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.exceptions import ModelFileError
from rplvq.io._archive import (
    CHECKPOINT,
    UNREADABLE,
    digest_of,
    open_archive,
    replace_file,
    require_writable,
    seal_archive,
    versions,
)
from rplvq.io._codec import Packer, Unpacker
from rplvq.parts import count_from, number_in
from rplvq.training import EpochReport, Origin, Progress, State, columns

UNTOUCHED = {"callbacks", "decision", "n_jobs", "random_state", "verbose"}
"""Parameters that do not change the training; in place of ``random_state``, the seed drawn from it is compared."""


def _absolute(path: str | os.PathLike[str]) -> str:
    """Return the absolute path, which stays valid if the working directory changes; an empty one stays empty."""
    name = os.fsdecode(path)
    return os.path.join(os.getcwd(), name) if name else name


@attrs.define
class Checkpoint:
    """Callback that saves the progress of training, so that ``fit(X, y, resume=path)`` can continue from there.

    The file is replaced completely or not at all, as by :func:`rplvq.save_model`. Pass the checkpoint as the last
    callback, so that it also records whether another callback stopped training.

    Parameters
    ----------
    path : path-like
        The file to write. Each fit needs its own file.
    every : int, optional
        Write after every epoch whose number is a multiple of this; 1 if ``seconds`` is not given either.
    seconds : float, optional
        Write after an epoch if this time has passed since the last checkpoint. The first epoch is always written.

    Raises
    ------
    ValueError
        If a setting is invalid. When called: if a part cannot be stored, see :func:`rplvq.parts.register_part`.
    OSError
        If the file cannot be written, or if ``path`` is a folder, a device or a pipe. A fit finds this out before
        training. If it happens later, the fit ends, and the last checkpoint stays.

    Examples
    --------
    >>> import os, tempfile
    >>> from rplvq import Checkpoint, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=5, random_state=0)
    >>> model = RiemannianLVQ(sigma2=1.0, max_epochs=4, random_state=0)
    >>> whole = model.fit(X, y).prototypes_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.npz")
    ...     ends = [Checkpoint(path, every=2), lambda report: report.state.epoch == 3]  # as if it were killed there
    ...     model = model.set_params(callbacks=ends).fit(X, y)
    ...     again = model.set_params(callbacks=()).fit(X, y, resume=path)  # from epoch 2
    >>> bool((again.prototypes_ == whole).all())
    True
    """

    path: str = attrs.field(converter=_absolute)
    every: int | None = attrs.field(default=None, validator=count_from(1, or_none=True))
    seconds: float | None = attrs.field(default=None, validator=number_in(or_none=True))
    _written: float | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def before_fit(self) -> None:
        """Raise OSError if the file cannot be written; fits call this before training."""
        require_writable(self.path)

    def __call__(self, report: EpochReport) -> None:
        """Write a checkpoint if one is due."""
        if not self._is_due(report.state.epoch):
            return
        packer = Packer()
        origin = report.origin
        fields = report.progress._asdict() | {"history": columns(list(report.progress.rows))}
        del fields["rows"]
        header: dict[str, object] = {
            "versions": versions(),
            "origin": None if origin is None else _fingerprints(origin),
            "progress": {name: packer.pack(value, name) for name, value in fields.items()},
        }
        # The seal finds damage of the file, and the digest arrays that were exchanged before it was sealed again.
        header["digest"] = digest_of([packer.arrays[name] for name in sorted(packer.arrays)])
        replace_file(self.path, seal_archive(header, packer.arrays, CHECKPOINT))
        self._written = time.monotonic()

    def _is_due(self, epoch: int) -> bool:
        if self._written is None or (self.every is None and self.seconds is None):
            return True
        by_epoch = self.every is not None and epoch % self.every == 0
        return by_epoch or (self.seconds is not None and time.monotonic() - self._written >= self.seconds)


class LoadedCheckpoint(NamedTuple):
    """The content of a checkpoint.

    Parameters
    ----------
    progress : rplvq.training.Progress
        The progress of the run.
    origin : dict or None
        ``seed``, ``data`` (SHA-256) and ``parameters`` (one text each) of the fit; None if a Trainer ran alone.
    versions : dict of str to str
        Versions of the libraries that wrote it.
    """

    progress: Progress
    origin: dict[str, Any] | None
    versions: dict[str, str]


def load_checkpoint(path: str | os.PathLike[str]) -> LoadedCheckpoint:
    """Return the content of a file that a :class:`Checkpoint` wrote; ``fit(X, y, resume=path)`` calls this.

    Parameters
    ----------
    path : path-like
        The file, whose ``progress`` goes into :meth:`rplvq.Trainer.epochs`.

    Raises
    ------
    rplvq.exceptions.ModelFileError, OSError
        If the file is no checkpoint, damaged, of a newer format, or has an unknown part (a ValueError); if unreadable.

    Examples
    --------
    >>> import os, tempfile
    >>> from rplvq import Checkpoint, RiemannianLVQ
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saves = Checkpoint(os.path.join(folder, "fit.npz"))
    ...     model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=3, callbacks=[saves])
    ...     model = model.fit([[0.0], [1.0]], ["no", "yes"])
    ...     load_checkpoint(saves.path).progress.state.epoch
    3
    """
    header, arrays = open_archive(path, CHECKPOINT)
    unpacker = Unpacker(arrays)
    try:
        digest = digest_of([arrays[name] for name in sorted(arrays)])
        if header.get("digest", digest) != digest:  # a run continues to the same bits only from the same bits
            raise ValueError("its progress was changed after it was written")
        fields = {name: unpacker.unpack(value) for name, value in header["progress"].items()}
        history = fields.pop("history")
        values = zip(*(column.tolist() for column in history.values()), strict=True)
        rows = tuple(dict(zip(history, row, strict=True)) for row in values)
        progress = Progress(rows=rows, **fields)
        if not (isinstance(progress.state, State) and isinstance(progress.best, State)):
            raise ValueError("it holds no state of a trainer")
        origin = header["origin"]
        if origin is not None:
            origin = {name: origin[name] for name in ("seed", "data", "parameters")}
        return LoadedCheckpoint(progress, origin, dict(header["versions"]))
    except UNREADABLE as error:
        raise ModelFileError(f"{os.fspath(path)}: {error or type(error).__name__}") from error


def require_same_origin(path: str | os.PathLike[str], loaded: LoadedCheckpoint, origin: Origin) -> None:
    """Raise ValueError unless the fit of the checkpoint had the parameters, the seed and the data of ``origin``."""
    name = os.fspath(path)
    before = loaded.origin
    if before is None:
        raise ValueError(f"{name} was written by a Trainer, not by a fit: go on with Trainer.epochs")
    wanted = _fingerprints(origin)
    for parameter in sorted({*wanted["parameters"], *before["parameters"]} - UNTOUCHED):
        then, now = (texts["parameters"].get(parameter, "absent") for texts in (before, wanted))
        if then != now:
            what = f"a fit with {parameter}={then}, this one has {now}"
            raise ValueError(f"{name} was written by {what}: set the same to resume it")
    if before["seed"] != wanted["seed"]:
        raise ValueError(f"{name} was written by a fit with another random_state: set the same to resume it")
    if not comes_from(wanted["seed"], loaded.progress.rng):
        raise ModelFileError(f"{name}: the state of its random generator does not come from its seed")
    if before["data"] != wanted["data"]:
        other = {key: value for key, value in versions().items() if loaded.versions.get(key) != value}
        why = f" (or other versions than {loaded.versions} round otherwise)" if other else ""
        what = "other samples, labels or weights, or with other groups"
        raise ValueError(f"{name} was written by a fit on {what}{why}: pass the same")


def comes_from(seed: int, state: object) -> bool:
    """Whether a PCG64 generator with this seed has this state after less than 2^48 draws.

    Bit i of the number of draws is set if the states still differ in bit i after the draws of the lower bits (Brown,
    "Random number generation with arbitrary strides", 1994).
    """
    if not isinstance(state, dict) or state.get("bit_generator") != "PCG64":
        return False
    here = np.random.default_rng(seed).bit_generator.state["state"]
    there = state["state"]
    value = here["state"]
    plus = here["inc"]
    times = 0x2360ED051FC65DA44385DF649FCCF645
    for bit in range(48):
        if (value ^ there["state"]) >> bit & 1:
            value = (value * times + plus) % (1 << 128)
        plus = (times + 1) * plus % (1 << 128)
        times = times * times % (1 << 128)
    return bool({"state": value, "inc": here["inc"]} == there)


def _fingerprints(origin: Origin) -> dict[str, Any]:
    """Return the seed, the digest of the data, and one text per parameter."""
    samples = origin.samples
    data = [samples.codes, samples.targets, samples.weights, *([] if samples.groups is None else [samples.groups])]
    return {
        "seed": origin.seed,
        "data": digest_of([repr(origin.classes.tolist()), *data]),
        "parameters": {name: _text(value, name) for name, value in origin.parameters.items() if name not in UNTOUCHED},
    }


def _text(value: object, name: str) -> str:
    """Return a parameter as JSON, or as a digest if the JSON is long or the parameter holds arrays."""
    packer = Packer()
    text = json.dumps(packer.pack(value, name), sort_keys=True)
    if packer.arrays or len(text) > 200:
        return f"sha256 {digest_of([text, *packer.arrays.values()])}"
    return text
