"""Prototypes averaged over the epochs along geodesics."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.checks import share
from rplvq.protocols import Array, Manifold, Prototypes
from rplvq.schedules import number
from rplvq.steps import State

__all__ = ["Averaging", "Trail", "averaged", "geodesic_step", "resolve_average", "resumed"]


class Trail(NamedTuple):
    """What averaging carries beside the average.

    Parameters
    ----------
    iterate : Prototypes
        K prototypes as the steps left them: the next epoch goes on from there.
    n_averaged : int
        Epochs in the average.
    """

    iterate: Prototypes
    n_averaged: int


@attrs.frozen
class Averaging:
    """The model is the running geodesic mean of the prototypes after each epoch; steps go on from the last ones.

    After epoch t of those averaged, ``mean <- Exp_mean(1 / t Log_mean W)`` (Tripuraneni, Flammarion, Bach and Jordan
    2018, "Averaging stochastic gradient descent on Riemannian manifolds", COLT, arXiv:1802.09128, equation 4, which
    averages steps; here epochs, at the price of K decompositions each). It takes the noise of large steps out of the
    result, and has little to do where steps decay.

    Parameters
    ----------
    start : float, default=0.5
        Share of the epochs that is left out, in [0, 1): prototypes on their way would hold the mean back.

    Notes
    -----
    ``history_`` shows cost and error of the steps, with ``monitor="epoch"`` those of the average. Validation data
    are scored by the average.

    Examples
    --------
    >>> from rplvq import Averaging, Constant, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> model = RiemannianLVQ(step_size=Constant(0.1), average=Averaging(0.2), max_epochs=10, random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.9)
    True
    """

    start: float = attrs.field(default=0.5, converter=number, validator=share(zero=True))


def resolve_average(value: Any) -> Averaging | None:
    """Turn True, False, None or an Averaging into an Averaging or None.

    Raises
    ------
    ValueError
        If it is something else.

    Examples
    --------
    >>> resolve_average(True)
    Averaging(start=0.5)
    """
    if value is None or value is False:
        return None
    if value is True:
        return Averaging()
    if not isinstance(value, Averaging):
        raise ValueError(f"average must be True, False or an Averaging, got {value!r}")
    return value


def geodesic_step(manifold: Manifold[Any], prototypes: Prototypes, others: Prototypes, share: float) -> Array:
    """Move each prototype by a share of the way to the other one of the same place, one decomposition each.

    Parameters
    ----------
    manifold : Manifold
        Where they live.
    prototypes, others : Prototypes
        K each.
    share : float
        0 stays, 1 arrives.

    Returns
    -------
    ndarray of shape (K, ...)
        Codes.

    Examples
    --------
    >>> from rplvq import AffineInvariant
    >>> start, end = np.eye(2)[None], np.diag([4.0, 9.0])[None]
    >>> geodesic_step(AffineInvariant(), start, end, 0.5).round(6)
    array([[[2., 0.],
            [0., 3.]]])
    """
    starts, ends, weight = np.asarray(prototypes), np.asarray(others), np.full((1, 1), share)
    pairs = ((starts[k : k + 1], ends[k : k + 1]) for k in range(len(starts)))
    return np.concatenate([np.asarray(manifold.move(manifold.connect(*pair), weight)) for pair in pairs])


def require_still(manifold: Manifold[Any]) -> None:
    """Raise ValueError at a manifold that learns a metric beside its prototypes: there is no mean of metrics here."""
    if getattr(manifold, "fixed", manifold) != manifold:
        raise ValueError(f"average=True has no mean of the metric that {manifold!r} learns: leave average at False")


def resumed(state: State) -> State:
    """Return the state with the prototypes from which steps go on."""
    return state if state.trail is None else state._replace(prototypes=state.trail.iterate)


def averaged(manifold: Manifold[Any], rule: Averaging, before: State, after: State, n_epochs: int) -> State:
    """Take the prototypes of an epoch into the mean.

    Parameters
    ----------
    manifold : Manifold
        Where they live.
    rule : Averaging
        When to begin.
    before, after : State
        Before the epoch, with the mean so far, and after its steps.
    n_epochs : int
        Epochs planned.

    Returns
    -------
    State
        ``after`` with the mean as prototypes, and the trail that goes on.
    """
    if after.epoch <= rule.start * n_epochs:
        return after
    if before.trail is None:
        return after._replace(trail=Trail(after.prototypes, 1))
    count = before.trail.n_averaged + 1
    mean = geodesic_step(manifold, before.prototypes, after.prototypes, 1 / count)
    return after._replace(prototypes=mean, trail=Trail(after.prototypes, count))
