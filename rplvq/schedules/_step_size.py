"""How long steps are: a schedule, the cap on each weight, and what happens in a stream after the last epoch."""

from __future__ import annotations

from typing import Any

import attrs

from rplvq.parts import count_from, library_part, positive_or_none
from rplvq.protocols import Schedule
from rplvq.schedules._adaptive import AdaptiveStep
from rplvq.schedules._decay import is_auto, resolve

__all__ = ["StepSize", "as_step_rule", "shared_step"]


@library_part
@attrs.frozen
class StepSize:
    """The step size of training, for users who want to change more than its schedule.

    The weight of the logarithm that pulls prototype k towards sample b is ``2 step_size slope_bk / B``. A weight of 1
    moves the prototype to the sample, and more is never useful. The paper's step exceeds this if its start is larger
    than sigma2, and the prototypes then diverge. Weights are therefore capped at ``max_weight``; the presets of the
    paper set ``max_weight=None``.

    Parameters
    ----------
    schedule : float, Schedule, "auto" or None, default=None
        As for the parameter ``step_size`` of :class:`rplvq.RiemannianLVQ`.
    max_weight : float or None, default=1.0
        Largest absolute weight of a (sample, prototype) pair; None does not cap weights.
    horizon : int, default=1000
        Number of recent samples that a stream should represent. After ``max_epochs`` epochs and calls, ``partial_fit``
        with a default schedule (None or "auto") takes steps of at least ``K sigma2 / horizon``, so that learning never
        ends. A smaller number follows changes faster.

    Examples
    --------
    >>> from rplvq import GeometricDecay, RiemannianLVQ
    >>> from rplvq.schedules import StepSize
    >>> model = RiemannianLVQ(step_size=StepSize(GeometricDecay(0.1), max_weight=None))
    >>> model.get_params()["step_size__max_weight"] is None
    True
    """

    schedule: Any = None
    max_weight: float | None = attrs.field(default=1.0, validator=positive_or_none)
    horizon: int = attrs.field(default=1000, validator=count_from(1))

    @property
    def is_default(self) -> bool:
        """Whether the library chooses the schedule."""
        return is_auto(self.schedule)

    def resolved(self, default: Schedule) -> Schedule:
        """Return the schedule; ``default`` fills in what was not given.

        Raises
        ------
        ValueError
            If the schedule is neither a positive number, a Schedule, None nor "auto".
        """
        return resolve(self.schedule, default, "step_size")

    def in_stream(self, step_size: float, sigma2: float, n_prototypes: int) -> float:
        """Return the step size of a call of ``partial_fit`` after the last epoch, given that of the last epoch."""
        return max(step_size, shared_step(sigma2, n_prototypes, self.horizon)) if self.is_default else step_size


def shared_step(sigma2: float, n_prototypes: int, n_samples: float) -> float:
    """Return the step size at which a sample weighs as much as in the mean of N / K samples, and at most a half.

    Examples
    --------
    >>> shared_step(sigma2=2.0, n_prototypes=4, n_samples=80)
    0.1
    """
    return sigma2 * min(n_prototypes / n_samples, 0.5)


def as_step_rule(value: Any) -> Any:
    """Turn what a user passes for ``step_size`` into an object that knows its cap: a StepSize or another step rule.

    Examples
    --------
    >>> as_step_rule(0.1)
    StepSize(schedule=0.1, max_weight=1.0, horizon=1000)
    >>> as_step_rule("adaptive")
    AdaptiveStep(start=None, every=32, max_weight=1.0)
    """
    if isinstance(value, str) and value == "adaptive":
        return AdaptiveStep()
    # Found by structure, so that a step rule of a user's own is passed on as it is.
    is_rule = not isinstance(value, type) and any(hasattr(value, name) for name in ("update", "in_stream"))
    return value if is_rule else StepSize(value)
