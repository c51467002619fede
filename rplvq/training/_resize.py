"""Prototypes that come and go: everything that has one entry per prototype changes together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rplvq.protocols import Array, Prototypes
from rplvq.training._state import State

__all__ = ["new_codes", "with_prototypes", "without_prototypes"]


def new_codes(prototypes: Prototypes, codes: Array) -> Prototypes:
    """Return codes (M, ...) in the form of K prototypes, together with any state that these share.

    Examples
    --------
    >>> new_codes(np.zeros((1, 2)), np.ones((2, 2))).shape
    (2, 2)
    """
    keep = getattr(prototypes, "with_codes", None)
    return codes if keep is None else keep(codes)


def with_prototypes(state: State, codes: Array, labels: Array) -> State:
    """Add prototypes; each is placed after those of its class.

    Parameters
    ----------
    state : State
        With K prototypes.
    codes : ndarray of shape (M, ...)
        Codes of the new prototypes.
    labels : ndarray of int of shape (M,)
        Their class indices.

    Returns
    -------
    State
        With K + M prototypes, sorted by label.

    Examples
    --------
    >>> from rplvq import Constant
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [5.0]]), np.array([0, 1]), one, one)
    >>> more = with_prototypes(state, np.array([[1.0]]), np.array([0]))
    >>> more.prototypes.ravel(), more.labels
    (array([0., 1., 5.]), array([0, 0, 1]))
    """
    return _rebuilt(state, np.arange(len(state.labels)), codes, labels)


def without_prototypes(state: State, removed: Array) -> State:
    """Remove prototypes.

    Parameters
    ----------
    state : State
        With K prototypes.
    removed : ndarray of int of shape (M,)
        Indices of the prototypes to remove.

    Returns
    -------
    State
        With K - M prototypes in their old order.

    Examples
    --------
    >>> from rplvq import Constant
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1]), one, one)
    >>> without_prototypes(state, np.array([0])).prototypes.ravel()
    array([1., 5.])
    """
    kept = np.setdiff1d(np.arange(len(state.labels)), removed)
    return _rebuilt(state, kept, np.asarray(state.prototypes)[:0], state.labels[:0])


def _rebuilt(state: State, kept: Array, codes: Array, labels: Array) -> State:
    """State with the prototypes ``kept`` (M,) of the old ones and with new ones, sorted by label."""
    every = np.concatenate([state.labels[kept], labels])
    order = np.argsort(every, kind="stable")

    def rebuild(old: Prototypes) -> Array:
        return np.asarray(np.concatenate([np.asarray(old)[kept], codes])[order])

    memory = state.memory
    if memory is not None:
        resize: Callable[..., Any] = state.step_schedule.resize  # type: ignore[attr-defined]
        memory = resize(memory, rebuild)
    prototypes = new_codes(state.prototypes, rebuild(state.prototypes))
    return state._replace(prototypes=prototypes, labels=every[order], memory=memory)
