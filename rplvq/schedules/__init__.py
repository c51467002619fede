"""Schedules of the step size and of sigma2, which give one number per epoch, and rules that choose their start.

Everything here works on numbers and distances. What has to train in order to choose is in :mod:`rplvq.selection`.
"""

from rplvq.schedules._adaptive import AdaptiveStep, DoGState
from rplvq.schedules._schedules import (
    Annealed,
    Constant,
    GeometricDecay,
    InverseTime,
    StepDecay,
    is_auto,
    resolve,
    wants_default,
)
from rplvq.schedules._sigma2 import (
    InitialEvidence,
    blended_sigma2,
    evenly_spaced,
    free_numbers,
    half_median,
    initial_evidence,
    likeliest_sigma2,
    median_sqdist,
    resolve_sigma2,
)
from rplvq.schedules._steps import (
    Share,
    ShareStep,
    StepSize,
    as_step_rule,
    paper_start,
    resolve_step_size,
    step_of_share,
)

__all__ = [
    "AdaptiveStep", "Annealed", "Constant", "DoGState", "GeometricDecay", "InitialEvidence", "InverseTime", "Share",
    "ShareStep", "StepDecay", "StepSize", "as_step_rule", "blended_sigma2", "evenly_spaced", "free_numbers",
    "half_median", "initial_evidence", "is_auto", "likeliest_sigma2", "median_sqdist", "paper_start", "resolve",
    "resolve_sigma2", "resolve_step_size", "step_of_share", "wants_default",
]  # fmt: skip
