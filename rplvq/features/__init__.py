"""Makes positive definite matrices from signals, images and pixels, before anything is classified."""

from rplvq.features._bands import augmented_covariances, filter_bank_covariances
from rplvq.features._boxcar import boxcar
from rplvq.features._covariances import region_covariances, shrink, trial_covariances
from rplvq.features._pixels import grey5, rgb9

__all__ = [
    "augmented_covariances", "boxcar", "filter_bank_covariances", "grey5", "region_covariances", "rgb9", "shrink",
    "trial_covariances",
]  # fmt: skip
