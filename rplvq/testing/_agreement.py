"""Assertions that the checks share; they name the entry with the largest error."""

import pickle
from typing import Any

import numpy as np

from rplvq.protocols import AnyManifold, Array, ArrayLike, Prototypes

RTOL = 1e-5


def require(holds: object, sentence: str) -> None:
    """Raise AssertionError with a sentence unless it holds, also under ``python -O``, which skips assert."""
    if not holds:
        raise AssertionError(sentence)


def agree(actual: ArrayLike, wanted: ArrayLike, size: ArrayLike, rule: str, rtol: float = RTOL) -> None:
    """Require that two arrays agree within ``rtol * size``, which broadcasts; the error shows the worst entry."""
    actual = np.asarray(actual)
    wanted = np.asarray(wanted)
    require(actual.shape == wanted.shape, f"{rule}: got shape {actual.shape}, not {wanted.shape}")
    size = np.where(np.asarray(size) > 0, size, 1.0)  # if all values are 0, errors are absolute
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(actual - wanted) / size
    gap = np.where(np.isnan(gap), np.inf, gap)
    if (gap > rtol).any():
        at = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
        error = f"off by {gap[at]:.2g} of the size of such values, allowed {rtol:g}"
        raise AssertionError(f"{rule}: at index {at} it is {actual[at]:.6g}, not {wanted[at]:.6g} ({error})")


def vanish(sqdist: Array, size: float, rule: str) -> None:
    """Require that squared distances are 0 up to rounding, that is distances below 1e-5 of their size."""
    agree(sqdist, np.zeros(np.shape(sqdist)), size, rule, rtol=RTOL**2)


def accepted(manifold: AnyManifold, prototypes: Prototypes, rule: str) -> Array:
    """Return the codes of the decoded prototypes, or raise AssertionError with the message of ``encode``."""
    try:
        return np.asarray(manifold.encode(manifold.decode(prototypes)))
    except ValueError as error:
        raise AssertionError(f"{rule}: {error}") from error


def pickled(part: object, what: str) -> Any:
    """Return a part after a round trip through pickle, or raise AssertionError if it cannot be pickled."""
    try:
        return pickle.loads(pickle.dumps(part))  # noqa: S301 - it loads what this line dumps
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise AssertionError(f"{what} must be picklable, so define it in a module, without lambdas: {error}") from error
