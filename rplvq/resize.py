"""Prototypes that come and go: everything that counts K of them changes together.

Beside the prototypes and their labels these are the origins that an adaptive step size measures from, and the iterates
behind averaged prototypes.
"""

from __future__ import annotations

import numpy as np

from rplvq.adaptive import Travel
from rplvq.averaging import Trail
from rplvq.protocols import Array, Prototypes
from rplvq.steps import State

__all__ = ["recoded", "with_prototypes", "without_prototypes"]


def recoded(prototypes: Prototypes, codes: Array) -> Prototypes:
    """Return other codes (M, ...) in place of those of K prototypes, with what a manifold learned beside them.

    Prototypes that carry more than their codes, such as a metric, offer ``with_codes(codes)``; of all others codes are
    all there is.

    Examples
    --------
    >>> recoded(np.zeros((1, 2)), np.ones((2, 2))).shape
    (2, 2)
    """
    keep = getattr(prototypes, "with_codes", None)
    return codes if keep is None else keep(codes)


def with_prototypes(state: State, codes: Array, labels: Array) -> State:
    """Add prototypes; each comes after those of its class.

    Parameters
    ----------
    state : State
        With K prototypes.
    codes : ndarray of shape (M, ...)
        Of the new ones. They set out from there: an adaptive step size measures their way from it, and for averaging
        they have always been there.
    labels : ndarray of int of shape (M,)
        Class indices.

    Returns
    -------
    State
        With K + M prototypes, sorted by label.

    Examples
    --------
    >>> from rplvq import Constant
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [5.0]]), np.array([0, 1]), one, one, 3, 1.0, 1.0)
    >>> more = with_prototypes(state, np.array([[1.0]]), np.array([0]))
    >>> more.prototypes.ravel(), more.labels
    (array([0., 1., 5.]), array([0, 0, 1]))
    """
    return _rebuilt(state, np.arange(len(state.labels)), codes, labels)


def without_prototypes(state: State, gone: Array) -> State:
    """Take prototypes away.

    Parameters
    ----------
    state : State
        With K prototypes.
    gone : ndarray of int of shape (M,)
        Which ones.

    Returns
    -------
    State
        With K - M prototypes in their old order.

    Examples
    --------
    >>> from rplvq import Constant
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1]), one, one, 3, 1.0, 1.0)
    >>> without_prototypes(state, np.array([0])).prototypes.ravel()
    array([1., 5.])
    """
    kept = np.setdiff1d(np.arange(len(state.labels)), gone)
    return _rebuilt(state, kept, np.asarray(state.prototypes)[:0], state.labels[:0])


def _rebuilt(state: State, kept: Array, codes: Array, labels: Array) -> State:
    """State with the prototypes ``kept`` (M,) of the old ones and new ones, sorted by label."""
    every = np.concatenate([state.labels[kept], labels])
    order = np.argsort(every, kind="stable")

    def joined(old: Prototypes) -> Array:
        return np.asarray(np.concatenate([np.asarray(old)[kept], codes])[order])

    memory, trail = state.memory, state.trail
    if isinstance(memory, Travel):
        memory = memory._replace(origin=joined(memory.origin))
    if isinstance(trail, Trail):
        trail = trail._replace(iterate=recoded(trail.iterate, joined(trail.iterate)))
    prototypes = recoded(state.prototypes, joined(state.prototypes))
    return state._replace(prototypes=prototypes, labels=every[order], memory=memory, trail=trail)
