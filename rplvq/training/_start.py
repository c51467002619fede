"""How a run starts: what the rules for sigma2 see of the first prototypes, and the default step sizes."""

from __future__ import annotations

from typing import Any

from rplvq.arrays import Samples, distances, materialise
from rplvq.protocols import Cost, Manifold, Prototypes
from rplvq.schedules import InitialEvidence, free_numbers, shared_step

__all__ = ["default_starts", "initial_evidence"]

SAME_POINT = 1e-28
"""Squared distance, in units of the data, between equal points that went through different arithmetic."""


def initial_evidence(
    manifold: Manifold[Any], cost: Cost, prototypes: Prototypes, labels: Any, samples: Samples
) -> InitialEvidence:
    """Return what rules for sigma2 may use: one pass of distances to the K initial prototypes.

    Parameters
    ----------
    manifold, cost
        The geometry, and the loss whose priors count.
    prototypes, labels : Prototypes and ndarray of int of shape (K,)
        From the initializer.
    samples : Samples
        N samples.

    Returns
    -------
    rplvq.schedules.InitialEvidence
    """
    sqdist = distances(manifold, prototypes, samples.codes)
    n_free = len(labels) * free_numbers(samples.codes)
    priors = getattr(cost, "priors", None)
    rounding = SAME_POINT * _unit(manifold, samples)
    return InitialEvidence(sqdist, samples.targets, labels, n_free, samples.weights, priors, rounding)


def default_starts(
    manifold: Manifold[Any], sigma2: float, n_prototypes: int, n_classes: int, samples: Samples
) -> tuple[float, float]:
    """Return the first step size of the paper, and the one at which a sample weighs as much as in a mean."""
    paper = samples.codes.shape[-1] * n_prototypes / n_classes / 100 * _unit(manifold, samples)
    return paper, shared_step(sigma2, n_prototypes, samples.total_weight)


def _unit(manifold: Manifold[Any], samples: Samples) -> float:
    """Squared length scale of the data; 1 where distances carry no unit."""
    unit = getattr(manifold, "unit", None)
    return 1.0 if unit is None else float(unit(materialise(unit, samples.codes), samples.weights))
