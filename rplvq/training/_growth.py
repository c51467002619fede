"""Rules that add prototypes where the loss is, and remove prototypes that are of no use.

A rule is any callable that takes a :class:`Window` and returns one. Rules run between the epochs of a fit and between
the calls of ``partial_fit``. They read distances, losses and labels, but no points: the window does what needs the
geometry.
"""

from collections.abc import Callable
from typing import Literal

import attrs
import numpy as np

from rplvq.parts import count_from, library_part, number_in, one_of
from rplvq.protocols import Array
from rplvq.training._resize import Window

Growth = Callable[[Window], Window]
"""A rule: returns the window as it is, or with prototypes added or removed."""


@library_part
@attrs.frozen
class Grow:
    """Add a prototype where the loss is largest.

    Half of the samples place the prototype, and the other half judge it. Classes are tried in the order of their summed
    loss, and at most one prototype is added:

    1. The prototype starts at the sample of the class with the largest loss.
    2. It moves to the Riemannian mean, weighted by the losses, of those samples of the class that are nearer to it than
       to the other prototypes of the class.
    3. Up to ten steps along its gradient lower the loss, while all other prototypes stay.
    4. It is kept if the loss of the judging half falls by the share ``gain``; if not, the next class is tried.

    Growing where errors accumulate is the idea of growing neural gas (Fritzke 1995, "A growing neural gas network
    learns topologies", NIPS 7). Here the error is the loss of any cost.

    Parameters
    ----------
    at_most : int, default=4
        Largest number of prototypes per class.
    every : int, default=10
        Number of epochs of a fit, or of calls of ``partial_fit``, from one trial to the next.
    gain : float or None, default=0.02
        Share in [0, 1) by which a new prototype must lower the loss of the samples that judge it. None keeps it without
        a trial. Then it may help only after training, for example if clusters of two classes alternate, or
        :class:`Prune` removes it.
    at : {"mean", "sample"}, default="mean"
        "sample" leaves out steps 2 and 3.
    min_samples : int, default=10
        A class with fewer distinct samples in the window gets no prototype.
    window : int, default=200
        Number of samples that ``partial_fit`` keeps for this rule; a fit looks at all its training samples.

    Examples
    --------
    >>> from rplvq import Grow, RiemannianLVQ
    >>> X = np.array([[0.0], [0.5], [1.0], [4.0], [4.5], [5.0], [8.0], [8.5], [9.0]])
    >>> y = ["outside", "outside", "outside", "inside", "inside", "inside", "outside", "outside", "outside"]
    >>> grow = Grow(at_most=2, every=1, min_samples=3)
    >>> parts = {"sigma2": 1.0, "step_size": 0.5, "growth": [grow]}
    >>> model = RiemannianLVQ("euclidean_vectors", **parts, max_epochs=4, random_state=0)
    >>> model.fit(X, y).score(X, y), model.history_["n_prototypes"]
    (1.0, array([2, 3, 4, 4]))
    """

    at_most: int = attrs.field(default=4, validator=count_from(1))
    every: int = attrs.field(default=10, validator=count_from(1))
    gain: float | None = attrs.field(default=0.02, validator=number_in(high=1, closed=True, or_none=True))
    at: Literal["mean", "sample"] = attrs.field(default="mean", validator=one_of("mean", "sample"))
    min_samples: int = attrs.field(default=10, validator=count_from(1))
    window: int = attrs.field(default=200, validator=count_from(1))

    def __call__(self, window: Window) -> Window:
        """Return the window with one more prototype, or as it is."""
        if window.sweep % self.every:
            return window
        counts = np.bincount(window.labels)
        fit = window.every_other(0)
        judge = window.every_other(1)
        loss = fit.loss
        sizes = np.bincount(window.classes, minlength=len(counts))
        by_class = np.bincount(fit.classes, loss, minlength=len(counts))
        for label in np.argsort(-by_class, kind="stable").tolist():
            # A loss that is NaN counts as none.
            if counts[label] >= self.at_most or sizes[label] < self.min_samples or not by_class[label] > 0:
                continue
            code = self._place(fit, np.where(fit.classes == label, loss, 0.0))
            if self.gain is None or judge.added(label, code).loss.sum() <= (1 - self.gain) * judge.loss.sum():
                return window.added(label, code)
        return window

    def _place(self, window: Window, loss: Array) -> Array:
        """Return the code of the new prototype, for losses (N,) that are 0 outside of its class."""
        worst = int(loss.argmax())
        if self.at == "sample":
            return window.code(worst)
        label = int(window.classes[worst])
        own = window.sqdist[:, window.labels == label].min(axis=1)
        nearer = window.distances(window.code(worst)) < own
        # A cost of a user may be negative.
        start = window.mean(np.where(nearer, np.maximum(loss, 0.0), 0.0)) if nearer[worst] else window.code(worst)
        place = int(np.searchsorted(window.labels, label, side="right"))
        return np.asarray(np.asarray(window.added(label, start).tuned(label, 1).state.prototypes)[place])


@library_part
@attrs.frozen
class Prune:
    """Remove prototypes that are nearest to no sample, or whose removal does not raise the loss.

    The second condition is that the loss of the window without the prototype is at most ``1 + rise`` times the loss
    with it. The prototype whose removal leaves the smallest loss is removed first, and the others are judged again.

    Parameters
    ----------
    at_least : int, default=1
        Number of prototypes that a class keeps.
    every : int, default=10
        Number of epochs of a fit, or of calls of ``partial_fit``, from one trial to the next.
    rise : float, default=0
        Share by which a removal may raise the loss.
    min_samples : int, default=10
        A class with fewer samples in the window keeps its prototypes, because they may be needed when its samples
        return.
    window : int, default=200
        As for :class:`Grow`.

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
    rise: float = attrs.field(default=0.0, validator=number_in(closed=True))
    min_samples: int = attrs.field(default=10, validator=count_from(1))
    window: int = attrs.field(default=200, validator=count_from(1))

    def __call__(self, window: Window) -> Window:
        """Return the window without the prototypes that are of no use."""
        if window.sweep % self.every:
            return window
        while (k := self._least_useful(window)) is not None:
            window = window.removed(k)
        return window

    def _least_useful(self, window: Window) -> int | None:
        """Return the prototype whose removal leaves the smallest loss, or None if none may be removed."""
        counts = np.bincount(window.labels)
        sizes = np.bincount(window.classes, minlength=len(counts))
        may_go = (counts > self.at_least) & (sizes >= self.min_samples)
        if not may_go.any():
            return None
        wins = np.bincount(window.sqdist.argmin(axis=1), window.weights, minlength=len(window.labels))
        limit = (1 + self.rise) * float(window.loss.sum())
        totals = {k: float(window.loss_without(k).sum()) for k in np.flatnonzero(may_go[window.labels]).tolist()}
        useless = [k for k, total in totals.items() if total < np.inf and (wins[k] == 0 or total <= limit)]
        return min(useless, key=totals.__getitem__, default=None)
