"""How a run of the trainer begins: with prototypes that are chosen, and schedules resolved for the data."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rplvq.adaptive import AdaptiveStep, named_step
from rplvq.costs.plvq import PLVQ
from rplvq.costs.rslvq import RSLVQ
from rplvq.learned import Learned, require_homogeneous
from rplvq.protocols import Array, Prototypes
from rplvq.samples import as_asked, distances
from rplvq.schedules import GeometricDecay, resolve, wants_default
from rplvq.sigma2 import Start, free_numbers, resolve_sigma2
from rplvq.steps import State, shared_step

if TYPE_CHECKING:
    from rplvq.trainer import Trainer

__all__ = ["default_starts", "look", "ready"]

SAME_POINT = 1e-28


def _unit(trainer: Trainer, codes: Array, sample_weight: Array | None) -> float:
    manifold = trainer.manifold
    return float(manifold.unit(as_asked(manifold, codes), sample_weight)) if hasattr(manifold, "unit") else 1.0


def look(
    trainer: Trainer,
    prototypes: Prototypes,
    labels: Array,
    codes: Array,
    targets: Array,
    sample_weight: Array | None = None,
) -> Start:
    """Return what rules for sigma2 may look at: one pass of distances to K initial prototypes.

    Parameters
    ----------
    trainer : Trainer
        Its manifold and cost count.
    prototypes, labels : Prototypes and ndarray of int of shape (K,)
        From the initializer.
    codes, targets, sample_weight
        As for :meth:`rplvq.Trainer.init`.

    Returns
    -------
    rplvq.sigma2.Start
    """
    sqdist = distances(trainer.manifold, prototypes, codes, len(labels))
    n_free = len(labels) * free_numbers(codes)
    priors = trainer.cost.priors if isinstance(trainer.cost, (RSLVQ, PLVQ)) else None
    # Distances are about 1e-16 units between equal points that went through different arithmetic.
    rounding = SAME_POINT * _unit(trainer, codes, sample_weight)
    return Start(sqdist, targets, labels, n_free, sample_weight, priors, rounding)


def default_starts(
    trainer: Trainer, sigma2: float, n_prototypes: int, codes: Array, n_classes: int, sample_weight: Array | None = None
) -> tuple[float, float]:
    """Return the paper's first step size, and the share of a sample in a mean, to which "auto" bounds it."""
    total = len(codes) if sample_weight is None else float(sample_weight.sum())
    paper = codes.shape[-1] * n_prototypes / n_classes / 100 * _unit(trainer, codes, sample_weight)
    return paper, shared_step(sigma2, n_prototypes, total)


def ready(
    trainer: Trainer,
    prototypes: Prototypes,
    labels: Array,
    codes: Array,
    targets: Array,
    n_classes: int,
    sample_weight: Array | None = None,
) -> State:
    """Resolve both schedules of a trainer for the data, with prototypes that are chosen already.

    Parameters
    ----------
    trainer : Trainer
        Its sigma2 is a number, a Schedule, a name of :data:`rplvq.sigma2.RULES` or None.
    prototypes, labels : Prototypes and ndarray of int of shape (K,)
        Where training begins.
    codes, targets, n_classes, sample_weight
        As for :meth:`rplvq.Trainer.init`.

    Returns
    -------
    State
        Before the first epoch.

    Raises
    ------
    ValueError
        If ``sigma2`` or ``step_size`` is neither a positive number nor a schedule of such, or belongs to the other.
    """
    if isinstance(trainer.sigma2, AdaptiveStep):
        raise ValueError(f"sigma2={trainer.sigma2!r} adapts a step size; give sigma2 a number or another schedule")
    if isinstance(trainer.step_size, Learned):
        raise ValueError(f"step_size={trainer.step_size!r} learns sigma2; give step_size a number or another schedule")
    see = partial(look, trainer, prototypes, labels, codes, targets, sample_weight)
    sigma2, start, rule = resolve_sigma2(trainer.sigma2, see), 1.0, named_step(trainer.step_size)
    if isinstance(sigma2, Learned):
        require_homogeneous(trainer.cost, see().sqdist, targets, labels, sigma2(0, 1))
    if wants_default(rule):
        start, gentle = default_starts(
            trainer, sigma2(0, trainer.max_epochs), len(labels), codes, n_classes, sample_weight
        )
        if isinstance(rule, str):  # "auto"; resolve refuses any other
            start = min(start, gentle)
    step_size = resolve(rule, GeometricDecay(start), "step_size")
    memory = step_size.begin(prototypes) if isinstance(step_size, AdaptiveStep) else None
    state = State(prototypes, labels, sigma2, step_size, 0, 0.0, 0.0, memory)
    return state.at_epoch(0, trainer.max_epochs)
