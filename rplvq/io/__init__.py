"""Bytes: models and checkpoints on disk."""

from rplvq.io._checkpoint import Checkpoint, LoadedCheckpoint, digest_of, load_checkpoint, require_same_origin
from rplvq.io._model import load_model, save_model

__all__ = [
    "Checkpoint",
    "LoadedCheckpoint",
    "digest_of",
    "load_checkpoint",
    "load_model",
    "require_same_origin",
    "save_model",
]
