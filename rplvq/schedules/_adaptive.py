"""A step size that adapts itself, computed from distances alone.

For one sample, the norm of the gradient of a prototype is ``2 |slope| distance``, and for a batch it is at most the
mean of these. It is therefore known without any matrix. The distances that the prototypes have moved cost an extra
evaluation, so they are measured only after some steps: often at first, and rarely later, when the largest of them
changes slowly.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import attrs
import numpy as np

from rplvq.parts import has_kernel, library_part, number_in
from rplvq.protocols import AnyManifold, Array, Prototypes
from rplvq.schedules._schedules import number, positive_or_none, started

LAST = 0.1
"""Its square is the decay in the last epoch, a hundredth as for the default share: few epochs end gently, too."""
PROTOTYPES_AT_ONCE = 4
"""Number of prototypes of which all pairs are measured at once, because calls have overhead."""


def interval(n_steps: int) -> int:
    """Return the number of steps between measurements, which come four times while the number of steps doubles."""
    return max(1, (1 << n_steps.bit_length()) // 8)


@library_part
class DoGState(NamedTuple):
    """The memory of :class:`rplvq.AdaptiveStep` for K prototypes."""

    init: Array
    """Codes of the prototypes before training, shape (K, ...)."""
    max_dist: float
    """Largest measured distance from ``init`` over all prototypes together, the root of the K summed squares."""
    max_grad: float
    """Largest norm of a gradient over all prototypes together."""
    total: float
    """Sum of the squared norms of all gradients."""
    n_steps: int
    """Number of steps taken."""


@library_part
@attrs.frozen
class AdaptiveStep:
    """A step size that adapts itself: distance moved, divided by the root of the summed squared gradient norms.

    Let ``g_i`` be the norm of the Riemannian gradient of step i over all prototypes together (for batches, an upper
    bound of it). Let ``r`` be the largest distance so far between all prototypes and their start, where the distance of
    all prototypes is the root of the K summed squares. In epoch t = 1, ..., T the step size is ::

        max(r, start * max_i g_i) / sqrt(sum_i g_i^2) * max(1 - t / T, 0.1)^2

    The first step size is ``start * max(1 - 1 / T, 0.1)^2``. If it is too small, r and the steps grow geometrically
    until the prototypes have moved about as far as they need to. If it is too large, the growing denominator shortens
    the steps. With 20 epochs or more, the result therefore depends little on ``start``.

    Parameters
    ----------
    start : float, optional
        First step size before the decay; None starts where the default of the parameter ``step_size`` does.
    max_weight : float or None, default=1.0
        Largest absolute weight of a (sample, prototype) pair, see :class:`rplvq.schedules.StepSize`.

    Notes
    -----
    This is DoG (Ivgi, Hinder and Carmon 2023, arXiv:2302.12022, equation 1), and on manifolds RDoG without its
    curvature term (Dodd, Sharrock and Nemeth 2024, arXiv:2406.02296). They begin with a small fixed r, and average the
    iterates. The floor ``start * max g``, the decay, and the steps after which r is measured are choices of this
    library: r is measured after steps 1, 2, ..., 8, and then four times while the number of steps doubles.

    Examples
    --------
    >>> from rplvq import AdaptiveStep, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=20, random_state=0)
    >>> for start in (0.01, 0.1, 1.0):
    ...     model = RiemannianLVQ(sigma2=8.0, step_size=AdaptiveStep(start), max_epochs=50, random_state=0)
    ...     print(f"{model.fit(X, y).history_['cost'][-1]:.0f}")
    24
    20
    19
    """

    start: float | None = attrs.field(default=None, converter=number, validator=positive_or_none)
    max_weight: float | None = attrs.field(default=1.0, validator=number_in(or_none=True))

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the step size before any gradient is known; raise ValueError if ``start`` is None."""
        return started(self) * max(1 - epoch / max(n_epochs, 1), LAST) ** 2

    def init(self, prototypes: Prototypes) -> DoGState:
        """Return the memory for K prototypes that have not moved yet."""
        return DoGState(np.array(prototypes), 0.0, 0.0, 0.0, 0)

    @has_kernel("distance_over_gradients")
    def update(self, memory: DoGState, gradient_norm: float, epoch: int, n_epochs: int) -> tuple[DoGState, float]:
        """Return the new memory and the size of a step, given the norm of its gradient or a bound on it.

        Examples
        --------
        >>> rule = AdaptiveStep(0.5)
        >>> memory, first = rule.update(rule.init(np.zeros((1, 2))), 3.0, 0, 10)
        >>> memory, second = rule.update(memory._replace(max_dist=6.0), 4.0, 0, 10)
        >>> first, second  # 0.5, and 6 / 5
        (0.5, 1.2)
        """
        max_grad = max(memory.max_grad, gradient_norm)
        total = memory.total + gradient_norm * gradient_norm
        memory = memory._replace(max_grad=max_grad, total=total, n_steps=memory.n_steps + 1)
        return memory, self._size(memory, self(epoch, n_epochs))

    def _size(self, memory: DoGState, value: float) -> float:
        """Return the size of the last step that is counted in the memory, given the value of the decay."""
        if not 0 < memory.total < math.inf:
            return value
        return value * max(memory.max_dist / (self.start or 1.0), memory.max_grad) / math.sqrt(memory.total)

    def pace(self, memory: DoGState, epoch: int, n_epochs: int) -> tuple[tuple[float, float, float, float], int]:
        """Return four numbers from which compiled steps compute their sizes, and how many steps ``observe`` waits for.

        The numbers are the value of the decay, the largest distance over ``start``, the largest norm of a
        gradient, and the sum of their squares.
        """
        gap = interval(memory.n_steps)
        value = self(epoch, n_epochs)
        return (value, memory.max_dist / (self.start or 1.0), memory.max_grad, memory.total), gap - memory.n_steps % gap

    def after(self, memory: DoGState, pace: Array, n_steps: int) -> tuple[DoGState, float]:
        """Return the memory and the last step size after ``n_steps`` compiled steps, which updated ``pace`` (4,)."""
        value, _, max_grad, total = pace.tolist()
        memory = memory._replace(max_grad=max_grad, total=total, n_steps=memory.n_steps + n_steps)
        return memory, self._size(memory, value)

    @has_kernel("distance_over_gradients")
    def observe(self, memory: DoGState, manifold: AnyManifold, prototypes: Prototypes) -> DoGState:
        """Return the memory after a step; only after some steps is the distance from the start measured."""
        if memory.n_steps % interval(memory.n_steps):
            return memory
        codes = np.asarray(prototypes)
        init = memory.init
        pairs = [slice(k, k + PROTOTYPES_AT_ONCE) for k in range(0, len(codes), PROTOTYPES_AT_ONCE)]
        total = sum(float(np.trace(manifold.sqdist(init[rows], codes[rows]))) for rows in pairs)
        return memory._replace(max_dist=max(memory.max_dist, math.sqrt(total)))

    def resize(self, memory: DoGState, rebuild: Callable[[Array], Array]) -> DoGState:
        """Return the memory after prototypes were added or removed; new ones start where they were added."""
        return memory._replace(init=rebuild(memory.init))
