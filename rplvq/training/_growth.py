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

from rplvq.arrays import Samples
from rplvq.manifolds import riemannian_mean
from rplvq.parts import count_from, library_part, not_negative, share
from rplvq.protocols import Array, Cost, Manifold
from rplvq.training._resize import new_codes, with_prototypes, without_prototypes
from rplvq.training._state import State

__all__ = ["Grow", "Growth", "Prune", "Window"]


SHORTEST = 2.0**-10
"""Share of a step below which no lower loss is looked for."""
SMALL_GAIN = 1e-3
"""Share of the loss below which a step is the last one."""


class Window:
    """Samples that a rule of growth looks at, and the prototypes as they would be.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    cost : Cost
        The loss.
    state : State
        With K prototypes.
    samples : Samples
        N samples in memory: all those of a fit, or the latest of a stream.
    sweep : int, default=0
        Number of epochs and calls of ``partial_fit`` so far.

    Attributes
    ----------
    classes : ndarray of int of shape (N,)
        Class index of each sample.

    Examples
    --------
    >>> from rplvq import RSLVQ, Constant, EuclideanVectors
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [4.0]]), np.array([0, 1]), one, one, 1, 1.0, 1.0)
    >>> samples = Samples(np.array([[0.0], [7.0], [4.0]]), np.array([0, 0, 1]))
    >>> window = Window(EuclideanVectors(), RSLVQ(), state, samples)
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
        samples: Samples,
        sweep: int = 0,
    ) -> None:
        self.manifold, self.cost, self.state, self.sweep = manifold, cost, state, sweep
        self.samples, self.codes, self.targets = samples, samples.codes, samples.targets
        self.classes, self.weights = samples.classes, samples.filled_weights
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
        return riemannian_mean(self.manifold, self.codes, weights, tol=1e-3).code

    def every_other(self, first: int) -> Window:
        """Return the window of the samples ``first``, ``first + 2``, ...: one half fits, and the other judges."""
        rows = slice(first, None, 2)
        other = Window(self.manifold, self.cost, self.state, self.samples.at(rows), self.sweep)
        other._sqdist = self.sqdist[rows]
        return other

    def code(self, row: int) -> Array:
        """Code of a sample."""
        return np.asarray(self.codes[row])

    def distances(self, code: Array) -> Array:
        """Squared distances (N,) of the samples to a prototype that would be there."""
        other = new_codes(self.state.prototypes, code[None])
        return np.asarray(self.manifold.sqdist(other, self.codes))[:, 0]

    def added(self, label: int, code: Array) -> Window:
        """Return the window with one prototype more, of class index ``label``, after those of its class."""
        place = np.searchsorted(self.labels, label, side="right")
        sqdist = np.insert(self.sqdist, place, self.distances(code), axis=1)
        return self._with(with_prototypes(self.state, code[None], np.array([label])), sqdist)

    def tuned(self, label: int, count: int, n_steps: int = 10) -> Window:
        """Return the window with the last ``count`` prototypes of a class moved to a lower loss, all others held.

        Training moves prototypes off their data, away from those of other classes: a new one at a mean would be nearest
        to samples of all. Steps follow the mean of the logarithms weighted by the slopes, the weights of a prototype
        summing to one in size; a step that does not lower the loss is halved.
        """
        chosen = np.searchsorted(self.labels, label, side="right") - np.arange(count, 0, -1)
        window, step = self, 1.0
        for _ in range(n_steps):
            follow, total, reached = window._descent(chosen), float(window.loss.sum()), window
            while step > SHORTEST and not float(reached.loss.sum()) < total:
                reached = window._replaced(chosen, follow(step))
                step /= 2
            if not float(reached.loss.sum()) < total:
                break
            window, step = reached, min(1.0, 4 * step)
            if float(window.loss.sum()) > (1 - SMALL_GAIN) * total:
                break
        return window

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

    def _descent(self, chosen: Array) -> Callable[[float], Array]:
        """Codes of the prototypes ``chosen`` (M,) after a step of a given share."""
        slope = self.cost(self.sqdist, self.targets, self.labels, self.state.sigma2).slope[:, chosen]
        slope = slope * self.weights[:, None]
        norms = np.abs(slope).sum(axis=0)
        share = slope / np.where(norms > 0, norms, 1.0)
        reach = np.sum(np.abs(share) * np.sqrt(self.sqdist[:, chosen]), axis=0)
        share /= np.maximum(reach / getattr(self.manifold, "max_step_length", np.inf), 1.0)
        start = new_codes(self.state.prototypes, np.asarray(self.state.prototypes)[chosen])
        geodesics = self.manifold.connect(start, self.codes)
        return lambda step: np.asarray(self.manifold.move(geodesics, step * share))

    def _replaced(self, chosen: Array, codes: Array) -> Window:
        """Return the window with other codes (M, ...) for the prototypes ``chosen`` (M,), the last of one class."""
        window = self._with(without_prototypes(self.state, chosen), np.delete(self.sqdist, chosen, axis=1))
        for code in codes:
            window = window.added(int(self.labels[chosen[0]]), code)
        return window

    def _with(self, state: State, sqdist: Array) -> Window:
        other = Window(self.manifold, self.cost, state, self.samples, self.sweep)
        other._sqdist = sqdist
        return other


Growth = Callable[[Window], Window]
"""A rule: the window as it is, or with prototypes added or removed."""


@library_part
@attrs.frozen
class Grow:
    """Add a prototype where the loss is.

    Every other sample of the window places it, the rest judge it. Classes are tried in the order of their summed loss.
    The new prototype is put at the class's sample of largest loss, and from there to the Riemannian mean, weighted by
    their losses, of the class's samples that are nearer to it than to the others of the class; then ten steps along
    the gradient, all others held, lower the loss. It stays if the loss of the samples that did not place it falls by
    the share ``gain``; the first class where it does has it, one at a time. That growth goes
    where errors add up is the idea of growing neural gas (Fritzke 1995, "A growing neural gas network learns
    topologies", NIPS 7); here the error is the loss of any cost.

    Parameters
    ----------
    at_most : int, default=4
        Prototypes of a class from which on it gets no more.
    every : int, default=10
        Epochs of a fit, or calls of ``partial_fit``, from one trial to the next.
    gain : float, default=0.02
        Share by which a new prototype must lower the loss of the samples that judge it, in [0, 1). None takes it
        untried: it may come to help by training, as where clusters of two classes lie in turn, or :class:`Prune` takes
        it away.
    at : {"mean", "sample"}, default="mean"
        Whether it goes to that mean, or stays at the sample.
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
    >>> model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, step_size=0.5, growth=[grow], max_epochs=4)
    >>> model.fit(X, y).score(X, y), model.history_["n_prototypes"]
    (1.0, array([2, 3, 4, 4]))
    """

    at_most: int = attrs.field(default=4, validator=count_from(1))
    every: int = attrs.field(default=10, validator=count_from(1))
    gain: float | None = attrs.field(default=0.02, validator=share(zero=True, or_none=True))
    at: str = attrs.field(default="mean", validator=in_(("mean", "sample")))
    min_samples: int = attrs.field(default=10, validator=count_from(1))
    window: int = attrs.field(default=200, validator=count_from(1))

    def __call__(self, window: Window) -> Window:
        """Return the window with one prototype more, or as it is."""
        if window.sweep % self.every:
            return window
        counts, (fit, judge) = np.bincount(window.labels), (window.every_other(0), window.every_other(1))
        loss = fit.loss
        sizes = np.bincount(window.classes, minlength=len(counts))
        by_class = np.bincount(fit.classes, loss, minlength=len(counts))
        for label in np.argsort(-by_class, kind="stable").tolist():
            if counts[label] >= self.at_most or sizes[label] < self.min_samples or not by_class[label] > 0:
                continue
            code = self._place(fit, np.where(fit.classes == label, loss, 0.0))
            if self.gain is None or judge.added(label, code).loss.sum() <= (1 - self.gain) * judge.loss.sum():
                return window.added(label, code)
        return window

    def _place(self, window: Window, loss: Array) -> Array:
        """Code of the new prototype, for losses (N,) that are 0 outside of its class."""
        worst = int(loss.argmax())
        if self.at == "sample":
            return window.code(worst)
        label = int(window.classes[worst])
        own = window.sqdist[:, window.labels == label].min(axis=1)
        nearer = window.distances(window.code(worst)) < own
        start = window.mean(np.where(nearer, np.maximum(loss, 0.0), 0.0)) if nearer[worst] else window.code(worst)
        place = int(np.searchsorted(window.labels, label, side="right"))
        codes: Array = np.asarray(window.added(label, start).tuned(label, 1).state.prototypes)
        return np.asarray(codes[place])


@library_part
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
