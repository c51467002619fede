"""Covariance matrices of signals and images, under a short name for users."""

from rplvq.preprocessing import grey5, region_covariances, rgb9, shrink, trial_covariances

__all__ = ["grey5", "region_covariances", "rgb9", "shrink", "trial_covariances"]
