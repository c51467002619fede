"""Errors and warnings about what training left behind.

Numbers that are not finite are errors. Three troubles leave finite numbers and are warnings: prototypes at the edge of
the manifold, an epoch of which more than a tenth of the weights were cut, and training that ended worse than it began.
"""

import warnings
from typing import Any

import numpy as np

from rplvq.arrays import Samples, by_block
from rplvq.capabilities import NearestSearch, StepOfShare, provides
from rplvq.exceptions import DivergenceWarning, PointError
from rplvq.protocols import Array, Prototypes
from rplvq.schedules import median_sqdist
from rplvq.training._resize import new_codes
from rplvq.training._state import State

WORSE = 0.02
"""Increase of the training error from which on a warning is given, if it is more than one standard error."""
OFTEN = 0.1
"""Share of the weights of an epoch that may be cut before a warning is given."""
TOGETHER = 64
"""Number of prototypes whose distances to each other are the scale for what rounding moves."""

FEW_SAMPLES = 1000
"""So many samples suffice for the median squared distance in a message."""


def require_finite(state: State, cost: float) -> None:
    """Raise FloatingPointError if the prototypes or the cost of an epoch are not finite."""
    if not (np.isfinite(np.asarray(state.prototypes)).all() and np.isfinite(cost)):
        raise diverged(state)


def diverged(state: State) -> FloatingPointError:
    """Return the error that says in which epoch training diverged, and what helps."""
    return FloatingPointError(
        f"training diverged in epoch {state.epoch} (step_size {state.step_size:.3g}, sigma2 {state.sigma2:.3g}): "
        "lower step_size, raise sigma2, or leave max_weight at 1; of a cost of your own, check_cost tells whether its "
        "slope has the wrong sign (rplvq.testing)"
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
    own, largest = np.empty(len(codes)), 0.0
    with np.errstate(all="ignore"):
        for start in range(0, len(codes), TOGETHER):  # all pairs of many prototypes would take longer than their means
            rows = slice(start, start + TOGETHER)
            part = prototypes if len(codes) <= TOGETHER else new_codes(prototypes, codes[rows])
            moved = np.asarray(manifold.sqdist(part, codes[rows] + np.spacing(np.abs(codes[rows]))))
            own[rows], largest = np.diag(moved), np.fmax(largest, moved.max())
    blurred = np.flatnonzero(~(own <= np.finfo(float).eps * largest))
    try:
        if len(blurred):
            manifold.encode(np.asarray(manifold.decode(prototypes))[blurred])
    except PointError as error:
        k, reason = blurred[error.index], error.reason.partition(". ")[0]
        return (
            f"prototype {k} (class {names.tolist()[k]!r}) is at the edge of the manifold, where "
            f"distances to it are rounding: it {reason}. Heavy-tailed samples throw prototypes that far: regularise "
            "the samples (shrinkage, rplvq.features.shrink for given matrices), or lower step_size or the "
            "manifold's max_step_length"
        )
    return None


def step_trouble(history: dict[str, Array], n_visits: int, schedule: Any = None) -> str | None:
    """Return a warning if many weights of an epoch were cut; ``n_visits`` counts visits of samples per epoch.

    Cuts are no trouble if the ``schedule`` of steps is that of a share, because they keep weights at this share.
    """
    if not history or provides(schedule, StepOfShare):
        return None
    share = history["n_capped"] / (n_visits * history["n_prototypes"])
    worst = int(np.argmax(share))
    if not share[worst] > OFTEN:
        return None
    step_size, sigma2, n_capped = (history[name][worst] for name in ("step_size", "sigma2", "n_capped"))
    return (
        f"{int(n_capped)} of {int(n_visits * history['n_prototypes'][worst])} steps of epoch "
        f"{int(history['epoch'][worst])} were cut: the prototypes jump from sample to sample instead of settling. "
        f"step_size (then {step_size:.3g}) is too large for sigma2 (then {sigma2:.3g}): lower step_size to less than "
        "sigma2, or raise sigma2"
    )


def training_errors(manifold: Any, state: State, samples: Samples) -> Array:
    """Return 1 for each sample (N,) whose nearest prototype has another class, else 0."""

    def of(codes: Array) -> Array:
        if provides(manifold, NearestSearch):
            return np.asarray(manifold.nearest(state.prototypes, codes, state.labels))
        return np.asarray(manifold.sqdist(state.prototypes, codes).argmin(axis=1))

    nearest = by_block(of, samples.codes, n_columns=len(state.labels))
    return np.asarray(state.labels[nearest] != samples.classes, dtype=float)


def worse_trouble(manifold: Any, first: State, last: State, samples: Samples) -> str | None:
    """Return a warning if the training error is clearly larger after training than with the first prototypes."""
    before, after = (training_errors(manifold, state, samples) for state in (first, last))
    shares = samples.filled_weights / samples.total_weight
    increase = float(shares @ (after - before))
    chance = float(np.linalg.norm(shares * (after - before)))  # a few samples of a small data set are no reason to warn
    if not increase > max(WORSE, chance):
        return None
    half = 0.5 * median_sqdist(manifold, first.prototypes, samples, FEW_SAMPLES)
    return (
        f"training raised the training error from {shares @ before:.3g}, that of the initial prototypes, to "
        f"{shares @ after:.3g}. sigma2 was {first.sigma2:.3g} at first and {last.sigma2:.3g} at last; half the median "
        f"squared distance is {half:.3g}, and a sigma2 above it drives prototypes apart. Lower sigma2 or step_size, or "
        "leave both at 'auto': the fit then trains only if held-out samples show that this helps"
    )


def warn_of(troubles: list[str | None], stacklevel: int) -> None:
    """Give one DivergenceWarning about all troubles, if there are any."""
    if found := [trouble for trouble in troubles if trouble is not None]:
        warnings.warn("; ".join(found), DivergenceWarning, stacklevel=stacklevel + 1)
