"""Schedules of the step size and of sigma2, which give one number per epoch, and rules that choose their start.

Everything here works on numbers and distances. :class:`rplvq.HeldOut`, a rule that has to train, only lists its
candidates here; :mod:`rplvq.training` tries them.
"""

from rplvq.schedules._adaptive import AdaptiveStep, DoGState
from rplvq.schedules._held_out import HeldOut, is_untrained
from rplvq.schedules._schedules import (
    REFERENCE_EPOCHS,
    Annealed,
    Constant,
    GeometricDecay,
    StepDecay,
    StepSize,
    as_step_rule,
    default_shares,
    default_step,
    is_auto,
    paper_start,
    resolve,
    resolve_step_size,
    wants_default,
)
from rplvq.schedules._sigma2 import (
    InitialEvidence,
    blended_sigma2,
    free_numbers,
    half_median,
    initial_evidence,
    likeliest_sigma2,
    resolve_sigma2,
)

__all__ = [
    "REFERENCE_EPOCHS", "AdaptiveStep", "Annealed", "Constant", "DoGState", "GeometricDecay", "HeldOut",
    "InitialEvidence", "StepDecay", "StepSize", "as_step_rule", "blended_sigma2", "default_shares", "default_step",
    "free_numbers", "half_median", "initial_evidence", "is_auto", "is_untrained", "likeliest_sigma2", "paper_start",
    "resolve", "resolve_sigma2", "resolve_step_size", "wants_default",
]  # fmt: skip
