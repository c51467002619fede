"""Reads and writes models and checkpoints: one sealed .npz file each, without pickle.

This package knows no estimator. Classes are found by name in the registry of :mod:`rplvq.parts`.
"""

from rplvq.io._archive import UNREADABLE, digest_of, open_members, replace_file, require_writable
from rplvq.io._checkpoint import Checkpoint, LoadedCheckpoint, load_checkpoint, require_same_origin
from rplvq.io._invariants import answers_of_prototypes, probe_like, require_fitted, require_valid
from rplvq.io._model import ModelFile, load_model, read_model, save_model

__all__ = [
    "UNREADABLE", "Checkpoint", "LoadedCheckpoint", "ModelFile", "answers_of_prototypes", "digest_of",
    "load_checkpoint", "load_model", "open_members", "probe_like", "read_model", "replace_file", "require_fitted",
    "require_same_origin", "require_valid", "require_writable", "save_model",
]  # fmt: skip


def __dir__() -> list[str]:
    """List what users call, which is what completion shows; the other names are for rooms of the library."""
    return ["Checkpoint", "LoadedCheckpoint", "load_checkpoint", "load_model", "save_model"]
