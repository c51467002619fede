"""More or fewer prototypes: in the state of training, and in a window of samples that shows what a change does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rplvq.arrays import Samples
from rplvq.costs import evaluate
from rplvq.manifolds import is_stateful, riemannian_mean
from rplvq.protocols import AnyManifold, Array, Cost, Prototypes
from rplvq.training._state import State
from rplvq.training._step import longest_step, step_lengths

SHORTEST = 2.0**-10
"""Share of a full step below which :meth:`Window.tuned` stops searching."""
SMALL_GAIN = 1e-3
"""Share of the loss that a step must gain so that :meth:`Window.tuned` takes another one."""


def new_codes(prototypes: Prototypes, codes: Array) -> Prototypes:
    """Return codes (M, ...) in the form of ``prototypes``, together with any state that these share."""
    return prototypes.with_codes(codes) if is_stateful(prototypes) else codes


def with_prototypes(state: State, codes: Array, labels: Array) -> State:
    """Add M prototypes with codes (M, ...) and labels (M,); each is placed after the others of its class.

    Examples
    --------
    >>> from rplvq import Constant
    >>> one = Constant(1.0)
    >>> state = State(np.array([[0.0], [5.0]]), np.array([0, 1]), one, one)
    >>> more = with_prototypes(state, np.array([[1.0]]), np.array([0]))
    >>> more.prototypes.ravel(), more.labels
    (array([0., 1., 5.]), array([0, 0, 1]))
    >>> without_prototypes(more, np.array([0])).prototypes.ravel()
    array([1., 5.])
    """
    return _rebuilt(state, np.arange(len(state.labels)), codes, labels)


def without_prototypes(state: State, removed: Array) -> State:
    """Remove the prototypes with indices ``removed`` (M,); the others keep their order."""
    kept = np.setdiff1d(np.arange(len(state.labels)), removed)
    return _rebuilt(state, kept, np.asarray(state.prototypes)[:0], state.labels[:0])


def restored(state: State, prototypes: Prototypes, rows: Array) -> State:
    """Return the state with the prototypes at ``rows`` (M,) replaced by those of ``prototypes`` (K, ...)."""
    codes = np.array(state.prototypes)
    codes[rows] = np.asarray(prototypes)[rows]
    return state._replace(prototypes=new_codes(state.prototypes, codes))


def _rebuilt(state: State, kept: Array, codes: Array, labels: Array) -> State:
    """Return the state with the prototypes ``kept`` (M,) and new ones, sorted by label; its memory changes with it."""
    every = np.concatenate([state.labels[kept], labels])
    order = np.argsort(every, kind="stable")

    def rebuild(old: Prototypes) -> Array:
        return np.asarray(np.concatenate([np.asarray(old)[kept], codes])[order])

    memory = state.memory
    if memory is not None:
        memory = state.step_schedule.resize(memory, rebuild)  # type: ignore[attr-defined]
    prototypes = new_codes(state.prototypes, rebuild(state.prototypes))
    return state._replace(prototypes=prototypes, labels=every[order], memory=memory)


class Window:
    """What a rule of growth sees: samples, and the prototypes with any changes tried so far.

    Windows are immutable: ``added``, ``removed`` and ``tuned`` (new prototypes move to a lower loss) return new ones.
    The attributes ``classes`` and ``weights`` (N,) are the class index and the weight of each sample.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    cost : Cost
        The loss.
    state : State
        The state with K prototypes.
    samples : Samples
        N samples in memory: all samples of a fit, or the latest ones of a stream.
    sweep : int, default=0
        Number of epochs so far; a call of ``partial_fit`` counts as one.
    sqdist : ndarray of shape (N, K), optional
        Squared distances, if they are known; else they are computed when they are first read.

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
        self, manifold: AnyManifold, cost: Cost, state: State, samples: Samples, sweep: int = 0,
        sqdist: Array | None = None,
    ) -> None:  # fmt: skip
        self.manifold = manifold
        self.cost = cost
        self.state = state
        self.sweep = sweep
        self.samples = samples
        self.codes = samples.codes
        self.targets = samples.targets
        self.classes = samples.classes
        self.weights = samples.filled_weights
        self._sqdist = sqdist

    @property
    def labels(self) -> Array:
        """Class index of each prototype, shape (K,), sorted."""
        return self.state.labels

    @property
    def sqdist(self) -> Array:
        """Squared distances (N, K) of the samples to the prototypes."""
        if self._sqdist is None:
            self._sqdist = np.asarray(self.manifold.sqdist(self.state.prototypes, self.codes))
        return self._sqdist

    @property
    def loss(self) -> Array:
        """Loss of each sample times its weight, shape (N,)."""
        return self._loss(self.sqdist, self.labels)

    def loss_without(self, k: int) -> Array:
        """Return the weighted losses (N,) if prototype ``k`` were removed."""
        return self._loss(np.delete(self.sqdist, k, axis=1), np.delete(self.labels, k))

    def mean(self, weights: Array) -> Array:
        """Return the code of the Riemannian mean of the samples, for weights (N,)."""
        return riemannian_mean(self.manifold, self.codes, weights, tol=1e-3).code

    def every_other(self, first: int) -> Window:
        """Return the window of the samples ``first``, ``first + 2``, ..., so that one half can judge the other."""
        rows = slice(first, None, 2)
        return Window(self.manifold, self.cost, self.state, self.samples.at(rows), self.sweep, self.sqdist[rows])

    def code(self, row: int) -> Array:
        """Return the code (...) of the sample with index ``row``."""
        return np.asarray(self.codes[row])

    def distances(self, code: Array) -> Array:
        """Return the squared distances (N,) of the samples to a prototype with this code."""
        return np.asarray(self.manifold.sqdist(new_codes(self.state.prototypes, code[None]), self.codes))[:, 0]

    def added(self, label: int, code: Array) -> Window:
        """Return the window with one more prototype of class index ``label``, placed after the others of its class."""
        place = np.searchsorted(self.labels, label, side="right")
        sqdist = np.insert(self.sqdist, place, self.distances(code), axis=1)
        return self._with(with_prototypes(self.state, code[None], np.array([label])), sqdist)

    def removed(self, k: int) -> Window:
        """Return the window without prototype ``k``; raise ValueError if it is the last one of its class."""
        if np.count_nonzero(self.labels == self.labels[k]) < 2:
            raise ValueError(f"prototype {k} is the last one of class index {self.labels[k]}: a class keeps one")
        return self._with(without_prototypes(self.state, np.array([k])), np.delete(self.sqdist, k, axis=1))

    def tuned(self, label: int, count: int, n_steps: int = 10) -> Window:
        """Return the window after the last ``count`` prototypes of a class have moved to a lower loss.

        Trained prototypes of other classes have moved away from their data. A new prototype at a mean would therefore
        be nearest to samples of all classes, and has to move, too. Each step follows the logarithms of the samples,
        weighted by the slopes, whose absolute values sum to one per prototype. A step that does not lower the loss is
        halved. All other prototypes stay.
        """
        chosen = np.searchsorted(self.labels, label, side="right") - np.arange(count, 0, -1)
        window = self
        step = 1.0
        for _ in range(n_steps):
            follow = window._descent(chosen)
            total = float(window.loss.sum())
            reached = window
            while step > SHORTEST and not float(reached.loss.sum()) < total:
                reached = window._replaced(chosen, follow(step))
                step /= 2
            if not float(reached.loss.sum()) < total:
                break
            window = reached
            step = min(1.0, 4 * step)  # twice the step that was taken, which is halved by now
            if float(window.loss.sum()) > (1 - SMALL_GAIN) * total:
                break
        return window

    def _loss(self, sqdist: Array, labels: Array) -> Array:
        return np.asarray(self.weights * evaluate(self.cost, sqdist, self.targets, labels, self.state.sigma2).loss)

    def _descent(self, chosen: Array) -> Callable[[float], Array]:
        """Return a function that gives the codes of the prototypes ``chosen`` (M,) after a step of a given length."""
        slope = evaluate(self.cost, self.sqdist, self.targets, self.labels, self.state.sigma2).slope[:, chosen]
        slope = slope * self.weights[:, None]
        norms = np.abs(slope).sum(axis=0)
        share = slope / np.where(norms > 0, norms, 1.0)  # a weight of 1 in all moves it to a mean
        reach = step_lengths(share, self.sqdist[:, chosen])
        share /= np.maximum(reach / longest_step(self.manifold), 1.0)  # as the steps of training
        start = new_codes(self.state.prototypes, np.asarray(self.state.prototypes)[chosen])
        geodesics = self.manifold.connect(start, self.codes)
        return lambda step: np.asarray(self.manifold.move(geodesics, step * share))

    def _replaced(self, chosen: Array, codes: Array) -> Window:
        """Return the window with other codes (M, ...) for the prototypes ``chosen`` (M,), the last ones of a class."""
        window = self._with(without_prototypes(self.state, chosen), np.delete(self.sqdist, chosen, axis=1))
        for code in codes:
            window = window.added(int(self.labels[chosen[0]]), code)
        return window

    def _with(self, state: State, sqdist: Array) -> Window:
        return Window(self.manifold, self.cost, state, self.samples, self.sweep, sqdist)
