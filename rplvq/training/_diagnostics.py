"""A look at what training left behind: numbers that are right to float64 but mean little, and what helps.

A cost that is not finite stops training with FloatingPointError (see :meth:`rplvq.Trainer.sweep`). This module finds
prototypes that are no points any more, which is an error too, and two troubles that leave finite numbers: prototypes at
the edge of the manifold, and steps that were cut more often than not.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rplvq.exceptions import DivergenceWarning, PointError
from rplvq.protocols import Array
from rplvq.training._state import State

__all__ = ["decoded", "edge_trouble", "step_trouble", "warn_of"]

OFTEN = 0.5
"""Number of caps per visit of a sample above which steps count as mostly cut."""


def decoded(manifold: Any, state: State, names: Array) -> Array:
    """Return the points of the prototypes.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    state : State
        K prototypes.
    names : ndarray of shape (K,)
        Their labels.

    Returns
    -------
    ndarray of shape (K, ...)
        Finite.

    Raises
    ------
    FloatingPointError
        If ``decode`` gives numbers that are not finite. This can happen to a metric that is flat in some coordinates,
        if not all coordinates belong to points.
    """
    with np.errstate(all="ignore"):
        points = np.asarray(manifold.decode(state.prototypes))
    lost = np.flatnonzero(~np.isfinite(points.reshape(len(points), -1)).all(axis=1))
    if len(lost):
        raise FloatingPointError(
            f"prototype {lost[0]} (class {names.tolist()[lost[0]]!r}) has left the manifold: decode of {manifold!r} "
            "gives numbers that are not finite. Let move bring it back, as that of ProjectedEuclidean does, or lower "
            "step_size"
        )
    return points


def edge_trouble(manifold: Any, points: Array, names: Array) -> str | None:
    """Say which prototype is at the edge of the manifold, if one is: one that ``encode`` would refuse.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    points : ndarray of shape (K, ...)
        Prototypes as points, from :func:`decoded`.
    names : ndarray of shape (K,)
        Their labels.

    Returns
    -------
    str or None
    """
    try:
        manifold.encode(points)
    except PointError as error:
        reason = error.reason.partition(". ")[0]
        return (
            f"prototype {error.index} (class {names.tolist()[error.index]!r}) is at the edge of the manifold, where "
            f"distances to it are rounding: it {reason}. Heavy-tailed samples throw prototypes that far: regularise "
            "the samples (shrinkage), or lower step_size or the manifold's max_step_length"
        )
    return None


def step_trouble(state: State, history: dict[str, Array], n_visits: int) -> str | None:
    """Say that steps were cut more often than not, if they were.

    Parameters
    ----------
    state : State
        The state at the end of training.
    history : dict of str to ndarray
        Columns of the epochs trained.
    n_visits : int
        Number of visits of samples per epoch.

    Returns
    -------
    str or None
    """
    trained = history["epoch"] > 0 if history else np.zeros(0, dtype=bool)
    n_capped, n_steps = int(np.sum(history["n_capped"][trained])) if trained.any() else 0, n_visits * int(trained.sum())
    if n_capped <= OFTEN * n_steps:
        return None
    return (
        f"steps were cut {n_capped} times in {n_steps} visits: the prototypes jump from sample to sample instead of "
        f"settling. step_size (now {state.step_size:.3g}) is too large for sigma2 (now {state.sigma2:.3g}): lower "
        "step_size to less than sigma2, or raise sigma2"
    )


def warn_of(troubles: list[str | None], stacklevel: int) -> None:
    """Give one DivergenceWarning of all troubles, if there are any."""
    if found := [trouble for trouble in troubles if trouble is not None]:
        warnings.warn("; ".join(found), DivergenceWarning, stacklevel=stacklevel + 1)
