"""Warnings of the library, by name, so that programs can filter them or turn them into errors."""

from __future__ import annotations

__all__ = ["TrainingInterruptedWarning"]


class TrainingInterruptedWarning(UserWarning):
    """Training was interrupted (Ctrl-C); the model is that of the last whole epoch.

    The model is complete before the warning is given, also where warnings are errors.

    Examples
    --------
    >>> issubclass(TrainingInterruptedWarning, UserWarning)
    True
    """
