"""Errors and warnings about what training left behind.

Numbers that are not finite are errors. Two troubles leave finite numbers and are warnings: prototypes at the edge of
the manifold, and steps of which most were cut.
"""

import warnings
from typing import Any

import numpy as np

from rplvq.exceptions import DivergenceWarning, PointError
from rplvq.protocols import Array, Prototypes
from rplvq.training._state import State

OFTEN = 0.5
"""Number of caps per visit of a sample above which a warning is given."""


def require_finite(state: State, cost: float) -> None:
    """Raise FloatingPointError if the prototypes or the cost of an epoch are not finite."""
    if not (np.isfinite(np.asarray(state.prototypes)).all() and np.isfinite(cost)):
        raise diverged(state)


def diverged(state: State) -> FloatingPointError:
    """Return the error that says in which epoch training diverged, and what helps."""
    return FloatingPointError(
        f"training diverged in epoch {state.epoch} (step_size {state.step_size:.3g}, sigma2 {state.sigma2:.3g}): "
        "lower step_size, raise sigma2, or leave max_weight at 1"
    )


def decoded(manifold: Any, state: State, names: Array) -> Array:
    """Return the points (K, ...) of the prototypes; ``names`` (K,) are the labels of the user for messages.

    FloatingPointError is raised if they are not finite: coordinates of a flat metric need not belong to points.
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


def edge_trouble(manifold: Any, prototypes: Prototypes, names: Array) -> str | None:
    """Return a warning if one of K prototypes is at the edge of the manifold; ``names`` (K,) are labels of the user.

    There, ``encode`` would refuse its point, and distances are rounding: if each entry of its code is rounded once, it
    moves by more than 1e-8 of the distances between prototypes. Where the metric is flat in the codes, none does.
    """
    codes = np.asarray(prototypes)
    with np.errstate(all="ignore"):
        moved = np.asarray(manifold.sqdist(prototypes, codes + np.spacing(np.abs(codes))))
    blurred = np.flatnonzero(~(np.diag(moved) <= np.finfo(float).eps * moved.max()))
    try:
        if len(blurred):
            manifold.encode(np.asarray(manifold.decode(prototypes))[blurred])
    except PointError as error:
        k, reason = blurred[error.index], error.reason.partition(". ")[0]
        return (
            f"prototype {k} (class {names.tolist()[k]!r}) is at the edge of the manifold, where "
            f"distances to it are rounding: it {reason}. Heavy-tailed samples throw prototypes that far: regularise "
            "the samples (shrinkage, rplvq.preprocessing.shrink for given matrices), or lower step_size or the "
            "manifold's max_step_length"
        )
    return None


def step_trouble(state: State, history: dict[str, Array], n_visits: int) -> str | None:
    """Return a warning if most steps of the ``history`` were cut; ``n_visits`` counts visits of samples per epoch."""
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
    """Give one DivergenceWarning about all troubles, if there are any."""
    if found := [trouble for trouble in troubles if trouble is not None]:
        warnings.warn("; ".join(found), DivergenceWarning, stacklevel=stacklevel + 1)
