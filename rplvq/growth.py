"""Prototypes added where the loss is, and taken away where they win nothing.

Rules work between the epochs of a fit and between the calls of ``partial_fit``. A rule is any callable that takes a
:class:`Window` and returns one; it reads distances, losses and labels, and never a point: what a geometry has to do,
the window does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from attrs.validators import in_

from rplvq.checks import count_from, not_negative
from rplvq.initializers import hard_targets
from rplvq.means import riemannian_mean
from rplvq.protocols import Array, Cost, Manifold
from rplvq.resize import recoded, with_prototypes, without_prototypes
from rplvq.steps import State

__all__ = ["Grow", "Growth", "Prune", "Window"]


class Window:
    """Samples that a rule of growth looks at, and the prototypes as they would be.

    Parameters
    ----------
    manifold, cost : Manifold and Cost
        The parts.
    state : State
        With K prototypes.
    codes, targets : ndarray of shape (N, ...) and (N,) or (N, C)
        Samples: all those of a fit, or the latest of a stream.
    sample_weight : ndarray of shape (N,), optional
        Multiplicities.
    sweep : int, default=0
        Epochs and calls of ``partial_fit`` so far.

    Attributes
    ----------
    classes : ndarray of int of shape (N,)
        Class index of each sample.

    Examples
    --------
    >>> from rplvq import RSLVQ, Constant, EuclideanVectors
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [4.0]]), np.array([0, 1]), one, one, 1, 1.0, 1.0)
    >>> window = Window(EuclideanVectors(), RSLVQ(), state, np.array([[0.0], [7.0], [4.0]]), np.array([0, 0, 1]))
    >>> window.loss.round(1), window.labels
    (array([ 0., 20.,  0.]), array([0, 1]))
    >>> more = window.added(0, window.mean(np.array([0.0, 1.0, 0.0])))
    >>> more.loss.round(1), more.labels
    (array([0., 0., 0.]), array([0, 0, 1]))
    """

    def __init__(
        self,
        manifold: Manifold[Any],
        cost: Cost,
        state: State,
        codes: Array,
        targets: Array,
        sample_weight: Array | None = None,
        sweep: int = 0,
    ) -> None:
        self.manifold, self.cost, self.state, self.sweep = manifold, cost, state, sweep
        self.codes, self.targets, self.classes = codes, targets, hard_targets(targets)
        self.weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        self._sqdist: Array | None = None

    @property
    def labels(self) -> Array:
        """Class index of each prototype, shape (K,), sorted."""
        return self.state.labels

    @property
    def sqdist(self) -> Array:
        """Squared distances (N, K), computed when first asked for."""
        if self._sqdist is None:
            self._sqdist = np.asarray(self.manifold.sqdist(self.state.prototypes, self.codes))
        return self._sqdist

    @property
    def loss(self) -> Array:
        """Loss of each sample times its weight, shape (N,)."""
        return self._loss(self.sqdist, self.labels)

    def loss_without(self, k: int) -> Array:
        """Weighted losses (N,) if there were no prototype ``k``."""
        return self._loss(np.delete(self.sqdist, k, axis=1), np.delete(self.labels, k))

    def mean(self, weights: Array) -> Array:
        """Code of the weighted mean of the samples, for weights (N,)."""
        return riemannian_mean(self.manifold, self.codes, weights, tol=1e-6).code

    def added(self, label: int, code: Array) -> Window:
        """Return the window with one prototype more, of class index ``label``, after those of its class."""
        other = recoded(self.state.prototypes, code[None])
        column = self.manifold.sqdist(other, self.codes)
        place = np.searchsorted(self.labels, label, side="right")
        sqdist = np.insert(self.sqdist, [place], column, axis=1)
        return self._with(with_prototypes(self.state, code[None], np.array([label])), sqdist)

    def removed(self, k: int) -> Window:
        """Return the window without prototype ``k``.

        Raises
        ------
        ValueError
            If it is the last one of its class.
        """
        if np.count_nonzero(self.labels == self.labels[k]) < 2:
            raise ValueError(f"prototype {k} is the last one of class index {self.labels[k]}: a class keeps one")
        return self._with(without_prototypes(self.state, np.array([k])), np.delete(self.sqdist, k, axis=1))

    def _loss(self, sqdist: Array, labels: Array) -> Array:
        return np.asarray(self.weights * self.cost(sqdist, self.targets, labels, self.state.sigma2).loss)

    def _with(self, state: State, sqdist: Array) -> Window:
        other = Window(self.manifold, self.cost, state, self.codes, self.targets, self.weights, self.sweep)
        other._sqdist = sqdist
        return other


Growth = Callable[[Window], Window]
"""A rule: the window as it is, or with prototypes added or removed."""


@attrs.frozen
class Grow:
    """Add a prototype where the loss is.

    Classes are tried in the order of their summed loss in the window. The new prototype is put at the class's
    Riemannian mean weighted by the samples' losses, or at its sample of largest loss, and stays if it lowers the loss
    of the whole window by the share ``gain``; the first class where it does has it, one at a time. That growth goes
    where errors add up is the idea of growing neural gas (Fritzke 1995, "A growing neural gas network learns
    topologies", NIPS 7); here the error is the loss of any cost.

    Parameters
    ----------
    at_most : int, default=4
        Prototypes of a class from which on it gets no more.
    every : int, default=10
        Epochs of a fit, or calls of ``partial_fit``, from one trial to the next.
    gain : float, default=0.02
        Share of the window's loss by which a new prototype must lower it, in [0, 1).
    at : {"mean", "sample"}, default="mean"
        Where it is put.
    min_samples : int, default=10
        A class with fewer samples in the window is left as it is.
    window : int, default=200
        Samples that ``partial_fit`` keeps for it; a fit looks at all of its training samples.

    Examples
    --------
    >>> from rplvq import Grow, RiemannianLVQ
    >>> X = np.array([[0.0], [0.5], [1.0], [4.0], [4.5], [5.0], [8.0], [8.5], [9.0]])
    >>> y = ["outside", "outside", "outside", "inside", "inside", "inside", "outside", "outside", "outside"]
    >>> grow = Grow(at_most=2, every=1, min_samples=3)
    >>> model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=0.5, growth=[grow], max_epochs=5)
    >>> model.fit(X, y).score(X, y), model.history_["n_prototypes"]
    (1.0, array([2, 3, 3, 3, 3]))
    """

    at_most: int = attrs.field(default=4, validator=count_from(1))
    every: int = attrs.field(default=10, validator=count_from(1))
    gain: float = attrs.field(default=0.02, validator=[not_negative, attrs.validators.lt(1)])
    at: str = attrs.field(default="mean", validator=in_(("mean", "sample")))
    min_samples: int = attrs.field(default=10, validator=count_from(1))
    window: int = attrs.field(default=200, validator=count_from(1))

    def __call__(self, window: Window) -> Window:
        """Return the window with one prototype more, or as it is."""
        if window.sweep % self.every:
            return window
        loss, counts = window.loss, np.bincount(window.labels)
        sizes = np.bincount(window.classes, minlength=len(counts))
        by_class = np.bincount(window.classes, loss, minlength=len(counts))
        for label in np.argsort(-by_class, kind="stable").tolist():
            if counts[label] >= self.at_most or sizes[label] < self.min_samples or not by_class[label] > 0:
                continue
            grown = window.added(label, self._place(window, np.where(window.classes == label, loss, 0.0)))
            if grown.loss.sum() <= (1 - self.gain) * loss.sum():
                return grown
        return window

    def _place(self, window: Window, loss: Array) -> Array:
        """Code of the new prototype, for losses (N,) that are 0 outside of its class."""
        return np.asarray(window.codes[loss.argmax()] if self.at == "sample" else window.mean(np.maximum(loss, 0.0)))


@attrs.frozen
class Prune:
    """Take away prototypes that win nothing, or without which the loss is not larger.

    A prototype goes if no sample of the window is nearest to it, or if the window's loss without it is at most
    ``1 + rise`` times that with it; the one that is missed least goes first, and the others are looked at again.

    Parameters
    ----------
    at_least : int, default=1
        Prototypes that a class keeps.
    every : int, default=10
        Epochs of a fit, or calls of ``partial_fit``, from one look to the next.
    rise : float, default=0
        Share of the loss that a removal may cost.
    min_samples : int, default=10
        A class with fewer samples in the window keeps its prototypes: they may win again when it returns.
    window : int, default=200
        Samples that ``partial_fit`` keeps for it; a fit looks at all of its training samples.

    Examples
    --------
    >>> from rplvq import Prune, RiemannianLVQ
    >>> X, y = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]), np.array([0, 0, 0, 1, 1, 1])
    >>> start = np.array([[1.0], [30.0], [9.0]]), np.array([0, 0, 1])
    >>> prune = Prune(every=1, min_samples=3)
    >>> model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, init=start, growth=[prune], max_epochs=2)
    >>> model.fit(X, y).history_["n_prototypes"]
    array([3, 2])
    """

    at_least: int = attrs.field(default=1, validator=count_from(1))
    every: int = attrs.field(default=10, validator=count_from(1))
    rise: float = attrs.field(default=0.0, validator=not_negative)
    min_samples: int = attrs.field(default=10, validator=count_from(1))
    window: int = attrs.field(default=200, validator=count_from(1))

    def __call__(self, window: Window) -> Window:
        """Return the window without its losers."""
        if window.sweep % self.every:
            return window
        while (loser := self._loser(window)) is not None:
            window = window.removed(loser)
        return window

    def _loser(self, window: Window) -> int | None:
        """Prototype that may go and is missed least, or None."""
        counts = np.bincount(window.labels)
        sizes = np.bincount(window.classes, minlength=len(counts))
        may_go = (counts > self.at_least) & (sizes >= self.min_samples)
        if not may_go.any():
            return None
        wins = np.bincount(window.sqdist.argmin(axis=1), window.weights, minlength=len(window.labels))
        limit, best, loser = (1 + self.rise) * float(window.loss.sum()), np.inf, None
        for k in np.flatnonzero(may_go[window.labels]).tolist():
            total = float(window.loss_without(k).sum())
            if (wins[k] == 0 or total <= limit) and total < best:
                best, loser = total, k
        return loser
