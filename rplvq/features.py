"""Covariance matrices of signals and images, under a short name for users."""

from rplvq.preprocessing import (
    augmented_covariances,
    boxcar,
    filter_bank_covariances,
    grey5,
    region_covariances,
    rgb9,
    shrink,
    trial_covariances,
)

__all__ = [
    "augmented_covariances", "boxcar", "filter_bank_covariances", "grey5", "region_covariances", "rgb9", "shrink",
    "trial_covariances",
]  # fmt: skip
