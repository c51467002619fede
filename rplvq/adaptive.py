"""A step size that sets itself, from distances alone.

The gradient of a prototype has the norm ``|weight| * distance`` for one sample, and at most the sum of these for
several, so that no matrix is needed for it; how far the prototypes have come from their start is looked up now and
then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import attrs
import numpy as np

from rplvq.checks import count_from
from rplvq.protocols import Array, Cost, Geodesics, Manifold, Prototypes
from rplvq.schedules import number, positive
from rplvq.steps import State, Step, pair_weights

__all__ = ["AdaptiveStep", "Travel", "adaptive_step", "named_step"]


class Travel(NamedTuple):
    """What K prototypes remember of their way.

    Parameters
    ----------
    origin : ndarray of shape (K, ...)
        Codes from which they set out.
    reach : float
        Largest distance from there that was seen, on the product manifold: the root of the K summed squares.
    peak : float
        Largest norm of a gradient, by all prototypes together.
    total : float
        Sum of the squared norms of all gradients.
    n_steps : int
        Steps taken.
    """

    origin: Array
    reach: float
    peak: float
    total: float
    n_steps: int


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
        The distance from the start is computed after steps 1, 2, 4, ... up to this many, and then each time this many
        steps were taken; it costs K distances.

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

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the step size of ``epoch`` t of T if no gradient were known; raise ValueError at ``start=None``."""
        if self.start is None:
            raise ValueError(f"{self} has start=None, which is filled in at fit; to call it, give it a start")
        return float(self.start * (1 - epoch / (n_epochs + 1)))

    def begin(self, prototypes: Prototypes) -> Travel:
        """Return the memory of K prototypes that have not moved yet.

        Parameters
        ----------
        prototypes : Prototypes
            As their manifold carries them.

        Returns
        -------
        Travel
            All zero but for the origin.
        """
        return Travel(np.array(prototypes), 0.0, 0.0, 0.0, 0)

    def size(self, memory: Travel, norm: float, epoch: int, n_epochs: int) -> tuple[Travel, float]:
        """Take in the gradient of a step, and size the step.

        Parameters
        ----------
        memory : Travel
            From :meth:`begin` or the step before.
        norm : float
            Norm of the gradient by all prototypes together, or a bound on it.
        epoch, n_epochs : int
            As for a schedule.

        Returns
        -------
        memory : Travel
            With this gradient.
        step_size : float
            Positive.

        Examples
        --------
        >>> rule = AdaptiveStep(0.5)
        >>> memory, first = rule.size(rule.begin(np.zeros((1, 2))), 3.0, 0, 10)
        >>> memory, second = rule.size(memory._replace(reach=6.0), 4.0, 0, 10)
        >>> first, second  # 0.5, and 6 / 5
        (0.5, 1.2)
        """
        value, start = self(epoch, n_epochs), self.start or 1.0
        peak, total = max(memory.peak, norm), memory.total + norm * norm
        memory = memory._replace(peak=peak, total=total, n_steps=memory.n_steps + 1)
        if not 0 < total < math.inf:
            return memory, value
        return memory, value * max(memory.reach / start, peak) / math.sqrt(total)

    def look(self, memory: Travel, manifold: Manifold[Any], prototypes: Prototypes) -> Travel:
        """Measure how far the prototypes are from their start, if it is time for that.

        Parameters
        ----------
        memory : Travel
            After a step.
        manifold : Manifold
            Where they live.
        prototypes : Prototypes
            After that step.

        Returns
        -------
        Travel
            With the larger reach.
        """
        count = memory.n_steps
        if count % self.every and (count > self.every or count & (count - 1)):
            return memory
        codes, origin = np.asarray(prototypes), memory.origin
        total = sum(float(manifold.sqdist(origin[k : k + 1], codes[k : k + 1])[0, 0]) for k in range(len(codes)))
        return memory._replace(reach=max(memory.reach, math.sqrt(total)))


def named_step(value: Any) -> Any:
    """Return AdaptiveStep() for "adaptive", anything else as it is.

    Examples
    --------
    >>> named_step("adaptive")
    AdaptiveStep(start=None, every=32)
    """
    return AdaptiveStep() if isinstance(value, str) and value == "adaptive" else value


def adaptive_step(
    manifold: Manifold[Any],
    cost: Cost,
    state: State,
    samples: Array,
    targets: Array,
    sample_weight: Array | None,
    n_epochs: int,
    caps: tuple[float | None, float],
    connect: Callable[[Prototypes, Array], Geodesics] | None = None,
) -> Step:
    """Take one step whose size ``state.step_schedule``, an :class:`AdaptiveStep`, sets.

    Parameters
    ----------
    manifold : Manifold
        The geometry.
    cost : Cost
        The loss.
    state : State
        With the memory of the steps before.
    samples : ndarray of shape (B, ...)
        Encoded samples of the batch.
    targets : ndarray of shape (B,) or (B, C)
        Their class indices or probabilities.
    sample_weight : ndarray of shape (B,) or None
        Factors of the samples' slopes.
    n_epochs : int
        Epochs planned.
    caps : tuple of (max_weight, max_length)
        As for :func:`rplvq.steps.pair_weights`.
    connect : callable, optional
        Takes the place of ``manifold.connect``: the same, faster.

    Returns
    -------
    Step
        With the memory and the step size.
    """
    rule = state.step_schedule
    assert isinstance(rule, AdaptiveStep)
    geodesics = (connect or manifold.connect)(state.prototypes, samples)
    sqdist = geodesics.sqdist
    loss, slope = cost(sqdist, targets, state.labels, state.sigma2)
    if sample_weight is not None:
        slope = slope * sample_weight[:, None]
    norms = np.sum(np.abs(slope) * np.sqrt(sqdist), axis=0) * (2.0 / len(samples))
    memory, step_size = rule.size(state.memory, math.sqrt(np.vdot(norms, norms)), state.epoch, n_epochs)
    weights, n_capped = pair_weights(slope, sqdist, step_size, *caps)
    prototypes = manifold.move(geodesics, weights)
    return Step(prototypes, sqdist, loss, n_capped, rule.look(memory, manifold, prototypes), step_size)
