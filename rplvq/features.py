"""Covariance matrices of signals and images, under a short name for users."""

from rplvq.preprocessing import boxcar, grey5, region_covariances, rgb9, shrink, trial_covariances

__all__ = ["boxcar", "grey5", "region_covariances", "rgb9", "shrink", "trial_covariances"]
