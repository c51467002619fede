"""The one place where a cost is called: it accepts plain tuples, and says what is wrong with any other answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from rplvq.protocols import Array, Evaluation


def evaluate(cost: Any, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
    """Return loss (B,) and slope (B, K) of any cost, which may return them as a plain tuple.

    Parameters
    ----------
    cost : Cost
        The cost.
    sqdist, targets, labels, sigma2
        As for :class:`rplvq.protocols.Cost`.

    Returns
    -------
    Evaluation
        Loss and slope.

    Raises
    ------
    TypeError
        If the cost does not return two arrays of these shapes.
    ValueError
        If the cost reads class probabilities (B, C) as if they were class indices (B,), and fails at that. Other
        exceptions of the cost are not changed.

    Examples
    --------
    >>> def pull(sqdist, targets, labels, sigma2):
    ...     own = labels == targets[:, None]
    ...     return (own * sqdist).sum(axis=1), own.astype(float)
    >>> evaluate(pull, np.array([[1.0, 3.0]]), np.array([1]), np.array([0, 1]), 1.0)
    Evaluation(loss=array([3.]), slope=array([[0., 1.]]))
    """
    try:
        found = cost(sqdist, targets, labels, sigma2)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        # A cost that refuses class probabilities says so by a ValueError. NumPy's ValueErrors are about broadcasting.
        if targets.ndim == 1 or (isinstance(error, ValueError) and "broadcast" not in str(error)):
            raise
        raise _needs_indices(cost, targets, f"raised {type(error).__name__}") from error
    if type(found) is not Evaluation:
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise TypeError(f"cost {cost!r} must return (loss, slope), got {type(found)}")
        found = Evaluation(*found)
    loss, slope = found
    for name, value, wanted in (("loss", loss, sqdist.shape[:1]), ("slope", slope, sqdist.shape)):
        if (got := np.shape(value)) != wanted:
            if targets.ndim == 2:
                raise _needs_indices(cost, targets, f"returned a {name} of shape {got} instead of {wanted}")
            raise TypeError(f"cost {cost!r}: {name} must have shape {wanted}, got {got}")
    if not (isinstance(loss, np.ndarray) and isinstance(slope, np.ndarray)):
        return Evaluation(np.asarray(loss), np.asarray(slope))
    return found


def _needs_indices(cost: Any, targets: Array, what: str) -> ValueError:
    """Return the error for a cost that failed at class probabilities (B, C); ``what`` says how."""
    return ValueError(
        f"cost {cost!r} {what} for soft labels, targets of shape {targets.shape}: it seems to read one class index per "
        "sample. Pass y.argmax(axis=1), use a cost for soft labels such as cost='plvq', or let the cost read "
        "targets[:, labels], the probability of the class of each prototype"
    )
