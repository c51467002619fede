"""Covariance matrices from signals and images."""

from rplvq.preprocessing import grey5, region_covariances, rgb9, trial_covariances

__all__ = ["grey5", "region_covariances", "rgb9", "trial_covariances"]
