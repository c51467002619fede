"""Validators of parameters, for attrs classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["all_callable", "auto_or_bool", "count_from", "not_negative", "positive_or_none"]


def count_from(minimum: int, *, or_none: bool = False) -> Callable[[Any, Any, Any], None]:
    """Return a validator for integers of at least ``minimum``, and None if allowed."""

    def check(_: Any, attribute: Any, value: Any) -> None:
        if or_none and value is None:
            return
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
            raise ValueError(f"{attribute.name} must be an integer of at least {minimum}, got {value!r}")

    return check


def positive_or_none(_: Any, attribute: Any, value: Any) -> None:
    """Accept a positive number or None."""
    if value is not None and (isinstance(value, (bool, str)) or not value > 0):
        raise ValueError(f"{attribute.name} must be a positive number or None, got {value!r}")


def not_negative(_: Any, attribute: Any, value: Any) -> None:
    """Accept a number of at least 0."""
    if isinstance(value, (bool, str)) or value is None or not value >= 0:
        raise ValueError(f"{attribute.name} must be a number of at least 0, got {value!r}")


def all_callable(_: Any, attribute: Any, value: Any) -> None:
    """Accept a sequence of callables."""
    for index, item in enumerate(value):
        if not callable(item):
            raise ValueError(f"{attribute.name}[{index}] is {item!r}, which cannot be called")


def auto_or_bool(_: Any, attribute: Any, value: Any) -> None:
    """Accept True, False and "auto"."""
    if not isinstance(value, bool) and not (isinstance(value, str) and value == "auto"):
        raise ValueError(f"{attribute.name} must be 'auto', True or False, got {value!r}")
