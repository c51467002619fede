"""What training carries from step to step, and how slopes become weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rplvq.learned import Learned
from rplvq.protocols import Array, Prototypes, Schedule

__all__ = ["Result", "State", "Step", "pair_weights", "shared_step", "shortened"]


class State(NamedTuple):
    """What training carries from step to step.

    Parameters
    ----------
    prototypes : Prototypes
        K prototypes, as their manifold carries them.
    labels : ndarray of int of shape (K,)
        Class index of each, sorted.
    sigma2_schedule, step_schedule : Schedule
        Resolved for the data.
    epoch : int
        Epochs begun.
    sigma2, step_size : float
        Values in this epoch.
    memory : object, optional
        What an adaptive step size remembers of the way (:class:`rplvq.adaptive.Travel`).
    trail : object, optional
        Where averaged prototypes (:class:`rplvq.averaging.Trail`) go on.
    """

    prototypes: Prototypes
    labels: Array
    sigma2_schedule: Schedule
    step_schedule: Schedule
    epoch: int
    sigma2: float
    step_size: float
    memory: Any = None
    trail: Any = None

    def at_epoch(self, epoch: int, n_epochs: int) -> State:
        """Return this state with the schedules' values of ``epoch``; a learned sigma2 stays, but in epoch 0.

        Raises
        ------
        ValueError
            If a schedule gives anything but a positive finite number.
        """
        kept = isinstance(self.sigma2_schedule, Learned) and epoch > 0
        return self._replace(
            epoch=epoch,
            sigma2=self.sigma2 if kept else _value("sigma2", self.sigma2_schedule, epoch, n_epochs),
            step_size=_value("step_size", self.step_schedule, epoch, n_epochs),
        )


def _value(name: str, schedule: Schedule, epoch: int, n_epochs: int) -> float:
    value = float(schedule(epoch, n_epochs))
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value} in epoch {epoch} from {schedule!r}")
    return value


class Step(NamedTuple):
    """One step: the moved prototypes, what was seen before it, and how many weights were capped."""

    prototypes: Prototypes
    sqdist: Array  # (B, K), before the step
    loss: Array  # (B,), before the step
    n_capped: int
    memory: Any = None  # of an adaptive step size, with the size it took
    step_size: float = np.nan


class Result(NamedTuple):
    """The outcome of a run: the final state, and the history as one array a column."""

    state: State
    history: dict[str, Array]


def pair_weights(
    slope: Array, sqdist: Array, step_size: float, max_weight: float | None, max_length: float
) -> tuple[Array, int]:
    """Turn slopes (B, K) into the weights ``2 step slope / B`` of the logarithms, capped twice.

    A weight of 1 carries a prototype to the sample, and more is never useful: each is cut to
    ``max_weight``. Then the weights of a prototype are shrunk together until the sum of
    ``|weight| distance``, which bounds its step, is at most ``max_length``.

    Returns
    -------
    weights : ndarray of shape (B, K)
    n_capped : int
        Weights cut plus prototypes shortened.
    """
    weights = slope * (2.0 * step_size)
    n_capped = 0
    # Norms bound the largest entries and cost less than looking for those: most steps need no cap at all.
    norm = np.vdot(weights, weights)
    reach = len(weights) * norm * np.vdot(sqdist, sqdist) ** 0.5
    if max_weight is not None and norm > max_weight * max_weight:
        n_capped = int(np.count_nonzero(np.abs(weights) > max_weight))
        weights = np.clip(weights, -max_weight, max_weight)
    if len(weights) > 1:
        weights = weights / len(weights)
    if reach > max_length * max_length:
        lengths = np.sum(np.abs(weights) * np.sqrt(sqdist), axis=0)
        n_capped += int(np.count_nonzero(lengths > max_length))
        weights = weights * (max_length / np.maximum(lengths, max_length))
    return weights, n_capped


def shared_step(sigma2: float, n_prototypes: int, n_samples: float) -> float:
    """Return the step size by which no sample weighs more than its share in a mean of N / K, nor more than a half."""
    return sigma2 * min(n_prototypes / n_samples, 0.5)


def shortened(tangents: Array, lengths: Array, max_length: float) -> tuple[Array, int]:
    """Shrink tangents (K, ...), sums over parts of a batch, whose lengths (K,) exceed ``max_length``; count them."""
    n_shortened = int(np.count_nonzero(lengths > max_length))
    if not n_shortened:
        return tangents, 0
    scale = max_length / np.maximum(lengths, max_length)
    return tangents * scale.reshape(-1, *[1] * (tangents.ndim - 1)), n_shortened
