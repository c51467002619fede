"""Makes positive definite matrices from signals, images and pixels, before anything is classified.

Each function has a transformer with the same options, for pipelines.
"""

from rplvq.features._bands import (
    AugmentedCovariances,
    FilterBankCovariances,
    augmented_covariances,
    filter_bank_covariances,
)
from rplvq.features._covariances import shrink
from rplvq.features._pixels import boxcar, grey5, rgb9
from rplvq.features._regions import RegionCovariances, region_covariances
from rplvq.features._subspace import CommonSubspace
from rplvq.features._trials import TrialCovariances, trial_covariances

__all__ = [
    "AugmentedCovariances", "CommonSubspace", "FilterBankCovariances", "RegionCovariances", "TrialCovariances",
    "augmented_covariances", "boxcar", "filter_bank_covariances", "grey5", "region_covariances", "rgb9", "shrink",
    "trial_covariances",
]  # fmt: skip
