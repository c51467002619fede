"""Checks of parameters: validators for attrs classes, and what they share with functions."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

__all__ = ["all_callable", "auto_or_bool", "count_from", "not_negative", "positive_or_none", "require_count", "share"]


def require_count(name: str, value: Any, minimum: int) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")


def count_from(minimum: int, *, or_none: bool = False) -> Callable[[Any, Any, Any], None]:
    """Return a validator for integers of at least ``minimum``, and None if allowed."""

    def check(_: Any, attribute: Any, value: Any) -> None:
        if not (or_none and value is None):
            require_count(attribute.name, value, minimum)

    return check


def positive_or_none(_: Any, attribute: Any, value: Any) -> None:
    """Accept a positive number or None."""
    if value is not None and (isinstance(value, (bool, str)) or not value > 0):
        raise ValueError(f"{attribute.name} must be a positive number or None, got {value!r}")


def not_negative(_: Any, attribute: Any, value: Any) -> None:
    """Accept a number of at least 0."""
    if isinstance(value, (bool, str)) or value is None or not value >= 0:
        raise ValueError(f"{attribute.name} must be a number of at least 0, got {value!r}")


def share(*, zero: bool = False, or_none: bool = False) -> Callable[[Any, Any, Any], None]:
    """Return a validator for numbers between 0 and 1, and 0 or None if allowed."""
    wanted = "a number from 0 to below 1" if zero else "a number between 0 and 1"
    wanted += ", or None" if or_none else ""

    def check(_: Any, attribute: Any, value: Any) -> None:
        if or_none and value is None:
            return
        inside = isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < 1
        if not inside or (value == 0 and not zero):
            raise ValueError(f"{attribute.name} must be {wanted}, got {value!r}")

    return check


def all_callable(_: Any, attribute: Any, value: Any) -> None:
    """Accept a sequence of callables."""
    for index, item in enumerate(value):
        if not callable(item):
            raise ValueError(f"{attribute.name}[{index}] is {item!r}, which cannot be called")


def auto_or_bool(_: Any, attribute: Any, value: Any) -> None:
    """Accept True, False and "auto"."""
    if not isinstance(value, bool) and not (isinstance(value, str) and value == "auto"):
        raise ValueError(f"{attribute.name} must be 'auto', True or False, got {value!r}")
