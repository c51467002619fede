"""One number per epoch: schedules of the step size and of sigma2, and the rules that choose them.

Everything here works on numbers and distances. A rule that has to train is only described here, by
:class:`rplvq.HeldOut`; :mod:`rplvq.training` runs it.
"""

from rplvq.schedules._adaptive import AdaptiveStep, DoGState
from rplvq.schedules._decay import Annealed, Constant, GeometricDecay, StepDecay, is_auto, resolve, wants_default
from rplvq.schedules._held_out import AUTO, HeldOut, annealed
from rplvq.schedules._sigma2 import (
    InitialEvidence,
    blended_sigma2,
    free_numbers,
    half_median,
    likeliest_sigma2,
    resolve_sigma2,
)
from rplvq.schedules._step_size import StepSize, as_step_rule, shared_step

__all__ = [
    "AUTO",
    "AdaptiveStep",
    "Annealed",
    "Constant",
    "DoGState",
    "GeometricDecay",
    "HeldOut",
    "InitialEvidence",
    "StepDecay",
    "StepSize",
    "annealed",
    "as_step_rule",
    "blended_sigma2",
    "free_numbers",
    "half_median",
    "is_auto",
    "likeliest_sigma2",
    "resolve",
    "resolve_sigma2",
    "shared_step",
    "wants_default",
]
