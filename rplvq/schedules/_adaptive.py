"""A step size that adapts itself, computed from distances alone.

For one sample, the norm of a prototype's gradient is ``|weight| * distance``. For several samples it is at most the sum
of these. No matrix is therefore needed to compute it. How far the prototypes have moved is measured only now and then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.parts import count_from, library_part, positive_or_none
from rplvq.protocols import Array, Manifold, Prototypes
from rplvq.schedules._schedules import number, positive

__all__ = ["AdaptiveStep", "DoGState"]


@library_part
class DoGState(NamedTuple):
    """What the rule "distance over gradients" remembers of K prototypes.

    Parameters
    ----------
    init : ndarray of shape (K, ...)
        Codes of the prototypes before training.
    max_dist : float
        Largest distance from there that was measured, on the product manifold: the root of the K summed squares.
    max_grad : float
        Largest norm of a gradient, over all prototypes together.
    total : float
        Sum of the squared norms of all gradients.
    n_steps : int
        Number of steps taken.
    """

    init: Array
    max_dist: float
    max_grad: float
    total: float
    n_steps: int


@library_part
@attrs.frozen
class AdaptiveStep:
    """Distance over gradients: a step by how far the prototypes have come, over the root of their summed gradients.

    With the norms ``g_i`` of the Riemannian gradients by all prototypes together, ``r`` their largest distance from
    their start so far, in epoch t of T::

        step = max(r, start * max_i g_i) / sqrt(sum_i g_i^2) * (1 - t / (T + 1))

    The first step is ``start`` itself. Where that is too short, r and with it the steps grow by a factor every few
    samples, until the prototypes have come about as far as they need to; where it is too long, the sum of the
    gradients shortens it. So the result hardly depends on ``start``.

    Parameters
    ----------
    start : float, optional
        First step size; None is that of the paper, ``n xi / 100`` in squared units of the data where distances
        carry units.
    every : int, default=32
        The distance from the initial prototypes is measured after steps 1, 2, 4, ... up to this number, and from then
        on each time this number of steps was taken. It costs K distances.
    max_weight : float or None, default=1.0
        Largest absolute weight of a (sample, prototype) pair, see :class:`rplvq.schedules.StepSize`.

    Notes
    -----
    This is DoG (Ivgi, Hinder and Carmon 2023, "DoG is SGD's best friend: a parameter-free dynamic step size
    schedule", arXiv:2302.12022, equation 1) and, on manifolds, RDoG without its term of curvature (Dodd, Sharrock and
    Nemeth 2024, "Learning-rate-free stochastic optimization over Riemannian manifolds", arXiv:2406.02296). Theirs
    starts from a fixed first movement and averages the iterates; the floor ``start * max g`` and the linear decay
    instead are this library's choice. Compiled steps do not know it: it takes the plain path.

    Examples
    --------
    >>> from rplvq import AdaptiveStep, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> for start in (0.01, 0.1, 1.0):
    ...     model = RiemannianLVQ(sigma2=8.0, step_size=AdaptiveStep(start), max_epochs=50, random_state=0)
    ...     print(f"{model.fit(X, y).history_['cost'][-1]:.0f}")
    18
    17
    16
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive)
    every: int = attrs.field(default=32, converter=number, validator=count_from(1))
    max_weight: float | None = attrs.field(default=1.0, validator=positive_or_none)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the step size of ``epoch`` t of T before any gradient is known.

        Raises
        ------
        ValueError
            If ``start`` is None, which the trainer fills in.
        """
        if self.start is None:
            raise ValueError(f"{self} has start=None, which is filled in at fit; to call it, give it a start")
        return float(self.start * (1 - epoch / (n_epochs + 1)))

    def init(self, prototypes: Prototypes) -> DoGState:
        """Return the memory for K prototypes that have not moved yet."""
        return DoGState(np.array(prototypes), 0.0, 0.0, 0.0, 0)

    def update(self, memory: DoGState, gradient_norm: float, epoch: int, n_epochs: int) -> tuple[DoGState, float]:
        """Take in the gradient of a step and return the size of this step.

        Parameters
        ----------
        memory : DoGState
            From :meth:`init` or from the step before.
        gradient_norm : float
            Norm of the gradient over all prototypes together, or a bound on it.
        epoch, n_epochs : int
            As for a schedule.

        Returns
        -------
        memory : DoGState
            With this gradient.
        step_size : float
            Positive.

        Examples
        --------
        >>> rule = AdaptiveStep(0.5)
        >>> memory, first = rule.update(rule.init(np.zeros((1, 2))), 3.0, 0, 10)
        >>> memory, second = rule.update(memory._replace(max_dist=6.0), 4.0, 0, 10)
        >>> first, second  # 0.5, and 6 / 5
        (0.5, 1.2)
        """
        value, start = self(epoch, n_epochs), self.start or 1.0
        max_grad = max(memory.max_grad, gradient_norm)
        total = memory.total + gradient_norm * gradient_norm
        memory = memory._replace(max_grad=max_grad, total=total, n_steps=memory.n_steps + 1)
        if not 0 < total < math.inf:
            return memory, value
        return memory, value * max(memory.max_dist / start, max_grad) / math.sqrt(total)

    def observe(self, memory: DoGState, manifold: Manifold[Any], prototypes: Prototypes) -> DoGState:
        """Measure the distance of the prototypes from their initial codes, if this is due after this step."""
        count = memory.n_steps
        if count % self.every and (count > self.every or count & (count - 1)):
            return memory
        codes, init = np.asarray(prototypes), memory.init
        total = sum(float(manifold.sqdist(init[k : k + 1], codes[k : k + 1])[0, 0]) for k in range(len(codes)))
        return memory._replace(max_dist=max(memory.max_dist, math.sqrt(total)))

    def resize(self, memory: DoGState, rebuild: Callable[[Array], Array]) -> DoGState:
        """Return the memory after prototypes were added or removed: new ones start where they were added."""
        return memory._replace(init=rebuild(memory.init))
