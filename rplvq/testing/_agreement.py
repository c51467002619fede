"""Assertions that the checks share: they name the entry that is furthest off."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

__all__ = ["agree", "pickled", "require", "vanish"]

RTOL = 1e-5


def require(holds: Any, sentence: str) -> None:
    """Raise AssertionError with a sentence (also under ``python -O``, where assert is skipped)."""
    if not holds:
        raise AssertionError(sentence)


def agree(actual: Any, wanted: Any, size: Any, rule: str, rtol: float = RTOL) -> None:
    """Require that arrays agree within ``rtol * size``.

    Parameters
    ----------
    actual, wanted : array-like of the same shape (...)
        What a part returns, and what it should.
    size : float or array-like that broadcasts to (...)
        What differences are compared with.
    rule : str
        The broken promise, said as one.
    rtol : float, default=1e-5
        Allowed difference over size.

    Raises
    ------
    AssertionError
        With the rule, the index of the entry furthest off, both values and their difference.
    """
    actual, wanted = np.asarray(actual), np.asarray(wanted)
    require(actual.shape == wanted.shape, f"{rule}: got shape {actual.shape}, not {wanted.shape}")
    size = np.where(np.asarray(size) > 0, size, 1.0)  # all zero: nothing to compare with
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(actual - wanted) / size
    gap = np.where(np.isnan(gap), np.inf, gap)
    if (gap > rtol).any():
        at = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
        raise AssertionError(
            f"{rule}: at index {at} it is {actual[at]:.6g}, not {wanted[at]:.6g} "
            f"(off by {gap[at]:.2g} of the size of such values, allowed {rtol:g})"
        )


def vanish(sqdist: Any, size: float, rule: str) -> None:
    """Require that squared distances are 0 up to rounding: distances below 1e-5 of their size."""
    agree(sqdist, np.zeros(np.shape(sqdist)), size, rule, rtol=RTOL**2)


def pickled(part: Any, what: str) -> Any:
    """Return a part after a round trip through pickle; require that it survives one."""
    try:
        return pickle.loads(pickle.dumps(part))  # noqa: S301 - what was dumped here a moment ago
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise AssertionError(f"{what} must be picklable, so define it in a module, without lambdas: {error}") from error
